"""Where two JSON values differ."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["ABSENT", "difference"]


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


ABSENT: Any = _Absent()
"""Stands for a member or an item that one of the values does not have."""


def difference(one: Any, other: Any) -> tuple[str, Any, Any] | None:
    """The JSON pointer of the first place where two JSON values differ, and what stands there in each; `None` if nowhere.

    Equal means equal JSON text: `1`, `1.0` and `true` differ. The order of an object's members does not count.
    """
    pending: list[tuple[str, Any, Any]] = [("", one, other)]
    while pending:
        pointer, one, other = pending.pop()
        if isinstance(one, dict) and isinstance(other, dict):
            members = [key for key in one if key not in other] + [key for key in other if key not in one]
            if members:
                key = members[0]
                return f"{pointer}/{_escaped(key)}", one.get(key, ABSENT), other.get(key, ABSENT)
            pending.extend((f"{pointer}/{_escaped(key)}", one[key], other[key]) for key in reversed(one))
        elif isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                at = next((i for i, pair in enumerate(zip(one, other, strict=False)) if difference(*pair)), None)
                at = min(len(one), len(other)) if at is None else at
                return (
                    f"{pointer}/{at}",
                    one[at] if at < len(one) else ABSENT,
                    other[at] if at < len(other) else ABSENT,
                )
            pending.extend((f"{pointer}/{i}", one[i], other[i]) for i in reversed(range(len(one))))
        elif type(one) is not type(other) or json.dumps(one) != json.dumps(other):
            return pointer, one, other
    return None


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
