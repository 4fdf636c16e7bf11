"""One run's life: start, finish, fail, be cancelled, time out, lose its client. Exactly one terminal event while it has one.

The agent runs in a task of its own, never inside the response's cancel scope: there a `finally: await db.close()` would be
cancelled again at every await. It is cancelled once, and has `grace` seconds for its `finally` blocks. A second task, the
supervisor, awaits the agent and ends the run whatever happens to the request.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import AsyncGenerator
from dataclasses import replace
from time import monotonic
from typing import Any

from starlette.requests import Request

from ..conversation import Conversation
from ..ending import CancelReason, Ending, SentEvent, decisive
from ..errors import Abandoned, AgentError, Interrupted, StateError
from ..outbox import Outbox
from ..questions import Questions
from ..run import Run, current
from ..scopes import plain
from ..stream.channel import Channel
from ..stream.downgrade import Downgrade
from ..stream.rules import Sequence
from ..stream.sse import KEEP_ALIVE
from ..tracing import Span
from .inputs import Prepared
from .observer import Observer
from .options import Options
from .runs import Runs
from .service import Service
from .watchdog import watched

__all__ = ["PROTOCOL_VERSION", "Execution"]

PROTOCOL_VERSION = "1.0"
INTERNAL = "The agent failed unexpectedly."

logger = logging.getLogger("statecast.run")

# Agents that went on after their grace: the loop itself keeps only weak references to tasks.
_left_running: set[asyncio.Task[None]] = set()


class Execution:
    """Runs an agent once and lets one reader take its frames.

    Args:
        service: the agent.
        prepared: the validated input and the run's state.
        runs: told when the run starts and ends.
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
        self._runs = runs
        self._input = given = prepared.input
        self.log = logging.LoggerAdapter(logger, {"thread_id": given.thread_id, "run_id": given.run_id})
        for warning in prepared.warnings:
            self.log.warning("%s", warning)
        self._channel = Channel()
        self._observer = Observer(self._observe, self.log) if service.observes else None
        self._messages = Conversation(given.messages, debug=options.debug, on_change=self._edited)
        self._outbox = Outbox(
            sequence=Sequence(given.thread_id, messages=given.messages, tools=given.tools or ()),
            messages=self._messages,
            channel=self._channel,
            first_delta=options.first_state == "delta",
            state_interval=options.state_interval,
            downgrade=Downgrade(self.log) if given.protocol_version is None else None,
            on_fatal=self._fail,
            observe=None if self._observer is None else self._observer.note,
            debug=options.debug,
            log=self.log,
        )
        document = prepared.document
        document.on_change = self._outbox.touch
        self._outbox.watch(document)
        # What was validated may differ from what arrived.
        self._outbox.touch()
        self._questions = Questions(given, debug=options.debug, log=self.log)
        self.run: Run[Any] = Run(
            input=given,
            document=document,
            outbox=self._outbox,
            questions=self._questions,
            describe=self._describe,
            request=request,
            principal=principal,
        )
        self._exception: BaseException | None = None
        self._result: Any = None
        self._reason: CancelReason | None = None
        self._disconnected = False
        self._fatal: AgentError | None = None
        self.ending: Ending | None = None

    # For the response

    def start(self) -> None:
        """Sends RUN_STARTED and starts the agent, in the context of the caller (L1, L2)."""
        self._started_at = monotonic()
        self._loop = loop = asyncio.get_running_loop()
        if self._runs is not None:
            self._runs.add(self)
        started = {
            "type": "RUN_STARTED",
            "threadId": self._input.thread_id,
            "runId": self._input.run_id,
            "protocolVersion": PROTOCOL_VERSION,
        }
        if self._input.parent_run_id is not None:
            started["parentRunId"] = self._input.parent_run_id
        self._outbox.begin(started)
        self._gave_up: asyncio.Future[None] = loop.create_future()
        self._timers: list[asyncio.TimerHandle] = []
        if self.options.timeout is not None:
            self._timers.append(loop.call_later(self.options.timeout, self.cancel, "timeout"))
        # The supervisor first: it must be there before the agent can block the loop.
        self.done = loop.create_task(self._supervise(), name=f"statecast supervisor {self._input.run_id}")
        self._agent = loop.create_task(self._author(), name=f"statecast run {self._input.run_id}")

    async def frames(self) -> AsyncGenerator[bytes, None]:
        """All frames that are ready, chunk by chunk, until the run has ended; comments when it is silent."""
        keepalive = self.options.keepalive
        spoke_at = monotonic()
        while True:
            due = self._outbox.pull()
            chunk = self._channel.take()
            if chunk:
                yield chunk
                spoke_at = monotonic()
                # Without this turn a reader that always finds something can never be cancelled: its future is always done.
                await asyncio.sleep(0)
                continue
            if self._channel.closed:
                return
            silence = spoke_at + keepalive - monotonic()
            if silence <= 0:
                yield KEEP_ALIVE
                spoke_at = monotonic()
                continue
            await self._channel.wait(silence if due is None else min(due, silence))

    def cancel(self, reason: CancelReason) -> None:
        """Stops the run on purpose: it ends with the cancelled outcome (L3). Does nothing in a run that is over."""
        if self._reason is None and self.ending is None:
            self._reason = reason
            self._cancel_agent()

    def disconnect(self) -> None:
        """The client has gone: cancels the agent, sends nothing more."""
        if not self._disconnected and self.ending is None:
            self._disconnected = True
            self._outbox.abandon()
            self._cancel_agent()

    async def leave(self) -> None:
        """The reader stops reading. Returns when the run is over, or its grace is."""
        self.disconnect()
        await asyncio.shield(self.done)

    # The two tasks

    async def _author(self) -> None:
        current.set(self.run)
        span = Span("run", {"agent": self._service.name, "thread_id": self.run.thread_id, "run_id": self.run.run_id})
        span.enter()
        try:
            self._result = await self._service.run(self.run)
        except KeyboardInterrupt:
            raise
        except BaseException as exc:
            # SystemExit included: a tool that calls sys.exit() must not end the server.
            self._exception = exc
        finally:
            span.leave(self._exception)

    async def _supervise(self) -> None:
        observing = None if self._observer is None else self._loop.create_task(self._observer.run())
        try:
            with watched():
                await asyncio.wait({self._agent, self._gave_up}, return_when=asyncio.FIRST_COMPLETED)
            if not self._agent.done():
                self._leave_running()
            ending = self._finish()
            self.ending = ending = replace(
                ending,
                seconds=monotonic() - self._started_at,
                events=self._channel.events,
                bytes=self._channel.bytes,
                state_events=self._outbox.state_events,
            )
            self._say(ending)
            await self._tell(ending)
        finally:
            for timer in self._timers:
                timer.cancel()
            self._gave_up.cancel()
            self._outbox.abandon()
            if observing is not None:
                await self._last_look(observing)
            if self._runs is not None:
                self._runs.remove(self)

    def _edited(self) -> None:
        self._channel.wake()

    def _cancel_agent(self) -> None:
        if not self._agent.done() and not self._outbox.cancelled:
            self._outbox.cancel()
            self._agent.cancel()
            self._timers.append(self._loop.call_later(self.options.grace, self._give_up))

    def _give_up(self) -> None:
        if not self._gave_up.done():
            self._gave_up.set_result(None)

    def _leave_running(self) -> None:
        self.log.error(
            "the agent goes on %g s after it was cancelled; left running at:\n%s",
            self.options.grace,
            _await_stack(self._agent),
        )
        _left_running.add(self._agent)
        self._agent.add_done_callback(_left_running.discard)

    def _fail(self, error: AgentError) -> None:
        """The run cannot go on, and no line of the author can be told so."""
        self._fatal = error
        self._cancel_agent()

    # How it ends

    def _finish(self) -> Ending:
        """Sends the end of the run, if it has a client, and says what it was."""
        ending = self._judge()
        if self._disconnected:
            return Ending("disconnected", exception=self._exception)
        try:
            self._outbox.finish()
        except AgentError as error:
            ending = Ending("failed", error=error, exception=error)
        except StateError as error:
            if ending.kind != "failed":
                self.log.error("the state cannot be written at the end of the run: %s", error)
                invalid = AgentError("The agent's state cannot be written.", "state_invalid")
                ending = Ending("failed", error=invalid, exception=error)
        if ending.kind == "finished":
            try:
                ending = replace(ending, result=plain(ending.result))
            except StateError as error:
                self.log.error("run() returned a %s, which is not JSON: %s", type(ending.result).__name__, error)
                ending = Ending("failed", error=AgentError(INTERNAL, "internal"), exception=error)
        self._questions.warn_ignored()
        if self.options.debug and (changed := self._messages.changed_in_place()):
            self.log.error(
                "messages were changed in place, which is not sent: %s; assign a new message: "
                "run.messages[i] = message.model_copy(update=…)",
                ", ".join(changed),
            )
        try:
            self._outbox.end(*self._last_events(ending))
        except Exception as error:
            self.log.exception("the run could not be closed in order")
            ending = Ending("failed", error=AgentError(INTERNAL, "internal"), exception=error)
            self._outbox.end(*self._last_events(ending))
        return ending

    def _judge(self) -> Ending:
        exc = self._exception
        if self._fatal is not None:
            return Ending("failed", error=self._fatal, exception=self._fatal)
        cause = None if exc is None else decisive(exc)
        if cause is not None and not isinstance(cause, (Abandoned, Interrupted, asyncio.CancelledError)):
            return self._failed(cause, exc)
        if self._reason is not None:
            return Ending("cancelled", reason=self._reason, exception=exc)
        if isinstance(cause, Abandoned):
            return Ending("cancelled", reason="abandoned", exception=exc)
        if self._questions.interrupts:
            return Ending("interrupted", exception=exc)
        if cause is not None:
            return Ending("cancelled", reason="stopped", exception=exc)
        return Ending("finished", result=self._result)

    def _failed(self, cause: BaseException, exc: BaseException | None = None) -> Ending:
        error = self._describe(cause)
        if cause is not error:
            self.log.error("the run failed: %s", type(cause).__name__, exc_info=exc or cause)
        return Ending("failed", error=error, exception=exc or cause)

    def _describe(self, exc: BaseException) -> AgentError:
        """What the client may be told of an exception (L9)."""
        if isinstance(exc, AgentError):
            return exc
        if isinstance(exc, asyncio.CancelledError):
            return AgentError("Cancelled.", "cancelled")
        if isinstance(exc, Exception):
            try:
                mapped = self._service.error(exc, self.run)
            except Exception:
                self.log.exception("Agent.error failed")
            else:
                if mapped is not None:
                    return mapped
        text = f"{INTERNAL} {type(exc).__name__}: {exc}" if self.options.debug else INTERNAL
        return AgentError(text, "internal")

    def _last_events(self, ending: Ending) -> list[dict[str, Any]]:
        usage = self.run.usage.wire()
        if ending.error is not None:
            event: dict[str, Any] = {
                "type": "RUN_ERROR",
                "message": ending.error.message,
                "code": ending.error.code,
            }
            return [event | ({"usage": usage} if usage else {})]
        sequence = self._outbox.sequence
        closing = sequence.closing()
        if closing and ending.kind != "cancelled":
            self.log.warning("left open at the end of the run, closed: %s", ", ".join(one["type"] for one in closing))
        event = {"type": "RUN_FINISHED", "threadId": self._input.thread_id, "runId": self._input.run_id}
        match ending.kind:
            case "interrupted":
                event["outcome"] = {"type": "interrupt", "interrupts": self._questions.interrupts}
            case "cancelled":
                event["outcome"] = {"type": "cancelled"}
                event["metadata"] = {"statecast": {"reason": ending.reason}}
            case _:
                if ending.result is not None:
                    event["result"] = ending.result
                if pending := sequence.pending_tool_calls():
                    event["outcome"] = {"type": "success", "pendingToolCallIds": pending}
        return [*closing, event | ({"usage": usage} if usage else {})]

    def _say(self, ending: Ending) -> None:
        how = ending.kind if ending.reason is None else f"{ending.kind} ({ending.reason})"
        self.log.info(
            "%s: %s in %.3f s, %d events, %d bytes, %d state events",
            self._service.name,
            how,
            ending.seconds,
            ending.events,
            ending.bytes,
            ending.state_events,
        )

    def _observe(self, event: SentEvent) -> None:
        self._service.on_event(self.run, event)

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
                await self._service.on_finish(self.run, ending)
        except Exception:
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
