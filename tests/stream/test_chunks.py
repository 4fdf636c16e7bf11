"""Chunk events are written out as start, content and end (S5)."""

from copy import deepcopy
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statecast.errors import SequenceError
from statecast.stream.chunks import Expander
from stream_support import legal_stream

EventDict = dict[str, Any]


def text(id: str | None = None, delta: str | None = None, **fields: Any) -> EventDict:
    return chunk("TEXT_MESSAGE_CHUNK", messageId=id, delta=delta, **fields)


def call(id: str | None = None, name: str | None = None, delta: str | None = None, **fields: Any) -> EventDict:
    return chunk("TOOL_CALL_CHUNK", toolCallId=id, toolCallName=name, delta=delta, **fields)


def thought(id: str | None = None, delta: str | None = None, **fields: Any) -> EventDict:
    return chunk("REASONING_MESSAGE_CHUNK", messageId=id, delta=delta, **fields)


def chunk(type: str, **fields: Any) -> EventDict:
    return {"type": type, **{name: value for name, value in fields.items() if value is not None}}


def of(owner: str, event: EventDict) -> EventDict:
    return {**event, "subagentRunId": owner}


def expanded(*events: EventDict) -> list[EventDict]:
    expander = Expander()
    given = deepcopy(events)
    made = [one for event in events for one in expander.feed(event)]
    assert events == given, "what is fed is not changed"
    return made


def short(events: list[EventDict]) -> list[str]:
    """Events in a few letters: `start m`, `"text" m`, `end m@owner`."""
    words = {"START": "start", "END": "end"}
    made = []
    for event in events:
        id = event.get("messageId", event.get("toolCallId"))
        what = words.get(event["type"].rpartition("_")[2], repr(event.get("delta", event["type"])))
        owner = f"@{event['subagentRunId']}" if "subagentRunId" in event else ""
        made.append(f"{what} {id}{owner}" if id is not None else event["type"] + owner)
    return made


START = {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}
CUSTOM = {"type": "CUSTOM", "name": "x", "value": 1}
RAW = {"type": "RAW", "event": 1}


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([text("m", "a"), text("m", "b")], ["start m", "'a' m", "'b' m"], id="continued by its id"),
        pytest.param([text("m", "a"), text(delta="b")], ["start m", "'a' m", "'b' m"], id="continued by nothing"),
        pytest.param([text("m"), text(delta="")], ["start m", "'' m"], id="an empty delta is one"),
        pytest.param(
            [text("m", "a"), text("n", "b")], ["start m", "'a' m", "end m", "start n", "'b' n"], id="another id"
        ),
        pytest.param(
            [text("m", "a"), call("c", "x", "{")], ["start m", "'a' m", "end m", "start c", "'{' c"], id="another kind"
        ),
        pytest.param([call("c", "x"), call(delta="{}")], ["start c", "'{}' c"], id="a call"),
        pytest.param([thought("t", "a"), thought(delta="b")], ["start t", "'a' t", "'b' t"], id="reasoning"),
        pytest.param(
            [thought("x", "a"), text("x", "b")], ["start x", "'a' x", "end x", "start x", "'b' x"], id="one id"
        ),
        pytest.param([text("m", "a"), CUSTOM], ["start m", "'a' m", "end m", "CUSTOM"], id="ended by a custom event"),
        pytest.param(
            [text("m", "a"), RAW, text(delta="b")], ["start m", "'a' m", "RAW", "'b' m"], id="not by a raw one"
        ),
        pytest.param(
            [text("m"), CUSTOM, text("m", "b")], ["start m", "end m", "CUSTOM", "start m", "'b' m"], id="reopened"
        ),
        pytest.param([CUSTOM, RAW, START], ["CUSTOM", "RAW", "start m"], id="no chunks"),
        pytest.param(
            [of("a", text("x", "1")), of("b", thought("x", "2"))],
            ["start x@a", "'1' x@a", "start x@b", "'2' x@b"],
            id="one id of two kinds in two lanes",
        ),
        # Lanes.
        pytest.param(
            [of("a", text("m", "1")), of("b", text("n", "2")), of("a", text(delta="3")), of("b", text(delta="4"))],
            ["start m@a", "'1' m@a", "start n@b", "'2' n@b", "'3' m@a", "'4' n@b"],
            id="two subagents side by side",
        ),
        pytest.param(
            [of("a", text("m", "1")), text("n", "2"), text(delta="3"), of("a", text(delta="4"))],
            ["start m@a", "'1' m@a", "start n", "'2' n", "'3' n", "'4' m@a"],
            id="untagged is the parent's",
        ),
        pytest.param(
            [of("a", text("m", "1")), text(delta="2")], ["start m@a", "'1' m@a", "'2' m@a"], id="or the only one open"
        ),
        pytest.param(
            [of("a", text("m", "1")), call("c", "x"), text(delta="2")],
            ["start m@a", "'1' m@a", "start c", "'2' m@a"],
            id="the only one of its kind",
        ),
        pytest.param(
            [of("a", text("m", "1")), of("b", text("n")), text("m", "2")],
            ["start m@a", "'1' m@a", "start n@b", "'2' m@a"],
            id="an id names its lane",
        ),
        pytest.param(
            [of("a", text("m")), CUSTOM, of("a", text(delta="2"))],
            ["start m@a", "CUSTOM", "'2' m@a"],
            id="another lane's event ends nothing",
        ),
        pytest.param(
            [of("a", text("m")), of("a", CUSTOM)], ["start m@a", "end m@a", "CUSTOM@a"], id="its own lane's does"
        ),
        pytest.param(
            [of("a", text("m")), text("n"), {"type": "RUN_FINISHED"}],
            ["start m@a", "start n", "end m@a", "end n", "RUN_FINISHED"],
            id="a run's event ends all",
        ),
        pytest.param(
            [of("a", text("m")), text("n"), of("a", {"type": "SUBAGENT_FINISHED"})],
            ["start m@a", "start n", "end m@a", "SUBAGENT_FINISHED@a"],
            id="a subagent's end ends its own",
        ),
    ],
)
def test_S5_chunks_are_written_out(events: list[EventDict], expected: list[str]) -> None:
    assert short(expanded(*events)) == expected


