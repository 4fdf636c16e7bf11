"""One message of a thread while events build it: a wire dict, a model, and pieces of text that are not joined yet.

Appending to a string for every piece would cost the whole length each time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

__all__ = ["Call", "Entry", "copy_json", "dump"]


def dump(message: Any) -> dict[str, Any]:
    """An `ag_ui` message as a wire dict."""
    return cast("dict[str, Any]", message.model_dump(by_alias=True, warnings=False))


def copy_json(value: Any) -> Any:
    """A copy of a JSON value."""
    if isinstance(value, dict):
        return {name: copy_json(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [copy_json(inner) for inner in value]
    return value


class Entry:
    """One message: as a wire dict, as a model, or as both, with the pieces that are not joined to it yet.

    Attributes:
        pieces: text of an open message; `None` until it was opened here.
        waiting: its tool calls that have pieces of arguments.
        outdated: the model lacks pieces that were joined to the wire dict.
        shared: the wire dict was given away, and is copied before it changes.
        baseline: what the model said when it was handed out, in debug mode.
    """

    __slots__ = ("baseline", "id", "model", "outdated", "pieces", "role", "shared", "waiting", "wire")

    def __init__(self, wire: dict[str, Any] | None = None, model: Any = None) -> None:
        self.wire = wire
        self.model = model
        self.id: str = model.id if wire is None else wire["id"]
        self.role: str = model.role if wire is None else wire["role"]
        self.pieces: list[str] | None = None
        self.waiting: list[Call] = []
        self.outdated = False
        self.shared = False
        self.baseline: dict[str, Any] | None = None

    @property
    def stale(self) -> bool:
        """There is no model, or one that lacks what has come since."""
        return self.model is None or self.outdated or bool(self.pieces or self.waiting)

    def settled(self) -> dict[str, Any]:
        """The wire dict, with all pieces joined. Not to be changed."""
        if self.wire is None:
            self.wire = dump(self.model)
        if self.pieces or self.waiting:
            self.outdated = True
            wire = self._own()
            if self.pieces:
                content = wire.get("content")
                wire["content"] = (content if isinstance(content, str) else "") + "".join(self.pieces)
                self.pieces.clear()
            for call in self.waiting:
                call.wire["function"]["arguments"] += "".join(call.pieces)
                call.pieces.clear()
            self.waiting.clear()
        return self.wire

    def changing(self) -> dict[str, Any]:
        """The wire dict, to be changed: nobody else holds it, and no model stands for it any more."""
        self.settled()
        self.model = None
        return self._own()

    def call_ids(self) -> Iterable[str]:
        """The ids of the tool calls in this message."""
        if self.role != "assistant":
            return ()
        if self.wire is None:
            return [call.id for call in self.model.tool_calls or ()]
        return [call["id"] for call in self.wire.get("toolCalls", ())]

    def _own(self) -> dict[str, Any]:
        wire = cast("dict[str, Any]", self.wire)
        if self.shared:
            self.wire = wire = copy_json(wire)
            self.shared = False
        return wire


class Call:
    """A tool call in a message, and the arguments that are not joined to it yet."""

    __slots__ = ("entry", "id", "pieces")

    def __init__(self, entry: Entry, id: str) -> None:
        self.entry = entry
        self.id = id
        self.pieces: list[str] = []

    @property
    def wire(self) -> dict[str, Any]:
        """The call in its message's wire dict."""
        calls = cast("dict[str, Any]", self.entry.wire)["toolCalls"]
        return cast("dict[str, Any]", next(call for call in calls if call["id"] == self.id))

    def changing(self) -> dict[str, Any]:
        self.entry.changing()
        return self.wire
