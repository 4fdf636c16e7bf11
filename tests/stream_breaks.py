"""Ways to break one rule of a stream that keeps them all.

A break changes one place of a legal stream, and says which rules may answer.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

from stream_support import KINDS, THREAD, EventDict

Break = Callable[[list[EventDict], Random], set[str] | None]


def _positions(stream: list[EventDict], wanted: Callable[[EventDict], bool]) -> list[int]:
    return [index for index, event in enumerate(stream) if wanted(event)]


def inside_run(stream: list[EventDict], random: Random) -> int | None:
    """A position inside a run, where one more event may stand."""
    found, active = [], False
    for index, event in enumerate(stream):
        if active:
            found.append(index)
        active = event["type"] == "RUN_STARTED" or (active and event["type"] not in ("RUN_FINISHED", "RUN_ERROR"))
    return random.choice(found) if found else None


def _inserted(event: EventDict, *rules: str) -> Break:
    def insert(stream: list[EventDict], random: Random) -> set[str] | None:
        index = inside_run(stream, random)
        if index is None:
            return None
        stream.insert(index, deepcopy(event))
        return set(rules)

    return insert


def _doubled(kind: str, *rules: str) -> Break:
    def double(stream: list[EventDict], random: Random) -> set[str] | None:
        found = _positions(stream, lambda event: event["type"] == kind)
        if not found:
            return None
        index = random.choice(found)
        stream.insert(index, deepcopy(stream[index]))
        return set(rules)

    return double


def _changed(kind: str, change: Callable[[EventDict], Any], *rules: str) -> Break:
    def alter(stream: list[EventDict], random: Random) -> set[str] | None:
        found = _positions(stream, lambda event: event["type"] == kind)
        if not found:
            return None
        change(stream[random.choice(found)])
        return set(rules)

    return alter


def _dropped_start(kind: str, *rules: str) -> Break:
    """Takes away a start whose end still comes."""

    def drop(stream: list[EventDict], random: Random) -> set[str] | None:
        id_name, start, _, end, _ = KINDS[kind]
        found = []
        for index in _positions(stream, lambda event: event["type"] == start):
            id = stream[index][id_name]
            later = next((e for e in stream[index + 1 :] if e["type"] in (start, end) and e[id_name] == id), None)
            if later is not None and later["type"] == end:
                found.append(index)
        if not found:
            return None
        del stream[random.choice(found)]
        return set(rules)

    return drop


def _dropped_end(kind: str) -> Break:
    """Takes away an end in a run that finishes: the item is open when it does, or when it is opened again."""

    def drop(stream: list[EventDict], random: Random) -> set[str] | None:
        id_name, start, _, end, chunk = KINDS[kind]
        found = []
        for index in _positions(stream, lambda event: event["type"] == end):
            id = stream[index][id_name]
            ending = next((e for e in stream[index + 1 :] if e["type"] in ("RUN_FINISHED", "RUN_ERROR")), None)
            again = any(e.get(id_name) == id and e["type"] in (start, chunk) for e in stream[index + 1 :])
            if ending is not None and ending["type"] == "RUN_FINISHED" and not again:
                found.append(index)
        if not found:
            return None
        del stream[random.choice(found)]
        return {"L5"}

    return drop


def _retagged(stream: list[EventDict], random: Random) -> set[str] | None:
    """Gives a piece of content to somebody else."""
    kinds = {names[2] for names in KINDS.values() if names[2]} | {names[3] for names in KINDS.values()}
    found = _positions(stream, lambda event: event["type"] in kinds)
    if not found:
        return None
    stream[random.choice(found)]["subagentRunId"] = "somebody-else"
    return {"G3"}


def _no_start(stream: list[EventDict], random: Random) -> set[str] | None:
    if stream[1]["type"] in ("RUN_ERROR", "RUN_STARTED"):
        return None
    del stream[0]
    return {"L1"}


def _after_the_end(stream: list[EventDict], random: Random) -> set[str] | None:
    found = _positions(stream, lambda event: event["type"] in ("RUN_FINISHED", "RUN_ERROR"))
    stream.insert(random.choice(found) + 1, {"type": "CUSTOM", "name": "com.example.late", "value": 1})
    return {"L4"}


FATAL: dict[str, Break] = {
    "no RUN_STARTED": _no_start,
    "an event after the end": _after_the_end,
    "a run in a run": _inserted({"type": "RUN_STARTED", "threadId": THREAD, "runId": "inner"}, "L7"),
    "text without a start": _inserted({"type": "TEXT_MESSAGE_CONTENT", "messageId": "nobody", "delta": "x"}, "S1"),
    "arguments without a start": _inserted({"type": "TOOL_CALL_ARGS", "toolCallId": "nobody", "delta": "x"}, "S1"),
    "the end of no message": _inserted({"type": "TEXT_MESSAGE_END", "messageId": "nobody"}, "S1"),
    "reasoning without a start": _inserted(
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "nobody", "delta": "x"}, "S1"
    ),
    "the end of no span": _inserted({"type": "REASONING_END", "messageId": "nobody"}, "R1"),
    "the end of no step": _inserted({"type": "STEP_FINISHED", "stepName": "never"}, "L6"),
    "the end of no subagent": _inserted({"type": "SUBAGENT_FINISHED", "subagentRunId": "nobody"}, "G2"),
    "the error of no subagent": _inserted({"type": "SUBAGENT_ERROR", "subagentRunId": "nobody", "message": "x"}, "G2"),
    "an orphaned subagent": _inserted(
        {"type": "SUBAGENT_STARTED", "subagentRunId": "child", "name": "x", "parentSubagentRunId": "nobody"}, "G2"
    ),
    "a message twice": _doubled("TEXT_MESSAGE_START", "S1"),
    "a call twice": _doubled("TOOL_CALL_START", "S1"),
    "a reasoning message twice": _doubled("REASONING_MESSAGE_START", "S1"),
    "a span twice": _doubled("REASONING_START", "R1"),
    "a step twice": _doubled("STEP_STARTED", "L6"),
    "a subagent twice": _doubled("SUBAGENT_STARTED", "G2"),
    "a message that nobody started": _dropped_start("text", "S1", "R2"),
    "a call that nobody started": _dropped_start("call", "S1", "R2"),
    "reasoning that nobody started": _dropped_start("thought", "S1", "R2"),
    "a span that nobody started": _dropped_start("span", "R1"),
    "a message left open": _dropped_end("text"),
    "a call left open": _dropped_end("call"),
    "reasoning left open": _dropped_end("thought"),
    "a span left open": _dropped_end("span"),
    "somebody else's": _retagged,
    "a first chunk without its id": _inserted(
        {"type": "TEXT_MESSAGE_CHUNK", "delta": "x", "subagentRunId": "new"}, "S5"
    ),
    "a first chunk without its name": _inserted({"type": "TOOL_CALL_CHUNK", "toolCallId": "new", "delta": "x"}, "S5"),
    "a chunk with a wrong kind of id": _inserted({"type": "TEXT_MESSAGE_CHUNK", "messageId": 5, "delta": "x"}, ""),
    "a wrong kind of delta": _changed("TEXT_MESSAGE_CONTENT", lambda event: event.update(delta=5), "", "S4"),
    "an operation without a value": _inserted(
        {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/a"}]}, "", "D5"
    ),
    "a path that is no pointer": _inserted({"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "a"}]}, "", "D5"),
    "a patch that is no list": _inserted({"type": "STATE_DELTA", "delta": {}}, "", "D5"),
}
"""Breaks that a consumer rejects the stream for, the real client among them. `""`: the event itself is malformed."""


def _pop(name: str) -> Callable[[EventDict], Any]:
    return lambda event: event.pop(name)


UNCHECKED: dict[str, Break] = {
    "the end of another run": _changed("RUN_FINISHED", lambda event: event.update(runId="another"), "L2"),
    "the end on another thread": _changed("RUN_FINISHED", lambda event: event.update(threadId="another"), "L2"),
    "an interrupt twice": _changed(
        "RUN_FINISHED",
        lambda event: event.update(
            outcome={"type": "interrupt", "interrupts": [{"id": "a", "reason": "x"}, {"id": "a", "reason": "y"}]}
        ),
        "P1",
    ),
    "an operation without an op": _inserted({"type": "STATE_DELTA", "delta": [{"path": "/a"}]}, "", "D5"),
}
"""Breaks that the protocol calls fatal for a stream, and that the real client 1.0.0 does not look for."""


FORBIDDEN: dict[str, Break] = {
    "null for an absent member": _inserted({"type": "RAW", "event": 1, "source": None}, "W6"),
    "a member of our own": _inserted({"type": "CUSTOM", "name": "com.example.x", "value": 1, "extra": 1}, "W7"),
    "an event of our own": _inserted({"type": "CART_CHANGED"}, "W7"),
    "the reserved key": _inserted({"type": "RAW", "event": 1, "metadata": {"ag-ui": {}}}, "W7"),
    "a member of 1.1": _inserted(
        {
            "type": "REASONING_ENCRYPTED_VALUE",
            "subtype": "message",
            "entityId": "x",
            "encryptedValue": "x",
            "encryptedValueType": "x",
        },
        "X2",
    ),
    "the end of a run by a subagent": _changed("RUN_FINISHED", lambda event: event.update(subagentRunId="x"), "G4"),
    "a restatement by a subagent": _inserted({"type": "MESSAGES_SNAPSHOT", "messages": [], "subagentRunId": "x"}, "G4"),
    "a role that no text has": _inserted({"type": "TEXT_MESSAGE_START", "messageId": "new", "role": "tool"}, "S3"),
    "a delta before its snapshot": _inserted(
        {"type": "ACTIVITY_DELTA", "messageId": "new", "activityType": "a", "patch": []}, "A2"
    ),
    "an activity that is no object": _changed(
        "ACTIVITY_DELTA", lambda event: event.update(patch=[{"op": "replace", "path": "", "value": 5}]), "A2"
    ),
    "a result of a cancelled run": _changed(
        "RUN_FINISHED", lambda event: event.update(outcome={"type": "cancelled"}, result=1), "L3"
    ),
    "a pending call that was never made": _changed(
        "RUN_FINISHED", lambda event: event.update(outcome={"type": "success", "pendingToolCallIds": ["never"]}), "L3"
    ),
    "an interrupt about nothing": _changed(
        "RUN_FINISHED", lambda event: event.update(outcome={"type": "interrupt", "interrupts": []}), "P1"
    ),
    "a result that takes a message's id": _doubled("TOOL_CALL_RESULT", "T2"),
    "a restated message twice": _changed(
        "MESSAGES_SNAPSHOT",
        lambda event: event["messages"].extend([{"id": "new", "role": "user", "content": ""}] * 2),
        "L8",
    ),
}
"""Breaks that bind a producer only: a consumer takes them, or takes them apart."""


def broken(stream: list[EventDict], how: Break, random: Random) -> tuple[list[EventDict], set[str]] | None:
    """The stream with one rule broken, and the rules that may answer; `None` if it has no place for this break."""
    copy = deepcopy(stream)
    rules = how(copy, random)
    return None if rules is None else (copy, rules)
