"""One request's run, from the side of its reader: the first frame, the frames that follow, and the reader's going away.

RUN_STARTED leaves before anything of the run is built, so a client sees within a fraction of a millisecond that it began.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from time import monotonic
from typing import Any

from starlette.requests import Request

from ..ending import CancelReason, Ending
from ..stream.channel import turn
from ..stream.downgrade import Downgrade
from ..stream.sse import KEEP_ALIVE, frame
from .inputs import Prepared
from .options import Options
from .running import Running
from .runs import Runs
from .service import Service

__all__ = ["PROTOCOL_VERSION", "Execution"]

PROTOCOL_VERSION = "1.0"

logger = logging.getLogger("statecast.run")


class Execution:
    """A run that was admitted, and its one reader.

    Args:
        service: the agent.
        prepared: the validated input and the run's state.
        runs: told when the run is admitted and when it is over.

    Attributes:
        read: gives all frames that are ready, as one chunk, perhaps `b""`; once the run was told to `begin`.
        spoke_at: when the client was sent the last chunk, by `time.monotonic`: its reader sets it.
    """

    def __init__(
        self,
        service: Service,
        prepared: Prepared,
        options: Options,
        *,
        request: Request | None = None,
        principal: Any = None,
        runs: Runs | None = None,
    ) -> None:
        self.options = options
        self._service = service
        self._input = given = prepared.input
        self._request = request
        self._principal = principal
        self._runs = runs
        self.ids = given.thread_id, given.run_id
        self.log = logging.LoggerAdapter(logger, {"thread_id": given.thread_id, "run_id": given.run_id})
        for warning in prepared.warnings:
            self.log.warning("%s", warning)
        self._document = prepared.document
        self._started = {
            "type": "RUN_STARTED",
            "threadId": given.thread_id,
            "runId": given.run_id,
            "protocolVersion": PROTOCOL_VERSION,
        }
        if given.parent_run_id is not None:
            self._started["parentRunId"] = given.parent_run_id
        self._lower = None if given.protocol_version is not None else Downgrade(self.log)
        self._first = frame(self._started if self._lower is None else self._lower(self._started) or self._started)
        self.read: Callable[[], bytes]
        self._running: Running | None = None
        self._reason: CancelReason | None = None
        self._disconnected = False
        self._said_first = False
        self.spoke_at = monotonic()

    @property
    def ending(self) -> Ending | None:
        """How the run ended, once it has."""
        return None if self._running is None else self._running.ending

    def open(self) -> None:
        """Takes its place among the runs. Follow it by `first`, `begin`, `read` and `wait`, or by `frames`; and by `leave`."""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._runs is not None:
            self._runs.add(self)

    def first(self) -> bytes:
        """The first frame, RUN_STARTED."""
        self._said_first = True
        return self._first

    def begin(self) -> None:
        """Starts the run, in the context of the caller, when the first frame was taken (L1, L2). Once.

        Give the loop a turn before the first `read`: what the agent sets at once is part of the first state event (D2), or a
        typed state would go out as its defaults first. And one before each `read`: a reader that always finds something awaits
        nothing else that waits, and could never be cancelled.
        """
        if self._running is not None:
            return
        self._running = running = Running(
            self._service,
            self._input,
            self._document,
            self.options,
            request=self._request,
            principal=self._principal,
            downgrade=self._lower,
            log=self.log,
        )
        self.read = running.outbox.read
        running.start(self._started, self._first, self._end)
        # What was validated may differ from what arrived.
        self._document.on_change = running.outbox.touch
        running.outbox.touch()
        if self._reason is not None:
            running.cancel(self._reason)
        if self._disconnected:
            running.disconnect()

    async def wait(self) -> bytes:
        """Waits for the next chunk, when `read` gives none. A comment when the run is silent, `b""` when it has ended."""
        assert self._running is not None
        channel = self._running.channel
        while not channel.closed:
            silence = self.spoke_at + self.options.keepalive - monotonic()
            if silence <= 0:
                return KEEP_ALIVE
            rest = self._running.outbox.rest
            await channel.wait(silence if rest is None else min(rest, silence))
            chunk = self.read()
            if chunk:
                return chunk
        return b""

    async def frames(self) -> AsyncGenerator[bytes, None]:
        """All of it, chunk by chunk: the same for a reader that can spare the step of a generator for each."""
        yield self.first()
        self.begin()
        await turn()
        while chunk := self.read() or await self.wait():
            self.spoke_at = monotonic()
            yield chunk
            await turn()

    def cancel(self, reason: CancelReason) -> None:
        """Stops the run on purpose: it ends with the cancelled outcome (L3). Does nothing in a run that is over."""
        if self._running is not None:
            self._running.cancel(reason)
        elif self._reason is None:
            self._reason = reason

    def disconnect(self) -> None:
        """The client has gone: cancels the agent, sends nothing more."""
        self._disconnected = True
        if self._running is not None:
            self._running.disconnect()

    async def leave(self) -> None:
        """The reader stops reading. Returns when the run is over, or its grace is."""
        self.disconnect()
        if self._running is None:
            if self._said_first:
                # The client was told that it began: it ends like any other, its agent cancelled before its first line.
                self.begin()
            else:
                self._end()
        await asyncio.shield(self.done)

    def _end(self) -> None:
        if not self.done.done():
            self.done.set_result(None)
        if self._runs is not None:
            self._runs.remove(self)
