"""What the framework raises, and what the caller can do about it."""

from __future__ import annotations

from typing import Any

__all__ = ["Abandoned", "AgentError", "Interrupted", "RunEnded", "SequenceError", "StateError"]


class AgentError(Exception):
    """Ends the run with a text that is meant for the user.

    Raise it in `Agent.run`, or return it from `Agent.error`. The client receives `RUN_ERROR` with exactly this `message`
    and this `code` (protocol rule L9), so neither may hold anything that is not for the user's eyes.

    Args:
        message: one or two sentences for a person.
        code: a machine-readable word for the application.
    """

    def __init__(self, message: str, code: str = "agent_error") -> None:
        if not isinstance(message, str) or not isinstance(code, str):
            raise TypeError("the message and the code of an AgentError are str: the client receives both")
        super().__init__(message)
        self.message = message
        self.code = code


class StateError(ValueError):
    """A value cannot be, or cannot stay, part of a JSON state. The state is as it was before.

    Attributes:
        pointer: the RFC 6901 JSON pointer of the place in the value that was being assigned or written, `""` for its root.
    """

    def __init__(self, message: str, pointer: str = "") -> None:
        super().__init__(f"{message} (at {pointer!r})")
        self.reason = message
        self.pointer = pointer


class SequenceError(RuntimeError):
    """The protocol forbids this event at this moment. Nothing was sent; the run goes on if the exception is caught.

    Attributes:
        rule: the id of the rule, such as `"S1"`; CONTRIBUTING.md lists them.
    """

    def __init__(self, message: str, rule: str) -> None:
        super().__init__(f"{message} [{rule}]")
        self.rule = rule


class RunEnded(SequenceError):
    """The run is over: its terminal event has been sent, or its client has gone. Nothing can be sent any more (L4)."""

    def __init__(self, message: str = "the run has ended: nothing can be sent any more", rule: str = "L4") -> None:
        super().__init__(message, rule)


class Abandoned(Exception):
    """The user dismissed a question instead of answering it (P2).

    An `Abandoned` that nobody catches ends the run with the `cancelled` outcome.

    Attributes:
        ids: the ids of the interrupts that were abandoned.
        answers: interrupt id -> payload of the questions asked together with them that were answered.
    """

    def __init__(self, ids: list[str], answers: dict[str, Any] | None = None) -> None:
        super().__init__(f"abandoned by the user: {', '.join(ids)}")
        self.ids = ids
        self.answers = {} if answers is None else answers


class Interrupted(BaseException):
    """Leaves the author's code when a question has no answer yet; the run then ends with the interrupt outcome (P1).

    A `BaseException`, so that `except Exception` around a tool does not swallow it. Let it pass.

    Attributes:
        ids: the ids of the questions that wait for an answer.
    """

    def __init__(self, ids: list[str]) -> None:
        super().__init__(f"waiting for an answer to: {', '.join(ids)}")
        self.ids = ids
