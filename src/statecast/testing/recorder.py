"""A run as a file: JSON lines, the input first, then one event a line."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any

from .failures import BrokenStream
from .result import RunResult, make_result
from .transcript import Transcript

__all__ = ["record", "replay"]


def record(result: RunResult, path: str | PathLike[str]) -> None:
    """Writes a run to a file: the input on the first line, then each event, in wire form.

    Raises:
        ValueError: the request was refused, so there is no run.
    """
    if result.http_status != 200:
        raise ValueError(f"the request was refused with HTTP {result.http_status}: there is no run to record")
    lines = [json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in (result.sent, *result.payloads)]
    # A lone surrogate, which JSON can hold and UTF-8 cannot, stays an escape.
    text = "".join(f"{_writable(line)}\n" for line in lines)
    Path(path).write_text(text, "utf-8", newline="\n")


def replay(path: str | PathLike[str], *, strict: bool = True, partial: bool = False) -> RunResult:
    """Reads a recorded run and judges it again, as `run_agent` does.

    Args:
        strict: what a consumer forgives with a warning is a fault too; else it is in `warnings`.
        partial: the stream may end without a terminal event, as that of a client that went away does.

    Raises:
        BrokenStream: the stream breaks a rule, or is truncated.
        ValueError: the file is not a recording; the text names the line.
    """
    lines = Path(path).read_text("utf-8").split("\n")
    if lines[-1] == "":
        lines.pop()
    values = [_parsed(line, number, path) for number, line in enumerate(lines, 1)]
    if not values or "threadId" not in values[0]:
        raise ValueError(f"{path}: the first line is not a run's input")
    transcript = Transcript(values[0], strict=strict)
    if transcript.input is None:
        raise ValueError(f"{path}: the first line is not a valid input")
    for number, payload in enumerate(values[1:], 2):
        try:
            transcript.take(payload)
        except BrokenStream as error:
            error.add_note(f"in {path}, line {number}")
            raise
    if not partial:
        transcript.close()
    return make_result(transcript)


def _writable(line: str) -> str:
    try:
        line.encode()
    except UnicodeEncodeError:
        return json.dumps(json.loads(line), separators=(",", ":"))
    return line


def _parsed(line: str, number: int, path: str | PathLike[str]) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{path}, line {number}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path}, line {number}: not a JSON object")
    return value
