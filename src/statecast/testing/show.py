"""A run's events as a few readable lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["describe", "short"]

WIDTH = 110
HEAD, TAIL = 12, 28
"""How many lines are shown of the beginning and of the end of a long list."""

_CONTENTS = {
    "TEXT_MESSAGE_CONTENT": "messageId",
    "REASONING_MESSAGE_CONTENT": "messageId",
    "TOOL_CALL_ARGS": "toolCallId",
}
_UUID = re.compile(r"\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")


def describe(payloads: Sequence[dict[str, Any]]) -> str:
    """The events, one a line: consecutive pieces of one item folded, values shortened, the middle of a long list left out.

    Args:
        payloads: events in wire form.
    """
    if not payloads:
        return "no event was sent"
    lines = list(_lines(payloads))
    if len(lines) > HEAD + TAIL + 1:
        lines[HEAD:-TAIL] = [f"      … {len(lines) - HEAD - TAIL} lines …"]
    return "\n".join([f"events ({len(payloads)}):", *lines])


def short(value: Any, width: int = 60) -> str:
    """A JSON value in at most `width` characters."""
    text = _UUID.sub(r"\1…", json.dumps(value, ensure_ascii=False, default=repr))
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _lines(payloads: Sequence[dict[str, Any]]) -> Iterator[str]:
    at = 0
    while at < len(payloads):
        payload = payloads[at]
        kind = str(payload.get("type"))
        key = _CONTENTS.get(kind)
        end = at + 1
        if key is not None:
            while end < len(payloads) and _continues(payload, payloads[end], key):
                end += 1
            pieces = [one.get("delta") for one in payloads[at:end]]
            text = "".join(piece for piece in pieces if isinstance(piece, str))
            rest = {name: value for name, value in payload.items() if name not in ("type", "delta")}
            times = f" ×{end - at} ({len(text)} characters)" if end - at > 1 else ""
            yield _line(at, f"{kind}{times} {short(text, 50)}", rest)
        else:
            yield _line(at, kind, {name: value for name, value in payload.items() if name != "type"})
        at = end


def _continues(first: dict[str, Any], next: dict[str, Any], key: str) -> bool:
    return (
        next.get("type") == first.get("type")
        and next.get(key) == first.get(key)
        and next.get("subagentRunId") == first.get("subagentRunId")
    )


def _line(index: int, head: str, members: dict[str, Any]) -> str:
    told = " ".join(f"{name}={_member(name, value)}" for name, value in members.items())
    line = f"{index:5} {head} {told}".rstrip()
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"


def _member(name: str, value: Any) -> str:
    if name in ("delta", "patch") and isinstance(value, list):
        return "[" + ", ".join(_operation(op) for op in value[:4]) + (", …" if len(value) > 4 else "") + "]"
    if isinstance(value, str) and re.fullmatch(r"[\w.:-]+", value):
        return _UUID.sub(r"\1…", value)
    return short(value)


def _operation(op: Any) -> str:
    if not isinstance(op, dict):
        return short(op, 30)
    value = f" {short(op['value'], 30)}" if "value" in op else ""
    return f"{op.get('op')} {op.get('path')}{value}"
