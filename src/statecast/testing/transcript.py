"""One run's stream, judged event by event as a consumer would judge it, and more strictly where a producer is tested."""

from __future__ import annotations

from collections import deque
from typing import Any

from ag_ui.core import Event, RunAgentInput, RunErrorEvent, RunFinishedEvent

from ..errors import SequenceError
from ..replica import ProtocolViolation, Replica
from ..stream.chunks import Expander
from ..stream.rules import Sequence
from ..stream.wire import WireError, model_of, read_event, read_input
from .failures import BrokenStream
from .frames import FrameError, Frames

__all__ = ["Transcript"]

_NULL_IS_DATA = {("STATE_SNAPSHOT", "snapshot"), ("CUSTOM", "value"), ("RAW", "event")}


class Transcript:
    """Takes the bytes or the events of a stream and keeps a `Replica` that starts from the run's input.

    Args:
        sent: the input in wire form, as it was sent.
        held: the client's messages, in wire form: those of the input and the activities, which no input carries (I6).
        strict: judge the producer: what a consumer would forgive is a fault too (W6, W7, L2, D4, T3, …).

    Attributes:
        input: the input as a model; `None` when it is not valid, so that the request must be refused.
        events: the events as they were sent.
        applied: the events as an application gets them: chunk events expanded.
        payloads: the events in wire form.
        terminal: the last RUN_FINISHED or RUN_ERROR.
    """

    def __init__(self, sent: dict[str, Any], *, held: list[dict[str, Any]] | None = None, strict: bool = True) -> None:
        self.sent = sent
        self.held = sent.get("messages", []) if held is None else held
        self.strict = strict
        self.events: list[Event] = []
        self.applied: list[Event] = []
        self.payloads: list[dict[str, Any]] = []
        self.terminal: RunFinishedEvent | RunErrorEvent | None = None
        self._begun = False
        self.input: RunAgentInput | None = None
        self._frames = Frames()
        self._waiting: deque[dict[str, Any]] = deque()
        self._fault: FrameError | None = None
        self._rules: Sequence | None = None
        self._expander = Expander()
        messages: list[Any] = []
        try:
            self.input, _ = read_input(sent)
            held_input, _ = read_input({**sent, "messages": self.held})
            messages = list(held_input.messages)
            if strict:
                self._rules = Sequence(sent["threadId"], messages=messages, tools=self.input.tools or ())
        except WireError:
            pass
        self.replica = Replica(
            state=sent.get("state", {}), messages=messages, protocol_version=sent.get("protocolVersion") or "1.0"
        )

    def feed(self, chunk: bytes) -> None:
        """Takes in bytes; `next` judges what they hold."""
        if self._fault is not None:
            return
        try:
            self._waiting.extend(self._frames.feed(chunk))
        except FrameError as error:
            self._waiting.extend(error.events)
            self._fault = error

    def next(self) -> Event | None:
        """Judges the next event of the bytes so far; `None` when there is none. Raises `BrokenStream`."""
        __tracebackhide__ = True
        while self._waiting:
            event = self.take(self._waiting.popleft())
            if event is not None:
                return event
        if self._fault is not None:
            raise self._broken(self._fault.reason, self._fault.rule) from self._fault
        return None

    def take(self, payload: dict[str, Any]) -> Event | None:
        """Judges one event in wire form; `None` when a consumer drops it. Raises `BrokenStream`."""
        __tracebackhide__ = True
        self.payloads.append(payload)
        if self.strict:
            for name, member in payload.items():
                if member is None and (payload.get("type"), name) not in _NULL_IS_DATA:
                    raise self._broken(f"the last event has a null at /{name}: leave it out", "W6")
        if self.strict and not self._begun and payload.get("type") == "RUN_STARTED":
            self._check_run_id(payload)
        self._begun = True
        before = len(self.replica.warnings)
        try:
            applied = self.replica.apply(payload)
        except ProtocolViolation as error:
            if isinstance(error.__cause__, WireError):
                raise self._broken(f"the last event is malformed: {error}", "W7") from error
            raise self._broken(str(error), error.rule) from error
        self.applied.extend(applied)
        for event in applied:
            if isinstance(event, (RunFinishedEvent, RunErrorEvent)):
                self.terminal = event
        if self.strict:
            if len(self.replica.warnings) > before:
                rule = "W7" if read_event(payload)[1] else "D4"
                raise self._broken(f"a consumer warns of the last event: {self.replica.warnings[before]}", rule)
            self._check_rules(payload)
        sent = _as_sent(payload, applied)
        if sent is not None:
            self.events.append(sent)
        return sent

    def forget(self) -> None:
        """Lets go of the events so far."""
        self.events.clear()
        self.applied.clear()
        self.payloads.clear()

    def close(self) -> None:
        """Says that the stream has ended. Raises `BrokenStream` when it was truncated."""
        __tracebackhide__ = True
        try:
            self._frames.close()
            self.applied.extend(self.replica.close())
        except FrameError as error:
            raise self._broken(error.reason, error.rule) from error
        except ProtocolViolation as error:
            raise self._broken(str(error), error.rule) from error

    def _check_run_id(self, payload: dict[str, Any]) -> None:
        __tracebackhide__ = True
        if payload.get("runId") != self.sent.get("runId"):
            raise self._broken(f"RUN_STARTED has the runId {payload.get('runId')!r}, which is not the input's", "L2")

    def _check_rules(self, event: dict[str, Any]) -> None:
        __tracebackhide__ = True
        if self._rules is None:
            return
        try:
            for one in self._expander.feed(event):
                self._rules.advance(one)
        except SequenceError as error:
            raise self._broken(str(error), error.rule) from error

    def _broken(self, reason: str, rule: str | None = None) -> BrokenStream:
        return BrokenStream(reason, rule, self.payloads)


def _as_sent(payload: dict[str, Any], applied: list[Event]) -> Event | None:
    """The event as a model; `None` when a consumer drops it."""
    if str(payload["type"]).endswith("_CHUNK"):
        known, _ = read_event(payload)
        return None if known is None else model_of(known)
    # Before it may stand the ends of the chunk items that it ended.
    return applied[-1] if applied else None
