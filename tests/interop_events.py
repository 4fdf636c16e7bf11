"""Events of all 31 types with all their members, in wire form: what a producer of AG-UI 1.0 may say."""

from __future__ import annotations

from typing import Any

from ag_ui.core import EventType

Event = dict[str, Any]

METADATA = {"app": None, "nested": {"a": [1]}}
PATCH = [
    {"op": "add", "path": "/a", "value": None},
    {"op": "replace", "path": "/a/~01", "value": {}},
    {"op": "remove", "path": ""},
]
USAGE = [
    {
        "provider": "acme",
        "model": "m-1",
        "inputTokens": 3,
        "outputTokens": 2,
        "totalTokens": 5,
        "cachedInputTokens": 1,
        "cacheWriteInputTokens": 1,
        "reasoningTokens": 1,
    },
    {"provider": "other"},
]
SOURCES: list[Event] = [
    {"type": "data", "value": "AA==", "mimeType": "image/png"},
    {"type": "url", "value": "https://example.org/a.png"},
    {"type": "url", "value": "https://example.org/a.png", "mimeType": "image/png"},
    {"type": "file", "value": "file-1", "provider": "acme", "mimeType": "image/png"},
]
PARTS: list[Event] = [
    {"type": "text", "id": "p", "text": "é", "metadata": {"a": 1}},
    *({"type": kind, "source": source} for kind in ("image", "audio", "video", "document") for source in SOURCES),
]
CALL = {
    "id": "c",
    "type": "function",
    "function": {"name": "search", "arguments": '{"q":'},
    "encryptedValue": "e",
    "metadata": METADATA,
}
MESSAGES: list[Event] = [
    *(
        {"id": role, "role": role, "content": "x", "name": "n", "encryptedValue": "e", "metadata": METADATA}
        for role in ("developer", "system", "user")
    ),
    {"id": "parts", "role": "user", "content": PARTS, "subagentRunId": "s"},
    {"id": "assistant", "role": "assistant", "content": "x", "name": "n", "toolCalls": [CALL], "metadata": METADATA},
    {"id": "bare", "role": "assistant"},
    {"id": "tool", "role": "tool", "toolCallId": "c", "content": "x", "error": "no", "encryptedValue": "e"},
    {"id": "tool-parts", "role": "tool", "toolCallId": "c", "content": PARTS},
    {"id": "activity", "role": "activity", "activityType": "plan", "content": {"x": None}, "metadata": METADATA},
    {"id": "reasoning", "role": "reasoning", "content": "x", "encryptedValue": "e", "subagentRunId": "s"},
]
INTERRUPT = {
    "id": "i",
    "reason": "approve",
    "message": "Go on?",
    "toolCallId": "c",
    "responseSchema": {"type": "boolean"},
    "expiresAt": "2026-01-01T00:00:00Z",
    "metadata": METADATA,
    "subagentRunId": "s",
}
RUN = {"threadId": "t", "runId": "r"}

# The members of each type, and, where a member has several forms, the other forms.
_RUN_LEVEL: dict[str, list[Event]] = {
    "RUN_STARTED": [{**RUN, "protocolVersion": "1.0", "parentRunId": "p"}],
    "RUN_FINISHED": [
        {**RUN, "result": {"a": None}, "usage": USAGE},
        {**RUN, "outcome": {"type": "success", "pendingToolCallIds": ["c"]}},
        {**RUN, "outcome": {"type": "interrupt", "interrupts": [INTERRUPT]}},
        {**RUN, "outcome": {"type": "cancelled"}},
    ],
    "RUN_ERROR": [{"message": "no", "code": "internal", "usage": USAGE}],
    "MESSAGES_SNAPSHOT": [{"messages": MESSAGES}, {"messages": []}],
}
_OWNED: dict[str, list[Event]] = {
    "TEXT_MESSAGE_START": [
        {"messageId": "m", "role": role, "name": "n"} for role in ("developer", "system", "assistant", "user")
    ],
    "TEXT_MESSAGE_CONTENT": [{"messageId": "m", "delta": "é"}, {"messageId": "m", "delta": ""}],
    "TEXT_MESSAGE_END": [{"messageId": "m"}],
    "TEXT_MESSAGE_CHUNK": [{"messageId": "m", "role": "user", "delta": "x", "name": "n"}, {}],
    "TOOL_CALL_START": [{"toolCallId": "c", "toolCallName": "search", "parentMessageId": "m"}],
    "TOOL_CALL_ARGS": [{"toolCallId": "c", "delta": "{"}, {"toolCallId": "c", "delta": ""}],
    "TOOL_CALL_END": [{"toolCallId": "c"}],
    "TOOL_CALL_CHUNK": [{"toolCallId": "c", "toolCallName": "search", "parentMessageId": "m", "delta": "{"}, {}],
    "TOOL_CALL_RESULT": [
        {"messageId": "m", "toolCallId": "c", "content": "x", "role": "tool"},
        {"messageId": "m", "toolCallId": "c", "content": PARTS},
    ],
    "STATE_SNAPSHOT": [{"snapshot": snapshot} for snapshot in ({"a": None}, [1], None, 0, "")],
    "STATE_DELTA": [{"delta": PATCH}, {"delta": []}],
    "ACTIVITY_SNAPSHOT": [
        {"messageId": "a", "activityType": "plan", "content": {"x": None}, "replace": replace}
        for replace in (True, False)
    ],
    "ACTIVITY_DELTA": [{"messageId": "a", "activityType": "plan", "patch": PATCH}],
    "RAW": [{"event": {"x": None}, "source": "acme"}, {"event": None}],
    "CUSTOM": [{"name": "com.example.cart", "value": {"a": None}}, {"name": "n", "value": None}],
    "STEP_STARTED": [{"stepName": "search"}],
    "STEP_FINISHED": [{"stepName": "search"}],
    "REASONING_START": [{"messageId": "m"}],
    "REASONING_MESSAGE_START": [{"messageId": "m", "role": "reasoning"}],
    "REASONING_MESSAGE_CONTENT": [{"messageId": "m", "delta": "x"}, {"messageId": "m", "delta": ""}],
    "REASONING_MESSAGE_END": [{"messageId": "m"}],
    "REASONING_MESSAGE_CHUNK": [{"messageId": "m", "delta": "x"}, {}],
    "REASONING_END": [{"messageId": "m"}],
    "REASONING_ENCRYPTED_VALUE": [
        {"subtype": subtype, "entityId": "m", "encryptedValue": "e"} for subtype in ("message", "tool-call")
    ],
    "SUBAGENT_STARTED": [
        {
            "name": "researcher",
            "description": "d",
            "parentSubagentRunId": "p",
            "parentToolCallId": "c",
            "parentMessageId": "m",
        }
    ],
    "SUBAGENT_FINISHED": [
        {"result": {"a": None}, "outcome": {"type": "success"}},
        {"outcome": {"type": "suspended", "interruptIds": ["i"]}},
        {"outcome": {"type": "suspended"}},
    ],
    "SUBAGENT_ERROR": [{"message": "no", "code": "internal"}],
}
_BASE = {"timestamp": 1760000000000, "rawEvent": {"x": None}, "metadata": METADATA}


def every_event() -> list[Event]:
    """One event for each form of each type, all members present."""
    assert {*_RUN_LEVEL, *_OWNED} == {type.value for type in EventType}
    return [
        *({"type": type, **_BASE, **members} for type, forms in _RUN_LEVEL.items() for members in forms),
        *(
            {"type": type, **_BASE, "subagentRunId": "s", **members}
            for type, forms in _OWNED.items()
            for members in forms
        ),
    ]
