"""The messages of a thread: the one reduction of events to messages (S6, X1), and edits that restate them (M1 to M5).

A producer keeps one as `run.messages`, a replica keeps one as what a client shows. Text and arguments that stream are kept in
pieces and joined when somebody reads them; a message becomes an `ag_ui` model when somebody reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableSequence
from typing import Any, NoReturn, SupportsIndex, cast, overload

from ag_ui.core import Message
from pydantic import BaseModel, TypeAdapter

from .errors import SequenceError
from .stream.patch import PatchFailed, apply_patch
from .stream.shapes import MESSAGE, UNKNOWN, Notes, strip

__all__ = ["Conversation"]

_message = TypeAdapter[Message](Message)

SPECIAL = frozenset({"activity", "reasoning"})
"""Roles whose messages a consumer keeps although a snapshot lacks them, unless the snapshot carries one of that role (M3, M4)."""


class Entry:
    """One message: as a wire dict, as a model, or as both; and the text that was not joined to it yet."""

    __slots__ = ("baseline", "id", "model", "pieces", "role", "shared", "waiting", "wire")

    def __init__(self, wire: dict[str, Any] | None = None, model: Any = None) -> None:
        self.wire = wire
        self.model = model
        self.id: str = model.id if wire is None else wire["id"]
        self.role: str = model.role if wire is None else wire["role"]
        # Text pieces of an open message; None until it was opened here.
        self.pieces: list[str] | None = None
        # Tool calls of this message with pieces of arguments.
        self.waiting: list[Call] = []
        # The wire dict was given away, and is copied before it changes.
        self.shared = False
        # What the model said when it was handed out, in debug mode.
        self.baseline: Any = None

    def settled(self) -> dict[str, Any]:
        """The wire dict, with all pieces joined."""
        if self.wire is None:
            self.wire = _dump(self.model)
        if self.pieces or self.waiting:
            wire = self._own()
            if self.pieces:
                content = wire.get("content")
                wire["content"] = (content if isinstance(content, str) else "") + "".join(self.pieces)
                self.pieces.clear()
            for call in self.waiting:
                function = _find_call(wire, call.id)["function"]
                function["arguments"] += "".join(call.pieces)
                call.pieces.clear()
            self.waiting.clear()
        return self.wire

    def _own(self) -> dict[str, Any]:
        wire = cast("dict[str, Any]", self.wire)
        if self.shared:
            self.wire = wire = _copy(wire)
            self.shared = False
        return wire

    def changing(self) -> dict[str, Any]:
        """The wire dict, to be changed: nobody else holds it, and no model stands for it any more."""
        self.settled()
        self.model = None
        return self._own()


class Call:
    """A tool call in a message, and the arguments that were not joined to it yet."""

    __slots__ = ("entry", "id", "pieces")

    def __init__(self, entry: Entry, id: str) -> None:
        self.entry = entry
        self.id = id
        self.pieces: list[str] = []


class Conversation(MutableSequence[Message]):
    """A list of `ag_ui` messages that grows by events; editing it restates it to the client.

    Assign a new message to change one: `messages[i] = m.model_copy(update=…)`. Changes, removals and appended messages go
    out together, as one MESSAGES_SNAPSHOT at the next flush. A client never reorders the messages that it has and appends
    those that it does not know (M2), so `insert` before the end, `sort` and `reverse` raise `SequenceError`. A message that
    is changed in place is not sent.

    Args:
        messages: the messages so far. They are not copied.
        debug: remember what was read, so that `changed_in_place` can tell.
        on_change: called when an edit makes the conversation dirty.
        on_warning: told what an event could not do, such as content for a message that is gone.
    """

    def __init__(
        self,
        messages: Iterable[Message] = (),
        *,
        debug: bool = False,
        on_change: Callable[[], None] | None = None,
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        self._entries = [Entry(model=message) for message in messages]
        self._debug = debug
        self._on_change = on_change
        self._on_warning = on_warning
        self._dirty = False
        self._edited = False
        self._declared: set[str] = set()
        self._taken: list[dict[str, Any]] | None = None
        self._changed: dict[str, None] = {}
        self._index()

    # Reading

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, index: SupportsIndex) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return [self._read(entry) for entry in self._entries[index]]
        return self._read(self._entries[index])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (list, Conversation)):
            return NotImplemented
        return list(self) == list(other)

    def __repr__(self) -> str:
        return f"Conversation({list(self)!r})"

    def _read(self, entry: Entry) -> Message:
        if entry.model is None or entry.pieces or entry.waiting:
            self._let_go(entry)
            entry.model = _message.validate_python(_copy(entry.settled()), by_alias=True, by_name=False)
        if self._debug and entry.baseline is None:
            entry.baseline = _dump(entry.model)
        return cast(Message, entry.model)

    def _let_go(self, entry: Entry) -> None:
        """A model that was handed out stands for its message no longer."""
        if entry.baseline is not None:
            if entry.model is not None and _dump(entry.model) != entry.baseline:
                self._changed[entry.id] = None
            entry.baseline = None

    def changed_in_place(self) -> list[str]:
        """The ids of messages that were changed after they were read, which is not sent. Only in debug mode."""
        for entry in self._entries:
            if entry.baseline is not None and _dump(entry.model) != entry.baseline:
                self._changed[entry.id] = None
        return list(self._changed)

    # Editing

    @overload
    def __setitem__(self, index: SupportsIndex, value: Message) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[Message]) -> None: ...
    def __setitem__(self, index: SupportsIndex | slice, value: Any) -> None:
        """Replaces messages.

        Raises:
            SequenceError: the client cannot follow: it would have to reorder messages (M2), or to drop the last activity
                or reasoning message, which it keeps (M3); or the message says what the protocol does not describe (W7).
            TypeError: a value is no `ag_ui` message.
        """
        entries = list(self._entries)
        if isinstance(index, slice):
            entries[index] = [self._entry(message) for message in value]
        else:
            entries[index] = self._entry(value)
        self._edit(entries)

    def __delitem__(self, index: SupportsIndex | slice) -> None:
        """Removes messages. Raises `SequenceError` if the client would keep them all the same (M3)."""
        entries = list(self._entries)
        del entries[index]
        self._edit(entries)

    def insert(self, index: SupportsIndex, value: Message) -> None:
        """Appends a message. Raises `SequenceError` for an index before the end (M2)."""
        entries = list(self._entries)
        entries.insert(index, self._entry(value))
        self._edit(entries)

    def append(self, value: Message) -> None:
        self.insert(len(self._entries), value)

    def clear(self) -> None:
        del self[:]

    def reverse(self) -> NoReturn:
        raise SequenceError("a client never reorders the messages that it has", "M2")

    def sort(self, *, key: Any = None, reverse: bool = False) -> NoReturn:
        raise SequenceError("a client never reorders the messages that it has", "M2")

    def restate(self) -> None:
        """Sends the messages at the next flush, although none was edited. Activities and reasoning stay as they are."""
        self._mark()

    def _entry(self, message: Any) -> Entry:
        if not isinstance(message, BaseModel) or type(message).__module__.split(".")[0] != "ag_ui":
            raise TypeError(f"the conversation holds ag_ui messages, not {type(message).__name__}")
        wire = _dump(message)
        notes = Notes(sent=True)
        if strip(MESSAGE, wire, notes) is UNKNOWN or notes.warnings or notes.faults:
            found = (
                notes.warnings or [f"{fault.pointer}: {fault.message}" for fault in notes.faults] or [wire.get("role")]
            )
            rule = "X2" if "encryptedValueType" in str(found) else "W7"
            raise SequenceError(f"the message {wire.get('id')!r} is not as the protocol describes it: {found[0]}", rule)
        _message.validate_python(wire, by_alias=True, by_name=False)
        return Entry(wire, message)

    def _edit(self, entries: list[Entry]) -> None:
        """Takes over an edited list, if a client can be brought to the same."""
        old = {entry.id: entry for entry in self._entries}
        new = {entry.id: entry for entry in entries}
        if len(new) < len(entries):
            raise SequenceError(
                "two messages would have the same id; assign to a slice to replace several at once", "L8"
            )
        followed = [id for id in old if id in new] + [id for id in new if id not in old]
        if followed != list(new):
            raise SequenceError(
                "a client keeps the order of the messages that it has, and appends those that it does not know: replace a "
                "message by one of the same id, append at the end, or remove",
                "M2",
            )
        removed = {entry.role for id, entry in old.items() if id not in new} & SPECIAL
        replaced = {entry.role for id, entry in new.items() if old.get(id) is not entry} & SPECIAL
        for role in removed - {entry.role for entry in entries}:
            raise SequenceError(
                f"a client keeps its {role} messages unless the snapshot carries one: the last one cannot be removed",
                "M3",
            )
        for id, entry in old.items():
            if new.get(id) is not entry:
                self._let_go(entry)
        self._entries = entries
        self._index()
        self._edited = True
        self._declared |= removed | replaced
        self._mark()

    def _mark(self) -> None:
        if not self._dirty:
            self._dirty = True
            if self._on_change is not None:
                self._on_change()

    # For the run

    @property
    def dirty(self) -> bool:
        """The messages were edited, or `restate` was called, since the last `take`."""
        return self._dirty

    def take(self) -> list[dict[str, Any]] | None:
        """The messages of one MESSAGES_SNAPSHOT, in wire form; `None` if there is nothing to restate.

        It holds no activity and no reasoning message, so that the consumer keeps its own (M3), unless one of that role was
        edited: then it declares all of that role that are known here (M4).
        """
        if not self._dirty:
            return None
        stated = [entry for entry in self._entries if entry.role not in SPECIAL or entry.role in self._declared]
        edited, self._edited, self._dirty = self._edited, False, False
        self._declared.clear()
        if not stated and not edited:
            return None
        self._taken = []
        for entry in stated:
            self._taken.append(entry.settled())
            entry.shared = True
        return self._taken

    def mark_failed(self, message_id: str, error: str) -> None:
        """Sets the `error` of a tool message: TOOL_CALL_RESULT has no place for it. Nothing is sent.

        Raises:
            KeyError: there is no such tool message.
        """
        entry = self._by_id[message_id]
        if entry.role != "tool":
            raise KeyError(message_id)
        self._change(entry)["error"] = error

    def apply(self, event: dict[str, Any]) -> None:
        """Makes of the messages what a consumer makes of them when this event arrives."""
        reduce = _REDUCTION.get(event["type"])
        if reduce is not None:
            reduce(self, event)

    # The reduction

    def _index(self) -> None:
        self._by_id: dict[str, Entry] = {}
        calls, self._calls = getattr(self, "_calls", {}), {}
        for entry in self._entries:
            self._by_id.setdefault(entry.id, entry)
            for id in _call_ids(entry):
                known = calls.get(id)
                self._calls.setdefault(id, known if known is not None and known.entry is entry else Call(entry, id))

    def _change(self, entry: Entry) -> dict[str, Any]:
        self._let_go(entry)
        return entry.changing()

    def _add(self, wire: dict[str, Any], index: int | None = None) -> Entry:
        entry = Entry(wire)
        self._entries.insert(len(self._entries) if index is None else index, entry)
        self._by_id.setdefault(entry.id, entry)
        return entry

    def _warn(self, text: str) -> None:
        if self._on_warning is not None:
            self._on_warning(text)

    def _text_target(self, event: dict[str, Any]) -> Entry | None:
        """The message that text or reasoning goes to."""
        entry = self._by_id.get(event["messageId"])
        if entry is None:
            self._warn(f"{event['type']}: there is no message {event['messageId']!r}")
        elif entry.role == "activity":
            self._warn(f"{event['type']}: the message {event['messageId']!r} is an activity")
            entry = None
        return entry

    def _start(self, event: dict[str, Any], role: str) -> None:
        entry = self._by_id.get(event["messageId"])
        if entry is None:
            wire = {"id": event["messageId"], "role": role, "content": ""}
            if role != "reasoning" and "name" in event:
                wire["name"] = event["name"]
            entry = self._add(_owned(wire, event))
        elif self._text_target(event) is None:
            return
        self._open_text(entry)
        self._merge_metadata(entry, event)

    def _open_text(self, entry: Entry) -> list[str]:
        """From now on text is appended to the pieces alone."""
        self._change(entry)
        entry.pieces = pieces = []
        return pieces

    def _text_start(self, event: dict[str, Any]) -> None:
        self._start(event, event.get("role", "assistant"))

    def _reasoning_start(self, event: dict[str, Any]) -> None:
        self._start(event, "reasoning")

    def _content(self, event: dict[str, Any]) -> None:
        # The hot path: one event for every piece of text.
        entry = self._by_id.get(event["messageId"])
        if entry is None or entry.pieces is None:
            entry = self._text_target(event)
            if entry is None:
                return
            self._open_text(entry)
        entry.pieces.append(event["delta"])  # type: ignore[union-attr]
        if "metadata" in event:
            self._merge_metadata(entry, event)

    def _end(self, event: dict[str, Any]) -> None:
        entry = self._text_target(event)
        if entry is not None:
            self._merge_metadata(entry, event)

    def _merge_metadata(self, entry: Entry, event: dict[str, Any], wire: dict[str, Any] | None = None) -> None:
        """Key by key, the last one wins, not recursively (X1)."""
        if "metadata" in event:
            wire = self._change(entry) if wire is None else wire
            wire["metadata"] = {**wire.get("metadata", {}), **_copy(event["metadata"])}

    def _call_start(self, event: dict[str, Any]) -> None:
        id, parent = event["toolCallId"], event.get("parentMessageId")
        call = self._calls.get(id)
        if call is not None:
            wire = self._change(call.entry)
            found = _find_call(wire, id)
            if found["function"]["name"] != event["toolCallName"]:
                self._warn(f"TOOL_CALL_START: the call {id!r} is renamed")
                found["function"]["name"] = event["toolCallName"]
        else:
            entry = self._by_id.get(parent) if parent is not None else None
            if entry is None or entry.role != "assistant":
                if entry is not None:
                    self._warn(f"TOOL_CALL_START: the parent {parent!r} is no assistant's message")
                new = id if entry is not None or parent is None else parent
                entry = self._add(_owned({"id": new, "role": "assistant"}, event))
            wire = self._change(entry)
            found = {"id": id, "type": "function", "function": {"name": event["toolCallName"], "arguments": ""}}
            wire.setdefault("toolCalls", []).append(found)
            call = self._calls[id] = Call(entry, id)
        self._merge_metadata(call.entry, event, found)

    def _call_args(self, event: dict[str, Any]) -> None:
        call = self._calls.get(event["toolCallId"])
        if call is None:
            self._warn(f"TOOL_CALL_ARGS: there is no call {event['toolCallId']!r}")
            return
        if not call.pieces:
            self._change(call.entry)
            call.entry.waiting.append(call)
        call.pieces.append(event["delta"])
        if "metadata" in event:
            self._merge_call_metadata(call, event)

    def _call_end(self, event: dict[str, Any]) -> None:
        call = self._calls.get(event["toolCallId"])
        if call is None:
            self._warn(f"TOOL_CALL_END: there is no call {event['toolCallId']!r}")
        elif "metadata" in event:
            self._merge_call_metadata(call, event)

    def _merge_call_metadata(self, call: Call, event: dict[str, Any]) -> None:
        wire = self._change(call.entry)
        self._merge_metadata(call.entry, event, _find_call(wire, call.id))

    def _result(self, event: dict[str, Any]) -> None:
        wire = {
            "id": event["messageId"],
            "role": "tool",
            "content": _copy(event["content"]),
            "toolCallId": event["toolCallId"],
        }
        if "metadata" in event:
            wire["metadata"] = _copy(event["metadata"])
        call = self._calls.get(event["toolCallId"])
        index = None
        if call is not None:
            # Providers want a call's results right behind the message that made the call (S6).
            index = self._entries.index(call.entry) + 1
            while index < len(self._entries) and self._entries[index].role == "tool":
                index += 1
        self._add(_owned(wire, event), index)

    def _encrypted(self, event: dict[str, Any]) -> None:
        id, value = event["entityId"], event["encryptedValue"]
        if event["subtype"] == "tool-call":
            call = self._calls.get(id)
            if call is not None:
                _find_call(self._change(call.entry), id)["encryptedValue"] = value
                return
        else:
            entry = self._by_id.get(id)
            if entry is not None and entry.role != "activity":
                self._change(entry)["encryptedValue"] = value
                return
        self._warn(f"REASONING_ENCRYPTED_VALUE: there is no {event['subtype']} {id!r} that can hold it")

    def _activity_snapshot(self, event: dict[str, Any]) -> None:
        entry = self._by_id.get(event["messageId"])
        new = {
            "id": event["messageId"],
            "role": "activity",
            "activityType": event["activityType"],
            "content": _copy(event["content"]),
        }
        _owned(new, event)
        if entry is None:
            entry = self._add(new)
        elif event.get("replace") is False:
            if entry.role != "activity":
                return
        else:
            self._let_go(entry)
            if entry.role == "activity" and "metadata" in entry.settled():
                new["metadata"] = entry.settled()["metadata"]
            self._put(entry, new)
        self._merge_metadata(self._by_id[new["id"]], event)

    def _activity_delta(self, event: dict[str, Any]) -> None:
        id = event["messageId"]
        entry = self._by_id.get(id)
        if entry is None or entry.role != "activity":
            self._warn(f"ACTIVITY_DELTA: the message {id!r} is missing, or no activity")
            return
        self._merge_metadata(entry, event)
        try:
            content = apply_patch(entry.settled()["content"], event["patch"])
        except PatchFailed as error:
            self._warn(f"ACTIVITY_DELTA: the patch does not fit the activity {id!r}: {error}")
            return
        if not isinstance(content, dict):
            self._warn(f"ACTIVITY_DELTA: the patch leaves no object of the activity {id!r}")
            return
        self._change(entry).update(content=content, activityType=event["activityType"])

    def _messages_snapshot(self, event: dict[str, Any]) -> None:
        stated = event["messages"]
        if stated is self._taken:
            return
        by_id = {message["id"]: message for message in stated}
        declared = {message["role"] for message in stated}
        kept = []
        for entry in self._entries:
            new = by_id.get(entry.id)
            if new is not None:
                self._let_go(entry)
                kept.append(self._fresh(new))
            elif entry.role in SPECIAL and entry.role not in declared:
                kept.append(entry)
            else:
                self._let_go(entry)
        held = {entry.id for entry in kept}
        self._entries = kept + [self._fresh(message) for message in stated if message["id"] not in held]
        self._index()

    def _fresh(self, message: dict[str, Any]) -> Entry:
        return Entry(_copy(message))

    def _put(self, entry: Entry, wire: dict[str, Any]) -> None:
        """Replaces a message by another in its place."""
        self._entries[self._entries.index(entry)] = Entry(wire)
        self._index()

    def _run_started(self, event: dict[str, Any]) -> None:
        for message in (event.get("input") or {}).get("messages", ()):
            if message["id"] not in self._by_id:
                self._add(_copy(message))
        self._index()


_REDUCTION: dict[str, Callable[[Conversation, dict[str, Any]], None]] = {
    "RUN_STARTED": Conversation._run_started,
    "TEXT_MESSAGE_START": Conversation._text_start,
    "TEXT_MESSAGE_CONTENT": Conversation._content,
    "TEXT_MESSAGE_END": Conversation._end,
    "REASONING_MESSAGE_START": Conversation._reasoning_start,
    "REASONING_MESSAGE_CONTENT": Conversation._content,
    "REASONING_MESSAGE_END": Conversation._end,
    "REASONING_ENCRYPTED_VALUE": Conversation._encrypted,
    "TOOL_CALL_START": Conversation._call_start,
    "TOOL_CALL_ARGS": Conversation._call_args,
    "TOOL_CALL_END": Conversation._call_end,
    "TOOL_CALL_RESULT": Conversation._result,
    "ACTIVITY_SNAPSHOT": Conversation._activity_snapshot,
    "ACTIVITY_DELTA": Conversation._activity_delta,
    "MESSAGES_SNAPSHOT": Conversation._messages_snapshot,
}


def _dump(message: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", message.model_dump(by_alias=True))


def _copy(value: Any) -> Any:
    """A copy of a JSON value."""
    if isinstance(value, dict):
        return {name: _copy(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_copy(inner) for inner in value]
    return value


def _owned(wire: dict[str, Any], event: dict[str, Any]) -> dict[str, Any]:
    if "subagentRunId" in event:
        wire["subagentRunId"] = event["subagentRunId"]
    return wire


def _call_ids(entry: Entry) -> Iterable[str]:
    if entry.role != "assistant":
        return ()
    if entry.wire is None:
        return [call.id for call in entry.model.tool_calls or ()]
    return [call["id"] for call in entry.wire.get("toolCalls", ())]


def _find_call(wire: dict[str, Any], id: str) -> dict[str, Any]:
    return next(call for call in wire["toolCalls"] if call["id"] == id)
