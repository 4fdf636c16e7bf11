"""How large a state event may be, and what to tell of one that is too large."""

from __future__ import annotations

from .state import Delta, Snapshot, encode_json

__all__ = ["MAX_EVENT", "WARN_EVENT", "largest"]

MAX_EVENT = 8 * 2**20
"""Bytes of a state event above which the main consumer may refuse the frame (its limit is 10 Mi UTF-16 units)."""

WARN_EVENT = 2**20
"""Bytes of a state event above which a run notes, once, that clients copy the whole state for every event."""


def largest(taken: Delta | Snapshot) -> str:
    """The largest members of what was taken, for the log."""

    value = taken.value if isinstance(taken, Snapshot) else {op["path"]: op.get("value") for op in taken.ops}
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    sizes = sorted(((len(encode_json(member)), key) for key, member in members), reverse=True)[:5]
    return ", ".join(f"{key}: {size} bytes" for size, key in sizes)
