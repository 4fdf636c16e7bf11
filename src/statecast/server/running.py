"""A run that goes on: the agent's task, and the supervisor that ends it. Exactly one terminal event while it has a client.

The agent runs in a task of its own, never inside the response's cancel scope: there a `finally: await db.close()` would be
cancelled again at every await. It is cancelled once, and has `grace` seconds for its `finally` blocks. A second task, the
supervisor, awaits the agent and ends the run whatever happens to the request.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable
from dataclasses import replace
from time import monotonic
from typing import Any

from ag_ui.core import RunAgentInput
from starlette.requests import Request

from ..conversation import Conversation
from ..ending import CancelReason, Ending, SentEvent
from ..errors import AgentError
from ..logs import run_ids
from ..outbox import Outbox
from ..questions import Questions
from ..run import Run, current
from ..state import Document
from ..stream.channel import Channel
from ..stream.downgrade import Downgrade
from ..stream.rules import Sequence
from ..tracing import Span
from .observer import Observer
from .options import Options
from .service import Service
from .verdict import Verdict
from .watchdog import watched

__all__ = ["Running"]

# Agents that went on after their grace: the loop itself keeps only weak references to tasks.
_left_running: set[asyncio.Task[None]] = set()


class Running:
    """Everything that one run needs, and its two tasks.

    Attributes:
        run: what the agent receives.
        outbox, channel: what it sends, and where the reader finds it.
        exception, result: how the agent's task ended.
        reason: why it was cancelled on purpose.
        disconnected: the client has gone.
        fatal: why it could not go on.
        ending: how the run ended, once it has.
    """

    def __init__(
        self,
        service: Service,
        input: RunAgentInput,
        document: Document[Any],
        options: Options,
        *,
        request: Request | None,
        principal: Any,
        downgrade: Downgrade | None,
        log: logging.LoggerAdapter[logging.Logger],
    ) -> None:
        self.options = options
        self.log = log
        self.service = service
        self.exception: BaseException | None = None
        self.result: Any = None
        self.reason: CancelReason | None = None
        self.disconnected = False
        self.fatal: AgentError | None = None
        self.ending: Ending | None = None
        self.channel = Channel()
        self._observer = Observer(self._observe, log) if service.observes else None
        self.outbox = Outbox(
            document=document,
            sequence=Sequence(input.thread_id, messages=input.messages, tools=input.tools or ()),
            messages=Conversation(input.messages, debug=options.debug, on_change=self._edited, on_warning=self._warned),
            channel=self.channel,
            first_delta=options.first_state == "delta",
            state_interval=options.state_interval,
            downgrade=downgrade,
            on_fatal=self._fail,
            observe=None if self._observer is None else self._observer.note,
            debug=options.debug,
            log=log,
        )
        self.questions = Questions(input, debug=options.debug, log=log)
        self._verdict = Verdict(self)
        self.run: Run[Any] = Run(
            input=input,
            document=document,
            outbox=self.outbox,
            questions=self.questions,
            describe=self._verdict.describe,
            request=request,
            principal=principal,
        )

    def start(self, started: dict[str, Any], sent: bytes, over: Callable[[], None]) -> None:
        """Starts the agent, in the context of the caller.

        Args:
            started: the RUN_STARTED event, and its frame `sent`, which the reader has written.
            over: called when the run is over.
        """
        self._started_at = monotonic()
        self._loop = loop = asyncio.get_running_loop()
        self.outbox.begin(started, sent)
        self._gave_up: asyncio.Future[None] = loop.create_future()
        self._timers: list[asyncio.TimerHandle] = []
        if self.options.timeout is not None:
            self._timers.append(loop.call_later(self.options.timeout, self.cancel, "timeout"))
        # The supervisor first: it must be there before the agent can block the loop.
        self._supervisor = loop.create_task(self._supervise(over), name=f"statecast supervisor {self.run.run_id}")
        self._agent = loop.create_task(self._author(), name=f"statecast run {self.run.run_id}")

    def cancel(self, reason: CancelReason) -> None:
        """Stops the run on purpose: it ends with the cancelled outcome (L3). Does nothing in a run that is over."""
        if self.reason is None and self.ending is None:
            self.reason = reason
            self._cancel_agent()

    def disconnect(self) -> None:
        """The client has gone: cancels the agent, sends nothing more."""
        if not self.disconnected and self.ending is None:
            self.disconnected = True
            self.outbox.abandon()
            self._cancel_agent()

    async def _author(self) -> None:
        current.set(self.run)
        run_ids.set((self.run.thread_id, self.run.run_id))
        span = Span("run", {"agent": self.service.name, "thread_id": self.run.thread_id, "run_id": self.run.run_id})
        span.enter()
        try:
            self.result = await self.service.run(self.run)
        except KeyboardInterrupt:
            raise
        except BaseException as exc:
            # SystemExit included: a tool that calls sys.exit() must not end the server.
            self.exception = exc
        finally:
            span.leave(self.exception)

    async def _supervise(self, over: Callable[[], None]) -> None:
        run_ids.set((self.run.thread_id, self.run.run_id))
        agent = self._agent
        observing = None if self._observer is None else self._loop.create_task(self._observer.run())
        try:
            with watched():
                await asyncio.wait({agent, self._gave_up}, return_when=asyncio.FIRST_COMPLETED)
            if not agent.done():
                self._leave_running(agent)
            ending = self._verdict.end()
            self.ending = ending = replace(
                ending,
                seconds=monotonic() - self._started_at,
                events=self.channel.event_count,
                bytes=self.channel.byte_count,
                state_events=self.outbox.state_events,
            )
            self._say(ending)
            await self._tell(ending)
        finally:
            for timer in self._timers:
                timer.cancel()
            self._gave_up.cancel()
            self.outbox.abandon()
            if observing is not None:
                await self._last_look(observing)
            over()

    def _cancel_agent(self) -> None:
        if self.outbox.cancelled or self._agent.done():
            return
        self.outbox.cancel()
        self._agent.cancel()
        self._timers.append(self._loop.call_later(self.options.grace, self._give_up))

    def _give_up(self) -> None:
        if not self._gave_up.done():
            self._gave_up.set_result(None)

    def _leave_running(self, agent: asyncio.Task[None]) -> None:
        self.log.error(
            "the agent goes on %g s after it was cancelled; left running at:\n%s",
            self.options.grace,
            _await_stack(agent),
        )
        _left_running.add(agent)
        agent.add_done_callback(_left_running.discard)

    def _fail(self, error: AgentError) -> None:
        """The run cannot go on, and no line of the author can be told so."""
        self.fatal = error
        self._cancel_agent()

    def _edited(self) -> None:
        self.outbox.edited()

    def _warned(self, text: str) -> None:
        self.log.warning("%s", text)

    def _say(self, ending: Ending) -> None:
        why = ending.reason if ending.error is None else ending.error.code
        how = ending.kind if why is None else f"{ending.kind} ({why})"
        self.log.info(
            "%s: %s in %.3f s, %d events, %d bytes, %d state events",
            self.service.name,
            how,
            ending.seconds,
            ending.events,
            ending.bytes,
            ending.state_events,
        )

    def _observe(self, event: SentEvent) -> None:
        self.service.on_event(self.run, event)

    async def _last_look(self, observing: asyncio.Task[None]) -> None:
        assert self._observer is not None
        self._observer.close()
        await asyncio.wait({observing}, timeout=self.options.grace)
        if not observing.done():
            self.log.warning("on_event is slower than the run: left after %g s", self.options.grace)
            observing.cancel()

    async def _tell(self, ending: Ending) -> None:
        try:
            async with asyncio.timeout(self.options.grace):
                await self.service.on_finish(self.run, ending)
        except KeyboardInterrupt:
            raise
        except BaseException:
            # SystemExit included, as in `_author`.
            self.log.exception("Agent.on_finish failed")


def _await_stack(task: asyncio.Task[None]) -> str:
    """Where a task waits, outermost call first. `Task.print_stack` knows the outermost only."""
    frames = []
    waiting: Any = task.get_coro()
    while waiting is not None:
        frame = (
            getattr(waiting, "cr_frame", None)
            or getattr(waiting, "gi_frame", None)
            or getattr(waiting, "ag_frame", None)
        )
        if frame is not None:
            frames.append((frame, frame.f_lineno))
        waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "gi_yieldfrom", None)
    return "".join(traceback.StackSummary.extract(iter(frames)).format())
