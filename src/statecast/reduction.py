"""The one reduction of events to messages, as consumers do it (S6, X1, M1 to M5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ag_ui.core import Message
from pydantic import TypeAdapter

from .entry import Call, Entry, copy_json
from .stream.patch import PatchFailed, apply_patch

__all__ = ["SPECIAL", "Reduction"]

EventDict = dict[str, Any]

_message = TypeAdapter[Message](Message)

SPECIAL = frozenset({"activity", "reasoning"})
"""Roles whose messages a consumer keeps although a snapshot lacks them, unless it carries one of that role (M3, M4)."""


class Reduction:
    """The messages of a thread, as events make them.

    Args:
        messages: the messages before the first event, `ag_ui` models (not copied) or wire dicts.
        on_warning: told what an event could not do, such as content for a message that is gone.
    """

    def __init__(
        self, messages: Iterable[Message | dict[str, Any]] = (), *, on_warning: Callable[[str], None] | None = None
    ) -> None:
        self._entries = [
            Entry(model=_message.validate_python(message, by_alias=True) if isinstance(message, dict) else message)
            for message in messages
        ]
        self._by_id: dict[str, Entry] = {}
        self._calls: dict[str, Call] = {}
        # What is being streamed: the ids of messages, and of tool calls.
        self._streaming: tuple[set[str], set[str]] = (set(), set())
        self._on_warning = on_warning
        # The messages of a snapshot that says only what is here already.
        self._taken: list[dict[str, Any]] | None = None
        self._index()

    def apply(self, event: EventDict) -> None:
        """Makes of the messages what a consumer makes of them when this event arrives."""
        reduce = _TABLE.get(event["type"])
        if reduce is not None:
            reduce(self, event)

    def collector(self, id: str) -> Callable[[str], None] | None:
        """What takes a piece of text for an open message, until the messages are edited or restated."""
        entry = self._by_id.get(id)
        return None if entry is None or entry.pieces is None else entry.pieces.append

    def let_go(self, entry: Entry) -> None:
        """Called before an entry's model stops standing for its message."""

    def _index(self) -> None:
        """Finds messages and calls by id; of two with one id, the first."""
        self._by_id, self._calls = {}, {}
        for entry in self._entries:
            self._enter(entry)

    def _enter(self, entry: Entry) -> None:
        self._by_id.setdefault(entry.id, entry)
        for id in entry.call_ids():
            self._calls.setdefault(id, Call(entry, id))

    def _change(self, entry: Entry) -> dict[str, Any]:
        self.let_go(entry)
        return entry.changing()

    def _add(self, wire: dict[str, Any], index: int | None = None) -> Entry:
        entry = Entry(wire)
        self._entries.insert(len(self._entries) if index is None else index, entry)
        self._by_id.setdefault(entry.id, entry)
        return entry

    def _warn(self, text: str) -> None:
        if self._on_warning is not None:
            self._on_warning(text)

    # Text and reasoning

    def _text_target(self, event: EventDict) -> Entry | None:
        entry = self._by_id.get(event["messageId"])
        if entry is None:
            self._warn(f"{event['type']}: there is no message {event['messageId']!r}")
        elif entry.role == "activity":
            self._warn(f"{event['type']}: the message {event['messageId']!r} is an activity")
            return None
        return entry

    def _text_start(self, event: EventDict) -> None:
        reasoning = event["type"] == "REASONING_MESSAGE_START"
        self._streaming[0].add(event["messageId"])
        entry = self._by_id.get(event["messageId"])
        if entry is None:
            role = "reasoning" if reasoning else event.get("role", "assistant")
            wire = {"id": event["messageId"], "role": role, "content": ""}
            if not reasoning and "name" in event:
                wire["name"] = event["name"]
            entry = self._add(_owned(wire, event))
        elif self._text_target(event) is None:
            return
        self._open_text(entry)
        self._merge_metadata(entry, event)

    def _open_text(self, entry: Entry) -> list[str]:
        """From now on a piece of text is only appended to the pieces."""
        self._change(entry)
        # The same list again: whoever collects pieces for this message holds it.
        if entry.pieces is None:
            entry.pieces = []
        return entry.pieces

    def _content(self, event: EventDict) -> None:
        # One of these for every piece of text: two look-ups and an append.
        entry = self._by_id.get(event["messageId"])
        if entry is None or entry.pieces is None:
            entry = self._text_target(event)
            if entry is None:
                return
            self._open_text(entry).append(event["delta"])
        else:
            entry.pieces.append(event["delta"])
        if "metadata" in event:
            self._merge_metadata(entry, event)

    def _text_end(self, event: EventDict) -> None:
        self._streaming[0].discard(event["messageId"])
        entry = self._text_target(event)
        if entry is not None:
            self._merge_metadata(entry, event)

    def _merge_metadata(self, entry: Entry, event: EventDict) -> None:
        if "metadata" in event:
            _merge(self._change(entry), event)

    # Tool calls

    def _call_start(self, event: EventDict) -> None:
        id, name = event["toolCallId"], event["toolCallName"]
        self._streaming[1].add(id)
        call = self._calls.get(id)
        if call is None:
            entry = self._parent_of_call(event)
            new = {"id": id, "type": "function", "function": {"name": name, "arguments": ""}}
            self._change(entry).setdefault("toolCalls", []).append(_merge(new, event))
            self._calls[id] = Call(entry, id)
            return
        self.let_go(call.entry)
        wire = _merge(call.changing(), event)
        if wire["function"]["name"] != name:
            self._warn(f"TOOL_CALL_START: the call {id!r} gets another name")
            wire["function"]["name"] = name

    def _parent_of_call(self, event: EventDict) -> Entry:
        """The assistant message that holds a call; a new one with the parent's id, or the call's own (S6)."""
        id, parent = event["toolCallId"], event.get("parentMessageId")
        entry = None if parent is None else self._by_id.get(parent)
        if entry is not None and entry.role == "assistant":
            return entry
        if entry is not None:
            self._warn(f"TOOL_CALL_START: the parent {parent!r} is no assistant's message")
        new = {"id": id if entry is not None or parent is None else parent, "role": "assistant"}
        # A second message under an id that is taken stays without an owner, as at the main consumer.
        return self._add(new if new["id"] in self._by_id else _owned(new, event))

    def _call_args(self, event: EventDict) -> None:
        call = self._calls.get(event["toolCallId"])
        if call is None:
            self._warn(f"TOOL_CALL_ARGS: there is no call {event['toolCallId']!r}")
            return
        if not call.pieces:
            call.entry.waiting.append(call)
        call.pieces.append(event["delta"])
        if "metadata" in event:
            self.let_go(call.entry)
            _merge(call.changing(), event)

    def _call_end(self, event: EventDict) -> None:
        self._streaming[1].discard(event["toolCallId"])
        call = self._calls.get(event["toolCallId"])
        if call is None:
            self._warn(f"TOOL_CALL_END: there is no call {event['toolCallId']!r}")
        elif "metadata" in event:
            self.let_go(call.entry)
            _merge(call.changing(), event)

    def _result(self, event: EventDict) -> None:
        wire = {
            "id": event["messageId"],
            "role": "tool",
            "content": copy_json(event["content"]),
            "toolCallId": event["toolCallId"],
        }
        call = self._calls.get(event["toolCallId"])
        index = None
        if call is not None:
            # Models want the results of a call right behind the message that made it (S6).
            index = self._entries.index(call.entry) + 1
            while index < len(self._entries) and self._entries[index].role == "tool":
                index += 1
        self._add(_merge(_owned(wire, event), event), index)

    def _encrypted(self, event: EventDict) -> None:
        id, value = event["entityId"], event["encryptedValue"]
        call = self._calls.get(id) if event["subtype"] == "tool-call" else None
        entry = self._by_id.get(id) if event["subtype"] == "message" else None
        if call is not None:
            self.let_go(call.entry)
            call.changing()["encryptedValue"] = value
        elif entry is not None and entry.role != "activity":
            self._change(entry)["encryptedValue"] = value
        else:
            self._warn(f"REASONING_ENCRYPTED_VALUE: there is no {event['subtype']} {id!r} to hold it")

    # Activities

    def _activity_snapshot(self, event: EventDict) -> None:
        id = event["messageId"]
        entry = self._by_id.get(id)
        content = copy_json(event["content"])
        new = _owned({"id": id, "role": "activity", "activityType": event["activityType"], "content": content}, event)
        if entry is None:
            self._add(_merge(new, event))
        elif event.get("replace") is not False:
            self.let_go(entry)
            # A replacing snapshot brings its own owner, but metadata accumulates (A1).
            if entry.role == "activity" and "metadata" in entry.settled():
                new["metadata"] = entry.settled()["metadata"]
            self._entries[self._entries.index(entry)] = Entry(_merge(new, event))
            self._index()
        elif entry.role == "activity":
            self._merge_metadata(entry, event)

    def _activity_delta(self, event: EventDict) -> None:
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
        if isinstance(content, dict):
            self._change(entry).update(content=content, activityType=event["activityType"])
        else:
            self._warn(f"ACTIVITY_DELTA: the patch leaves no object of the activity {id!r}")

    # The conversation as a whole

    def _messages_snapshot(self, event: EventDict) -> None:
        if event["messages"] is self._taken:
            return
        stated = {message["id"]: message for message in event["messages"]}
        declared = {message["role"] for message in event["messages"]}
        kept = []
        for entry in self._entries:
            if entry.id in stated:
                self.let_go(entry)
                kept.append(Entry(copy_json(stated[entry.id])))
            elif entry.role in SPECIAL and entry.role not in declared:
                kept.append(entry)
            else:
                self.let_go(entry)
        held = {entry.id for entry in kept}
        # Not from `stated`: of two unseen messages with one id a consumer appends both.
        self._entries = kept + [Entry(copy_json(one)) for one in event["messages"] if one["id"] not in held]
        self._index()

    def _run_started(self, event: EventDict) -> None:
        """History that the producer echoes: what is not here yet is appended. Nothing streams on from the run before."""
        for open in self._streaming:
            open.clear()
        for message in (event.get("input") or {}).get("messages", ()):
            if message["id"] not in self._by_id:
                self._add(copy_json(message))
        self._index()


