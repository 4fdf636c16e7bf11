"""Server-Sent Events frames: one protocol event as one JSON object on one line, LF only (W2)."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

__all__ = ["KEEP_ALIVE", "frame", "json_frame"]

KEEP_ALIVE = b": keep-alive\n\n"


def json_frame(payload: bytes) -> bytes:
    """The frame of an event whose JSON text is `payload` (UTF-8, no line breaks)."""
    return b"data: " + payload + b"\n\n"


def frame(event: dict[str, Any]) -> bytes:
    """The frame of an event in wire form, all of whose values are plain JSON.

    A lone surrogate cannot be UTF-8. The whole event then goes out with ASCII escapes, so that two halves of a pair that
    were split over two deltas join again in a JavaScript string.
    """
    try:
        return b"data: " + to_json(event) + b"\n\n"
    except PydanticSerializationError:
        text = json.dumps(event, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
        return b"data: " + text.encode("ascii") + b"\n\n"
