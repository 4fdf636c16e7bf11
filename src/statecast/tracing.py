"""OpenTelemetry spans for runs, steps, tool calls and subagents; nothing at all without the extra `otel`.

Spans carry ids, names and endings, never content.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

try:
    from opentelemetry import trace
except ImportError:
    _tracer: Any = None
else:
    _tracer = trace.get_tracer("statecast")

__all__ = ["Span"]


class Span:
    """A span that is current from `enter` to `leave`, in one task.

    Args:
        name: what is done: `run`, `step search`, `tool lookup`.
        attributes: ids and names; those that are `None` are left out.
    """

    def __init__(self, name: str, attributes: Mapping[str, str | None]) -> None:
        self._name = name
        self._attributes = attributes
        self._current: Any = None
        self._span: Any = None

    def enter(self) -> None:
        """Starts it."""
        if _tracer is None:
            return
        given = {f"statecast.{key}": value for key, value in self._attributes.items() if value is not None}
        self._current = _tracer.start_as_current_span(
            self._name, attributes=given, record_exception=False, set_status_on_exception=False
        )
        self._span = self._current.__enter__()

    def leave(self, exc: BaseException | None = None, ending: str | None = None) -> None:
        """Ends it: failed if an `Exception` leaves the block. Its text stays out: it may hold a user's data."""
        if self._current is None:
            return
        current, self._current = self._current, None
        if ending is not None:
            self._span.set_attribute("statecast.ending", ending)
        if isinstance(exc, Exception):
            self._span.set_status(trace.Status(trace.StatusCode.ERROR, type(exc).__name__))
        current.__exit__(None, None, None)

    def __enter__(self) -> Span:
        self.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.leave(exc)
