"""Asks an agent's questions on the terminal."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any

import click
from ag_ui.core import Interrupt

from .text import clean

__all__ = ["ask", "read_answer"]


def ask(interrupts: list[Interrupt]) -> tuple[dict[str, Any], list[str]] | None:
    """Asks all of them; a run goes on only when every question is answered or abandoned (P2).

    Returns:
        The payloads by interrupt id, and the ids of the abandoned questions; `None` at the end of the input (Ctrl-D).
    """
    payloads: dict[str, Any] = {}
    abandoned: list[str] = []
    for interrupt in interrupts:
        _say(f"\n? {clean(interrupt.message or interrupt.reason)}")
        if _expired(interrupt):
            _say("  (too late to answer: abandoned)")
            abandoned.append(interrupt.id)
            continue
        schema = interrupt.response_schema
        _say(f"  {_hint(schema)}; an empty line abandons the question")
        while True:
            _say("> ", newline=False)
            line = sys.stdin.readline()
            if not line:
                return None
            if not line.strip():
                abandoned.append(interrupt.id)
                break
            try:
                payloads[interrupt.id] = read_answer(line.rstrip("\n"), schema)
                break
            except ValueError as error:
                _say(f"  {error}")
    return payloads, abandoned


def read_answer(line: str, schema: Any) -> Any:
    """The JSON value that somebody means by a line of text.

    Args:
        schema: the JSON Schema of the answer; it decides what plain words mean. What does not fit is left to the agent.

    Raises:
        ValueError: it cannot be read; the text says how.
    """
    schema = schema if isinstance(schema, dict) else {}
    kind, choices = schema.get("type"), schema.get("enum")
    text = line.strip()
    if isinstance(choices, list):
        for choice in choices:
            if text == choice or text == json.dumps(choice):
                return choice
        raise ValueError(f"answer with one of: {', '.join(map(str, choices))}")
    if kind == "boolean":
        if text.lower() in ("y", "yes", "true"):
            return True
        if text.lower() in ("n", "no", "false"):
            return False
        raise ValueError("answer with yes or no")
    if kind == "string":
        return line
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        if kind is None:
            return line
        raise ValueError(f"answer with JSON: {_hint(schema)}") from None
    if kind == "integer" and (isinstance(value, bool) or not isinstance(value, int)):
        raise ValueError("answer with a whole number")
    if kind == "number" and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise ValueError("answer with a number")
    return value


def _hint(schema: Any) -> str:
    if not isinstance(schema, dict) or not schema:
        return "text or JSON"
    if isinstance(choices := schema.get("enum"), list):
        return clean("one of: " + ", ".join(map(str, choices)))
    known = {"boolean": "yes or no", "string": "text", "integer": "a whole number", "number": "a number"}
    kind = schema.get("type")
    return known.get(kind, "") if kind in known else clean(f"JSON for {json.dumps(schema)[:300]}")


def _expired(interrupt: Interrupt) -> bool:
    if interrupt.expires_at is None:
        return False
    try:
        at = datetime.fromisoformat(interrupt.expires_at)
    except ValueError:
        return False
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)) <= datetime.now(UTC)


def _say(text: str, *, newline: bool = True) -> None:
    # The output may be a pipe while the question goes to the terminal.
    click.echo(text, nl=newline, err=not sys.stdout.isatty())


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
