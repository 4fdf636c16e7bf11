"""Foreign mutable objects in a state: plain models, dataclasses, sets. Python does not show when they change: we look."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic_core import to_json

from .parents import living_parents
from .tracker import MISSING, Node, Tracker
from .values import decode_json, encode, jsonable

__all__ = ["Opaque", "text_of"]


class Opaque:
    """Stands for a foreign mutable object among the children of nodes.

    Attributes:
        text: its JSON text when it was last looked at.
        sent: its JSON text that the consumer has, `None` before it was ever sent.
    """

    __slots__ = ("_key", "_parents", "sent", "text", "value")

    def __init__(self, value: Any, text: bytes) -> None:
        self.value = value
        self.text = text
        self.sent: bytes | None = None
        self._parents: Any = None
        self._key: Any = None

    def plain(self) -> Any:
        """Its JSON when it was last looked at, built anew."""
        return decode_json(self.text)

    def plain_sent(self) -> Any:
        """Its JSON as the consumer has it."""
        return MISSING if self.sent is None else decode_json(self.sent)

    def hangs(self, tracker: Tracker) -> bool:
        """Whether it is still somewhere in nodes of this tracker."""
        parents = self._parents
        if parents is not None and type(parents) is not dict:
            parent = parents()
            return parent is not None and parent._tracker is tracker
        return any(parent._tracker is tracker for parent, _, _ in living_parents(self))


def text_of(value: Any, known: bytes | None = None) -> bytes:
    """The JSON text of a foreign object. Runs code of authors, so never under a lock. Raises `StateError`.

    Args:
        known: an earlier text. The quick way by pydantic alone is trusted only if it gives this again.
    """
    if known is not None and isinstance(value, BaseModel) and not isinstance(value, Node):
        try:
            text = to_json(value)
        except Exception:
            text = None
        if text == known:
            return known
    return encode(jsonable(value))