def _owned(wire: dict[str, Any], event: EventDict) -> dict[str, Any]:
    if "subagentRunId" in event:
        wire["subagentRunId"] = event["subagentRunId"]
    return wire


def _merge(wire: dict[str, Any], event: EventDict) -> dict[str, Any]:
    """Merges an event's metadata: key by key, the last one wins, not recursively (X1)."""
    if "metadata" in event:
        wire["metadata"] = {**wire.get("metadata", {}), **copy_json(event["metadata"])}
    return wire


_TABLE: dict[str, Callable[[Any, EventDict], None]] = {
    "RUN_STARTED": Reduction._run_started,
    "TEXT_MESSAGE_START": Reduction._text_start,
    "TEXT_MESSAGE_CONTENT": Reduction._content,
    "TEXT_MESSAGE_END": Reduction._text_end,
    "REASONING_MESSAGE_START": Reduction._text_start,
    "REASONING_MESSAGE_CONTENT": Reduction._content,
    "REASONING_MESSAGE_END": Reduction._text_end,
    "REASONING_ENCRYPTED_VALUE": Reduction._encrypted,
    "TOOL_CALL_START": Reduction._call_start,
    "TOOL_CALL_ARGS": Reduction._call_args,
    "TOOL_CALL_END": Reduction._call_end,
    "TOOL_CALL_RESULT": Reduction._result,
    "ACTIVITY_SNAPSHOT": Reduction._activity_snapshot,
    "ACTIVITY_DELTA": Reduction._activity_delta,
    "MESSAGES_SNAPSHOT": Reduction._messages_snapshot,
}
