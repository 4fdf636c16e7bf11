"""A consumer without HTTP: events in, state and messages out, with the protocol's judgement. For tests and for history.

In this order, as the protocol wants it: unknown material is removed with a warning, chunk events are written out, the
sequence is verified, and then the event changes the state or the messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from ag_ui.core import Event, Interrupt, Message, RunErrorEvent, RunFinishedEvent
from pydantic import BaseModel

from .conversation import Conversation
from .entry import copy_json
from .errors import SequenceError
from .state import MISSING
from .stream.chunks import Expander
from .stream.patch import PatchFailed, apply_patch
from .stream.rules import Sequence
from .stream.wire import PROTOCOL_VERSION, NotJSON, WireError, model_of, read_event, read_json, version_warning

__all__ = ["ProtocolViolation", "Replica", "Truncated"]


class ProtocolViolation(Exception):
    """The stream breaks the protocol: a consumer rejects it, and keeps what came before.

    Attributes:
        rule: the id of the sequence rule that was broken, or `None` if an event is malformed.
    """

    def __init__(self, message: str, rule: str | None = None) -> None:
        super().__init__(message)
        self.rule = rule


class Truncated(ProtocolViolation):
    """The stream stopped without a terminal event: neither a success nor a reported error (W4, C4)."""


class Replica:
    """What a client holds after the events of a stream.

    Args:
        state: the run input's state; left out, it is `{}`, and `None` is JSON null (I1).
        messages: the run input's messages, and what else the client shows (activities).
        protocol_version: the newest version that is not warned of.

    Attributes:
        warnings: what was removed or could not be done, each beginning with a JSON pointer or an event type.
        interrupts: what the last run waits for.
        outcome: how the last run finished; `None` while it runs, and when it failed.
        error: why the last run failed, if it did.
    """

    def __init__(
        self, *, state: Any = MISSING, messages: Iterable[Message] = (), protocol_version: str = PROTOCOL_VERSION
    ) -> None:
        self.warnings: list[str] = []
        self.interrupts: list[Interrupt] = []
        self.outcome: Literal["success", "interrupt", "cancelled"] | None = None
        self.error: RunErrorEvent | None = None
        self._state = {} if state is MISSING else copy_json(state)
        # A copy of it for those who read it; MISSING until somebody does.
        self._shown: Any = MISSING
        self._conversation = Conversation(messages, on_warning=self.warnings.append)
        self._version = protocol_version
        self._sequence = Sequence(None, side="consumer")
        self._expander = Expander()
        self._violation: ProtocolViolation | None = None

    @property
    def state(self) -> Any:
        """The state as plain JSON values: a copy, which later events leave as it is."""
        if self._shown is MISSING:
            self._shown = copy_json(self._state)
        return self._shown

    @property
    def messages(self) -> list[Message]:
        """The messages, in order."""
        return list(self._conversation)

    def apply(self, event: dict[str, Any] | str | bytes | BaseModel) -> list[Event]:
        """Takes in one event: a wire dict, JSON text, or an `ag_ui` event.

        Returns:
            The events as an application would get them: without unknown material, chunks written out.

        Raises:
            ProtocolViolation: the event is malformed, or forbidden now; the stream is rejected from here on.
        """
        if self._violation is not None:
            raise ProtocolViolation(f"the stream was rejected before: {self._violation}", self._violation.rule)
        try:
            return self._apply(event)
        except (NotJSON, WireError, SequenceError) as error:
            self._violation = ProtocolViolation(str(error), getattr(error, "rule", None))
            raise self._violation from error

    def close(self) -> list[Event]:
        """Ends the stream.

        Raises:
            Truncated: its last run has no terminal event, or there was no run.
        """
        if self._violation is None and self._sequence.phase in ("before", "active"):
            self._violation = Truncated("the stream stopped without RUN_FINISHED or RUN_ERROR", "W4")
            raise self._violation
        return []

    def _apply(self, event: dict[str, Any] | str | bytes | BaseModel) -> list[Event]:
        if isinstance(event, BaseModel):
            data = event.model_dump(mode="json", by_alias=True)
        elif isinstance(event, str):
            data = read_json(event.encode("utf-8", "surrogatepass"))
        else:
            data = read_json(event) if isinstance(event, bytes) else event
        wire, warnings = read_event(data)
        self.warnings += warnings
        if wire is None:
            return []
        applied = []
        for one in self._expander.feed(wire):
            self._sequence.advance(one)
            self._reduce(one)
            applied.append(model_of(one))
        return applied

    def _reduce(self, event: dict[str, Any]) -> None:
        match event["type"]:
            case "STATE_SNAPSHOT":
                self._state = copy_json(event["snapshot"])
                self._shown = MISSING
            case "STATE_DELTA":
                try:
                    self._state = apply_patch(self._state, event["delta"], in_place=True)
                    self._shown = MISSING
                except PatchFailed as error:
                    self.warnings.append(f"STATE_DELTA: the patch does not fit the state, which stays: {error}")
            case "RUN_STARTED":
                self.outcome = self.error = None
                if (warning := version_warning(event.get("protocolVersion"), self._version)) is not None:
                    self.warnings.append(f"/protocolVersion: the producer {warning}")
            case "RUN_FINISHED":
                finished = model_of(event)
                assert isinstance(finished, RunFinishedEvent)
                outcome = finished.outcome
                self.outcome = "success" if outcome is None else outcome.type
                self.interrupts = (
                    list(outcome.interrupts) if outcome is not None and outcome.type == "interrupt" else []
                )
            case "RUN_ERROR":
                failed = model_of(event)
                assert isinstance(failed, RunErrorEvent)
                self.outcome, self.error = None, failed
        self._conversation.apply(event)