ENDING = [
    *("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "TOOL_CALL_START", "TOOL_CALL_ARGS"),
    *("TOOL_CALL_END", "TOOL_CALL_RESULT", "STATE_SNAPSHOT", "STATE_DELTA", "CUSTOM", "STEP_STARTED", "STEP_FINISHED"),
    *("REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END"),
    *("REASONING_END", "RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "MESSAGES_SNAPSHOT"),
]
KEEPING = ["RAW", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "REASONING_ENCRYPTED_VALUE", "SUBAGENT_STARTED"]


@pytest.mark.parametrize(("type", "ends"), [(type, True) for type in ENDING] + [(type, False) for type in KEEPING])
def test_S5_what_ends_an_item(type: str, ends: bool) -> None:
    end = {"type": "TEXT_MESSAGE_END", "messageId": "m"}
    event = {"type": type}
    assert expanded(text("m"), event)[1:] == ([end, event] if ends else [event])


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (text("m", "x"), {"role": "assistant"}),
        (text("m", "x", role="user", name="Ada"), {"role": "user", "name": "Ada"}),
        (call("c", "search", "x", parentMessageId="p"), {"toolCallName": "search", "parentMessageId": "p"}),
        (thought("t", "x"), {"role": "reasoning"}),
    ],
)
def test_the_start_carries_what_describes_the_item(event: EventDict, expected: EventDict) -> None:
    start, content = expanded(event)
    id_name = "toolCallId" if "toolCallId" in event else "messageId"
    kind = event["type"].removesuffix("_CHUNK")
    assert start == {"type": f"{kind}_START", id_name: event[id_name], **expected}
    assert content == {
        "type": f"{kind}_{'ARGS' if kind == 'TOOL_CALL' else 'CONTENT'}",
        id_name: event[id_name],
        "delta": "x",
    }


