"""A consumer without HTTP: what it holds, what it hands on, what it rejects."""

import json
from copy import deepcopy
from typing import Any

import pytest
from ag_ui.core import (
    ActivityMessage,
    AssistantMessage,
    RunErrorEvent,
    RunStartedEvent,
    TextMessageContentEvent,
    UserMessage,
)

from statecast.replica import ProtocolViolation, Replica, Truncated

EventDict = dict[str, Any]

RUN: EventDict = {"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0"}
FINISHED: EventDict = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
FAILED: EventDict = {"type": "RUN_ERROR", "message": "It failed.", "code": "x"}
TEXT: EventDict = {"type": "TEXT_MESSAGE_START", "messageId": "m"}
CONTENT: EventDict = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "x"}
TEXT_END: EventDict = {"type": "TEXT_MESSAGE_END", "messageId": "m"}


def snapshot(value: Any) -> EventDict:
    return {"type": "STATE_SNAPSHOT", "snapshot": value}


def delta(*ops: Any) -> EventDict:
    return {"type": "STATE_DELTA", "delta": list(ops)}


def add(path: str, value: Any) -> EventDict:
    return {"op": "add", "path": path, "value": value}


def fed(*events: Any, **options: Any) -> Replica:
    replica = Replica(**options)
    for event in events:
        replica.apply(event)
    return replica


# State


@pytest.mark.parametrize("value", [None, 0, False, "", [], {}, "x", 1.5, [None, {"a": None}], {"a": {"b": []}}])
def test_D1_a_snapshot_replaces_any_state_with_any_state(value: Any) -> None:
    for before in ({}, {"a": 1, "b": 2}, [1], None):
        replica = fed(RUN, snapshot(value), state=before)
        assert replica.state == value
        assert type(replica.state) is type(value)
        assert replica.warnings == []


def test_I1_the_state_starts_as_an_object_or_as_the_inputs() -> None:
    assert Replica().state == {}
    assert Replica(state=None).state is None
    assert Replica(state=[1]).state == [1]


@pytest.mark.parametrize(
    ("before", "ops", "after"),
    [
        ({}, [], {}),
        ({}, [add("/a", None)], {"a": None}),
        ({"a": 1}, [{"op": "replace", "path": "/a", "value": 1.5}], {"a": 1.5}),
        ({"a": [1, 2]}, [add("/a/1", "x"), add("/a/-", "y")], {"a": [1, "x", 2, "y"]}),
        ({"a": 1}, [{"op": "remove", "path": "/a"}], {}),
        ({"a": 1}, [{"op": "move", "from": "/a", "path": "/b"}], {"b": 1}),
        ({"a": {"b": 1}}, [{"op": "copy", "from": "/a", "path": "/c"}, add("/c/b", 2)], {"a": {"b": 1}, "c": {"b": 2}}),
        ({"a": 1}, [{"op": "test", "path": "/a", "value": 1}, add("/b", 1)], {"a": 1, "b": 1}),
        ({"a/b": 1, "~": 2, "": 3}, [add("/a~1b", 0), add("/~0", 0), add("/", 0)], {"a/b": 0, "~": 0, "": 0}),
        ({"a": 1}, [{"op": "replace", "path": "", "value": 5}], 5),
        (5, [{"op": "replace", "path": "", "value": {"a": 1}}], {"a": 1}),
        ([1, 2], [{"op": "remove", "path": "/0", "old": "left over"}], [2]),
    ],
)
def test_D3_a_delta_is_a_patch_of_the_current_state(before: Any, ops: list[Any], after: Any) -> None:
    replica = fed(RUN, delta(*ops), state=before)
    assert replica.state == after
    assert replica.warnings == []


@pytest.mark.parametrize(
    ("before", "ops"),
    [
        ({"a": 1}, [add("/b", 2), {"op": "remove", "path": "/missing"}]),
        ({"a": [1]}, [add("/a/0", 0), add("/a/9", 9)]),
        ({"a": 1}, [add("/b", 2), {"op": "test", "path": "/a", "value": 2}]),
        ({"a": 1}, [add("/a/b", 2)]),
        ({"a": 1}, [add("/x/y", 2)]),
        ({"a": [1]}, [{"op": "replace", "path": "/a/x", "value": 2}]),
        ({"a": [1]}, [{"op": "remove", "path": "/a/-"}]),
        (5, [add("/a", 2)]),
        (None, [add("/a", 2)]),
        ("text", [{"op": "remove", "path": "/0"}]),
        ({"a": 1}, [{"op": "move", "from": "/b", "path": "/c"}]),
        ({"a": {"b": 1}}, [{"op": "move", "from": "/a", "path": "/a/b"}]),
    ],
)
def test_D4_a_patch_that_does_not_fit_changes_nothing(before: Any, ops: list[Any]) -> None:
    replica = fed(RUN, delta(*ops), delta(), state=before)
    assert replica.state == before
    assert len(replica.warnings) == 1
    assert replica.warnings[0].startswith("STATE_DELTA: ")
    replica.apply(snapshot({"fresh": 1}))
    assert replica.state == {"fresh": 1}


