"""How a run ends: which of the many things that may have happened decides, and the last events that say it (L3, L9)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..ending import Ending, decisive
from ..errors import Abandoned, AgentError, Interrupted, StateError
from ..scopes import plain

if TYPE_CHECKING:
    from .running import Running

__all__ = ["Verdict"]

INTERNAL = "The agent failed unexpectedly."


class Verdict:
    """Judges a run when its agent's task is over, and sends its end."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._log = running.log

    def end(self) -> Ending:
        """Sends the end of the run, if it has a client, and says what it was."""
        running = self._running
        ending = self._judge()
        if running.disconnected:
            return Ending("disconnected", exception=running.exception)
        try:
            running.outbox.finish()
        except AgentError as error:
            ending = Ending("failed", error=error, exception=error)
        except StateError as error:
            if ending.kind != "failed":
                self._log.error("the state cannot be written at the end of the run: %s", error)
                invalid = AgentError("The agent's state cannot be written.", "state_invalid")
                ending = Ending("failed", error=invalid, exception=error)
        except Exception as error:
            self._log.exception("the state could not be sent at the end of the run")
            ending = Ending("failed", error=AgentError(INTERNAL, "internal"), exception=error)
        if ending.kind == "finished":
            try:
                ending = replace(ending, result=plain(ending.result))
            except Exception as error:
                self._log.error("run() returned a %s, which is not JSON: %s", type(ending.result).__name__, error)
                ending = Ending("failed", error=AgentError(INTERNAL, "internal"), exception=error)
        running.questions.warn_ignored()
        if running.options.debug and (changed := running.outbox.messages.changed_in_place()):
            self._log.error(
                "messages were changed in place, which is not sent: %s; assign a new message: "
                "run.messages[i] = message.model_copy(update=…)",
                ", ".join(changed),
            )
        try:
            running.outbox.end(*self._last_events(ending))
        except Exception as error:
            self._log.exception("the run could not be closed in order")
            ending = Ending("failed", error=AgentError(INTERNAL, "internal"), exception=error)
            running.outbox.end(*self._last_events(ending))
        return ending

    def _judge(self) -> Ending:
        running = self._running
        exc = running.exception
        if running.fatal is not None:
            return Ending("failed", error=running.fatal, exception=running.fatal)
        cause = None if exc is None else decisive(exc)
        if cause is not None and not isinstance(cause, (Abandoned, Interrupted, asyncio.CancelledError)):
            return self._failed(cause, exc)
        if running.reason is not None:
            return Ending("cancelled", reason=running.reason, exception=exc)
        if isinstance(cause, Abandoned):
            return Ending("cancelled", reason="abandoned", exception=exc)
        if running.questions.interrupts:
            return Ending("interrupted", exception=exc)
        if cause is not None:
            return Ending("cancelled", reason="stopped", exception=exc)
        return Ending("finished", result=running.result)

    def _failed(self, cause: BaseException, exc: BaseException | None = None) -> Ending:
        error = self.describe(cause)
        if cause is not error:
            self._log.error("the run failed: %s", type(cause).__name__, exc_info=exc or cause)
        return Ending("failed", error=error, exception=exc or cause)

    def describe(self, exc: BaseException) -> AgentError:
        """What the client may be told of an exception (L9)."""
        running = self._running
        if isinstance(exc, AgentError):
            return exc
        if isinstance(exc, asyncio.CancelledError):
            return AgentError("Cancelled.", "cancelled")
        if isinstance(exc, Exception):
            try:
                mapped = running.service.error(exc, running.run)
            except KeyboardInterrupt:
                raise
            except BaseException:
                # SystemExit included: it must not end the server.
                self._log.exception("Agent.error failed")
            else:
                if isinstance(mapped, AgentError):
                    return mapped
                if mapped is not None:
                    self._log.error("Agent.error returned a %s, not an AgentError", type(mapped).__name__)
        text = f"{INTERNAL} {_said(exc)}" if running.options.debug else INTERNAL
        return AgentError(text, "internal")

    def _last_events(self, ending: Ending) -> list[dict[str, Any]]:
        running = self._running
        usage = running.run.usage.wire()
        if ending.error is not None:
            event: dict[str, Any] = {
                "type": "RUN_ERROR",
                "message": ending.error.message,
                "code": ending.error.code,
            }
            return [event | ({"usage": usage} if usage else {})]
        sequence = running.outbox.sequence
        closing = sequence.closing()
        if closing and ending.kind != "cancelled":
            self._log.warning("left open at the end of the run, closed: %s", ", ".join(one["type"] for one in closing))
        event = {"type": "RUN_FINISHED", "threadId": running.run.thread_id, "runId": running.run.run_id}
        match ending.kind:
            case "interrupted":
                event["outcome"] = {"type": "interrupt", "interrupts": running.questions.interrupts}
            case "cancelled":
                event["outcome"] = {"type": "cancelled"}
                event["metadata"] = {"statecast": {"reason": ending.reason}}
            case _:
                if ending.result is not None:
                    event["result"] = ending.result
                if pending := sequence.pending_tool_calls():
                    event["outcome"] = {"type": "success", "pendingToolCallIds": pending}
        return [*closing, event | ({"usage": usage} if usage else {})]


def _said(exc: BaseException) -> str:
    name = type(exc).__name__
    try:
        return f"{name}: {exc}"
    except Exception:  # an exception that cannot be written
        return name
