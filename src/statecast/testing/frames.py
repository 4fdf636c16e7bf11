"""Strict reading of an event stream: what the protocol lets a producer write, and nothing that SSE would forgive (W2)."""

from __future__ import annotations

import json
from typing import Any, NoReturn

__all__ = ["FrameError", "Frames"]


class FrameError(ValueError):
    """The bytes are not a stream of AG-UI events.

    Attributes:
        reason: what is wrong.
        rule: `"W2"`, or `"W4"` for a stream that ends within a frame.
        events: the events of the same chunk that came before.
    """

    def __init__(self, reason: str, rule: str = "W2") -> None:
        super().__init__(f"{reason} [{rule}]")
        self.reason = reason
        self.rule = rule
        self.events: list[dict[str, Any]] = []


class Frames:
    """Takes the bytes as they arrive, however they are cut, and gives the events in them as parsed JSON.

    A frame is one line `data: {…}` that holds one JSON object, and an empty line. Comments (lines that begin with `:`) may
    stand anywhere. Lines end with LF; the text is UTF-8. Anything else raises `FrameError`.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._data: bytes | None = None
        self._commented = False
        self._number = 0

    def feed(self, chunk: bytes) -> list[dict[str, Any]]:
        """The events that these bytes complete, in order.

        Raises:
            FrameError: the stream is malformed.
        """
        if b"\n" not in chunk:
            if chunk:
                self._pieces.append(chunk)
            return []
        *lines, rest = b"".join((*self._pieces, chunk)).split(b"\n")
        self._pieces = [rest] if rest else []
        events: list[dict[str, Any]] = []
        try:
            for line in lines:
                event = self._line(line)
                if event is not None:
                    events.append(event)
        except FrameError as error:
            error.events = events
            raise
        return events

    def close(self) -> None:
        """Says that no byte follows.

        Raises:
            FrameError: the stream ends within a frame.
        """
        if self._pieces or self._data is not None:
            raise FrameError(f"the stream ends within frame {self._number + 1}", "W4")

    def _line(self, line: bytes) -> dict[str, Any] | None:
        if b"\r" in line:
            self._fail("a line has a CR: lines end with LF only", line[max(0, line.index(b"\r") - 60) :])
        if not line:
            data, self._data = self._data, None
            if data is None:
                if not self._commented:
                    self._fail("an empty line ends no frame", line)
                self._commented = False
                return None
            self._commented = False
            self._number += 1
            return self._event(data)
        if line.startswith(b":"):
            self._commented = True
            return None
        if not line.startswith(b"data:"):
            self._fail("a line is neither data nor a comment", line)
        if self._data is not None:
            self._fail("a frame has two data lines", line)
        self._data = line[5:].removeprefix(b" ")
        return None

    def _event(self, data: bytes) -> dict[str, Any]:
        try:
            event = json.loads(data.decode(), parse_constant=_no_constant)
        except UnicodeDecodeError:
            self._fail("an event is not UTF-8", data)
        except (ValueError, RecursionError) as error:
            self._fail(f"an event is not JSON: {error}", data)
        if not isinstance(event, dict):
            self._fail("an event is not a JSON object", data)
        return event

    def _fail(self, message: str, line: bytes) -> NoReturn:
        shown = line if len(line) <= 80 else line[:79] + b"..."
        raise FrameError(f"{message}: {shown!r} (after {self._number} frames)")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
