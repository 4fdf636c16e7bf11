"""Text of an agent, made safe for a terminal."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["clean", "one_line", "shorten"]

# C0 and C1 except newline and tab, and the marks that turn the direction of text: an agent must not steer the terminal.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}
_CONTROLS |= {code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}


def clean(text: str) -> str:
    """The text with control characters written out, so that none of them reaches the terminal."""
    return text.translate(_CONTROLS)


def shorten(value: Any, width: int = 80) -> str:
    """A JSON value as one clean line of at most `width` characters."""
    return one_line(json.dumps(value, ensure_ascii=False), width)


def one_line(text: str, width: int = 80) -> str:
    """A text as one clean line of at most `width` characters."""
    line = clean(text).replace("\n", "⏎")
    return line if len(line) <= width else f"{line[: width - 1]}…"
