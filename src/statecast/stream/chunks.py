"""Chunk events, the short spelling of start, content and end, written out (S5).

A *lane* is one owner's stream: the parent agent's, or a subagent's. A lane assembles at most one item from chunks, as a
chunk says what it continues only by leaving that out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import SequenceError

__all__ = ["Expander"]

EventDict = dict[str, Any]


@dataclass(frozen=True)
class _Kind:
    """How one kind of item is spelled out."""

    noun: str
    id: str
    start: str
    content: str
    end: str
    describing: tuple[str, ...]


_TEXT = _Kind(
    "text message", "messageId", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", ("role", "name")
)
_TOOL = _Kind(
    "tool call",
    "toolCallId",
    "TOOL_CALL_START",
    "TOOL_CALL_ARGS",
    "TOOL_CALL_END",
    ("toolCallName", "parentMessageId"),
)
_REASONING = _Kind(
    "reasoning message",
    "messageId",
    "REASONING_MESSAGE_START",
    "REASONING_MESSAGE_CONTENT",
    "REASONING_MESSAGE_END",
    (),
)
_CHUNKS = {"TEXT_MESSAGE_CHUNK": _TEXT, "TOOL_CALL_CHUNK": _TOOL, "REASONING_MESSAGE_CHUNK": _REASONING}

_KEEP_OPEN = {"RAW", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "REASONING_ENCRYPTED_VALUE", "SUBAGENT_STARTED"}
_END_ALL = {"RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "MESSAGES_SNAPSHOT"}


@dataclass(frozen=True)
class _Item:
    """What a lane assembles, with what its first chunk established."""

    kind: _Kind
    id: str
    owner: str | None
    established: dict[str, Any]

    def event(self, type: str, **fields: Any) -> EventDict:
        event = {"type": type, self.kind.id: self.id, **fields}
        if self.owner is not None:
            event["subagentRunId"] = self.owner
        return event


class Expander:
    """Turns the chunk events of one stream into start, content and end events; other events pass through."""

    def __init__(self) -> None:
        self._lanes: dict[str | None, _Item] = {}

    @property
    def open(self) -> bool:
        """An item is being assembled, which the next event may end."""
        return bool(self._lanes)

    def feed(self, event: EventDict) -> Iterable[EventDict]:
        """The events that stand for this one, in order; iterate over them once.

        Each is taken note of when the next one is asked for: an event that a later stage refuses leaves no trace here.

        Raises:
            SequenceError: (while iterating) a first chunk lacks its id or name, a chunk contradicts the one that opened
                its item, or it could continue several (S5).
        """
        if not self._lanes and event["type"] not in _CHUNKS:
            return (event,)
        return self._expand(event)

    def close(self, owner: str | None = None) -> list[EventDict]:
        """The ends of everything open, or of what is open in one subagent's lane."""
        owners = list(self._lanes) if owner is None else [owner] if owner in self._lanes else []
        return [item.event(item.kind.end) for item in map(self._lanes.pop, owners)]

    def _expand(self, event: EventDict) -> Iterator[EventDict]:
        type = event["type"]
        if type in _CHUNKS:
            yield from self._expand_chunk(event, _CHUNKS[type])
            return
        if type in _END_ALL:
            yield from self._end(list(self._lanes))
        elif type not in _KEEP_OPEN:
            yield from self._end([event.get("subagentRunId")])
        yield event

    def _end(self, owners: list[str | None]) -> Iterator[EventDict]:
        for owner in owners:
            item = self._lanes.get(owner)
            if item is not None:
                yield item.event(item.kind.end)
                del self._lanes[owner]

    def _expand_chunk(self, chunk: EventDict, kind: _Kind) -> Iterator[EventDict]:
        lane = self._lane_of(chunk, kind)
        item = self._lanes.get(lane)
        extra = {"metadata": chunk["metadata"]} if "metadata" in chunk else {}
        if item is not None and item.kind == kind and chunk.get(kind.id, item.id) == item.id:
            self._check_agreement(chunk, item)
            started = False
        else:
            opened = _first(chunk, kind, lane)
            yield from self._end([lane])
            fields = {name: value for name, value in opened.established.items() if value is not None}
            if kind == _REASONING:
                fields["role"] = "reasoning"
            yield opened.event(kind.start, **fields, **extra)
            item = self._lanes[lane] = opened
            started = True
        # A chunk without a delta still carries its metadata, which the start has taken if there was one.
        if "delta" in chunk or "rawEvent" in chunk or (extra and not started):
            if "rawEvent" in chunk:
                extra["rawEvent"] = chunk["rawEvent"]
            yield item.event(kind.content, delta=chunk.get("delta", ""), **extra)

    def _lane_of(self, chunk: EventDict, kind: _Kind) -> str | None:
        """The lane that a chunk belongs to: its id's, its tag's, the parent agent's, or the only one that it can continue."""
        id: str | None = chunk.get(kind.id)
        tag: str | None = chunk.get("subagentRunId")
        if id is not None:
            for owner, item in self._lanes.items():
                if item.kind == kind and item.id == id:
                    if tag is not None and tag != owner:
                        raise SequenceError(
                            f"a chunk of {tag!r} for the {kind.noun} {id!r}, which {_lane_name(owner)} opened", "S5"
                        )
                    return owner
            return tag
        if tag is not None:
            return tag
        parent = self._lanes.get(None)
        if parent is not None and parent.kind == kind:
            return None
        open = [owner for owner, item in self._lanes.items() if item.kind == kind]
        if len(open) > 1:
            raise SequenceError(
                f"a chunk without {kind.id} and subagentRunId could continue the {kind.noun}s of "
                f"{', '.join(map(repr, open))}: name one of the two",
                "S5",
            )
        return open[0] if open else None

    def _check_agreement(self, chunk: EventDict, item: _Item) -> None:
        for name in item.kind.describing:
            if name in chunk and chunk[name] != item.established[name]:
                raise SequenceError(
                    f"a chunk of the {item.kind.noun} {item.id!r} contradicts the {name} that its first chunk gave",
                    "S5",
                )


def _first(chunk: EventDict, kind: _Kind, lane: str | None) -> _Item:
    for name in (kind.id, "toolCallName") if kind == _TOOL else (kind.id,):
        if name not in chunk:
            raise SequenceError(f"the first chunk of a {kind.noun} carries no {name}; none is open in its lane", "S5")
    established = {name: chunk.get(name) for name in kind.describing}
    if kind == _TEXT and established["role"] is None:
        established["role"] = "assistant"
    return _Item(kind, chunk[kind.id], lane, established)


def _lane_name(owner: str | None) -> str:
    return "the parent agent" if owner is None else repr(owner)
