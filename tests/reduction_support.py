"""Events, and the messages that a conversation makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from statecast.conversation import Conversation

EventDict = dict[str, Any]


def text(id: str = "m", *deltas: str, **fields: Any) -> list[EventDict]:
    return [
        {"type": "TEXT_MESSAGE_START", "messageId": id, **fields},
        *({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta} for delta in deltas),
        {"type": "TEXT_MESSAGE_END", "messageId": id},
    ]


def call(id: str = "c", *deltas: str, **fields: Any) -> list[EventDict]:
    return [
        {"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": "search", **fields},
        *({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": delta} for delta in deltas),
        {"type": "TOOL_CALL_END", "toolCallId": id},
    ]


def result(call_id: str = "c", id: str = "r", **fields: Any) -> EventDict:
    return {"type": "TOOL_CALL_RESULT", "messageId": id, "toolCallId": call_id, "content": "3", **fields}


def thought(id: str = "t", *deltas: str) -> list[EventDict]:
    return [
        {"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning"},
        *({"type": "REASONING_MESSAGE_CONTENT", "messageId": id, "delta": delta} for delta in deltas),
        {"type": "REASONING_MESSAGE_END", "messageId": id},
    ]


def activity(id: str = "act", **fields: Any) -> EventDict:
    return {"type": "ACTIVITY_SNAPSHOT", "messageId": id, "activityType": "search", "content": {"n": 1}, **fields}


def delta(*ops: EventDict, id: str = "act", **fields: Any) -> EventDict:
    return {"type": "ACTIVITY_DELTA", "messageId": id, "activityType": "search", "patch": list(ops), **fields}


def after(events: Iterable[EventDict], messages: Iterable[Any] = ()) -> list[EventDict]:
    conversation = Conversation(messages)
    for event in events:
        conversation.apply(event)
    return wire(conversation)


def wire(conversation: Conversation) -> list[EventDict]:
    return [message.model_dump(mode="json", by_alias=True) for message in conversation]


ASSISTANT: EventDict = {"id": "m", "role": "assistant", "content": ""}