def test_D5_operations_of_an_unknown_kind_are_dropped_and_the_rest_applies() -> None:
    replica = fed(RUN, delta({"op": "increment", "path": "/a"}, add("/b", 1)), state={"a": 1})
    assert replica.state == {"a": 1, "b": 1}
    assert [warning.split(":")[0] for warning in replica.warnings] == ["/delta/0"]


@pytest.mark.parametrize("ops", [{}, None, ["x"], [{"path": "/a"}], [{"op": "add", "path": "/a"}], [add("a", 1)]])
def test_D5_malformed_patches_are_fatal(ops: Any) -> None:
    with pytest.raises(ProtocolViolation):
        fed(RUN, {"type": "STATE_DELTA", "delta": ops})


def test_D7_there_is_one_state() -> None:
    sub = {"type": "SUBAGENT_STARTED", "subagentRunId": "a", "name": "x"}
    replica = fed(RUN, sub, {**snapshot({"n": 1}), "subagentRunId": "a"}, delta(add("/m", 2)))
    assert replica.state == {"n": 1, "m": 2}


def test_D8_the_state_outlives_a_run() -> None:
    replica = fed(RUN, snapshot({"n": 1}), FINISHED, {**RUN, "runId": "next"}, delta(add("/m", 2)))
    assert replica.state == {"n": 1, "m": 2}


def test_the_state_shares_nothing_with_events_or_input() -> None:
    given: EventDict = {"deep": {"n": 1}}
    replica = Replica(state=given)
    given["deep"]["n"] = 2
    assert replica.state == {"deep": {"n": 1}}
    event = snapshot({"deep": {"n": 1}})
    replica.apply(RUN)
    [handed] = replica.apply(event)
    event["snapshot"]["deep"]["n"] = 3
    handed.snapshot["deep"]["n"] = 4  # type: ignore[union-attr]
    assert replica.state == {"deep": {"n": 1}}
    value = {"k": 1}
    patch = delta(add("/added", value))
    replica.apply(patch)
    patch["delta"][0]["value"]["k"] = 5
    assert replica.state["added"] == {"k": 1}


def test_a_state_that_was_read_stays_as_it_was() -> None:
    replica = fed(RUN, snapshot({"list": [1]}))
    first = replica.state
    assert replica.state is first
    replica.apply(delta(add("/list/-", 2), add("/n", 1)))
    assert first == {"list": [1]}
    assert replica.state == {"list": [1, 2], "n": 1}
    replica.state["list"].append("mine")
    replica.apply(delta(add("/list/-", 3)))
    assert replica.state == {"list": [1, 2, 3], "n": 1}


# Messages, and what an application gets


def test_messages_begin_as_the_inputs_and_go_on() -> None:
    replica = fed(RUN, TEXT, CONTENT, TEXT_END, messages=[UserMessage(id="1", content="Hello")])
    assert replica.messages == [UserMessage(id="1", content="Hello"), AssistantMessage(id="m", content="x")]


def test_C2_an_application_gets_chunks_written_out_and_nothing_unknown() -> None:
    replica = fed(RUN)
    given = {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "x", "new": 1}
    before = deepcopy(given)
    events = replica.apply(given)
    assert [event.model_dump(mode="json", by_alias=True) for event in events] == [
        {**TEXT, "role": "assistant"},
        CONTENT,
    ]
    assert given == before
    assert replica.apply({"type": "FUTURE"}) == []
    assert [event.type.value for event in replica.apply(FINISHED)] == ["TEXT_MESSAGE_END", "RUN_FINISHED"]
    assert replica.close() == []
    assert [warning.split(":")[0] for warning in replica.warnings] == ["/new", "FUTURE"]


def test_events_come_as_dicts_as_json_and_as_models() -> None:
    model = RunStartedEvent(thread_id="t", run_id="r", protocol_version="1.0")
    replica = fed(
        model, json.dumps(TEXT), json.dumps(CONTENT).encode(), TextMessageContentEvent(message_id="m", delta="y")
    )
    assert replica.messages == [AssistantMessage(id="m", content="xy")]
    assert replica.warnings == []
    replica.apply('{"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "\\ud83d"}')
    replica.apply(TextMessageContentEvent(message_id="m", delta="\udded"))
    assert replica.messages[0].content == "xy\ud83d\udded"


@pytest.mark.parametrize(
    "event", ["", "{", "[]", "5", '"x"', "null", b"\xff", '{"type": "RAW", "event": NaN}', "[1e999]"]
)
def test_what_is_no_event_is_fatal(event: Any) -> None:
    with pytest.raises(ProtocolViolation) as raised:
        fed(RUN, event)
    assert raised.value.rule is None


