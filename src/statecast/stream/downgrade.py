"""1.0 events for clients of the 0.0.x line, whose closed schemas end the run on some of what 1.0 added.

The target is what `@ag-ui/client` 0.0.59 accepts; a request without `protocolVersion` comes from such a client. What is
not in the table below passes unchanged: that client reads subagents, usage, metadata and reasoning.

Two deviations, on purpose. Versioning says that a downgrade must not change a run's outcome, but 0.0.59 knows only
success and interrupt. A run that was stopped must not be reported as success (L3), so it ends with RUN_ERROR and the
code `STOPPED`, which user interfaces of that line treat as a stop. Where it was stopped by the dismissal of a question it
ends without an outcome all the same: after RUN_ERROR that client holds on to the dismissed question, and refuses every
later run of the thread that does not answer it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

__all__ = ["Downgrade"]

Event = dict[str, Any]
Warn = Callable[[str, str], None]


class Downgrade:
    """Turns the events of one run into what a 0.0.59 client reads. It never changes an event that it is given.

    Args:
        log: told once per run and kind of loss what the client does not get, and where.
    """

    def __init__(self, log: logging.LoggerAdapter[logging.Logger] | logging.Logger) -> None:
        self._log = log
        self._warned: set[str] = set()

    def __call__(self, event: Event) -> Event | None:
        """The event to send instead, the same object where nothing stands in the way; `None`: send nothing."""
        lower = _TABLE.get(event["type"])
        return event if lower is None else lower(event, self._warn)

    def _warn(self, loss: str, path: str) -> None:
        if loss not in self._warned:
            self._warned.add(loss)
            self._log.warning("the client speaks AG-UI 0.0.x, so %s (at %s)", loss, path)


def _run_finished(event: Event, warn: Warn) -> Event:
    outcome = event.get("outcome")
    if outcome is None:
        return event
    if outcome["type"] == "cancelled" and _reason(event) == "abandoned":
        warn("a run that ends with the dismissal of a question ends as if it was done", "RUN_FINISHED /outcome")
        return _without(event, "outcome")
    if outcome["type"] == "cancelled":
        warn("its cancelled run ends with RUN_ERROR code STOPPED", "RUN_FINISHED /outcome")
        kept: Event = {name: event[name] for name in ("usage", "metadata", "timestamp", "rawEvent") if name in event}
        return {"type": "RUN_ERROR", "message": "The run was stopped.", "code": "STOPPED", **kept}
    if outcome["type"] == "interrupt":
        if not any("expiresAt" in interrupt for interrupt in outcome["interrupts"]):
            return event
        # Once the time has passed that client accepts neither an answer nor a dismissal: its thread would be stuck.
        warn("an interrupt goes without expiresAt", "RUN_FINISHED /outcome/interrupts")
        interrupts = [_without(interrupt, "expiresAt") for interrupt in outcome["interrupts"]]
        return {**event, "outcome": {**outcome, "interrupts": interrupts}}
    # Nothing is lost: that client finds the pending calls itself.
    return {**event, "outcome": _without(outcome, "pendingToolCallIds")} if "pendingToolCallIds" in outcome else event


def _reason(event: Event) -> Any:
    """Why the run was cancelled, as its terminal event says in the framework's own metadata."""
    own = (event.get("metadata") or {}).get("statecast")
    return own.get("reason") if isinstance(own, dict) else None


def _tool_call_result(event: Event, warn: Warn) -> Event:
    if isinstance(event["content"], str):
        return event
    return {**event, "content": _text(event["content"], warn, "TOOL_CALL_RESULT /content")}


def _messages_snapshot(event: Event, warn: Warn) -> Event:
    lowered = [_message(message, warn, f"/messages/{index}") for index, message in enumerate(event["messages"])]
    if all(new is old for new, old in zip(lowered, event["messages"], strict=True)):
        return event
    return {**event, "messages": lowered}


def _message(message: Event, warn: Warn, pointer: str) -> Event:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    path = f"MESSAGES_SNAPSHOT {pointer}/content"
    if message["role"] == "tool":
        return {**message, "content": _text(content, warn, path)}
    kept = [part for part in content if part.get("source", {}).get("type") != "file"]
    if len(kept) == len(content):
        return message
    warn("a content part with a file source is left out", path)
    return {**message, "content": kept}


def _text(parts: list[Event], warn: Warn, path: str) -> str:
    warn("a tool result of content parts is cut to its text", path)
    return "".join(part["text"] for part in parts if part["type"] == "text")


def _reasoning_message_start(event: Event, warn: Warn) -> Event:
    return event if "role" in event else {**event, "role": "reasoning"}


def _without(value: Event, name: str) -> Event:
    return {key: member for key, member in value.items() if key != name}


_TABLE: dict[str, Callable[[Event, Warn], Event]] = {
    "RUN_FINISHED": _run_finished,
    "TOOL_CALL_RESULT": _tool_call_result,
    "MESSAGES_SNAPSHOT": _messages_snapshot,
    "REASONING_MESSAGE_START": _reasoning_message_start,
}