def test_X1_metadata_reaches_the_item_of_its_chunk_and_no_other() -> None:
    first, second = {"a": 1}, {"b": 2}
    events = expanded(text("m", "x", metadata=first), text(metadata=second), text("n", metadata=first), CUSTOM)
    assert [(event["type"], event.get("metadata")) for event in events] == [
        ("TEXT_MESSAGE_START", first),
        ("TEXT_MESSAGE_CONTENT", first),
        ("TEXT_MESSAGE_CONTENT", second),
        ("TEXT_MESSAGE_END", None),
        ("TEXT_MESSAGE_START", first),
        ("TEXT_MESSAGE_END", None),
        ("CUSTOM", None),
    ]
    assert events[2]["delta"] == ""


def test_a_providers_event_rides_on_the_content() -> None:
    start, content = expanded(text("m", rawEvent={"x": 1}, timestamp=5))
    assert "rawEvent" not in start
    assert content == {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "", "rawEvent": {"x": 1}}


@pytest.mark.parametrize(
    ("before", "event"),
    [
        pytest.param([], text(delta="x"), id="a first chunk without its id"),
        pytest.param([], call(name="x", delta="{"), id="a first call without its id"),
        pytest.param([], call("c", delta="{"), id="a first call without its name"),
        pytest.param([], thought(delta="x"), id="first reasoning without its id"),
        pytest.param([], of("a", text(delta="x")), id="a tag without an open item"),
        pytest.param([text("m"), CUSTOM], text(delta="x"), id="after it was ended"),
        pytest.param([text("m")], thought(delta="x"), id="another kind is open"),
        pytest.param([text("m")], text("m", role="user"), id="a role that an absent one contradicts"),
        pytest.param([text("m", role="user")], text(role="assistant"), id="another role"),
        pytest.param([text("m", name="Ada")], text(name="Bob"), id="another name"),
        pytest.param([text("m")], text(name="Ada"), id="a name that was not there"),
        pytest.param([call("c", "x")], call(name="y"), id="another tool"),
        pytest.param([call("c", "x")], call(parentMessageId="p"), id="a parent that was not there"),
        pytest.param([of("a", text("m"))], of("b", text("m", "x")), id="somebody else's"),
        pytest.param([text("m")], of("b", text("m", "x")), id="the parent's"),
        pytest.param([of("a", text("m")), of("b", text("n"))], text(delta="x"), id="one of two"),
    ],
)
def test_S5_what_is_fatal(before: list[EventDict], event: EventDict) -> None:
    expander = Expander()
    for one in before:
        list(expander.feed(one))
    open_before = deepcopy(expander.__dict__)
    with pytest.raises(SequenceError) as raised:
        list(expander.feed(event))
    assert raised.value.rule == "S5"
    assert expander.__dict__ == open_before


def test_S5_identical_repeats_are_legal() -> None:
    one = call("c", "search", "x", parentMessageId="p")
    assert short(expanded(one, one)) == ["start c", "'x' c", "'x' c"]


def test_an_event_that_a_later_stage_refuses_leaves_no_trace() -> None:
    expander = Expander()
    for one in expander.feed(text("m", "x")):
        assert one["type"] == "TEXT_MESSAGE_START"
        break  # the start is refused
    assert expander.close() == []
    list(expander.feed(text("m", "x")))
    for one in expander.feed(CUSTOM):
        assert one["type"] == "TEXT_MESSAGE_END"
        break
    assert short(expander.close()) == ["end m"]


def test_close_ends_all_lanes_or_one() -> None:
    expander = Expander()
    for event in (text("m"), of("a", text("n")), of("b", call("c", "x"))):
        list(expander.feed(event))
    assert short(expander.close("a")) == ["end n@a"]
    assert expander.close("a") == expander.close("nobody") == []
    assert short(expander.close()) == ["end m", "end c@b"]
    assert expander.close() == []


def test_without_open_items_an_event_passes_as_it_is() -> None:
    expander = Expander()
    [same] = expander.feed(CUSTOM)
    assert same is CUSTOM


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32).map(Random))
def test_expanding_what_has_no_chunks_changes_nothing(random: Random) -> None:
    stream = legal_stream(random)
    expander = Expander()
    once = [one for event in stream for one in expander.feed(event)]
    assert not any(event["type"].endswith("_CHUNK") for event in once)
    assert expanded(*once) == once
    given_events = {id(event) for event in stream}
    assert [event for event in once if id(event) in given_events] == [
        event for event in stream if not event["type"].endswith("_CHUNK")
    ]
