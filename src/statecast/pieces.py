"""Text that is written piece by piece: what is the same for every piece is made once."""

from __future__ import annotations

from collections.abc import Callable, Container

__all__ = ["Pieces"]


class Pieces:
    """An item whose text is written piece by piece, and what is the same for every piece."""

    __slots__ = ("append", "epoch", "head", "id", "open", "tail", "type")

    def __init__(self, id: str, open: Container[str], head: bytes, tail: bytes, type: str) -> None:
        self.id = id
        self.open = open
        self.head = head
        self.tail = tail
        self.type = type
        self.epoch = -1
        self.append: Callable[[str], None] = _nowhere


def _nowhere(delta: str) -> None:
    raise AssertionError("a piece of text before its item was found")
