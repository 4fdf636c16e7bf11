"""What a document gives when it is taken: a patch, or the whole value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .values import decode_json

__all__ = ["Delta", "Snapshot"]


class Delta:
    """RFC 6902 operations that bring the consumer's copy up to date: `add`, `remove` and `replace` only.

    Attributes:
        json: the JSON text of the operations.
    """

    __slots__ = ("_ops", "json")

    def __init__(self, ops: list[dict[str, Any]] | None, json: bytes) -> None:
        self._ops = ops
        self.json = json

    @property
    def ops(self) -> list[dict[str, Any]]:
        """The operations; their values are plain JSON, copied: later edits change nothing."""
        if self._ops is None:
            # Most deltas are sent, and never looked at.
            self._ops = decode_json(self.json)
        return self._ops

    def __repr__(self) -> str:
        return f"Delta(ops={self.ops!r})"

    def __eq__(self, other: object) -> bool:
        return self.ops == other.ops if isinstance(other, Delta) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole value.

    Attributes:
        value: plain JSON, copied.
        json: its JSON text.
    """

    value: Any
    json: bytes
