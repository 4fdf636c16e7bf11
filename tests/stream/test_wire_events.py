"""An event is read as a consumer has to: unknown material goes by its position, a wrong known value is a fault."""

from copy import deepcopy
from typing import Any

import pytest

from statecast.stream.wire import (
    WireError,
    model_of,
    read_event,
)

INPUT: dict[str, Any] = {"threadId": "t", "runId": "r", "messages": []}


def given_input(**members: Any) -> dict[str, Any]:
    return {**INPUT, **members}


def event(**members: Any) -> dict[str, Any]:
    return members


@pytest.mark.parametrize(
    ("given_event", "expected", "warned"),
    [
        (event(type="FUTURE_EVENT", x=1), None, ["FUTURE_EVENT: "]),
        (event(type="RAW", event=None, new=1), event(type="RAW", event=None), ["/new: "]),
        # An optional place loses the field.
        (
            event(type="RUN_FINISHED", threadId="t", runId="r", outcome={"type": "paused"}),
            event(type="RUN_FINISHED", threadId="t", runId="r"),
            ["/outcome: "],
        ),
        (
            event(type="TEXT_MESSAGE_START", messageId="m", role="narrator"),
            event(type="TEXT_MESSAGE_START", messageId="m"),
            ["/role: "],
        ),
        # In a required place what contains it goes: here the part, which a list holds, and there the event.
        (
            event(
                type="TOOL_CALL_RESULT",
                messageId="m",
                toolCallId="c",
                content=[{"type": "image", "source": {"type": "ftp", "value": "x"}}, {"type": "text", "text": "x"}],
            ),
            event(type="TOOL_CALL_RESULT", messageId="m", toolCallId="c", content=[{"type": "text", "text": "x"}]),
            ["/content/0: "],
        ),
        (
            event(type="REASONING_ENCRYPTED_VALUE", subtype="part", entityId="x", encryptedValue="="),
            None,
            ["REASONING_ENCRYPTED_VALUE: "],
        ),
        # A list loses the element.
        (
            event(type="STATE_DELTA", delta=[{"op": "increment", "path": 5}, {"op": "remove", "path": "/a", "old": 1}]),
            event(type="STATE_DELTA", delta=[{"op": "remove", "path": "/a", "old": 1}]),
            ["/delta/0: "],
        ),
        (
            event(
                type="MESSAGES_SNAPSHOT", messages=[{"id": "1", "role": "narrator"}, {"id": "2", "role": "assistant"}]
            ),
            event(type="MESSAGES_SNAPSHOT", messages=[{"id": "2", "role": "assistant"}]),
            ["/messages/0: "],
        ),
        (
            event(type="RUN_STARTED", threadId="t", runId="r", input=given_input(new=1, state=None)),
            event(type="RUN_STARTED", threadId="t", runId="r", input=INPUT),
            ["/input/new: ", "/input/state: "],
        ),
        # Data, and nulls that older peers send.
        (event(type="STATE_SNAPSHOT", snapshot=None), event(type="STATE_SNAPSHOT", snapshot=None), []),
        (event(type="CUSTOM", name="x", value=None), event(type="CUSTOM", name="x", value=None), []),
        (event(type="RAW", event=1, rawEvent=None), event(type="RAW", event=1), ["/rawEvent: "]),
        (
            event(type="RUN_FINISHED", threadId="t", runId="r", result=None),
            event(type="RUN_FINISHED", threadId="t", runId="r"),
            ["/result: "],
        ),
        (
            event(type="TOOL_CALL_START", toolCallId="c", toolCallName="x", parentMessageId=None),
            event(type="TOOL_CALL_START", toolCallId="c", toolCallName="x"),
            ["/parentMessageId: "],
        ),
    ],
)
def test_C1_what_a_consumer_reads(given_event: Any, expected: Any, warned: list[str]) -> None:
    before = deepcopy(given_event)
    read, warnings = read_event(given_event)
    assert read == expected
    assert len(warnings) == len(warned)
    assert all(warning.startswith(start) for warning, start in zip(warnings, warned, strict=True)), warnings
    assert given_event == before
    if read is not None:
        assert model_of(read).model_dump(mode="json", by_alias=True) == read


