"""The sequence rules of the protocol: which event may come now.

What is checked here is fatal for a stream: a consumer rejects it. A producer is held to more, see `duties`. `_TABLE`, at the
end, has one row for each event type: what is checked, and what is noted. A check changes nothing, so an event that is
refused leaves no trace. Events are in wire form and well-formed, as `read_event` leaves them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Any, Literal

from ..errors import SequenceError
from .duties import Duties
from .items import Items, Subagents, lane, tagged
from .patch import malformed
from .shapes import EVENTS

__all__ = ["Sequence"]

EventDict = dict[str, Any]
Phase = Literal["before", "active", "finished", "failed"]

_WHERE = {"before": "no run has started", "finished": "the run has finished", "failed": "the run has failed"}


class Sequence:
    """The events of one stream, judged one by one.

    Args:
        thread_id: the input's thread, which every run on the stream has (L2); `None`: that of the first run.
        messages: the conversation so far, `ag_ui` models or wire dicts: what a producer may open again (S2), and which ids
            are in use (L8).
        tools: the client's own tools, which a producer never answers (T3).
        side: a `producer` keeps every rule that binds it; a `consumer` refuses only what is fatal for a stream.
    """

    def __init__(
        self,
        thread_id: str | None,
        *,
        messages: Iterable[Any] = (),
        tools: Iterable[Any] = (),
        side: Literal["producer", "consumer"] = "producer",
    ) -> None:
        self._thread_id = thread_id
        self._run_id: str | None = None
        self._phase: Phase = "before"
        self._duties = Duties(messages, tools, self.pending_tool_calls) if side == "producer" else None
        self._begin()

    @property
    def phase(self) -> Phase:
        """Where the stream is: before its first run, in a run, after a run that finished, or after one that failed."""
        return self._phase

    def advance(self, event: EventDict) -> None:
        """Checks an event and takes note of it.

        Raises:
            SequenceError: the event is forbidden now; the sequence is unchanged.
        """
        row = _TABLE.get(event["type"])
        if row is None:
            self._check_unknown(event)
            return
        if self._phase != "active":
            self._check_phase(event)
        row[0](self, event)
        duties, note = self._duties, row[1]
        if duties is not None:
            duties.check(event)
        if note is not None:
            note(self, event)
            if duties is not None:
                duties.note(event)

    def check(self, event: EventDict) -> None:
        """Checks an event without taking note of it. Raises as `advance` does."""
        row = _TABLE.get(event["type"])
        if row is None:
            self._check_unknown(event)
            return
        self._check_phase(event)
        row[0](self, event)
        if self._duties is not None:
            self._duties.check(event)

    def announce(self, event: EventDict) -> None:
        """Advances by the snapshot of an activity that is still to come, whose id nothing else may have from now on (L8)."""
        self.advance(event)
        if self._duties is not None:
            self._duties.keep(event["messageId"])

    def open_ids(self, type: str) -> Container[str]:
        """The ids that content events of this type may name now: a live view, until the next run begins."""
        return (self._text if type == "TEXT_MESSAGE_CONTENT" else self._reasoning).open

    def closing(self, owner: str | None = None) -> list[EventDict]:
        """The events that close everything open, in a legal order and with their owners' tags (L5).

        Args:
            owner: a subagent: only what is open in its lane and in its descendants' lanes, without its own end.
        """
        owners = None if owner is None else self._subagents.lane_of(owner)
        events = [end for items in self._items for end in items.closing(owners)]
        events += [
            tagged({"type": "STEP_FINISHED", "stepName": name}, tag)
            for tag, name in self._steps
            if owners is None or tag in owners
        ]
        return events + [end for end in self._subagents.closing(owners) if end["subagentRunId"] != owner]

    def pending_tool_calls(self) -> list[str]:
        """The tool calls that this run started and left without a result, in order (L3)."""
        return [id for id in self._started if id not in self._answered]

    def _begin(self) -> None:
        """Nothing that is open crosses the border between two runs."""
        self._text = Items("text message", "messageId", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END")
        self._calls = Items("tool call", "toolCallId", "TOOL_CALL_START", "TOOL_CALL_END")
        self._reasoning = Items("reasoning message", "messageId", "REASONING_MESSAGE_START", "REASONING_MESSAGE_END")
        # A span and the messages in it are open each for itself (R1), but one id has one owner.
        self._spans = Items(
            "reasoning span", "messageId", "REASONING_START", "REASONING_END", rule="R1", owners=self._reasoning.owners
        )
        self._items = (self._calls, self._text, self._reasoning, self._spans)
        self._activities: dict[str, str | None] = {}
        self._steps: dict[tuple[str | None, str], None] = {}
        self._subagents = Subagents()
        self._started: dict[str, None] = {}
        self._answered: set[str] = set()

    # Any event

    def _check_unknown(self, event: EventDict) -> None:
        type = event["type"]
        if type in EVENTS.objects:
            raise SequenceError(f"{type}: chunk events are written out as start, content and end first", "S5")
        if self._duties is not None:
            raise SequenceError(
                f"{type} is no event type of the protocol: what it does not describe travels as CUSTOM or RAW", "W7"
            )

    def _check_phase(self, event: EventDict) -> None:
        type = event["type"]
        if self._phase == "active" or type == "RUN_STARTED" or (type == "RUN_ERROR" and self._phase != "failed"):
            return
        allowed = "RUN_STARTED" if self._phase == "failed" else "RUN_STARTED or RUN_ERROR"
        raise SequenceError(
            f"{type}: {_WHERE[self._phase]}; only {allowed} may follow", "L1" if self._phase == "before" else "L4"
        )

    def _anything(self, event: EventDict) -> None:
        """Nothing to check, or to note."""

    # Runs

    def _check_run_started(self, event: EventDict) -> None:
        if self._phase == "active":
            raise SequenceError(f"RUN_STARTED: the run {self._run_id!r} is still active; finish it first", "L7")
        if self._thread_id is not None and event["threadId"] != self._thread_id:
            raise SequenceError(
                f"RUN_STARTED on the thread {event['threadId']!r}: the stream is of {self._thread_id!r}", "L2"
            )

    def _note_run_started(self, event: EventDict) -> None:
        self._thread_id = event["threadId"]
        self._run_id = event["runId"]
        self._phase = "active"
        self._begin()
        for message in (event.get("input") or {}).get("messages", ()):
            self._own(message)

    def _check_run_finished(self, event: EventDict) -> None:
        for name, expected in (("threadId", self._thread_id), ("runId", self._run_id)):
            if event[name] != expected:
                raise SequenceError(f"RUN_FINISHED with the {name} {event[name]!r}: the run has {expected!r}", "L2")
        left = [f"{items.noun} {id!r}" for items in self._items for id in items.open]
        left += [f"step {name!r} of {lane(tag)}" for tag, name in self._steps]
        left += [f"subagent {id!r}" for id in self._subagents.active]
        if left:
            raise SequenceError(f"RUN_FINISHED while these are open: {', '.join(left)}; close them first", "L5")
        outcome = event.get("outcome")
        if outcome is not None and outcome["type"] == "interrupt":
            ids = [interrupt["id"] for interrupt in outcome["interrupts"]]
            if len(set(ids)) < len(ids):
                raise SequenceError("RUN_FINISHED: two of its interrupts have the same id", "P1")

    def _note_run_finished(self, event: EventDict) -> None:
        self._phase = "finished"

    def _note_run_error(self, event: EventDict) -> None:
        self._phase = "failed"

    # Steps

    def _check_step_started(self, event: EventDict) -> None:
        owner, name = event.get("subagentRunId"), event["stepName"]
        if (owner, name) in self._steps:
            raise SequenceError(f"STEP_STARTED: a step {name!r} of {lane(owner)} is open already", "L6")

    def _note_step_started(self, event: EventDict) -> None:
        self._steps[event.get("subagentRunId"), event["stepName"]] = None

    def _check_step_finished(self, event: EventDict) -> None:
        owner, name = event.get("subagentRunId"), event["stepName"]
        if (owner, name) in self._steps:
            return
        for other, open in self._steps:
            if open == name:
                raise SequenceError(f"STEP_FINISHED of {lane(owner)}: the step {name!r} is {lane(other)}'s", "G3")
        raise SequenceError(f"STEP_FINISHED: no step {name!r} is open; send STEP_STARTED first", "L6")

    def _note_step_finished(self, event: EventDict) -> None:
        del self._steps[event.get("subagentRunId"), event["stepName"]]

    # Text messages, tool calls, reasoning

    def _check_call_start(self, event: EventDict) -> None:
        self._calls.check_start(event)
        id, tag, parent = event["toolCallId"], event.get("subagentRunId"), event.get("parentMessageId")
        if parent is None or parent not in self._text.owners:
            return
        owner = self._text.owners[parent]
        if (tag is not None and tag != owner) or self._calls.owners.get(id, owner) != owner:
            raise SequenceError(
                f"TOOL_CALL_START of {lane(tag)}: its parent message {parent!r} belongs to {lane(owner)}", "T1"
            )

    def _note_call_start(self, event: EventDict) -> None:
        id, owner, parent = event["toolCallId"], event.get("subagentRunId"), event.get("parentMessageId")
        if owner is None and parent is not None:
            owner = self._text.owners.get(parent)
        self._calls.open[id] = None
        self._calls.owners.setdefault(id, owner)
        self._started[id] = None

    def _note_result(self, event: EventDict) -> None:
        self._answered.add(event["toolCallId"])
        self._text.owners[event["messageId"]] = event.get("subagentRunId")

    def _check_encrypted(self, event: EventDict) -> None:
        id = event["entityId"]
        if event["subtype"] == "tool-call":
            self._calls.check_owner(event, id)
        else:
            (self._text if id in self._text.owners else self._reasoning).check_owner(event, id)

    # State, activities, the conversation

    def _check_delta(self, event: EventDict) -> None:
        # A run sends its own deltas without the operations; they are made in good form.
        if "delta" in event and (reason := malformed(event["delta"])) is not None:
            raise SequenceError(f"STATE_DELTA: {reason}", "D5")

    def _note_activity(self, event: EventDict) -> None:
        if event["messageId"] not in self._activities or event.get("replace") is not False:
            self._activities[event["messageId"]] = event.get("subagentRunId")

    def _check_activity_delta(self, event: EventDict) -> None:
        if "patch" in event and (reason := malformed(event["patch"])) is not None:
            raise SequenceError(f"ACTIVITY_DELTA: {reason}", "D5")
        id, tag = event["messageId"], event.get("subagentRunId")
        if tag is not None and self._activities.get(id, tag) != tag:
            raise SequenceError(
                f"ACTIVITY_DELTA of {lane(tag)}: the activity {id!r} belongs to {lane(self._activities[id])}", "G3"
            )

    def _note_messages(self, event: EventDict) -> None:
        for message in event["messages"]:
            self._own(message)

    def _own(self, message: EventDict) -> None:
        """A restated message belongs to whom the restatement says."""
        owner = message.get("subagentRunId")
        match message["role"]:
            case "reasoning":
                self._reasoning.owners[message["id"]] = owner
            case "activity":
                self._activities[message["id"]] = owner
            case _:
                self._text.owners[message["id"]] = owner
        for call in message.get("toolCalls") or ():
            self._calls.owners[call["id"]] = owner


Step = Callable[[Sequence, EventDict], None]


def _of(kind: str, method: str) -> Step:
    """The step of one kind of item or of subagents, as a step of the sequence."""

    def step(self: Sequence, event: EventDict) -> None:
        getattr(getattr(self, kind), method)(event)

    return step


def _hot(kind: str) -> Step:
    """The check of a piece of content, of which there are very many: no call when all is well."""

    def step(self: Sequence, event: EventDict) -> None:
        items: Items = getattr(self, kind)
        if event[items.id] not in items.open or "subagentRunId" in event:
            items.check_open(event)

    return step


_S = Sequence
_TABLE: dict[str, tuple[Step, Step | None]] = {
    # event type: (what is checked, what is noted)
    "RUN_STARTED": (_S._check_run_started, _S._note_run_started),
    "RUN_FINISHED": (_S._check_run_finished, _S._note_run_finished),
    "RUN_ERROR": (_S._anything, _S._note_run_error),
    "STEP_STARTED": (_S._check_step_started, _S._note_step_started),
    "STEP_FINISHED": (_S._check_step_finished, _S._note_step_finished),
    "TEXT_MESSAGE_START": (_of("_text", "check_start"), _of("_text", "started")),
    "TEXT_MESSAGE_CONTENT": (_hot("_text"), None),
    "TEXT_MESSAGE_END": (_of("_text", "check_open"), _of("_text", "ended")),
    "TOOL_CALL_START": (_S._check_call_start, _S._note_call_start),
    "TOOL_CALL_ARGS": (_hot("_calls"), None),
    "TOOL_CALL_END": (_of("_calls", "check_open"), _of("_calls", "ended")),
    "TOOL_CALL_RESULT": (_S._anything, _S._note_result),
    "REASONING_START": (_of("_spans", "check_start"), _of("_spans", "started")),
    "REASONING_MESSAGE_START": (_of("_reasoning", "check_start"), _of("_reasoning", "started")),
    "REASONING_MESSAGE_CONTENT": (_hot("_reasoning"), None),
    "REASONING_MESSAGE_END": (_of("_reasoning", "check_open"), _of("_reasoning", "ended")),
    "REASONING_END": (_of("_spans", "check_open"), _of("_spans", "ended")),
    "REASONING_ENCRYPTED_VALUE": (_S._check_encrypted, _S._anything),
    "STATE_SNAPSHOT": (_S._anything, _S._anything),
    "STATE_DELTA": (_S._check_delta, _S._anything),
    "MESSAGES_SNAPSHOT": (_S._anything, _S._note_messages),
    "ACTIVITY_SNAPSHOT": (_S._anything, _S._note_activity),
    "ACTIVITY_DELTA": (_S._check_activity_delta, _S._anything),
    "SUBAGENT_STARTED": (_of("_subagents", "check_start"), _of("_subagents", "started")),
    "SUBAGENT_FINISHED": (_of("_subagents", "check_end"), _of("_subagents", "finished")),
    "SUBAGENT_ERROR": (_of("_subagents", "check_end"), _of("_subagents", "finished")),
    "CUSTOM": (_S._anything, _S._anything),
    "RAW": (_S._anything, _S._anything),
}
