"""Every rule that binds a producer, both ways.

A case is a setting (events that were sent), one event, and the rule that forbids it, or `None` where it is allowed. The thread
began with the message `asked` of the client, and the assistant's `old`, which holds the call `old-call`; the client's own
tool is `confirm`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

EventDict = dict[str, Any]

RUN: EventDict = {"type": "RUN_STARTED", "threadId": "thread", "runId": "run", "protocolVersion": "1.0"}
FINISHED: EventDict = {"type": "RUN_FINISHED", "threadId": "thread", "runId": "run"}
FAILED: EventDict = {"type": "RUN_ERROR", "message": "It failed."}
TEXT: EventDict = {"type": "TEXT_MESSAGE_START", "messageId": "m"}
CONTENT: EventDict = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "x"}
TEXT_END: EventDict = {"type": "TEXT_MESSAGE_END", "messageId": "m"}
CALL: EventDict = {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "search"}
ARGS: EventDict = {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{"}
CALL_END: EventDict = {"type": "TOOL_CALL_END", "toolCallId": "c"}
RESULT: EventDict = {"type": "TOOL_CALL_RESULT", "messageId": "r", "toolCallId": "c", "content": "3"}
SPAN: EventDict = {"type": "REASONING_START", "messageId": "s"}
SPAN_END: EventDict = {"type": "REASONING_END", "messageId": "s"}
THOUGHT: EventDict = {"type": "REASONING_MESSAGE_START", "messageId": "t", "role": "reasoning"}
THINKING: EventDict = {"type": "REASONING_MESSAGE_CONTENT", "messageId": "t", "delta": "x"}
THOUGHT_END: EventDict = {"type": "REASONING_MESSAGE_END", "messageId": "t"}
SECRET: EventDict = {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "m", "encryptedValue": "="}
STEP: EventDict = {"type": "STEP_STARTED", "stepName": "search"}
STEP_END: EventDict = {"type": "STEP_FINISHED", "stepName": "search"}
SUB: EventDict = {"type": "SUBAGENT_STARTED", "subagentRunId": "a", "name": "researcher"}
SUB_END: EventDict = {"type": "SUBAGENT_FINISHED", "subagentRunId": "a"}
SUB_ERROR: EventDict = {"type": "SUBAGENT_ERROR", "subagentRunId": "a", "message": "no luck"}
SNAPSHOT: EventDict = {"type": "STATE_SNAPSHOT", "snapshot": {"n": 1}}
ACTIVITY: EventDict = {"type": "ACTIVITY_SNAPSHOT", "messageId": "act", "activityType": "x", "content": {}}
MESSAGES: EventDict = {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "m", "role": "assistant", "content": "x"}]}
ASKED: EventDict = {"id": "asked", "role": "user", "content": "Hello"}
CUSTOM: EventDict = {"type": "CUSTOM", "name": "com.example.cart", "value": None}
RAW: EventDict = {"type": "RAW", "event": None}


def of(owner: str, event: EventDict) -> EventDict:
    return {**event, "subagentRunId": owner}


def delta(*ops: Any) -> EventDict:
    return {"type": "STATE_DELTA", "delta": list(ops)}


def patch(*ops: Any, **fields: Any) -> EventDict:
    return {"type": "ACTIVITY_DELTA", "messageId": "act", "activityType": "x", "patch": list(ops), **fields}


def finished(**fields: Any) -> EventDict:
    return {**FINISHED, **fields}


def interrupt(*ids: str) -> EventDict:
    return finished(outcome={"type": "interrupt", "interrupts": [{"id": id, "reason": "approve"} for id in ids]})


def restated_activity(id: str) -> EventDict:
    return {"id": id, "role": "activity", "activityType": "x", "content": {}}


class Case(NamedTuple):
    sent: list[EventDict]
    event: EventDict
    rule: str | None


# Each row is under the id of the rule that it is about.
CASES: dict[str, list[Case]] = {
    "W6": [
        Case([RUN], RAW, None),
        Case([RUN], CUSTOM, None),
        Case([RUN], {"type": "STATE_SNAPSHOT", "snapshot": None}, None),
        Case([RUN], {**RAW, "metadata": {"key": None}}, None),
        Case([RUN], {**RAW, "source": None}, "W6"),
        Case([RUN], {**RAW, "rawEvent": None}, "W6"),
        Case([RUN], finished(result=None), "W6"),
        Case([RUN], {**TEXT, "name": None}, "W6"),
    ],
    "W7": [
        Case([RUN], {**CUSTOM, "metadata": {"com.example": 1}}, None),
        Case([RUN], {**CUSTOM, "extra": 1}, "W7"),
        Case([RUN], {**RAW, "metadata": {"ag-ui": {}}}, "W7"),
        Case([RUN], {"type": "CART_CHANGED"}, "W7"),
        Case([RUN], {**TEXT, "message_id": "m"}, "W7"),
    ],
    "X2": [
        Case([RUN, TEXT], SECRET, None),
        Case([RUN, TEXT], {**SECRET, "encryptedValueType": "x"}, "X2"),
    ],
    "L1": [
        Case([], RUN, None),
        Case([], FAILED, None),
        Case([], TEXT, "L1"),
        Case([], FINISHED, "L1"),
        Case([], SNAPSHOT, "L1"),
        Case([], CUSTOM, "L1"),
    ],
    "L2": [
        Case([RUN], FINISHED, None),
        Case([], {**RUN, "threadId": "another"}, "L2"),
        Case([RUN], finished(threadId="another"), "L2"),
        Case([RUN], finished(runId="another"), "L2"),
        Case([RUN, FINISHED], {**RUN, "runId": "next", "threadId": "another"}, "L2"),
    ],
    "L3": [
        Case([RUN], finished(outcome={"type": "success"}), None),
        Case([RUN], finished(result={"n": 1}), None),
        Case([RUN], finished(outcome={"type": "cancelled"}), None),
        Case([RUN], finished(outcome={"type": "cancelled"}, result=1), "L3"),
        Case([RUN, CALL, CALL_END], finished(outcome={"type": "success", "pendingToolCallIds": ["c"]}), None),
        Case([RUN, CALL, CALL_END], finished(outcome={"type": "success", "pendingToolCallIds": []}), None),
        Case([RUN, CALL, CALL_END], finished(outcome={"type": "success"}), None),
        Case([RUN, CALL, CALL_END], finished(outcome={"type": "success", "pendingToolCallIds": ["d"]}), "L3"),
        Case([RUN, CALL, CALL_END, RESULT], finished(outcome={"type": "success", "pendingToolCallIds": ["c"]}), "L3"),
        Case(
            [RUN, CALL, CALL_END, {**CALL, "toolCallId": "d"}, {**CALL_END, "toolCallId": "d"}],
            finished(outcome={"type": "success", "pendingToolCallIds": ["d", "c"]}),
            "L3",
        ),
    ],
    "L4": [
        Case([RUN, FINISHED], {**RUN, "runId": "next"}, None),
        Case([RUN, FINISHED], FAILED, None),
        Case([RUN, FAILED], {**RUN, "runId": "next"}, None),
        Case([RUN, FINISHED], CUSTOM, "L4"),
        Case([RUN, FINISHED], FINISHED, "L4"),
        Case([RUN, FINISHED], TEXT, "L4"),
        Case([RUN, FAILED], FAILED, "L4"),
        Case([RUN, FAILED], FINISHED, "L4"),
        Case([RUN, FAILED], SNAPSHOT, "L4"),
        Case([RUN, FINISHED, FAILED], FAILED, "L4"),
        Case([FAILED], FINISHED, "L4"),
    ],
    "L5": [
        Case([RUN, TEXT, TEXT_END], FINISHED, None),
        Case([RUN, TEXT, CALL, THOUGHT, SPAN, STEP, SUB], FAILED, None),
        Case([RUN, TEXT, FAILED, {**RUN, "runId": "next"}], finished(runId="next"), None),
        Case([RUN, TEXT], FINISHED, "L5"),
        Case([RUN, CALL], FINISHED, "L5"),
        Case([RUN, SPAN], FINISHED, "L5"),
        Case([RUN, THOUGHT], FINISHED, "L5"),
        Case([RUN, STEP], FINISHED, "L5"),
        Case([RUN, SUB], FINISHED, "L5"),
        Case([RUN, TEXT], finished(outcome={"type": "cancelled"}), "L5"),
        Case([RUN, STEP], interrupt("a"), "L5"),
    ],
    "L6": [
        Case([RUN, STEP], STEP_END, None),
        Case([RUN, STEP, STEP_END], STEP, None),
        Case([RUN, STEP], {**STEP, "stepName": "write"}, None),
        Case([RUN, STEP], of("a", STEP), None),
        Case([RUN, STEP, {**STEP, "stepName": "write"}], STEP_END, None),
        Case([RUN, STEP], STEP, "L6"),
        Case([RUN], STEP_END, "L6"),
        Case([RUN, STEP, STEP_END], STEP_END, "L6"),
    ],
    "L7": [
        Case([RUN, FINISHED, {**RUN, "runId": "next"}], MESSAGES, None),
        Case([RUN], {**RUN, "runId": "next"}, "L7"),
    ],
    "L8": [
        Case([RUN, FINISHED], {**RUN, "runId": "next"}, None),
        Case([RUN, FINISHED], RUN, "L8"),
        Case([RUN, TEXT], {**TEXT, "messageId": "n"}, None),
        Case([RUN, TEXT], {**CALL, "toolCallId": "m", "parentMessageId": "m"}, None),
        Case([RUN, CALL, CALL_END, RESULT], {**TEXT, "messageId": "r"}, "L8"),
        Case([RUN, ACTIVITY], {**TEXT, "messageId": "act"}, "L8"),
        Case([RUN, TEXT], {**THOUGHT, "messageId": "m"}, "L8"),
        Case([RUN, TEXT], {**ACTIVITY, "messageId": "m"}, "L8"),
        Case([RUN, TEXT], {**CALL, "toolCallId": "m"}, "L8"),
        Case([RUN], {**MESSAGES, "messages": MESSAGES["messages"] * 2}, "L8"),
    ],
    "S1": [
        Case([RUN, TEXT], CONTENT, None),
        Case([RUN, TEXT, CONTENT], TEXT_END, None),
        Case([RUN, TEXT, CALL, ARGS], CONTENT, None),
        Case([RUN, TEXT], {**TEXT, "messageId": "n"}, None),
        Case([RUN, {**TEXT, "messageId": "x"}], {**CALL, "toolCallId": "x", "parentMessageId": "x"}, None),
        Case([RUN, TEXT], TEXT, "S1"),
        Case([RUN], CONTENT, "S1"),
        Case([RUN], TEXT_END, "S1"),
        Case([RUN, TEXT, TEXT_END], CONTENT, "S1"),
        Case([RUN, TEXT, TEXT_END], TEXT_END, "S1"),
        Case([RUN, CALL], CALL, "S1"),
        Case([RUN], ARGS, "S1"),
        Case([RUN], CALL_END, "S1"),
        Case([RUN, CALL, CALL_END], ARGS, "S1"),
        Case([RUN, THOUGHT], THOUGHT, "S1"),
        Case([RUN], THINKING, "S1"),
        Case([RUN], THOUGHT_END, "S1"),
        # What was open when a run failed is not open in the next one.
        Case([RUN, TEXT, FAILED, {**RUN, "runId": "next"}], CONTENT, "S1"),
        Case([RUN, TEXT, FAILED, {**RUN, "runId": "next"}], TEXT, None),
    ],
    "S2": [
        Case([RUN, TEXT, TEXT_END], TEXT, None),
        Case([RUN, TEXT, TEXT_END], {**TEXT, "role": "assistant"}, None),
        Case([RUN, {**TEXT, "role": "user", "name": "Ada"}, TEXT_END], {**TEXT, "role": "user", "name": "Ada"}, None),
        Case([RUN, of("a", TEXT), TEXT_END], of("a", TEXT), None),
        Case([RUN, TEXT, TEXT_END, FINISHED, {**RUN, "runId": "next"}], TEXT, None),
        Case([RUN, TEXT, TEXT_END], {**TEXT, "role": "user"}, "S2"),
        Case([RUN, TEXT, TEXT_END], {**TEXT, "name": "Ada"}, "S2"),
        Case([RUN, {**TEXT, "name": "Ada"}, TEXT_END], TEXT, "S2"),
        Case([RUN, of("a", TEXT), TEXT_END], TEXT, "S2"),
        Case([RUN, of("a", TEXT), TEXT_END, FINISHED, {**RUN, "runId": "next"}], of("b", TEXT), "S2"),
        Case([RUN, CALL, CALL_END], CALL, None),
        Case([RUN, CALL, CALL_END], {**CALL, "parentMessageId": "c"}, None),
        Case([RUN, CALL, CALL_END], {**CALL, "toolCallName": "other"}, "S2"),
        Case([RUN, CALL, CALL_END], {**CALL, "parentMessageId": "n"}, "S2"),
        Case([RUN, of("a", CALL), CALL_END], CALL, "S2"),
        Case([RUN, THOUGHT, THOUGHT_END], THOUGHT, None),
        Case([RUN, of("a", THOUGHT), THOUGHT_END], THOUGHT, "S2"),
        # The input's messages: an assistant's may go on, the client's own may not.
        Case([RUN], {**TEXT, "messageId": "old"}, None),
        Case([RUN], {**TEXT, "messageId": "asked", "role": "user"}, "S2"),
        Case([RUN], {**TEXT, "messageId": "asked"}, "S2"),
        Case([RUN], {**CALL, "toolCallId": "old-call", "parentMessageId": "old"}, None),
        Case([RUN], {**CALL, "toolCallId": "old-call"}, "S2"),
        Case([RUN, {**MESSAGES, "messages": [ASKED]}], {**TEXT, "messageId": "asked", "role": "user"}, "S2"),
        # What was restated counts as it was restated.
        Case([RUN, MESSAGES], TEXT, None),
        Case([RUN, TEXT, TEXT_END, {**MESSAGES, "messages": []}], {**TEXT, "role": "user"}, None),
        Case([RUN, TEXT, TEXT_END, MESSAGES], {**TEXT, "role": "user"}, "S2"),
    ],
    "S3": [
        *(Case([RUN], {**TEXT, "role": role}, None) for role in ("developer", "system", "assistant", "user")),
        Case([RUN], TEXT, None),
        *(Case([RUN], {**TEXT, "role": role}, "S3") for role in ("tool", "activity", "reasoning", "narrator")),
    ],
    "S4": [
        Case([RUN, TEXT], {**CONTENT, "delta": ""}, None),
        Case([RUN, CALL], {**ARGS, "delta": "not JSON"}, None),
        Case([RUN, THOUGHT], {**THINKING, "delta": ""}, None),
        Case([RUN, TEXT], {**CONTENT, "delta": 5}, "S4"),
        Case([RUN, CALL], {**ARGS, "delta": {"a": 1}}, "S4"),
        Case([RUN, THOUGHT], {**THINKING, "delta": b"x"}, "S4"),
    ],
    "S5": [
        Case([RUN], {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "x"}, "S5"),
        Case([RUN], {"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "x"}, "S5"),
        Case([RUN], {"type": "REASONING_MESSAGE_CHUNK", "messageId": "m"}, "S5"),
    ],
    "S6": [
        # A call without a parent makes an assistant's message of its own id, a call with an unknown parent makes that one.
        Case([RUN, CALL, CALL_END], {**TEXT, "messageId": "c"}, None),
        Case([RUN, CALL, CALL_END], {**TEXT, "messageId": "c", "role": "user"}, "S2"),
        Case([RUN, {**CALL, "parentMessageId": "p"}], {**TEXT, "messageId": "p"}, None),
        Case([RUN, of("a", {**CALL, "parentMessageId": "p"})], {**TEXT, "messageId": "p"}, "S2"),
    ],
    "T1": [
        Case([RUN, TEXT], {**CALL, "parentMessageId": "m"}, None),
        Case([RUN, of("a", TEXT)], of("a", {**CALL, "parentMessageId": "m"}), None),
        Case([RUN, of("a", TEXT)], {**CALL, "parentMessageId": "m"}, None),
        Case([RUN], {**CALL, "parentMessageId": "nobody-yet"}, None),
        Case([RUN], {**CALL, "parentMessageId": "old"}, None),
        Case([RUN, TEXT], of("a", {**CALL, "parentMessageId": "m"}), "T1"),
        Case([RUN, of("a", TEXT)], of("b", {**CALL, "parentMessageId": "m"}), "T1"),
        Case([RUN], of("a", {**CALL, "parentMessageId": "old"}), "T1"),
        Case([RUN], {**CALL, "parentMessageId": "asked"}, "T1"),
        Case(
            [RUN, of("a", TEXT), of("b", {**TEXT, "messageId": "n"}), {**CALL, "parentMessageId": "m"}, CALL_END],
            {**CALL, "parentMessageId": "n"},
            "T1",
        ),
        # A call without a tag is its parent's owner's.
        Case([RUN, of("a", TEXT), {**CALL, "parentMessageId": "m"}], of("a", ARGS), None),
        Case([RUN, of("a", TEXT), {**CALL, "parentMessageId": "m"}], of("b", ARGS), "G3"),
    ],
    "T2": [
        Case([RUN, CALL, CALL_END], RESULT, None),
        Case([RUN, CALL], RESULT, None),
        Case([RUN, CALL, CALL_END], {**RESULT, "content": [{"type": "text", "text": "x"}]}, None),
        Case([RUN], {**RESULT, "toolCallId": "old-call"}, None),
        Case([RUN, CALL, CALL_END], {**RESULT, "messageId": "c"}, "T2"),
        Case([RUN, TEXT, CALL, CALL_END], {**RESULT, "messageId": "m"}, "T2"),
        Case([RUN, CALL, CALL_END, RESULT], RESULT, "T2"),
        Case([RUN, CALL, CALL_END], {**RESULT, "messageId": "asked"}, "T2"),
    ],
    "T3": [
        Case([RUN, {**CALL, "toolCallName": "confirm"}, CALL_END], FINISHED, None),
        Case([RUN, CALL, CALL_END], RESULT, None),
        Case([RUN, {**CALL, "toolCallName": "confirm"}, CALL_END], RESULT, "T3"),
        Case([RUN, {**CALL, "toolCallName": "confirm"}], RESULT, "T3"),
    ],
    "R1": [
        Case([RUN, SPAN], {**THOUGHT, "messageId": "s"}, None),
        Case([RUN, SPAN, THOUGHT, THINKING, THOUGHT_END], SPAN_END, None),
        Case([RUN, SPAN, THOUGHT], SPAN_END, None),
        Case([RUN, SPAN, SPAN_END], SPAN, None),
        Case([RUN, SPAN], SPAN, "R1"),
        Case([RUN], SPAN_END, "R1"),
        Case([RUN, THOUGHT], {**SPAN_END, "messageId": "t"}, "R1"),
        Case([RUN, SPAN], {**THINKING, "messageId": "s"}, "S1"),
    ],
    "R2": [
        Case([RUN, THOUGHT], {**SECRET, "entityId": "t"}, None),
        Case([RUN, CALL, CALL_END], {**SECRET, "subtype": "tool-call", "entityId": "c"}, None),
        Case([RUN], {**SECRET, "entityId": "old"}, None),
        Case([RUN], SECRET, "R2"),
        Case([RUN, TEXT], {**SECRET, "subtype": "tool-call"}, "R2"),
        Case([RUN, ACTIVITY], {**SECRET, "entityId": "act"}, "R2"),
        Case([RUN, of("a", THOUGHT)], of("b", {**SECRET, "entityId": "t"}), "G3"),
        Case([RUN, of("a", TEXT)], of("b", SECRET), "G3"),
        Case([RUN, of("a", CALL)], of("b", {**SECRET, "subtype": "tool-call", "entityId": "c"}), "G3"),
        Case([RUN], of("b", {**SECRET, "entityId": "old"}), "G3"),
    ],
    "D1": [
        Case([RUN], SNAPSHOT, None),
        Case([RUN, SNAPSHOT], SNAPSHOT, None),
        Case([RUN], {**SNAPSHOT, "snapshot": 5}, None),
        Case([], SNAPSHOT, "L1"),
    ],
    "D5": [
        Case([RUN], delta(), None),
        Case([RUN], delta({"op": "add", "path": "/a", "value": None}), None),
        Case([RUN], delta({"op": "remove", "path": "", "value": "left over"}), None),
        Case(
            [RUN], delta({"op": "move", "from": "/a~0~1", "path": "/b"}, {"op": "copy", "from": "", "path": "/b"}), None
        ),
        Case([RUN], {"type": "STATE_DELTA", "delta": {}}, "D5"),
        Case([RUN], delta("remove"), "D5"),
        Case([RUN], delta({"path": "/a"}), "D5"),
        Case([RUN], delta({"op": "add", "path": "/a"}), "D5"),
        Case([RUN], delta({"op": "test", "path": "/a"}), "D5"),
        Case([RUN], delta({"op": "move", "path": "/a"}), "D5"),
        Case([RUN], delta({"op": "copy", "from": "a", "path": "/a"}), "D5"),
        Case([RUN], delta({"op": "remove"}), "D5"),
        Case([RUN], delta({"op": "remove", "path": "a"}), "D5"),
        Case([RUN], delta({"op": "remove", "path": "/~2"}), "D5"),
        Case([RUN], delta({"op": "remove", "path": 5}), "D5"),
        Case([RUN], delta({"op": "increment", "path": "/a", "value": 1}), "D5"),
        Case([RUN, ACTIVITY], patch({"op": "add", "path": "/a"}), "D5"),
    ],
    "D7": [
        Case([RUN, SUB], of("a", SNAPSHOT), None),
        Case([RUN, of("a", SNAPSHOT)], of("b", delta({"op": "add", "path": "/n", "value": 2})), None),
    ],
    "M5": [
        Case([RUN], MESSAGES, None),
        Case([RUN], {**MESSAGES, "messages": [of("a", MESSAGES["messages"][0])]}, None),
        Case([RUN], of("a", MESSAGES), "G4"),
    ],
    "A1": [
        Case([RUN, ACTIVITY], ACTIVITY, None),
        Case([RUN, ACTIVITY], of("a", ACTIVITY), None),
        Case([RUN, of("a", ACTIVITY)], of("a", {**ACTIVITY, "replace": False}), None),
        Case([RUN], of("a", {**ACTIVITY, "replace": False}), None),
        Case([RUN, of("a", ACTIVITY)], {**ACTIVITY, "replace": False}, "A1"),
        Case([RUN, ACTIVITY], of("a", {**ACTIVITY, "replace": False}), "A1"),
        # Without replacing nothing changes hands.
        Case([RUN, of("a", ACTIVITY), of("a", {**ACTIVITY, "replace": False})], of("a", patch()), None),
        Case([RUN, ACTIVITY, of("a", ACTIVITY)], of("a", patch()), None),
    ],
    "A2": [
        Case([RUN, ACTIVITY], patch({"op": "add", "path": "/n", "value": 1}), None),
        Case([RUN, ACTIVITY], patch({"op": "replace", "path": "", "value": {}}), None),
        Case([RUN, ACTIVITY], patch(activityType="another"), None),
        Case([RUN, ACTIVITY, FINISHED, {**RUN, "runId": "next"}], patch(), None),
        Case(
            [RUN, ACTIVITY],
            patch({"op": "replace", "path": "", "value": 5}, {"op": "add", "path": "", "value": {}}),
            None,
        ),
        # A restatement that carries an activity declares all of them, one that carries none says nothing of them (M3, M4).
        Case([RUN, ACTIVITY, MESSAGES], patch(), None),
        Case([RUN, ACTIVITY, {**MESSAGES, "messages": [restated_activity("act")]}], patch(), None),
        Case([RUN, ACTIVITY, {**MESSAGES, "messages": [restated_activity("other")]}], patch(), "A2"),
        Case([RUN], patch(), "A2"),
        Case([RUN, TEXT], patch(messageId="m"), "A2"),
        Case([RUN, ACTIVITY], patch({"op": "replace", "path": "", "value": [1]}), "A2"),
        Case([RUN, ACTIVITY], patch({"op": "remove", "path": ""}), "A2"),
    ],
    "P1": [
        Case([RUN], interrupt("a"), None),
        Case([RUN], interrupt("a", "b"), None),
        Case([RUN], interrupt(), "P1"),
        Case([RUN], interrupt("a", "a"), "P1"),
        Case([RUN, interrupt("a")], TEXT, "L4"),
    ],
    "G1": [
        Case([RUN, SUB, SUB_END], {**SUB, "subagentRunId": "b"}, None),
        Case([RUN, SUB, SUB_END, FINISHED, {**RUN, "runId": "next"}], SUB, None),
        Case([RUN, SUB, SUB_END], SUB, "G2"),
    ],
    "G2": [
        Case([RUN], of("unannounced", TEXT), None),
        Case([RUN, SUB], SUB_END, None),
        Case([RUN, SUB], SUB_ERROR, None),
        Case([RUN, SUB], {**SUB_END, "outcome": {"type": "suspended", "interruptIds": ["i"]}}, None),
        Case([RUN, SUB], {**SUB, "subagentRunId": "b", "parentSubagentRunId": "a"}, None),
        Case([RUN, SUB, SUB_END], {**SUB, "subagentRunId": "b", "parentSubagentRunId": "a"}, None),
        Case([RUN], SUB_END, "G2"),
        Case([RUN], SUB_ERROR, "G2"),
        Case([RUN, SUB], SUB, "G2"),
        Case([RUN, SUB, SUB_ERROR], SUB, "G2"),
        Case([RUN, SUB, SUB_END], SUB_END, "G2"),
        Case([RUN], {**SUB, "parentSubagentRunId": "nobody"}, "G2"),
        Case([RUN, of("a", TEXT)], SUB, "G2"),
        Case([RUN, of("a", CUSTOM)], SUB, "G2"),
        Case([RUN, of("a", SNAPSHOT)], SUB, "G2"),
    ],
    "G3": [
        Case([RUN, of("a", TEXT)], of("a", CONTENT), None),
        Case([RUN, of("a", TEXT)], CONTENT, None),
        Case([RUN, of("a", TEXT), of("b", {**TEXT, "messageId": "n"})], of("a", CONTENT), None),
        Case([RUN, of("a", STEP), STEP], of("a", STEP_END), None),
        Case([RUN, of("a", ACTIVITY)], patch(), None),
        Case([RUN, TEXT], of("a", CONTENT), "G3"),
        Case([RUN, of("a", TEXT)], of("b", CONTENT), "G3"),
        Case([RUN, of("a", TEXT)], of("b", TEXT_END), "G3"),
        Case([RUN, of("a", CALL)], of("b", ARGS), "G3"),
        Case([RUN, CALL], of("b", CALL_END), "G3"),
        Case([RUN, of("a", THOUGHT)], of("b", THINKING), "G3"),
        Case([RUN, of("a", THOUGHT)], of("b", THOUGHT_END), "G3"),
        Case([RUN, of("a", SPAN)], of("b", SPAN_END), "G3"),
        Case([RUN, of("a", STEP)], STEP_END, "G3"),
        Case([RUN, STEP], of("a", STEP_END), "G3"),
        Case([RUN, of("a", ACTIVITY)], of("b", patch()), "G3"),
        Case([RUN, of("a", TEXT), TEXT_END], of("b", TEXT), "G3"),
        # A span and a message in it may share an id, but not under two owners.
        Case([RUN, of("a", SPAN)], of("b", {**THOUGHT, "messageId": "s"}), "G3"),
    ],
    "G4": [
        Case([RUN], of("a", FINISHED), "G4"),
        Case([RUN], of("a", FAILED), "G4"),
        Case([], of("a", RUN), "G4"),
        Case([RUN], of("a", MESSAGES), "G4"),
        Case([RUN], of("a", CUSTOM), None),
    ],
    "X1": [
        *(
            Case([RUN, *sent], {**event, "metadata": {"model": "x", "finish": None}}, None)
            for sent, event in [
                ([], TEXT),
                ([TEXT], CONTENT),
                ([TEXT], TEXT_END),
                ([], CALL),
                ([CALL], ARGS),
                ([CALL], CALL_END),
                ([CALL, CALL_END], RESULT),
                ([], THOUGHT),
                ([], ACTIVITY),
                ([], SNAPSHOT),
                ([], SUB),
                ([], FINISHED),
                ([], FAILED),
            ]
        ),
        Case([RUN], {**TEXT, "metadata": None}, "W6"),
    ],
}
