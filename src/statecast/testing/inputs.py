"""What a client sends to start a run, made of plain arguments."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import uuid4

from pydantic import BaseModel
from pydantic_core import to_json, to_jsonable_python

from ..state import MISSING, encode_json

__all__ = ["is_activity", "make_input", "next_input", "resume_entries", "tool_message", "user_message", "wire"]


def make_input(
    text: str | None = None,
    *,
    state: Any = MISSING,
    messages: Iterable[Any] | None = None,
    tools: Iterable[Any] | None = None,
    context: Iterable[Any] | None = None,
    resume: Mapping[str, Any] | Iterable[Any] | None = None,
    forwarded_props: Any = None,
    thread_id: str | None = None,
    run_id: str | None = None,
    parent_run_id: str | None = None,
    protocol_version: str | None = "1.0",
) -> dict[str, Any]:
    """A run input in wire form. Nothing is checked: a test may send what a server must refuse.

    Args:
        text: a user message after `messages`.
        state: any JSON value, `State` or model; `MISSING` leaves it out, `None` is JSON null.
        messages, tools, context: `ag_ui` models or dicts in wire form.
        resume: interrupt id -> payload, or resume entries.
        thread_id, run_id: new ones by default.
        protocol_version: `None` leaves it out, as clients of the 0.0.x line do.
    """
    told = [wire(message) for message in messages or ()]
    if text is not None:
        told.append(user_message(text))
    made: dict[str, Any] = {
        "threadId": str(uuid4()) if thread_id is None else thread_id,
        "runId": str(uuid4()) if run_id is None else run_id,
    }
    if protocol_version is not None:
        made["protocolVersion"] = protocol_version
    if parent_run_id is not None:
        made["parentRunId"] = parent_run_id
    if state is not MISSING:
        made["state"] = json.loads(encode_json(state))
    made |= {
        "messages": told,
        "tools": [wire(tool) for tool in tools or ()],
        "context": [wire(entry) for entry in context or ()],
        "forwardedProps": {} if forwarded_props is None else to_jsonable_python(forwarded_props),
    }
    if resume is not None:
        made["resume"] = resume_entries(resume) if isinstance(resume, Mapping) else [wire(entry) for entry in resume]
    return made


def next_input(*, messages: Iterable[Any], **more: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The messages that a client holds, and the input of its next run, which leaves the activities out (I6).

    Args:
        messages: what the client holds, as models or in wire form.
        more: the other arguments of `make_input`.
    """
    held = [wire(message) for message in messages]
    sent = make_input(messages=[one for one in held if not is_activity(one)], **more)
    return held, sent


def resume_entries(answers: Mapping[str, Any], cancel: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Resume entries for these payloads, and for the questions that are abandoned (P2)."""
    resolved = [
        {"interruptId": id, "status": "resolved", "payload": to_jsonable_python(payload, by_alias=True)}
        for id, payload in answers.items()
    ]
    return [*resolved, *({"interruptId": id, "status": "cancelled"} for id in cancel)]


def user_message(text: str) -> dict[str, Any]:
    """A user's message with a new id, in wire form."""
    return {"id": str(uuid4()), "role": "user", "content": text}


def tool_message(call_id: str, result: Any) -> dict[str, Any]:
    """The result of a client's own tool as a message with a new id, in wire form (T3)."""
    content = result if isinstance(result, str) else to_json(result, by_alias=True).decode()
    return {"id": str(uuid4()), "role": "tool", "toolCallId": call_id, "content": content}


def is_activity(message: Any) -> bool:
    """True for an activity message in wire form."""
    return isinstance(message, dict) and message.get("role") == "activity"


def wire(value: Any) -> Any:
    """An `ag_ui` model in wire form; anything else as it is."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return value
