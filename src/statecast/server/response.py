"""The HTTP response of a run: Server-Sent Events until its terminal event."""

from __future__ import annotations

import asyncio
import logging
from time import monotonic
from typing import cast

import anyio
from sse_starlette import EventSourceResponse
from sse_starlette.sse import SendTimeoutError
from starlette.types import Message, Receive, Scope, Send

from ..logs import run_ids
from ..stream.channel import turn
from .execution import Execution
from .stall import Stall

__all__ = ["RunResponse"]

logger = logging.getLogger("statecast.server")


class RunResponse(EventSourceResponse):
    """Streams a run's frames, where `EventSourceResponse` alone would do otherwise:

    - LF line ends: the main consumer takes CRLF for a malformed frame (W2). The keep-alive comes from the reader, after
      seconds of *silence*, so there is no ping task.
    - No `Connection` header: it is the server's, and illegal in HTTP/2.
    - A slow client that is dropped is a line in the log, not a traceback.
    - At shutdown the run ends with its terminal event, and the body in order.
    - The request lasts until the run's supervisor is done, so that a task never outlives its owner.
    - Chunks are written without a cancel scope and a debug line each, which cost more than a small chunk: one timer looks
      whether a write has stalled.
    """

    def __init__(self, execution: Execution) -> None:
        options = execution.options
        super().__init__(
            iter(()),  # see _stream_response
            headers={"Cache-Control": "no-store, no-transform"},
            sep="\n",
            ping=0,
            send_timeout=options.send_timeout,
            client_close_handler_callable=self._on_close,
            # Only `set` is called on it.
            shutdown_event=cast(anyio.Event, _CancelOnSet(execution)),
            shutdown_grace_period=options.grace + 1,
        )
        del self.headers["connection"]
        self._execution = execution
        self._begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._execution.open()
        run_ids.set(self._execution.ids)
        try:
            await self._greet(send)
            await super().__call__(scope, receive, send)
        except SendTimeoutError:
            self._note_stall()
        except asyncio.CancelledError:
            # Not by the client: a server that was stopped by no signal waits no longer.
            if self._begun and self.active:
                self._execution.cancel("shutdown")
                try:
                    await self._stream_response(send)
                except SendTimeoutError:
                    self._note_stall()
            raise
        finally:
            await self._execution.leave()

    async def _greet(self, send: Send) -> None:
        """Sends the head and the first frame, and starts the run.

        Not left to the tasks that watch the client and the server: to make them takes as long as all that went before. Where
        the server cannot take the first bytes, it lets go when the client leaves; else `send_timeout` ends the wait.
        """
        with Stall(self._execution.options.send_timeout, SendTimeoutError) as stall:
            stall.since = monotonic()
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            self._begun = True
            await send({"type": "http.response.body", "body": self._execution.first(), "more_body": True})
        # uvloop writes at the end of a turn.
        await turn()
        self._execution.begin()

    async def _stream_response(self, send: Send) -> None:
        execution = self._execution
        execution.begin()
        read, wait = execution.read, execution.wait
        with Stall(execution.options.send_timeout, SendTimeoutError) as stall:
            await turn()
            while chunk := read() or await wait():
                execution.spoke_at = stall.since = monotonic()
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                stall.since = None
                await turn()
            self.active = False
            stall.since = monotonic()
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _note_stall(self) -> None:
        self._execution.log.info("the client took nothing for %g s: dropped", self._execution.options.send_timeout)

    async def _on_close(self, message: Message) -> None:
        # Not left to the cancelled reader: it may be a turn late when the agent never really awaits.
        self._execution.disconnect()


class _CancelOnSet:
    def __init__(self, execution: Execution) -> None:
        self._execution = execution

    def set(self) -> None:
        self._execution.cancel("shutdown")
