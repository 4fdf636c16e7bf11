"""Events of a careless producer: few ids for everything, names and roles that contradict each other, results without calls."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

from stream_support import THREAD, VALUES, WORDS, EventDict


def careless_event(random: Random) -> EventDict:
    """Any event about one of a handful of things. It may be forbidden."""
    id, other = random.choice("abcd"), random.choice("abcd")
    kind = random.choice(sorted(_CARELESS))
    event = {"type": kind, **_CARELESS[kind](random, id, other)}
    if random.random() < 0.15 and kind not in ("RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "MESSAGES_SNAPSHOT"):
        event["subagentRunId"] = random.choice("xy")
    if random.random() < 0.1:
        event["metadata"] = {random.choice("kl"): deepcopy(random.choice(VALUES))}
    return event


def _message(random: Random, id: str) -> EventDict:
    role = random.choice(["user", "assistant", "tool", "activity", "reasoning", "system"])
    message: EventDict = {"id": id, "role": role, "content": random.choice(WORDS)}
    if role == "activity":
        message.update(activityType="a", content={"n": 1})
    if role == "tool":
        message["toolCallId"] = random.choice("abcd")
    if role == "assistant" and random.random() < 0.5:
        function = {"name": "search", "arguments": "{"}
        message["toolCalls"] = [{"id": random.choice("abcd"), "type": "function", "function": function}]
    if random.random() < 0.2:
        message["metadata"] = {"k": 0}
    return message


def _some(random: Random, **fields: Any) -> EventDict:
    """Some of these fields."""
    return {name: value for name, value in fields.items() if random.random() < 0.5}


_CARELESS: dict[str, Callable[[Random, str, str], EventDict]] = {
    "RUN_STARTED": lambda r, id, other: {
        "threadId": THREAD,
        "runId": "run",
        **_some(r, input={"threadId": THREAD, "runId": "run", "messages": [_message(r, id), _message(r, other)]}),
    },
    "RUN_FINISHED": lambda r, id, other: {"threadId": THREAD, "runId": "run"},
    "RUN_ERROR": lambda r, id, other: {"message": "It failed."},
    "TEXT_MESSAGE_START": lambda r, id, other: {
        "messageId": id,
        **_some(r, role=r.choice(["user", "assistant"]), name="Ada"),
    },
    "TEXT_MESSAGE_CONTENT": lambda r, id, other: {"messageId": id, "delta": r.choice(WORDS)},
    "TEXT_MESSAGE_END": lambda r, id, other: {"messageId": id},
    "TEXT_MESSAGE_CHUNK": lambda r, id, other: _some(r, messageId=id, delta="chunk", role="user", name="Ada"),
    "TOOL_CALL_START": lambda r, id, other: {
        "toolCallId": id,
        "toolCallName": r.choice(["f", "g"]),
        **_some(r, parentMessageId=other),
    },
    "TOOL_CALL_ARGS": lambda r, id, other: {"toolCallId": id, "delta": r.choice(WORDS)},
    "TOOL_CALL_END": lambda r, id, other: {"toolCallId": id},
    "TOOL_CALL_CHUNK": lambda r, id, other: _some(r, toolCallId=id, toolCallName="f", delta="{", parentMessageId=other),
    "TOOL_CALL_RESULT": lambda r, id, other: {
        "messageId": id,
        "toolCallId": other,
        "content": r.choice(["x", [{"type": "text", "text": "x"}], []]),
        **_some(r, role="tool"),
    },
    "REASONING_START": lambda r, id, other: {"messageId": id},
    "REASONING_END": lambda r, id, other: {"messageId": id},
    "REASONING_MESSAGE_START": lambda r, id, other: {"messageId": id, "role": "reasoning"},
    "REASONING_MESSAGE_CONTENT": lambda r, id, other: {"messageId": id, "delta": r.choice(WORDS)},
    "REASONING_MESSAGE_END": lambda r, id, other: {"messageId": id},
    "REASONING_MESSAGE_CHUNK": lambda r, id, other: _some(r, messageId=id, delta="chunk"),
    "REASONING_ENCRYPTED_VALUE": lambda r, id, other: {
        "subtype": r.choice(["message", "tool-call"]),
        "entityId": id,
        "encryptedValue": "=",
    },
    "STEP_STARTED": lambda r, id, other: {"stepName": id},
    "STEP_FINISHED": lambda r, id, other: {"stepName": id},
    "SUBAGENT_STARTED": lambda r, id, other: {
        "subagentRunId": r.choice("xyz"),
        "name": "x",
        **_some(r, parentSubagentRunId=r.choice("xyz")),
    },
    "SUBAGENT_FINISHED": lambda r, id, other: {"subagentRunId": r.choice("xyz")},
    "SUBAGENT_ERROR": lambda r, id, other: {"subagentRunId": r.choice("xyz"), "message": "x"},
    "ACTIVITY_SNAPSHOT": lambda r, id, other: {
        "messageId": id,
        "activityType": other,
        "content": {"n": 0, "list": []},
        **_some(r, replace=r.choice([True, False])),
    },
    "ACTIVITY_DELTA": lambda r, id, other: {
        "messageId": id,
        "activityType": other,
        "patch": [{"op": r.choice(["add", "replace"]), "path": r.choice(["/n", "/list/-", "/x/y"]), "value": 1}],
    },
    "MESSAGES_SNAPSHOT": lambda r, id, other: {
        "messages": [_message(r, r.choice("abcd")) for _ in range(r.randint(0, 4))]
    },
    "STATE_SNAPSHOT": lambda r, id, other: {"snapshot": deepcopy(r.choice(VALUES))},
    "STATE_DELTA": lambda r, id, other: {
        "delta": [{"op": "add", "path": f"/{id}", "value": deepcopy(r.choice(VALUES))}]
    },
    "CUSTOM": lambda r, id, other: {"name": id, "value": 1},
    "RAW": lambda r, id, other: {"event": 1},
}