@pytest.mark.parametrize(
    ("given_event", "expected"),
    [
        (5, [""]),
        ([], [""]),
        ({}, ["/type"]),
        (event(type=5), ["/type"]),
        (event(type=None), ["/type"]),
        (event(type=""), ["/type"]),
        (event(type="TEXT_MESSAGE_CONTENT", messageId=5, delta="x"), ["/messageId"]),
        (event(type="TEXT_MESSAGE_CONTENT", messageId="m"), ["/delta"]),
        (event(type="TEXT_MESSAGE_CONTENT", messageId="m", delta=None), ["/delta"]),
        (event(type="REASONING_MESSAGE_START", messageId="m", role="assistant"), ["/role"]),
        (event(type="RUN_FINISHED", threadId="t", runId="r", outcome=["success"]), ["/outcome"]),
        (event(type="RUN_FINISHED", threadId="t", runId="r", outcome={}), ["/outcome/type"]),
        (
            event(type="RUN_FINISHED", threadId="t", runId="r", outcome={"type": "interrupt", "interrupts": []}),
            ["/outcome/interrupts"],
        ),
        (event(type="RAW", event=1, timestamp="5"), ["/timestamp"]),
        (event(type="RAW", event=1, timestamp=1.5), ["/timestamp"]),
        (event(type="RAW", event=1, timestamp=True), ["/timestamp"]),
        (event(type="RAW", event=1, timestamp=2**53), ["/timestamp"]),
        (event(type="RAW", event=1, timestamp=None), ["/timestamp"]),
        (event(type="RAW", event=1, metadata=None), ["/metadata"]),
        (event(type="RAW", event=1, metadata=[]), ["/metadata"]),
        (event(type="RAW"), ["/event"]),
        (event(type="ACTIVITY_SNAPSHOT", messageId="m", activityType="x", content=[]), ["/content"]),
        (event(type="ACTIVITY_SNAPSHOT", messageId="m", activityType="x", content={}, replace="no"), ["/replace"]),
        (event(type="STATE_DELTA", delta=None), ["/delta"]),
        (event(type="STATE_DELTA", delta=["x"]), ["/delta/0"]),
        (event(type="STATE_DELTA", delta=[{"path": "/a"}]), ["/delta/0/op"]),
        (event(type="STATE_DELTA", delta=[{"op": "odd", "path": ""}, {"op": "add", "path": "/a"}]), ["/delta/1/value"]),
        (
            event(type="STATE_DELTA", delta=[{"op": "odd", "path": ""}, {"op": "remove", "path": "a"}]),
            ["/delta/1/path"],
        ),
        (event(type="STATE_DELTA", delta=[{"op": "move", "path": "/a"}]), ["/delta/0/from"]),
        (
            event(type="RUN_FINISHED", threadId="t", runId="r", usage=[{"inputTokens": "5"}, {"outputTokens": -1}]),
            ["/usage/0/inputTokens"],
        ),
        (event(type="RUN_FINISHED", threadId="t", runId="r", usage=[{"outputTokens": -1}]), ["/usage/0/outputTokens"]),
        (event(type="RUN_FINISHED", threadId="t", runId="r", outcome={"type": "paused"}, usage=5), ["/usage"]),
        (
            event(type="RUN_STARTED", threadId="t", runId="r", input={"threadId": "t"}),
            ["/input/messages", "/input/runId"],
        ),
    ],
)
def test_malformed_events_are_faults(given_event: Any, expected: list[str]) -> None:
    with pytest.raises(WireError) as raised:
        read_event(given_event)
    assert [fault.pointer for fault in raised.value.faults] == expected


def test_a_whole_number_is_an_integer_however_it_is_written() -> None:
    read, _ = read_event(event(type="RAW", event=1, timestamp=5.0))
    assert read is not None
    assert model_of(read).timestamp == 5
