"""`run.messages`: the messages of a thread, which grow by events, and whose edits are restated to the client (M1 to M5)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, MutableSequence
from typing import Any, NoReturn, SupportsIndex, cast, overload

from ag_ui.core import Message
from pydantic import BaseModel, TypeAdapter

from .entry import Entry, copy_json, dump
from .errors import SequenceError
from .reduction import SPECIAL, Reduction
from .state import encode_json
from .stream.shapes import MESSAGE, UNKNOWN, Notes

__all__ = ["Conversation"]

_message = TypeAdapter[Message](Message)


class Held:
    """The messages that a client holds while edits wait to be sent."""

    def __init__(self, entries: list[Entry]) -> None:
        self.by_id = {entry.id: entry for entry in entries}
        self.count = Counter(entry.id for entry in entries)


class Conversation(Reduction, MutableSequence[Message]):
    """A list of `ag_ui` messages that grows by events; editing it restates it to the client.

    Assign a new message to change one: `messages[i] = m.model_copy(update=…)`. Changes, removals and appended messages go
    out together, as one MESSAGES_SNAPSHOT at the next flush. A client keeps the order of the messages that it has and
    appends those that it does not know (M2), so `insert` before the end, `sort` and `reverse` raise `SequenceError`. A
    message that is changed in place is not sent.

    Args:
        messages: the messages so far, `ag_ui` models (not copied) or wire dicts.
        debug: remember what was read, so that `changed_in_place` can tell.
        on_change: called when an edit, or `restate`, makes the conversation dirty.
        on_warning: told what an event could not do, such as content for a message that is gone.
    """

    def __init__(
        self,
        messages: Iterable[Message | dict[str, Any]] = (),
        *,
        debug: bool = False,
        on_change: Callable[[], None] | None = None,
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(messages, on_warning=on_warning)
        self._debug = debug
        self._on_change = on_change
        self._dirty = False
        # What the client holds, while edits wait to be taken.
        self._held: Held | None = None
        # Special roles of which the next snapshot declares the complete set (M4).
        self._declared: set[str] = set()
        # The ids of this run's activities, some of which may have sent nothing yet, or be removed.
        self._reserved: set[str] = set()
        self._changed: dict[str, None] = {}

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

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Conversation({list(self)!r})"

    def _read(self, entry: Entry) -> Message:
        if entry.stale:
            self.let_go(entry)
            entry.model = _message.validate_python(copy_json(entry.settled()), by_alias=True, by_name=False)
            entry.outdated = False
        elif entry.role in SPECIAL:
            # So that an edit can tell whether it was changed: these are restated only if they were.
            entry.settled()
        if self._debug and entry.baseline is None:
            entry.baseline = dump(entry.model)
        return cast(Message, entry.model)

    def let_go(self, entry: Entry) -> None:
        if entry.baseline is not None:
            self._compare(entry)
            entry.baseline = None

    def _compare(self, entry: Entry) -> None:
        if entry.model is not None and dump(entry.model) != entry.baseline:
            self._changed[entry.id] = None

    def changed_in_place(self) -> list[str]:
        """The ids of messages that were changed in place after they were read, which is not sent. Only in debug mode."""
        for entry in self._entries:
            if entry.baseline is not None:
                self._compare(entry)
        return list(self._changed)

    # Editing

    @overload
    def __setitem__(self, index: SupportsIndex, value: Message) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[Message]) -> None: ...
    def __setitem__(self, index: SupportsIndex | slice, value: Any) -> None:
        """Replaces messages.

        Raises:
            SequenceError: the client cannot follow: it would have to reorder messages (M2), or to drop its last activity or
                reasoning message, which it keeps (M3), or a message that is being streamed (S1); or the message holds what
                the protocol does not describe (W7), or has the id of another (L8).
            StateError: a value in the message is not JSON.
            TypeError: a value is no `ag_ui` message.
        """
        entries = list(self._entries)
        if isinstance(index, slice):
            known = {id(entry.model): entry for entry in self._entries if not entry.stale}
            entries[index] = [self._kept(message, known.get(id(message))) for message in value]
        else:
            entries[index] = self._entry_of(value)
        self._edit(entries)

    def __delitem__(self, index: SupportsIndex | slice) -> None:
        """Removes messages. Raises `SequenceError` if the client would keep one all the same (M3), or it is streamed (S1)."""
        entries = list(self._entries)
        del entries[index]
        self._edit(entries)

    def insert(self, index: SupportsIndex, value: Message) -> None:
        """Appends a message. Raises `SequenceError` for an index before the end (M2)."""
        entry = self._entry_of(value)
        held = self._held or Held(self._entries)
        if index.__index__() >= len(self._entries) and entry.id not in self._by_id and entry.id not in held.count:
            self._append(entry, held)
            return
        entries = list(self._entries)
        entries.insert(index, entry)
        self._edit(entries)

    def _append(self, entry: Entry, held: Held) -> None:
        """What `_edit` does for a message that is new, without a look at all the others."""
        self._entries.append(entry)
        self._enter(entry)
        self._held = held
        self._declared |= {entry.role} & SPECIAL
        self._mark()

    def extend(self, values: Iterable[Message]) -> None:
        self[len(self) :] = values

    def clear(self) -> None:
        del self[:]

    def reverse(self) -> NoReturn:
        """Raises `SequenceError`: a snapshot never reorders what the client has (M2)."""
        raise SequenceError("a client keeps the order of the messages that it has", "M2")

    def sort(self, *, key: Any = None, reverse: bool = False) -> NoReturn:
        """Raises `SequenceError`: a snapshot never reorders what the client has (M2)."""
        raise SequenceError("a client keeps the order of the messages that it has", "M2")

    def restate(self) -> None:
        """Sends the messages at the next flush although none was edited. Activities and reasoning stay as they are."""
        self._mark()

    def _kept(self, message: Any, entry: Entry | None) -> Entry:
        """The entry of a message that was read here, unless it was changed since."""
        if entry is not None and dump(message) == entry.settled():
            return entry
        return self._entry_of(message)

    def _entry_of(self, message: Any) -> Entry:
        if not isinstance(message, BaseModel) or type(message).__module__.split(".")[0] != "ag_ui":
            raise TypeError(f"the conversation holds ag_ui messages, not {type(message).__name__}")
        wire = json.loads(encode_json(dump(message)))
        notes = Notes(sent=True)
        unknown = MESSAGE.read(wire, notes, None) is UNKNOWN
        found = notes.warnings + [f"{fault.pointer}: {fault.message}" for fault in notes.faults]
        if unknown or found:
            what = found[0] if found else "it is of an unknown kind"
            rule = "X2" if "encryptedValueType" in what else "W7"
            raise SequenceError(f"the message {wire.get('id')!r} is not what the protocol describes: {what}", rule)
        _message.validate_python(wire, by_alias=True, by_name=False)
        self._check_reserved(wire["id"], wire["role"])
        return Entry(wire, message)

    def _check_reserved(self, id: str, role: str) -> None:
        if id in self._reserved and role != "activity":
            raise SequenceError(f"the id {id!r} is in use by an activity of this run", "L8")

    def _edit(self, entries: list[Entry]) -> None:
        """Takes over an edited list, if one snapshot can bring a client from what it holds to the same."""
        held = self._held or Held(self._entries)
        old = held.by_id
        new = {entry.id: entry for entry in entries}
        # An input may hold an id twice; an edit must not.
        if any(count > max(1, held.count[id]) for id, count in Counter(entry.id for entry in entries).items()):
            raise SequenceError("two messages would have the same id", "L8")
        if [id for id in old if id in new] + [id for id in new if id not in old] != list(new):
            raise SequenceError(
                "a client keeps the order of the messages that it has and appends those that it does not know: replace a "
                "message by one with its id, append at the end, or remove",
                "M2",
            )
        self._keep_streaming({entry.id: (entry.role, entry.call_ids()) for entry in entries})
        removed = {entry.role for id, entry in old.items() if id not in new} & SPECIAL
        for role in removed - {entry.role for entry in entries}:
            raise SequenceError(
                f"a client keeps its {role} messages unless a snapshot carries one: the last one cannot be removed",
                "M3",
            )
        for entry in self._entries:
            if new.get(entry.id) is not entry:
                # What was changed in place and is assigned again is sent.
                if entry.id in new and new[entry.id].model is entry.model:
                    entry.baseline = None
                self.let_go(entry)
        self._held = held
        self._entries = entries
        self._index()
        self._declared = removed | ({entry.role for id, entry in new.items() if old.get(id) is not entry} & SPECIAL)
        self._mark()

    def check_snapshot(self, messages: list[dict[str, Any]]) -> None:
        """Raises `SequenceError` if a MESSAGES_SNAPSHOT that somebody else made cannot be taken over.

        It drops what is being streamed (S1), or gives the id of an activity of this run to another message (L8).
        """
        for message in messages:
            self._check_reserved(message["id"], message["role"])
        declared = {message["role"] for message in messages}
        kept = {entry.id: (entry.role, ()) for entry in self._entries if entry.role in SPECIAL - declared}
        calls = {one["id"]: [call["id"] for call in one.get("toolCalls") or ()] for one in messages}
        self._keep_streaming(kept | {one["id"]: (one["role"], calls[one["id"]]) for one in messages})

    def _keep_streaming(self, new: dict[str, tuple[str, Iterable[str]]]) -> None:
        """Raises if what is being streamed would lose its place: the rest of it could be no part of any message.

        Args:
            new: the messages that would be left: id -> role, and the ids of the calls in it.
        """
        texts, calls = self._streaming
        for id in texts:
            entry = self._by_id.get(id)
            if entry is not None and new.get(id, ("",))[0] != entry.role:
                raise SequenceError(f"the message {id!r} is being streamed: close it before you remove it", "S1")
        for id in calls:
            call = self._calls.get(id)
            if call is not None and id not in new.get(call.entry.id, ("", ()))[1]:
                raise SequenceError(f"the tool call {id!r} is being streamed: close it before you remove it", "S1")

    def _mark(self) -> None:
        if not self._dirty:
            self._dirty = True
            if self._on_change is not None:
                self._on_change()

    # For the run

    def check_activity(self, id: str) -> None:
        """Raises `SequenceError` if a message of another role has the id that an activity is to have (L8)."""
        entry = self._by_id.get(id)
        if entry is not None and entry.role != "activity":
            raise SequenceError(f"the id {id!r} is in use by a message of role {entry.role!r}", "L8")

    def reserve(self, id: str) -> None:
        """Keeps an id for an activity of this run: no other message may take it (L8)."""
        self._reserved.add(id)

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
        entries = [entry for entry in self._entries if entry.role not in SPECIAL or entry.role in self._declared]
        edited, self._held, self._dirty = self._held is not None, None, False
        self._declared.clear()
        if not entries and not edited:
            return None
        taken = {entry.id: entry for entry in reversed(entries)}
        stated = [entry.settled() for entry in entries if taken[entry.id] is entry]
        for entry in taken.values():
            entry.shared = True
        # Where an id is held twice the snapshot also changes what is here.
        self._taken = stated if len(stated) == len(entries) else None
        return stated

    def mark_failed(self, message_id: str, error: str) -> None:
        """Sets the `error` of a tool message, for which TOOL_CALL_RESULT has no place. Nothing is sent.

        Raises:
            KeyError: there is no such tool message.
        """
        entry = self._by_id[message_id]
        if entry.role != "tool":
            raise KeyError(message_id)
        self._change(entry)["error"] = error
