"""What a test is told: always an `AssertionError`, with the events that led to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .show import describe

__all__ = ["BrokenStream", "Refused", "RunTimeout"]


class BrokenStream(AssertionError):
    """A run's stream is not what the protocol asks for, or does not say what the agent's state and messages are.

    Its text names the fault and lists the events that came before it.

    Attributes:
        reason: the fault alone.
        rule: the id of the protocol rule, such as `"W2"`, if one is known.
        payloads: the events so far, in wire form.
    """

    def __init__(self, reason: str, rule: str | None = None, payloads: Sequence[dict[str, Any]] = ()) -> None:
        self.reason = reason
        self.rule = rule
        self.payloads = list(payloads)
        named = reason if rule is None or f"[{rule}]" in reason else f"{reason} [{rule}]"
        super().__init__(f"{named}\n{describe(self.payloads)}")


class RunTimeout(AssertionError):
    """A run did not end, or did not go on, in the time that the test gave it; or it went on after its client had gone.

    Attributes:
        payloads: the events so far, in wire form.
    """

    def __init__(self, reason: str, payloads: Sequence[dict[str, Any]] = ()) -> None:
        self.reason = reason
        self.payloads = list(payloads)
        super().__init__(f"{reason}\n{describe(self.payloads)}")


class Refused(Exception):
    """The request was answered with an HTTP error, so there was no run. Raised by `RunResult.raise_error` only.

    Attributes:
        status: the HTTP status.
        problem: the body: a parsed problem object (RFC 9457), or its text when it is not JSON.
    """

    def __init__(self, status: int, problem: Any) -> None:
        self.status = status
        self.problem = problem
        super().__init__(f"HTTP {status}: {problem}")
