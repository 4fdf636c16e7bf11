"""What happens in a run, told in lines: what is going on now, and what is done."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ag_ui.core import Event

from .text import clean, one_line, shorten

__all__ = ["Line", "Speech", "Story"]


@dataclass(frozen=True)
class Line:
    """One thing that happened.

    Attributes:
        kind: `run`, `step`, `text`, `thought`, `tool`, `activity`, `subagent`, `state`, `custom`, or `error`.
        text: clean text; it may have line breaks.
    """

    kind: str
    text: str


@dataclass
class Speech:
    """A message, a thought or a tool call that streams."""

    kind: str
    head: str
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return clean("".join(self.pieces))


class Story:
    """Takes the events as an application gets them.

    Attributes:
        open_steps: the names of the steps that run.
        speaking: what streams now, by its id.
        changed: pointers into the state that the last state event changed; `None`: the whole state came anew.
    """

    def __init__(self) -> None:
        self.open_steps: list[str] = []
        self.speaking: dict[str, Speech] = {}
        self.changed: list[str] | None = []
        self._names: dict[str, str] = {}

    def tell(self, event: Event) -> list[Line]:
        """Takes one event in. Returns what is done by it."""
        teller = _TELLERS.get(event.type.value)
        return [] if teller is None else list(teller(self, event))

    def _who(self, event: Any) -> str:
        owner = getattr(event, "subagent_run_id", None)
        return "" if owner is None else f"{clean(self._names.get(owner, owner))}: "

    def _run_started(self, event: Any) -> Iterable[Line]:
        yield Line("run", f"run {clean(event.run_id)} of thread {clean(event.thread_id)}")

    def _step_started(self, event: Any) -> Iterable[Line]:
        self.open_steps.append(clean(event.step_name))
        yield Line("step", f"{self._who(event)}{clean(event.step_name)} …")

    def _step_finished(self, event: Any) -> Iterable[Line]:
        name = clean(event.step_name)
        if name in self.open_steps:
            self.open_steps.remove(name)
        yield Line("step", f"{self._who(event)}{name} ✓")

    def _text_started(self, event: Any) -> Iterable[Line]:
        role = event.name or event.role or "assistant"
        self.speaking[f"text {event.message_id}"] = Speech("text", f"{self._who(event)}{clean(role)}")
        return ()

    def _thought_started(self, event: Any) -> Iterable[Line]:
        self.speaking[f"thought {event.message_id}"] = Speech("thought", f"{self._who(event)}thinks")
        return ()

    def _call_started(self, event: Any) -> Iterable[Line]:
        head = f"{self._who(event)}{clean(event.tool_call_name)}"
        self._names[event.tool_call_id] = event.tool_call_name
        self.speaking[f"call {event.tool_call_id}"] = Speech("tool", head)
        return ()

    def _text(self, event: Any) -> Iterable[Line]:
        return self._piece(f"text {event.message_id}", event.delta)

    def _thought(self, event: Any) -> Iterable[Line]:
        return self._piece(f"thought {event.message_id}", event.delta)

    def _args(self, event: Any) -> Iterable[Line]:
        return self._piece(f"call {event.tool_call_id}", event.delta)

    def _piece(self, key: str, delta: str) -> Iterable[Line]:
        if key in self.speaking:
            self.speaking[key].pieces.append(delta)
        return ()

    def _text_ended(self, event: Any) -> Iterable[Line]:
        return self._spoken(f"text {event.message_id}")

    def _thought_ended(self, event: Any) -> Iterable[Line]:
        return self._spoken(f"thought {event.message_id}")

    def _spoken(self, key: str) -> Iterable[Line]:
        speech = self.speaking.pop(key, None)
        if speech is not None:
            yield Line(speech.kind, f"{speech.head}: {speech.text}")

    def _call_ended(self, event: Any) -> Iterable[Line]:
        speech = self.speaking.pop(f"call {event.tool_call_id}", None)
        if speech is not None:
            yield Line("tool", f"{speech.head}({one_line(''.join(speech.pieces), 200)})")

    def _call_result(self, event: Any) -> Iterable[Line]:
        content = event.content
        text = content if isinstance(content, str) else " ".join(_part(part) for part in content)
        name = self._names.get(event.tool_call_id, event.tool_call_id)
        yield Line("tool", f"{self._who(event)}{clean(name)} → {one_line(text, 200)}")

    def _snapshot(self, event: Any) -> Iterable[Line]:
        self.changed = None
        yield Line("state", f"= {shorten(event.snapshot, 200)}")

    def _delta(self, event: Any) -> Iterable[Line]:
        self.changed = []
        told = []
        for op in event.delta:
            # What was removed is no more: its parent has changed.
            self.changed.append(op.path.rpartition("/")[0] if op.op == "remove" else op.path)
            value = f" {shorten(op.value, 60)}" if op.op in ("add", "replace") else ""
            told.append(f"{op.op} {one_line(op.path, 100)}{value}")
        if told:
            yield Line("state", ", ".join(told[:4]) + (f", … ({len(told)} operations)" if len(told) > 4 else ""))

    def _activity(self, event: Any) -> Iterable[Line]:
        yield Line("activity", f"{self._who(event)}{clean(event.activity_type)} {shorten(event.content, 150)}")

    def _activity_changed(self, event: Any) -> Iterable[Line]:
        paths = ", ".join(one_line(op.path, 60) for op in event.patch[:4])
        yield Line("activity", f"{self._who(event)}{clean(event.activity_type)} changed {paths}")

    def _subagent_started(self, event: Any) -> Iterable[Line]:
        self._names[event.subagent_run_id] = event.name
        yield Line("subagent", f"{clean(event.name)} …")

    def _subagent_finished(self, event: Any) -> Iterable[Line]:
        outcome = getattr(event.outcome, "type", "success")
        name = clean(self._names.get(event.subagent_run_id, event.subagent_run_id))
        yield Line("subagent", f"{name} {'✓' if outcome == 'success' else clean(outcome)}")

    def _subagent_failed(self, event: Any) -> Iterable[Line]:
        name = clean(self._names.get(event.subagent_run_id, event.subagent_run_id))
        yield Line("error", f"{name} failed: {clean(event.message)}")

    def _custom(self, event: Any) -> Iterable[Line]:
        yield Line("custom", f"{clean(event.name)} {shorten(event.value, 150)}")

    def _messages(self, event: Any) -> Iterable[Line]:
        yield Line("run", f"the conversation was restated: {len(event.messages)} messages")


def _part(part: Any) -> str:
    return str(part.text) if part.type == "text" else f"[{part.type}]"


_TELLERS: dict[str, Any] = {
    "RUN_STARTED": Story._run_started,
    "STEP_STARTED": Story._step_started,
    "STEP_FINISHED": Story._step_finished,
    "TEXT_MESSAGE_START": Story._text_started,
    "TEXT_MESSAGE_CONTENT": Story._text,
    "TEXT_MESSAGE_END": Story._text_ended,
    "REASONING_MESSAGE_START": Story._thought_started,
    "REASONING_MESSAGE_CONTENT": Story._thought,
    "REASONING_MESSAGE_END": Story._thought_ended,
    "TOOL_CALL_START": Story._call_started,
    "TOOL_CALL_ARGS": Story._args,
    "TOOL_CALL_END": Story._call_ended,
    "TOOL_CALL_RESULT": Story._call_result,
    "STATE_SNAPSHOT": Story._snapshot,
    "STATE_DELTA": Story._delta,
    "ACTIVITY_SNAPSHOT": Story._activity,
    "ACTIVITY_DELTA": Story._activity_changed,
    "SUBAGENT_STARTED": Story._subagent_started,
    "SUBAGENT_FINISHED": Story._subagent_finished,
    "SUBAGENT_ERROR": Story._subagent_failed,
    "CUSTOM": Story._custom,
    "MESSAGES_SNAPSHOT": Story._messages,
}
