"""What binds a producer beyond what would break a stream: a consumer takes it, and both would hold different messages.

A duty is checked after the sequence rules have let an event pass. A check changes nothing. `_DUTIES`, at the end, has one
row for each event type that has duties of its own; `check_form` is for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..errors import SequenceError
from .items import lane
from .patch import ends_as_object
from .shapes import EVENTS, fields_of

__all__ = ["Duties"]

EventDict = dict[str, Any]

TEXT_ROLES = ("developer", "system", "assistant", "user")
SPECIAL_ROLES = ("activity", "reasoning")
NULL_IS_DATA = {"snapshot", "value", "event"}


class _Message(NamedTuple):
    """A message of the thread, as far as later events must agree with it."""

    role: str
    name: str | None
    owner: str | None
    ours: bool


class _Call(NamedTuple):
    """A tool call of the thread; `parent` is the id of its message."""

    name: str
    parent: str
    owner: str | None


class Duties:
    """The memory of one producer: every message and tool call of the thread, over all runs.

    Args:
        messages: the conversation so far, `ag_ui` models or wire dicts.
        tools: the client's own tools.
        pending: gives the tool calls that the run started and left without a result.
    """

    def __init__(self, messages: Iterable[Any], tools: Iterable[Any], pending: Callable[[], list[str]]) -> None:
        self._messages: dict[str, _Message] = {}
        self._calls: dict[str, _Call] = {}
        self._runs: set[str] = set()
        self._tags: set[str] = set()
        self._announced: set[str] = set()
        self._frontend = {tool["name"] if isinstance(tool, dict) else tool.name for tool in tools}
        self._pending = pending
        for message in messages:
            if isinstance(message, dict):
                self._remember(message)
            else:
                self._remember_model(message)

    def check(self, event: EventDict) -> None:
        """Raises `SequenceError` if a producer must not send this event now."""
        type = event["type"]
        fields = _FIELDS[type]
        if not event.keys() <= fields or None in event.values() or "metadata" in event:
            check_form(event, fields)
        duty = _DUTIES.get(type)
        if duty is not None:
            duty(self, event)

    def note(self, event: EventDict) -> None:
        """Takes note of an event that was sent."""
        note = _NOTES.get(event["type"])
        if note is not None:
            note(self, event)
        if "subagentRunId" in event:
            self._tags.add(event["subagentRunId"])

    def keep(self, id: str) -> None:
        """No snapshot makes this message id free again."""
        self._announced.add(id)

    # Memory

    def _remember_model(self, message: Any) -> None:
        owner = message.subagent_run_id
        self._messages[message.id] = _Message(message.role, getattr(message, "name", None), owner, False)
        for call in getattr(message, "tool_calls", None) or ():
            self._calls[call.id] = _Call(call.function.name, message.id, owner)

    def _remember(self, message: EventDict, *, stated: bool = False) -> None:
        id, owner = message["id"], message.get("subagentRunId")
        ours = self._messages[id].ours if id in self._messages else stated
        self._messages[id] = _Message(message["role"], message.get("name"), owner, ours)
        for call in message.get("toolCalls") or ():
            self._calls[call["id"]] = _Call(call["function"]["name"], id, owner)

    def _check_new(self, event: EventDict, id: str, rule: str, *roles: str) -> None:
        """A message id is used once in a thread, and again only for what continues the same message (L8)."""
        known = self._messages.get(id)
        if known is not None and known.role not in roles:
            raise SequenceError(f"{event['type']}: the id {id!r} is in use by a message of role {known.role!r}", rule)

    # Runs

    def _run_started(self, event: EventDict) -> None:
        if event["runId"] in self._runs:
            raise SequenceError(f"RUN_STARTED: the run id {event['runId']!r} was used on this stream before", "L8")

    def _note_run(self, event: EventDict) -> None:
        self._runs.add(event["runId"])
        self._tags.clear()
        for message in (event.get("input") or {}).get("messages", ()):
            if message["id"] not in self._messages:
                self._remember(message)

    def _run_finished(self, event: EventDict) -> None:
        outcome = event.get("outcome") or {"type": "success"}
        if outcome["type"] == "interrupt" and not outcome["interrupts"]:
            raise SequenceError("RUN_FINISHED: the interrupt outcome needs at least one interrupt", "P1")
        if outcome["type"] == "cancelled" and "result" in event:
            raise SequenceError("RUN_FINISHED: a cancelled run has no result", "L3")
        named = outcome.get("pendingToolCallIds")
        if named and named != (pending := self._pending()):
            raise SequenceError(f"RUN_FINISHED names {named} as pending; the stream leaves {pending} unanswered", "L3")

    # Messages

    def _text_started(self, event: EventDict) -> None:
        id, role = event["messageId"], event.get("role", "assistant")
        if role not in TEXT_ROLES:
            raise SequenceError(
                f"TEXT_MESSAGE_START: a text message has one of the roles {', '.join(TEXT_ROLES)}", "S3"
            )
        known = self._messages.get(id)
        if known is None:
            return
        self._check_new(event, id, "L8", *TEXT_ROLES)
        if not known.ours and role != "assistant":
            raise SequenceError(
                f"TEXT_MESSAGE_START: the message {id!r} is the client's own; only an assistant's is opened again", "S2"
            )
        _agree(event, known.role, role, "role")
        _agree(event, known.name, event.get("name"), "name")
        _agree(event, known.owner, event.get("subagentRunId"), "owner")

    def _note_text(self, event: EventDict) -> None:
        self._messages.setdefault(
            event["messageId"],
            _Message(event.get("role", "assistant"), event.get("name"), event.get("subagentRunId"), True),
        )

    def _reasoning_started(self, event: EventDict) -> None:
        self._check_new(event, event["messageId"], "L8", "reasoning")
        known = self._messages.get(event["messageId"])
        if known is not None:
            _agree(event, known.owner, event.get("subagentRunId"), "owner")

    def _note_reasoning(self, event: EventDict) -> None:
        self._messages.setdefault(event["messageId"], _Message("reasoning", None, event.get("subagentRunId"), True))

    def _content(self, event: EventDict) -> None:
        if event["delta"].__class__ is not str:
            raise SequenceError(f"{event['type']}: a delta is text", "S4")

    def _encrypted(self, event: EventDict) -> None:
        tag, id = event.get("subagentRunId"), event["entityId"]
        known: _Message | _Call | None
        if event["subtype"] == "tool-call":
            known = self._calls.get(id)
        else:
            known = self._messages.get(id)
            known = None if known is not None and known.role == "activity" else known
        if known is None:
            raise SequenceError(f"{event['type']}: there is no {event['subtype']} {id!r} to hold the value", "R2")
        if tag is not None and known.owner != tag:
            raise SequenceError(f"{event['type']} of {lane(tag)}: {id!r} belongs to {lane(known.owner)}", "G3")

    def _snapshot(self, event: EventDict) -> None:
        ids = [message["id"] for message in event["messages"]]
        if len(set(ids)) < len(ids):
            raise SequenceError("MESSAGES_SNAPSHOT: two of its messages have the same id", "L8")

    def _note_snapshot(self, event: EventDict) -> None:
        stated = {message["id"]: message["role"] for message in event["messages"]}
        keeps = set(SPECIAL_ROLES) - set(stated.values())
        known = self._announced.union(stated)
        self._messages = {id: one for id, one in self._messages.items() if id in known or one.role in keeps}
        self._calls = {id: call for id, call in self._calls.items() if call.parent in self._messages}
        for message in event["messages"]:
            self._remember(message, stated=True)

    # Tool calls

    def _call_started(self, event: EventDict) -> None:
        id, parent = event["toolCallId"], event.get("parentMessageId")
        holder = None if parent is None else self._messages.get(parent)
        if holder is not None and holder.role != "assistant":
            raise SequenceError(f"TOOL_CALL_START: the parent {parent!r} is a message of role {holder.role!r}", "T1")
        owner = self._owner_of_call(event)
        if holder is not None and holder.owner != owner:
            raise SequenceError(
                f"TOOL_CALL_START of {lane(owner)}: its parent {parent!r} belongs to {lane(holder.owner)}", "T1"
            )
        known = self._calls.get(id)
        if known is not None:
            _agree(event, known.name, event["toolCallName"], "toolCallName")
            _agree(event, known.parent, parent or id, "parentMessageId")
            _agree(event, known.owner, owner, "owner")
        elif parent is None:
            # Without a parent a consumer makes a message with the call's own id (S6).
            self._check_new(event, id, "L8")

    def _owner_of_call(self, event: EventDict) -> str | None:
        parent = event.get("parentMessageId")
        if "subagentRunId" in event or parent is None or parent not in self._messages:
            return event.get("subagentRunId")
        return self._messages[parent].owner

    def _note_call(self, event: EventDict) -> None:
        id: str = event["toolCallId"]
        parent = event.get("parentMessageId", id)
        call = _Call(event["toolCallName"], parent, self._owner_of_call(event))
        self._calls.setdefault(id, call)
        self._messages.setdefault(call.parent, _Message("assistant", None, call.owner, True))

    def _resulted(self, event: EventDict) -> None:
        call = self._calls.get(event["toolCallId"])
        if call is not None and call.name in self._frontend:
            raise SequenceError(
                f"TOOL_CALL_RESULT: {call.name!r} is the client's tool, and only the client answers it: finish the run, the "
                "answer comes with the next input",
                "T3",
            )
        self._check_new(event, event["messageId"], "T2")

    def _note_result(self, event: EventDict) -> None:
        self._messages[event["messageId"]] = _Message("tool", None, event.get("subagentRunId"), True)

    # Activities

    def _activity(self, event: EventDict) -> None:
        id, owner = event["messageId"], event.get("subagentRunId")
        self._check_new(event, id, "L8", "activity")
        known = self._messages.get(id)
        if known is not None and event.get("replace") is False and known.owner != owner:
            raise SequenceError(f"ACTIVITY_SNAPSHOT without replacing: {id!r} belongs to {lane(known.owner)}", "A1")

    def _note_activity(self, event: EventDict) -> None:
        id = event["messageId"]
        if id not in self._messages or event.get("replace") is not False:
            self._messages[id] = _Message("activity", None, event.get("subagentRunId"), True)

    def _activity_delta(self, event: EventDict) -> None:
        id, tag = event["messageId"], event.get("subagentRunId")
        known = self._messages.get(id)
        if known is None or known.role != "activity":
            raise SequenceError(
                f"ACTIVITY_DELTA: the activity {id!r} has no snapshot; send ACTIVITY_SNAPSHOT first", "A2"
            )
        if tag is not None and tag != known.owner:
            raise SequenceError(f"ACTIVITY_DELTA of {lane(tag)}: {id!r} belongs to {lane(known.owner)}", "G3")
        if not ends_as_object(event.get("patch", ())):
            raise SequenceError(f"ACTIVITY_DELTA: the content of the activity {id!r} stays an object", "A2")

    # Subagents

    def _subagent_started(self, event: EventDict) -> None:
        if event["subagentRunId"] in self._tags:
            raise SequenceError(
                f"SUBAGENT_STARTED: events of {event['subagentRunId']!r} were sent before; announce it first", "G2"
            )


def _agree(event: EventDict, known: Any, given: Any, name: str) -> None:
    if known != given:
        raise SequenceError(f"{event['type']} opens again what has the {name} {known!r}, with {given!r}", "S2")


def check_form(event: EventDict, fields: frozenset[str]) -> None:
    """What a producer must not write into any event (G4, W6, W7, X2)."""
    type = event["type"]
    for name, value in event.items():
        if name not in fields:
            if name == "subagentRunId":
                raise SequenceError(f"{type} belongs to no subagent and carries no subagentRunId", "G4")
            rule = "X2" if name == "encryptedValueType" else "W7"
            raise SequenceError(f"{type} has no member {name!r} in the protocol", rule)
        if value is None and name not in NULL_IS_DATA:
            raise SequenceError(f"{type}: leave {name!r} out when it has no value", "W6")
    if "ag-ui" in event.get("metadata", ()):
        raise SequenceError(f"{type}: the metadata key 'ag-ui' is reserved for the protocol", "W7")


_FIELDS = {type: fields_of(type) for type in EVENTS.objects}

_DUTIES: dict[str, Callable[[Duties, EventDict], None]] = {
    "RUN_STARTED": Duties._run_started,
    "RUN_FINISHED": Duties._run_finished,
    "TEXT_MESSAGE_START": Duties._text_started,
    "TEXT_MESSAGE_CONTENT": Duties._content,
    "TOOL_CALL_START": Duties._call_started,
    "TOOL_CALL_ARGS": Duties._content,
    "TOOL_CALL_RESULT": Duties._resulted,
    "REASONING_MESSAGE_START": Duties._reasoning_started,
    "REASONING_MESSAGE_CONTENT": Duties._content,
    "REASONING_ENCRYPTED_VALUE": Duties._encrypted,
    "MESSAGES_SNAPSHOT": Duties._snapshot,
    "ACTIVITY_SNAPSHOT": Duties._activity,
    "ACTIVITY_DELTA": Duties._activity_delta,
    "SUBAGENT_STARTED": Duties._subagent_started,
}
_NOTES: dict[str, Callable[[Duties, EventDict], None]] = {
    "RUN_STARTED": Duties._note_run,
    "TEXT_MESSAGE_START": Duties._note_text,
    "TOOL_CALL_START": Duties._note_call,
    "TOOL_CALL_RESULT": Duties._note_result,
    "REASONING_MESSAGE_START": Duties._note_reasoning,
    "MESSAGES_SNAPSHOT": Duties._note_snapshot,
    "ACTIVITY_SNAPSHOT": Duties._note_activity,
}
