"""Where a run is shown: live on a terminal, as plain lines, or as JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

import click
from ag_ui.core import Event, TokenUsage

from ..testing import RunResult
from ..testing.stream import LiveStream
from .story import Line, Story
from .text import clean, shorten

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.text import Text

__all__ = ["View", "make_view"]

HIGHLIGHT_SECONDS = 1.5
"""How long a change stays marked."""

MAX_MARKS = 200

STYLES = {
    "step": "blue",
    "text": "bold",
    "thought": "dim italic",
    "tool": "magenta",
    "activity": "cyan",
    "subagent": "blue",
    "state": "green",
    "custom": "dim",
    "run": "dim",
    "error": "bold red",
}


class View(Protocol):
    """What the command tells a view, run by run."""

    can_ask: bool

    def showing(self, live: LiveStream) -> Any:
        """A context manager around one run."""

    def payloads(self, payloads: Sequence[dict[str, Any]]) -> None:
        """These events came, in wire form."""

    def events(self, events: Sequence[Event]) -> None:
        """The same as an application gets them."""

    def refresh(self) -> None:
        """Some time has passed."""

    def conclude(self, result: RunResult) -> None:
        """A run is over."""

    def note(self, text: str) -> None:
        """Something about the command itself."""


def make_view(as_json: bool) -> View:
    """The view for where the output goes."""
    if as_json:
        return JsonLines()
    return Screen() if sys.stdout.isatty() else Plain()


class JsonLines:
    """The events as JSON lines; everything else on the standard error."""

    can_ask = False

    @contextmanager
    def showing(self, live: LiveStream) -> Iterator[None]:
        yield

    def payloads(self, payloads: Sequence[dict[str, Any]]) -> None:
        for payload in payloads:
            text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
            try:
                click.echo(text.encode())
            except UnicodeEncodeError:
                # A lone surrogate is JSON only as an escape.
                click.echo(json.dumps(payload, separators=(",", ":")).encode())

    def events(self, events: Sequence[Event]) -> None:
        pass

    def refresh(self) -> None:
        pass

    def conclude(self, result: RunResult) -> None:
        for warning in result.warnings:
            self.note(f"warning: {warning}")

    def note(self, text: str) -> None:
        click.echo(f"statecast: {clean(text)}", err=True)


class Plain:
    """Lines, each when what it tells is done: for files, pipes and logs."""

    def __init__(self) -> None:
        self.can_ask = sys.stdin.isatty()
        self._story = Story()

    @contextmanager
    def showing(self, live: LiveStream) -> Iterator[None]:
        self._story = Story()
        yield

    def payloads(self, payloads: Sequence[dict[str, Any]]) -> None:
        pass

    def events(self, events: Sequence[Event]) -> None:
        for event in events:
            for line in self._story.tell(event):
                click.echo(f"{line.kind:8} {line.text}")

    def refresh(self) -> None:
        pass

    def conclude(self, result: RunResult) -> None:
        for line in ending(result):
            click.echo(f"{line.kind:8} {line.text}")
        if result.http_status == 200:
            click.echo(f"{'state':8} {clean(json.dumps(result.state, ensure_ascii=False))}")

    def note(self, text: str) -> None:
        click.echo(f"statecast: {clean(text)}", err=True)


class Screen:
    """A terminal: what is done scrolls by; below it, live: what streams, the open steps, the state and its last changes."""

    def __init__(self, console: Console | None = None) -> None:
        from rich.console import Console

        self.can_ask = sys.stdin.isatty()
        self.console = Console(highlight=False) if console is None else console
        self._story = Story()
        self._live: Live | None = None
        self._state: Any = None
        self._marks: dict[str, float] = {}
        self._done: list[Line] = []
        self._source: LiveStream | None = None
        self._stale = False

    @contextmanager
    def showing(self, live: LiveStream) -> Iterator[None]:
        from rich.live import Live

        self._story, self._marks = Story(), {}
        self._source, self._state = live, live.state
        with Live(console=self.console, get_renderable=self.render, auto_refresh=False, transient=True) as self._live:
            try:
                yield
            finally:
                self.refresh()
                self._live = None

    def payloads(self, payloads: Sequence[dict[str, Any]]) -> None:
        pass

    def events(self, events: Sequence[Event]) -> None:
        now = monotonic()
        for event in events:
            done = self._story.tell(event)
            if event.type.value in ("STATE_SNAPSHOT", "STATE_DELTA"):
                self._mark(now)
                self._stale = True
            for line in done:
                # The tree shows the state; its every change would only push the words away.
                if line.kind != "state":
                    self._done.append(line)

    def refresh(self) -> None:
        from rich.console import Group

        if self._stale and self._source is not None:
            # Reading it costs its size, so not at every event.
            self._state, self._stale = self._source.state, False
        lines, self._done = self._done, []
        if lines:
            # At once, as each print draws the live part again.
            self.console.print(Group(*map(_styled, lines)))
        elif self._live is not None:
            self._live.refresh()

    def conclude(self, result: RunResult) -> None:
        from .tree import state_tree

        self.console.print(state_tree(result.state, lines=200))
        for line in ending(result):
            self.console.print(_styled(line))

    def note(self, text: str) -> None:
        click.echo(f"statecast: {clean(text)}", err=True)

    def render(self) -> RenderableType:
        """What is live, in as many lines as the terminal has."""
        from rich.console import Group
        from rich.spinner import Spinner
        from rich.text import Text

        from .tree import state_tree

        height = self.console.size.height - 1
        parts: list[RenderableType] = []
        for speech in list(self._story.speaking.values())[-3:]:
            # The end of what streams; the whole is printed when it is complete.
            tail = "\n".join(speech.text.splitlines()[-4:])[-4 * self.console.width :]
            parts.append(Text(f"{speech.head}: {tail}▌", style=STYLES[speech.kind]))
        if self._story.open_steps:
            steps = Text(" · ".join(self._story.open_steps[-5:]), style=STYLES["step"])
            parts.append(Spinner("dots", text=steps))
        used = len(self.console.render_lines(Group(*parts))) if parts else 0
        oldest = monotonic() - HIGHLIGHT_SECONDS
        marks = [pointer for pointer, at in self._marks.items() if at >= oldest]
        parts.append(state_tree(self._state, marks, lines=max(height - used, 1)))
        return Group(*parts)

    def _mark(self, now: float) -> None:
        changed = self._story.changed
        pointers = [""] if changed is None else changed[-MAX_MARKS:]
        for pointer in pointers:
            self._marks[pointer] = now
        if len(self._marks) > MAX_MARKS:
            self._marks = dict(list(self._marks.items())[-MAX_MARKS:])


def _styled(line: Line) -> Text:
    from rich.text import Text

    return Text(line.text, style=STYLES[line.kind])


def ending(result: RunResult) -> Iterator[Line]:
    """How a run ended, and what it used."""
    for warning in result.warnings:
        yield Line("error", f"warning: {clean(warning)}")
    for usage in result.usage:
        yield Line("run", _usage(usage))
    if result.error is not None:
        code = f" [{clean(result.error.code)}]" if result.error.code else ""
        yield Line("error", f"failed: {clean(result.error.message)}{code}")
    elif result.outcome == "interrupt":
        yield Line("run", "interrupted: the agent asks")
        for interrupt in result.interrupts:
            yield Line("run", f"  {clean(interrupt.id)}: {clean(interrupt.message or interrupt.reason)}")
    elif result.outcome == "cancelled":
        yield Line("error", "cancelled")
    else:
        told = "" if result.result is None else f": {shorten(result.result, 300)}"
        yield Line("run", f"finished{told}")
        if result.pending_tool_calls:
            names = ", ".join(_call_name(result, id) for id in result.pending_tool_calls)
            yield Line("tool", f"left to the client: {clean(names)}")


def _call_name(result: RunResult, id: str) -> str:
    calls = (call for message in result.messages for call in getattr(message, "tool_calls", None) or ())
    return next((call.function.name for call in calls if call.id == id), id)


def _usage(usage: TokenUsage) -> str:
    model = " ".join(part for part in (usage.provider, usage.model) if part)
    counts = [
        f"{count} {name}"
        for name, count in (
            ("in", usage.input_tokens),
            ("out", usage.output_tokens),
            ("cached", usage.cached_input_tokens),
            ("reasoning", usage.reasoning_tokens),
        )
        if count is not None
    ]
    return clean(f"used {model or 'a model'}: {', '.join(counts) or 'no counts'}")