# How runs end


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (None, "success"),
        ({"type": "success"}, "success"),
        ({"type": "cancelled"}, "cancelled"),
        ({"type": "interrupt", "interrupts": [{"id": "i", "reason": "approve"}]}, "interrupt"),
        ({"type": "a later one"}, "success"),
    ],
)
def test_L3_outcomes(outcome: Any, expected: str) -> None:
    replica = fed(RUN)
    assert replica.outcome is None
    replica.apply(FINISHED if outcome is None else {**FINISHED, "outcome": outcome})
    assert replica.outcome == expected
    assert replica.error is None
    assert [interrupt.id for interrupt in replica.interrupts] == (["i"] if expected == "interrupt" else [])
    assert replica.close() == []


def test_C4_a_run_that_reports_its_failure_is_a_good_stream() -> None:
    replica = fed(RUN, TEXT, CONTENT, snapshot({"n": 1}), FAILED)
    assert replica.outcome is None
    assert isinstance(replica.error, RunErrorEvent)
    assert (replica.error.message, replica.error.code) == ("It failed.", "x")
    assert replica.close() == []
    assert replica.state == {"n": 1}
    assert replica.messages == [AssistantMessage(id="m", content="x")]


def test_L4_a_late_failure_takes_the_success_back() -> None:
    replica = fed(RUN, FINISHED, FAILED)
    assert replica.outcome is None
    assert replica.error is not None
    replica.apply({**RUN, "runId": "next"})
    assert replica.error is None


def test_P1_interrupts_wait_until_a_run_finishes_without() -> None:
    asked = {**FINISHED, "outcome": {"type": "interrupt", "interrupts": [{"id": "i", "reason": "approve"}]}}
    replica = fed(RUN, asked, {**RUN, "runId": "next"}, FAILED)
    assert [interrupt.id for interrupt in replica.interrupts] == ["i"], "the same answer must be sent again"
    replica.apply({**RUN, "runId": "third"})
    replica.apply({**FINISHED, "runId": "third"})
    assert replica.interrupts == []


def test_L7_messages_accumulate_over_runs() -> None:
    second = {**RUN, "runId": "next"}
    replica = fed(RUN, TEXT, CONTENT, TEXT_END, FINISHED, second, TEXT, CONTENT, TEXT_END)
    assert replica.messages == [AssistantMessage(id="m", content="xx")]


@pytest.mark.parametrize(
    "events",
    [[], [RUN], [RUN, TEXT], [RUN, FINISHED, {**RUN, "runId": "next"}]],
    ids=["empty", "started", "open", "second"],
)
def test_W4_a_stream_that_stops_is_truncated(events: list[EventDict]) -> None:
    replica = fed(*events)
    with pytest.raises(Truncated):
        replica.close()
    assert replica.outcome is None
    with pytest.raises(ProtocolViolation):
        replica.apply(RUN)


def test_a_rejected_stream_stays_rejected_and_keeps_what_came_before() -> None:
    replica = fed(RUN, snapshot({"n": 1}), TEXT, CONTENT)
    with pytest.raises(ProtocolViolation) as first:
        replica.apply(TEXT)
    assert first.value.rule == "S1"
    for event in (CONTENT, FINISHED, FAILED):
        with pytest.raises(ProtocolViolation) as later:
            replica.apply(event)
        assert later.value.rule == "S1"
    assert replica.close() == []
    assert replica.state == {"n": 1}
    assert replica.messages == [AssistantMessage(id="m", content="x")]


def test_a_consumer_takes_what_only_binds_a_producer() -> None:
    tool_message = {"type": "TOOL_CALL_RESULT", "messageId": "r", "toolCallId": "never", "content": "x"}
    early = {"type": "ACTIVITY_DELTA", "messageId": "never", "activityType": "x", "patch": []}
    replica = fed(RUN, {**CONTENT, **TEXT, "metadata": {"ag-ui": 1}}, TEXT_END, tool_message, tool_message, early)
    assert [message.id for message in replica.messages] == ["m", "r", "r"]


# Versions


@pytest.mark.parametrize(
    ("declared", "spoken", "warned"),
    [
        (None, "1.0", False),
        ("1.0", "1.0", False),
        ("0.9", "1.0", False),
        ("1.1", "1.0", True),
        ("1.1", "1.1", False),
        ("1.10", "1.9", True),
        ("draft", "1.0", True),
    ],
)
def test_I3_a_newer_producer_is_warned_of(declared: str | None, spoken: str, warned: bool) -> None:
    started = {name: value for name, value in {**RUN, "protocolVersion": declared}.items() if value is not None}
    replica = fed(started, FINISHED, protocol_version=spoken)
    assert [warning.startswith("/protocolVersion: ") for warning in replica.warnings] == [True] * warned


def test_activities_of_the_client_are_kept() -> None:
    held = ActivityMessage(id="a", activity_type="x", content={})
    stated = {"type": "MESSAGES_SNAPSHOT", "messages": []}
    assert fed(RUN, stated, messages=[held, UserMessage(id="1", content="x")]).messages == [held]
