"""What a document gives when it is taken: a patch, or the whole value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Delta", "Snapshot"]


@dataclass(frozen=True, slots=True)
class Delta:
    """RFC 6902 operations that bring the consumer's copy up to date: `add`, `remove` and `replace` only.

    Attributes:
        ops: the operations; their values are plain JSON, copied: later edits change nothing.
        json: their JSON text.
    """

    ops: list[dict[str, Any]]
    json: bytes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole value.

    Attributes:
        value: plain JSON, copied.
        json: its JSON text.
    """

    value: Any
    json: bytes
