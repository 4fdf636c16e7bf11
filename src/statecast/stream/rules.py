"""The sequence rules of the protocol: which event may come now.

`_TABLE`, at the end, has one row for each event type: what is checked, and what is remembered. A check changes nothing, so an
event that is refused leaves no trace. A *producer* is held to every rule that binds it; a *consumer* refuses only what the
protocol calls fatal for a stream, and takes the rest. Events are in wire form, and well-formed as `read_event` sees to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

from pydantic import BaseModel

from ..errors import SequenceError
from .items import Items, Subagents, lane, tagged
from .patch import ends_as_object, malformed
from .shapes import EVENTS, fields_of

__all__ = ["Sequence"]

EventDict = dict[str, Any]

TEXT_ROLES = ("developer", "system", "assistant", "user")
_TOKENS = {"before": "no run has started", "finished": "the run has finished", "failed": "the run has failed"}


class _Known:
    """What a producer has to agree with when it opens a message again (S2)."""

    __slots__ = ("name", "owner", "role", "streamed")

    def __init__(self, role: str, name: str | None, owner: str | None, streamed: bool) -> None:
        self.role = role
        self.name = name
        self.owner = owner
        self.streamed = streamed


class Sequence:
    """The events of one stream, judged one by one.

    Args:
        thread_id: the input's thread, which every run on the stream has (L2); `None`: the first run's.
        messages: the conversation so far, `ag_ui` models or wire dicts: what may be opened again (S2), and ids in use (L8).
        tools: the client's own tools, models or dicts, which only the client answers (T3).
    """

    def __init__(
        self,
        thread_id: str | None,
        *,
        messages: Iterable[Any] = (),
        tools: Iterable[Any] = (),
        side: Literal["producer", "consumer"] = "producer",
    ) -> None:
        self._producer = side == "producer"
        self._thread_id = thread_id
        self._run_id: str | None = None
        self._runs: set[str] = set()
        self._phase: Literal["before", "active", "finished", "failed"] = "before"
        self._frontend = {_wire(tool)["name"] for tool in tools}
        # Every message and tool call of the thread; only a producer is held to agree with them.
        self._known: dict[str, _Known] = {}
        self._known_calls: dict[str, tuple[str, str]] = {}
        self._begin_run()
        if self._producer:
            for message in messages:
                self._remember(_wire(message), streamed=False)

    @property
    def phase(self) -> Literal["before", "active", "finished", "failed"]:
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
        check, record, fields = row
        if self._producer and (not event.keys() <= fields or None in event.values() or "metadata" in event):
            _check_form(event, fields)
        if self._phase != "active":
            self._check_phase(event)
        check(self, event)
        if record is not None:
            record(self, event)
            if "subagentRunId" in event:
                self._tags.add(event["subagentRunId"])

    def check(self, event: EventDict) -> None:
        """Checks an event, without taking note of it. Raises as `advance` does."""
        row = _TABLE.get(event["type"])
        if row is None:
            self._check_unknown(event)
            return
        check, _, fields = row
        if self._producer:
            _check_form(event, fields)
        self._check_phase(event)
        check(self, event)

    def closing(self, owner: str | None = None) -> list[EventDict]:
        """The events that close everything open, in a legal order and with their owners' tags (L5).

        Args:
            owner: a subagent: only what is open in its lane and its descendants' lanes, without its own end.
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

    # What is remembered

    def _begin_run(self) -> None:
        self._text = Items("text message", "messageId", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END")
        self._calls = Items("tool call", "toolCallId", "TOOL_CALL_START", "TOOL_CALL_END")
        self._reasoning = Items("reasoning message", "messageId", "REASONING_MESSAGE_START", "REASONING_MESSAGE_END")
        # A span and the messages in it are open each for itself (R1), but what they share by id has one owner.
        self._spans = Items(
            "reasoning span", "messageId", "REASONING_START", "REASONING_END", owners=self._reasoning.owners
        )
        self._items = (self._calls, self._text, self._reasoning, self._spans)
        self._activities: dict[str, str | None] = {}
        self._steps: dict[tuple[str | None, str], None] = {}
        self._subagents = Subagents()
        self._started: dict[str, None] = {}
        self._answered: set[str] = set()
        self._tags: set[str] = set()

    def _remember(self, message: EventDict, *, streamed: bool) -> None:
        owner = message.get("subagentRunId")
        self._known[message["id"]] = _Known(message["role"], message.get("name"), owner, streamed)
        self._own(message)
        for call in message.get("toolCalls") or ():
            self._known_calls[call["id"]] = (call["function"]["name"], message["id"])

    def _own(self, message: EventDict) -> None:
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

    # Checks of any event

    def _check_unknown(self, event: EventDict) -> None:
        type = event["type"]
        if type in EVENTS.objects:
            raise SequenceError(f"{type}: chunk events are expanded before they are sent", "S5")
        if self._producer:
            raise SequenceError(
                f"{type} is no event type of the protocol: what it does not model travels as CUSTOM or RAW", "W7"
            )

    def _check_phase(self, event: EventDict) -> None:
        type = event["type"]
        if self._phase == "active" or type == "RUN_STARTED":
            return
        if type == "RUN_ERROR" and self._phase != "failed":
            return
        allowed = "RUN_STARTED" if self._phase == "failed" else "RUN_STARTED or RUN_ERROR"
        rule = "L1" if self._phase == "before" else "L4"
        raise SequenceError(f"{type}: {_TOKENS[self._phase]}; only {allowed} may follow", rule)

    def _check_nothing(self, event: EventDict) -> None:
        pass

    def _note_nothing(self, event: EventDict) -> None:
        pass

    def _check_new_id(self, event: EventDict, id: str, *roles: str) -> None:
        """A producer's message ids are unique in the thread (L8)."""
        if self._producer and id in self._known and self._known[id].role not in roles:
            raise SequenceError(
                f"{event['type']}: the id {id!r} is in use by a message of role {self._known[id].role!r}", "L8"
            )

    # Runs

    def _check_run_started(self, event: EventDict) -> None:
        if self._phase == "active":
            raise SequenceError(f"RUN_STARTED: the run {self._run_id!r} is still active; finish it first", "L7")
        if self._thread_id is not None and event["threadId"] != self._thread_id:
            raise SequenceError(
                f"RUN_STARTED on thread {event['threadId']!r}: this stream is of thread {self._thread_id!r}", "L2"
            )
        if self._producer:
            if event["runId"] in self._runs:
                raise SequenceError(f"RUN_STARTED: the run id {event['runId']!r} was used on this stream before", "L8")
            _check_untagged(event)

    def _run_started(self, event: EventDict) -> None:
        known = self._known.items() if self._producer else ()
        calls = self._known_calls.items()
        self._begin_run()
        for id, message in known:
            self._own({"id": id, "role": message.role, "subagentRunId": message.owner})
        for id, (_, parent) in calls:
            if parent in self._known:
                self._calls.owners[id] = self._known[parent].owner
        for message in (event.get("input") or {}).get("messages") or ():
            if message["id"] not in self._known:
                self._restated(message)
        self._thread_id = event["threadId"]
        self._run_id = event["runId"]
        self._runs.add(event["runId"])
        self._phase = "active"

    def _check_run_finished(self, event: EventDict) -> None:
        for name, expected in (("threadId", self._thread_id), ("runId", self._run_id)):
            if event[name] != expected:
                raise SequenceError(f"RUN_FINISHED with {name} {event[name]!r}: the run has {expected!r}", "L2")
        left = [f"{items.noun} {id!r}" for items in self._items for id in items.open]
        left += [f"step {name!r} of {lane(tag)}" for tag, name in self._steps]
        left += [f"subagent {id!r}" for id in self._subagents.active]
        if left:
            raise SequenceError(f"RUN_FINISHED while these are open: {', '.join(left)}; close them first", "L5")
        outcome = event.get("outcome") or {"type": "success"}
        if outcome["type"] == "interrupt":
            ids = [interrupt["id"] for interrupt in outcome["interrupts"]]
            if len(set(ids)) < len(ids):
                raise SequenceError("RUN_FINISHED: two of its interrupts have the same id", "P1")
        if self._producer:
            _check_untagged(event)
            self._check_outcome(event, outcome)

    def _check_outcome(self, event: EventDict, outcome: EventDict) -> None:
        kind = outcome["type"]
        if kind == "interrupt" and not outcome["interrupts"]:
            raise SequenceError("RUN_FINISHED: the interrupt outcome needs at least one interrupt", "P1")
        if kind == "cancelled" and "result" in event:
            raise SequenceError("RUN_FINISHED: a cancelled run has no result", "L3")
        pending = self.pending_tool_calls()
        if outcome.get("pendingToolCallIds") and outcome["pendingToolCallIds"] != pending:
            raise SequenceError(
                f"RUN_FINISHED: pendingToolCallIds disagrees with the stream, which left open {pending}", "L3"
            )

    def _run_finished(self, event: EventDict) -> None:
        self._phase = "finished"

    def _check_run_error(self, event: EventDict) -> None:
        if self._producer:
            _check_untagged(event)

    def _run_error(self, event: EventDict) -> None:
        self._phase = "failed"

    # Steps

    def _check_step_started(self, event: EventDict) -> None:
        owner, name = event.get("subagentRunId"), event["stepName"]
        if (owner, name) in self._steps:
            raise SequenceError(f"STEP_STARTED: a step {name!r} of {lane(owner)} is open already", "L6")

    def _step_started(self, event: EventDict) -> None:
        self._steps[event.get("subagentRunId"), event["stepName"]] = None

    def _check_step_finished(self, event: EventDict) -> None:
        owner, name = event.get("subagentRunId"), event["stepName"]
        if (owner, name) in self._steps:
            return
        for other, open in self._steps:
            if open == name:
                raise SequenceError(f"STEP_FINISHED of {lane(owner)}: the step {name!r} belongs to {lane(other)}", "G3")
        raise SequenceError(f"STEP_FINISHED: no step {name!r} is open; send STEP_STARTED first", "L6")

    def _step_finished(self, event: EventDict) -> None:
        del self._steps[event.get("subagentRunId"), event["stepName"]]

    # Text messages

    def _check_text_start(self, event: EventDict) -> None:
        self._text.check_start(event)
        if not self._producer:
            return
        role = event.get("role", "assistant")
        if role not in TEXT_ROLES:
            raise SequenceError(
                f"TEXT_MESSAGE_START: a text message has one of the roles {', '.join(TEXT_ROLES)}", "S3"
            )
        known = self._known.get(event["messageId"])
        if known is None:
            return
        self._check_new_id(event, event["messageId"], *TEXT_ROLES)
        self._check_agrees(event, "role", known.role, role)
        if not known.streamed and role != "assistant":
            raise SequenceError(
                f"TEXT_MESSAGE_START: {event['messageId']!r} is the client's own message; only an assistant's may be "
                "opened again",
                "S2",
            )
        self._check_agrees(event, "name", known.name, event.get("name"))
        self._check_agrees(event, "subagentRunId", known.owner, event.get("subagentRunId"))

    def _check_agrees(self, event: EventDict, name: str, known: Any, given: Any) -> None:
        if known != given:
            raise SequenceError(
                f"{event['type']} opens an item again with another {name}: it has {known!r}, not {given!r}", "S2"
            )

    def _text_started(self, event: EventDict) -> None:
        self._text.started(event)
        if self._producer and event["messageId"] not in self._known:
            self._known[event["messageId"]] = _Known(
                event.get("role", "assistant"), event.get("name"), event.get("subagentRunId"), True
            )

    def _check_text_content(self, event: EventDict) -> None:
        # The hot path: one event for every piece of text.
        if event["messageId"] not in self._text.open or "subagentRunId" in event:
            self._text.check_open(event)
        if event["delta"].__class__ is not str:
            raise SequenceError(f"{event['type']}: a delta is text", "S4")

    def _check_text_end(self, event: EventDict) -> None:
        self._text.check_open(event)

    def _text_ended(self, event: EventDict) -> None:
        self._text.ended(event)

    # Tool calls

    def _check_call_start(self, event: EventDict) -> None:
        self._calls.check_start(event)
        id, parent, tag = event["toolCallId"], event.get("parentMessageId"), event.get("subagentRunId")
        if parent in self._text.owners:
            owner = self._text.owners[parent]
            if (owner if tag is None else tag) != owner or self._calls.owners.get(id, owner) != owner:
                raise SequenceError(
                    f"TOOL_CALL_START: the call {id!r} is not of {lane(owner)}, as its parent message {parent!r} is",
                    "T1",
                )
        if not self._producer:
            return
        if parent is not None and parent in self._known and self._known[parent].role != "assistant":
            raise SequenceError(f"TOOL_CALL_START: its parent {parent!r} is no assistant's message", "T1")
        if id in self._known_calls:
            name, known_parent = self._known_calls[id]
            self._check_agrees(event, "toolCallName", name, event["toolCallName"])
            self._check_agrees(event, "parentMessageId", known_parent, parent or id)
            self._check_agrees(event, "owner", self._calls.owners.get(id), self._call_owner(event))
        elif parent is None:
            # Without a parent the consumer makes a message of the call's own id (S6).
            self._check_new_id(event, id)

    def _call_owner(self, event: EventDict) -> str | None:
        tag = event.get("subagentRunId")
        return self._text.owners.get(event.get("parentMessageId")) if tag is None else tag  # type: ignore[arg-type]

    def _call_started(self, event: EventDict) -> None:
        id = event["toolCallId"]
        owner = self._calls.owners.setdefault(id, self._call_owner(event))
        self._calls.open[id] = None
        self._started[id] = None
        if self._producer and id not in self._known_calls:
            parent = event.get("parentMessageId", id)
            self._known_calls[id] = (event["toolCallName"], parent)
            if parent not in self._known:
                self._known[parent] = _Known("assistant", None, owner, True)
                self._text.owners[parent] = owner

    def _check_call_args(self, event: EventDict) -> None:
        if event["toolCallId"] not in self._calls.open or "subagentRunId" in event:
            self._calls.check_open(event)
        if event["delta"].__class__ is not str:
            raise SequenceError(f"{event['type']}: a delta is text", "S4")

    def _check_call_end(self, event: EventDict) -> None:
        self._calls.check_open(event)

    def _call_ended(self, event: EventDict) -> None:
        self._calls.ended(event)

    def _check_result(self, event: EventDict) -> None:
        if not self._producer:
            return
        id = event["toolCallId"]
        if id in self._known_calls and self._known_calls[id][0] in self._frontend:
            raise SequenceError(
                f"TOOL_CALL_RESULT: {self._known_calls[id][0]!r} is the client's own tool, which only the client answers; "
                "finish the run, the answer comes with the next input",
                "T3",
            )
        if event["messageId"] in self._known:
            raise SequenceError(
                f"TOOL_CALL_RESULT: a result is a new message, and the id {event['messageId']!r} is in use", "T2"
            )

    def _resulted(self, event: EventDict) -> None:
        id, owner = event["messageId"], event.get("subagentRunId")
        self._answered.add(event["toolCallId"])
        self._text.owners[id] = owner
        if self._producer:
            self._known[id] = _Known("tool", None, owner, True)

    # Reasoning

    def _check_reasoning_start(self, event: EventDict) -> None:
        self._reasoning.check_start(event)
        self._check_new_id(event, event["messageId"], "reasoning")
        if self._producer and event["messageId"] in self._known:
            known = self._known[event["messageId"]]
            self._check_agrees(event, "subagentRunId", known.owner, event.get("subagentRunId"))

    def _reasoning_started(self, event: EventDict) -> None:
        self._reasoning.started(event)
        if self._producer:
            self._known.setdefault(event["messageId"], _Known("reasoning", None, event.get("subagentRunId"), True))

    def _check_reasoning_content(self, event: EventDict) -> None:
        if event["messageId"] not in self._reasoning.open or "subagentRunId" in event:
            self._reasoning.check_open(event)
        if event["delta"].__class__ is not str:
            raise SequenceError(f"{event['type']}: a delta is text", "S4")

    def _check_reasoning_end(self, event: EventDict) -> None:
        self._reasoning.check_open(event)

    def _reasoning_ended(self, event: EventDict) -> None:
        self._reasoning.ended(event)

    def _check_span_start(self, event: EventDict) -> None:
        self._spans.check_start(event)

    def _span_started(self, event: EventDict) -> None:
        self._spans.started(event)

    def _check_span_end(self, event: EventDict) -> None:
        self._spans.check_open(event)

    def _span_ended(self, event: EventDict) -> None:
        self._spans.ended(event)

    def _check_encrypted(self, event: EventDict) -> None:
        id = event["entityId"]
        if event["subtype"] == "tool-call":
            self._calls.check_owner(event, id)
        else:
            (self._text if id in self._text.owners else self._reasoning).check_owner(event, id)

    # State, activities, messages

    def _check_patch(self, event: EventDict) -> None:
        ops = event.get("delta")
        if ops is not None and (reason := malformed(ops)) is not None:
            raise SequenceError(f"{event['type']}: {reason}", "D5")

    def _check_activity(self, event: EventDict) -> None:
        id = event["messageId"]
        self._check_new_id(event, id, "activity")
        if self._producer and event.get("replace") is False and id in self._activities:
            owner = self._activities[id]
            if owner != event.get("subagentRunId"):
                raise SequenceError(
                    f"ACTIVITY_SNAPSHOT with replace false: the activity {id!r} belongs to {lane(owner)}", "A1"
                )

    def _activity(self, event: EventDict) -> None:
        id, owner = event["messageId"], event.get("subagentRunId")
        if id not in self._activities or event.get("replace") is not False:
            self._activities[id] = owner
            if self._producer:
                self._known[id] = _Known("activity", None, owner, True)

    def _check_activity_delta(self, event: EventDict) -> None:
        id, tag = event["messageId"], event.get("subagentRunId")
        if tag is not None and self._activities.get(id, tag) != tag:
            raise SequenceError(
                f"ACTIVITY_DELTA of {lane(tag)}: the activity {id!r} belongs to {lane(self._activities[id])}", "G3"
            )
        if self._producer and id not in self._activities:
            raise SequenceError(f"ACTIVITY_DELTA: the activity {id!r} has no snapshot yet; send one first", "A2")
        ops = event.get("patch")
        if ops is None:
            return
        if (reason := malformed(ops)) is not None:
            raise SequenceError(f"ACTIVITY_DELTA: {reason}", "D5")
        if self._producer and not ends_as_object(ops):
            raise SequenceError("ACTIVITY_DELTA: the content of an activity stays an object", "A2")

    def _check_messages(self, event: EventDict) -> None:
        if not self._producer:
            return
        _check_untagged(event)
        ids = [message["id"] for message in event["messages"]]
        if len(set(ids)) < len(ids):
            raise SequenceError("MESSAGES_SNAPSHOT: two of its messages have the same id", "L8")

    def _messages(self, event: EventDict) -> None:
        if self._producer:
            stays = {message["id"] for message in event["messages"]}
            roles = {message["role"] for message in event["messages"]}
            for id, known in list(self._known.items()):
                kept = known.role in ("activity", "reasoning") and known.role not in roles
                if id not in stays and not kept:
                    del self._known[id]
        for message in event["messages"]:
            self._restated(message)

    def _restated(self, message: EventDict) -> None:
        known = self._known.get(message["id"])
        if self._producer:
            self._remember(message, streamed=known is not None and known.streamed)
        else:
            self._own(message)

    # Subagents

    def _check_subagent_started(self, event: EventDict) -> None:
        self._subagents.check_start(event)
        if self._producer and event["subagentRunId"] in self._tags:
            raise SequenceError(
                f"SUBAGENT_STARTED: events of {event['subagentRunId']!r} were sent before it was announced", "G2"
            )

    def _subagent_started(self, event: EventDict) -> None:
        self._subagents.started(event)

    def _check_subagent_ended(self, event: EventDict) -> None:
        self._subagents.check_end(event)

    def _subagent_ended(self, event: EventDict) -> None:
        self._subagents.finished(event)


def _check_form(event: EventDict, fields: frozenset[str]) -> None:
    """What a producer must not write into any event (W6, W7, X2, G4)."""
    type = event["type"]
    for name, value in event.items():
        if name not in fields:
            if name == "subagentRunId":
                raise SequenceError(f"{type} speaks of the whole conversation and carries no subagentRunId", "G4")
            rule = "X2" if name == "encryptedValueType" else "W7"
            raise SequenceError(f"{type} has no member {name!r} in the protocol", rule)
        if value is None and name not in _NULL_IS_DATA:
            raise SequenceError(f"{type}: {name!r} has no value; leave it out", "W6")
    if "ag-ui" in event.get("metadata", ()):
        raise SequenceError(f"{type}: the metadata key 'ag-ui' is reserved for the protocol", "W7")


def _check_untagged(event: EventDict) -> None:
    if "subagentRunId" in event:
        raise SequenceError(f"{event['type']} carries no subagentRunId", "G4")


def _wire(value: Any) -> EventDict:
    return value.model_dump(mode="json", by_alias=True) if isinstance(value, BaseModel) else value


_NULL_IS_DATA = {"snapshot", "value", "event"}

Check = Callable[[Sequence, EventDict], None]
_S = Sequence
_ROWS: dict[str, tuple[Check, Check | None]] = {
    # event type: (check, note)
    "RUN_STARTED": (_S._check_run_started, _S._run_started),
    "RUN_FINISHED": (_S._check_run_finished, _S._run_finished),
    "RUN_ERROR": (_S._check_run_error, _S._run_error),
    "STEP_STARTED": (_S._check_step_started, _S._step_started),
    "STEP_FINISHED": (_S._check_step_finished, _S._step_finished),
    "TEXT_MESSAGE_START": (_S._check_text_start, _S._text_started),
    "TEXT_MESSAGE_CONTENT": (_S._check_text_content, None),
    "TEXT_MESSAGE_END": (_S._check_text_end, _S._text_ended),
    "TOOL_CALL_START": (_S._check_call_start, _S._call_started),
    "TOOL_CALL_ARGS": (_S._check_call_args, None),
    "TOOL_CALL_END": (_S._check_call_end, _S._call_ended),
    "TOOL_CALL_RESULT": (_S._check_result, _S._resulted),
    "REASONING_START": (_S._check_span_start, _S._span_started),
    "REASONING_MESSAGE_START": (_S._check_reasoning_start, _S._reasoning_started),
    "REASONING_MESSAGE_CONTENT": (_S._check_reasoning_content, None),
    "REASONING_MESSAGE_END": (_S._check_reasoning_end, _S._reasoning_ended),
    "REASONING_END": (_S._check_span_end, _S._span_ended),
    "REASONING_ENCRYPTED_VALUE": (_S._check_encrypted, _S._note_nothing),
    "STATE_SNAPSHOT": (_S._check_nothing, _S._note_nothing),
    "STATE_DELTA": (_S._check_patch, _S._note_nothing),
    "MESSAGES_SNAPSHOT": (_S._check_messages, _S._messages),
    "ACTIVITY_SNAPSHOT": (_S._check_activity, _S._activity),
    "ACTIVITY_DELTA": (_S._check_activity_delta, _S._note_nothing),
    "SUBAGENT_STARTED": (_S._check_subagent_started, _S._subagent_started),
    "SUBAGENT_FINISHED": (_S._check_subagent_ended, _S._subagent_ended),
    "SUBAGENT_ERROR": (_S._check_subagent_ended, _S._subagent_ended),
    "CUSTOM": (_S._check_nothing, _S._note_nothing),
    "RAW": (_S._check_nothing, _S._note_nothing),
}
_TABLE = {type: (*row, fields_of(type)) for type, row in _ROWS.items()}
