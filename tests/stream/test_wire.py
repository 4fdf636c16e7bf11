"""What arrives is read: what the protocol does not describe goes with a warning, what is wrong is a fault with a pointer."""

import json
import math
import re
from contextlib import suppress
from copy import deepcopy
from datetime import date, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, Field, HttpUrl, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from statecast.stream.wire import (
    Fault,
    NotJSON,
    WireError,
    faults_of,
    model_of,
    read_event,
    read_input,
    read_json,
    version_warning,
)

INPUT: dict[str, Any] = {"threadId": "t", "runId": "r", "messages": []}
SECRET = "hunter2"


def given_input(**members: Any) -> dict[str, Any]:
    return {**INPUT, **members}


def faults(data: Any) -> list[tuple[str, str]]:
    with pytest.raises(WireError) as raised:
        read_input(data)
    return [(fault.pointer, fault.type) for fault in raised.value.faults]


# Bytes to JSON


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'{"a": [1, 1.5, true, null, "x"]}', {"a": [1, 1.5, True, None, "x"]}),
        (b"\xef\xbb\xbf[]", []),
        ('"é日🧭"'.encode(), "é日🧭"),
        (b'"\\ud83e\\udded"', "🧭"),
        (b'"half \\ud83d"', "half \ud83d"),
        (b'{"\\udded": "\\udded\\ud83e"}', {"\udded": "\udded\ud83e"}),
        (b'{"a": 1, "a": 2}', {"a": 2}),
        (b'{"a": "\\ud83d", "a": 2}', {"a": 2}),
        (b"1e308", 1e308),
        (b"-0.0", -0.0),
        (b"9007199254740993", 9007199254740993),
        (b'"e999 and 1e999"', "e999 and 1e999"),
        (b" \n[ ]\t", []),
    ],
)
def test_json_is_read(body: bytes, value: Any) -> None:
    read = read_json(body)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"  ",
        b"{",
        b"{'a': 1}",
        b"[1,]",
        b"NaN",
        b"[Infinity]",
        b'{"a": -Infinity}',
        b'["\\ud83d", NaN]',
        b'"\xff"',
        b'"\xed\xa0\xbd"',
        b'\xff\xfe"\x00a\x00"\x00',
        b"{} {}",
        b'"a\nb"',
        b'["\\ud83d", "\xff"]',
        b"9" * 5000,
        b'"\\ud83d" 9',
        b"\xef\xbb\xbf\xef\xbb\xbf[]",
    ],
)
def test_what_is_not_json(body: bytes) -> None:
    with pytest.raises(NotJSON):
        read_json(body)


@pytest.mark.parametrize("escape", [b"", b'"\\ud83d",'], ids=["quick", "slow"])
@pytest.mark.parametrize("brackets", [(b"[", b"]"), (b'{"a":', b"}")], ids=["lists", "objects"])
def test_nesting_has_a_limit_that_both_parsers_keep(escape: bytes, brackets: tuple[bytes, bytes]) -> None:
    def nested(levels: int) -> bytes:
        return b"[" + escape + brackets[0] * levels + b"1" + brackets[1] * levels + b"]"

    read_json(nested(190))
    for levels in (201, 5000, 200_000):
        with pytest.raises(NotJSON):
            read_json(nested(levels))


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        (b"1e999", [""]),
        (b'{"a": [0, -1E+0999]}', ["/a/1"]),
        (b'{"a/b": {"~": 1e400}, "c": 1e400}', ["/a~1b/~0", "/c"]),
        (b"[" + b"1" * 400 + b".0]", ["/0"]),
        (b'["\\ud83d", 1e999]', ["/1"]),
        (b"[" + b"9" * 250 + b"e99]", ["/0"]),
    ],
)
def test_numbers_out_of_range_are_faults(body: bytes, pointers: list[str]) -> None:
    with pytest.raises(WireError) as raised:
        read_json(body)
    assert [fault.pointer for fault in raised.value.faults] == pointers


def test_large_integers_are_read() -> None:
    assert read_json(b"1" * 400) == int("1" * 400)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ANYTHING)
def test_what_json_dumps_writes_is_read_as_it_was(value: Any) -> None:
    body = json.dumps(value).encode()
    if re.search(rb"NaN|Infinity", re.sub(rb'"(\\.|[^"\\])*"', b"", body)):
        with pytest.raises(NotJSON):
            read_json(body)
    else:
        assert json.dumps(read_json(body)) == json.dumps(value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["id", "role", "content", "x"]), inner),
    max_leaves=8,
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()) | st.text().map(str.encode))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    with suppress(NotJSON, WireError):
        read_input(read_json(body))


# Inputs

FULL: dict[str, Any] = {
    "threadId": "t",
    "runId": "r",
    "protocolVersion": "1.0",
    "parentRunId": "p",
    "state": {"any": [None, {"thing": 1}]},
    "messages": [
        {"id": "1", "role": "developer", "content": "x", "name": "Ada", "metadata": {"a": None}},
        {"id": "2", "role": "system", "content": "x", "encryptedValue": "="},
        {"id": "3", "role": "user", "content": "x", "subagentRunId": "s"},
        {
            "id": "4",
            "role": "user",
            "content": [
                {"type": "text", "text": "x", "id": "p", "metadata": [1]},
                {"type": "image", "source": {"type": "data", "value": "=", "mimeType": "image/png"}},
                {"type": "audio", "source": {"type": "url", "value": "https://x.example"}},
                {"type": "video", "source": {"type": "file", "value": "file-1", "provider": "x"}},
                {"type": "document", "source": {"type": "url", "value": "x", "mimeType": "text/plain"}},
            ],
        },
        {
            "id": "5",
            "role": "assistant",
            "content": "x",
            "toolCalls": [
                {
                    "id": "c",
                    "type": "function",
                    "function": {"name": "search", "arguments": "{"},
                    "encryptedValue": "=",
                    "metadata": {},
                }
            ],
        },
        {"id": "6", "role": "assistant"},
        {"id": "7", "role": "tool", "toolCallId": "c", "content": "x", "error": "no"},
        {"id": "8", "role": "tool", "toolCallId": "c", "content": [{"type": "text", "text": ""}]},
        {"id": "9", "role": "activity", "activityType": "x", "content": {"any": {"thing": None}}},
        {"id": "10", "role": "reasoning", "content": "x", "encryptedValue": "="},
    ],
    "tools": [{"name": "confirm", "description": "Asks.", "parameters": {"type": "object"}, "metadata": {"a": 1}}],
    "context": [{"description": "x", "value": "y"}],
    "forwardedProps": {"any": [None]},
    "resume": [{"interruptId": "i", "status": "resolved", "payload": {"any": None}, "metadata": {}}],
}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All places of a JSON value, the root first."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, one in inner for place in places(one, (*path, key)))]


def get(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def pointer(path: tuple[Any, ...]) -> str:
    return "".join(f"/{key}" for key in path)


OPEN = [
    ("state",),
    ("forwardedProps",),
    ("messages", 0, "metadata"),
    ("messages", 3, "content", 0, "metadata"),
    ("messages", 4, "toolCalls", 0, "metadata"),
    ("messages", 8, "content"),
    ("tools", 0, "parameters"),
    ("tools", 0, "metadata"),
    ("resume", 0, "payload"),
    ("resume", 0, "metadata"),
]
CLOSED = [path for path in places(FULL) if not any(path[: len(one)] == one for one in OPEN)]
OBJECTS = [path for path in CLOSED if isinstance(get(FULL, path), dict)]
LEAVES = [path for path in CLOSED if not isinstance(get(FULL, path), (dict, list))]


def test_a_full_input_is_read_as_it_is() -> None:
    read, warnings = read_input(FULL)
    assert warnings == []
    assert read.model_dump(mode="json", by_alias=True) == FULL
    assert read.state is FULL["state"]


@pytest.mark.parametrize("path", OBJECTS, ids=pointer)
def test_I2_unknown_members_go_at_every_depth(path: tuple[Any, ...]) -> None:
    data = deepcopy(FULL)
    get(data, path)["newMember"] = {"deep": 1}
    read, warnings = read_input(data)
    assert warnings == [f"{pointer(path)}/newMember: removed, the protocol does not describe it"]
    assert read.model_dump(mode="json", by_alias=True) == FULL


@pytest.mark.parametrize("path", OPEN, ids=pointer)
def test_open_places_keep_everything(path: tuple[Any, ...]) -> None:
    data = deepcopy(FULL)
    holder = get(data, path[:-1])
    holder[path[-1]] = {"newMember": {"deep": [None]}, "": 1}
    read, warnings = read_input(data)
    assert warnings == []
    assert read.model_dump(mode="json", by_alias=True) == data


@pytest.mark.parametrize("path", LEAVES, ids=pointer)
@pytest.mark.parametrize(
    "wrong", [5, 1.5, True, [SECRET], {SECRET: SECRET}], ids=["int", "float", "bool", "list", "object"]
)
def test_I2_known_members_of_a_wrong_kind_are_faults(path: tuple[Any, ...], wrong: Any) -> None:
    data = deepcopy(FULL)
    get(data, path[:-1])[path[-1]] = wrong
    with pytest.raises(WireError) as raised:
        read_input(data)
    found = raised.value.faults
    # Of a content the list may be right and its elements wrong.
    assert [fault.pointer for fault in found] == [pointer(path)] or found[0].pointer == pointer((*path, 0))
    assert SECRET not in str(raised.value)
    assert SECRET not in str(found)


@pytest.mark.parametrize("path", [path for path in CLOSED if path and not isinstance(path[-1], int)], ids=pointer)
def test_null_is_absent_in_optional_places(path: tuple[Any, ...]) -> None:
    data, without = deepcopy(FULL), deepcopy(FULL)
    get(data, path[:-1])[path[-1]] = None
    del get(without, path[:-1])[path[-1]]
    try:
        expected = read_input(without)
    except WireError:
        with pytest.raises(WireError):
            read_input(data)
    else:
        assert read_input(data) == expected


def test_I1_a_null_state_is_not_an_absent_one() -> None:
    absent, _ = read_input(INPUT)
    null, _ = read_input(given_input(state=None))
    assert "state" not in absent.model_fields_set
    assert "state" in null.model_fields_set
    assert null.state is None


@pytest.mark.parametrize("missing", ["threadId", "runId", "messages"])
def test_I1_required_members(missing: str) -> None:
    data = {name: value for name, value in INPUT.items() if name != missing}
    assert faults(data) == [(f"/{missing}", "missing")]


def test_I1_lists_may_be_absent() -> None:
    read, warnings = read_input(INPUT)
    assert not read.tools
    assert not read.context
    assert warnings == []


def test_I2_unknown_members_of_unions_in_a_list_go() -> None:
    messages = [
        {"id": "1", "role": "narrator", "content": 5},
        {"id": "2", "role": "user", "content": [{"type": "hologram"}, {"type": "text", "text": "x", "new": 1}]},
    ]
    read, warnings = read_input(given_input(messages=messages))
    assert [warning.split(":")[0] for warning in warnings] == [
        "/messages/0",
        "/messages/1/content/0",
        "/messages/1/content/1/new",
    ]
    assert [message.model_dump(by_alias=True) for message in read.messages] == [
        {"id": "2", "role": "user", "content": [{"type": "text", "text": "x"}]}
    ]


def test_I2_an_unknown_source_is_a_fault() -> None:
    part = {"type": "image", "source": {"type": SECRET, "value": "x"}}
    data = given_input(messages=[{"id": "1", "role": "user", "content": [part]}])
    assert faults(data) == [("/messages/0/content/0/source", "unknown_kind")]


def test_faults_name_places_of_the_body_that_was_sent() -> None:
    messages = [{"id": "1", "role": "narrator"}, {"id": "2", "role": "user", "content": 5}]
    assert faults(given_input(messages=messages)) == [("/messages/1/content", "list_type")]


@pytest.mark.parametrize("data", [None, [], "x", 5, True])
def test_an_input_is_an_object(data: Any) -> None:
    assert faults(data) == [("", "dict_type")]


def test_names_are_the_wires() -> None:
    read, warnings = read_input(given_input(parent_run_id="p", forwarded_props=1))
    assert read.parent_run_id is None
    assert read.forwarded_props is None
    assert [warning.split(":")[0] for warning in warnings] == ["/parent_run_id", "/forwarded_props"]
    assert faults({"thread_id": "t", "run_id": "r", "messages": []}) == [
        ("/runId", "missing"),
        ("/threadId", "missing"),
    ]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"role": "user", "content": "x"}, [("/messages/0/id", "missing")]),
        ({"id": "1", "content": "x"}, [("/messages/0/role", "missing")]),
        ({"id": "1", "role": 5}, [("/messages/0/role", "string_type")]),
        ({"id": "1", "role": "user"}, [("/messages/0/content", "missing")]),
        ({"id": "1", "role": "tool", "content": "x"}, [("/messages/0/toolCallId", "missing")]),
        ({"id": "1", "role": "user", "content": ["x"]}, [("/messages/0/content/0", "dict_type")]),
        ({"id": "1", "role": "user", "content": [{"type": "text"}]}, [("/messages/0/content/0/text", "missing")]),
        (
            {"id": "1", "role": "assistant", "toolCalls": [{"id": "c", "type": "other", "function": {"name": "x"}}]},
            [
                ("/messages/0/toolCalls/0/type", "literal_error"),
                ("/messages/0/toolCalls/0/function/arguments", "missing"),
            ],
        ),
        ("x", [("/messages/0", "dict_type")]),
        (None, [("/messages/0", "dict_type")]),
    ],
)
def test_faults_of_a_message(message: Any, expected: list[tuple[str, str]]) -> None:
    assert faults(given_input(messages=[message])) == expected


def test_an_unknown_answer_is_a_fault_and_not_dropped() -> None:
    resume = [{"interruptId": "i", "status": "postponed"}]
    assert faults(given_input(resume=resume)) == [("/resume/0/status", "literal_error")]


def test_many_faults_and_warnings_are_cut_short() -> None:
    assert len(faults(given_input(messages=[{}] * 1000))) == 100
    _, warnings = read_input(given_input(messages=[{"role": "narrator"}] * 1000))
    assert len(warnings) == 101
    assert "900 more" in warnings[-1]


def test_names_from_outside_are_safe_in_a_log() -> None:
    _, warnings = read_input(given_input(**{"a\nFAKE LINE\x1b\ud83d": 1, "x" * 5000: 1}))
    assert all(warning.isprintable() and len(warning) < 300 for warning in warnings)
    assert warnings[0].startswith("/a\\nFAKE LINE\\x1b\\ud83d")


def test_nothing_that_was_given_is_changed() -> None:
    data = {**deepcopy(FULL), "new": 1}
    data["messages"].append({"id": "x", "role": "narrator"})
    before = deepcopy(data)
    read_input(data)
    assert data == before


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_damage_is_read_or_refused(data: st.DataObject) -> None:
    given_data = deepcopy(FULL)
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(places(given_data)[1:]))
        holder = get(given_data, path[:-1])
        if data.draw(st.booleans()):
            holder[path[-1]] = data.draw(JSON)
        else:
            del holder[path[-1]]
    try:
        read, warnings = read_input(given_data)
    except WireError as error:
        every = {pointer(place) for place in places(given_data)}
        pointers = [fault.pointer for fault in error.faults]
        assert len(set(pointers)) == len(pointers) > 0
        # A place of the body, or of a member that is missing in one.
        assert all(one in every or one.rpartition("/")[0] in every for one in pointers)
    else:
        assert all(warning.startswith("/") for warning in warnings)
        assert read_input(read.model_dump(mode="json", by_alias=True))[1] == []


@pytest.mark.parametrize(
    ("declared", "warned"),
    [
        (None, False),
        ("1.0", False),
        ("0.9", False),
        ("0.99", False),
        ("1.1", True),
        ("1.10", True),
        ("2.0", True),
        ("10.0", True),
        ("01.0", False),
        ("", True),
        ("1", True),
        ("1.0.0", True),
        ("draft", True),
        ("١.٠", True),
        ("1.0\n", True),
        ("9" * 5000 + ".0", True),
    ],
)
def test_I3_newer_and_unreadable_versions_are_served_with_a_warning(declared: str | None, warned: bool) -> None:
    _, warnings = read_input(given_input(protocolVersion=declared))
    assert [warning.startswith("/protocolVersion: ") for warning in warnings] == [True] * warned
    assert all(len(warning) < 200 for warning in warnings)


def test_versions_are_numbers() -> None:
    assert version_warning("1.9", "1.10") is None
    assert version_warning("1.11", "1.10") is not None


# Events


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


# Faults of an application's own models


class Inner(BaseModel):
    count: Annotated[int, AfterValidator(lambda value: _refuse())]


class Outer(BaseModel):
    kind: Literal["outer"] = "outer"
    inner: Inner | None = None
    either: int | list[Inner] = 0


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


def _refuse() -> int:
    raise ValueError(f"bad {SECRET}")


def _custom(value: str) -> str:
    raise PydanticCustomError("secret_error", f"bad {SECRET}")


def errors(kind: Any, data: Any, **options: Any) -> list[Fault]:
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(kind).validate_python(data)
    return faults_of(raised.value, data, **options)


def test_texts_of_validators_are_hidden_unless_debug() -> None:
    data = {"inner": {"count": 1}}
    assert errors(Outer, data) == [Fault("/inner/count", "Invalid value", "value_error")]
    assert SECRET in errors(Outer, data, debug=True)[0].message


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (Annotated[str, AfterValidator(_custom)], "x"),
        (UUID, SECRET),
        (date, SECRET),
        (timedelta, SECRET),
        (HttpUrl, f"https://{SECRET}:x"),
        (Annotated[Cat | Dog, Field(discriminator="kind")], {"kind": SECRET}),
    ],
    ids=["custom", "uuid", "date", "timedelta", "url", "tag"],
)
def test_no_fault_holds_a_value(kind: Any, data: Any) -> None:
    assert SECRET not in str(errors(kind, data))


def test_branches_of_unions_are_not_in_pointers() -> None:
    assert [fault.pointer for fault in errors(Outer, {"either": [{"count": "x"}]})] == ["/either/0/count"]
    assert [fault.pointer for fault in errors(Outer, {"either": "x"}, at="/state")] == ["/state/either"]


def test_one_fault_for_each_place() -> None:
    assert len(errors(int | list[int] | dict[str, int], "x")) == 1


def test_nothing_infinite_is_left_after_reading() -> None:
    value = read_json(b'{"a": 1e308, "b": [0.1, -1e308]}')
    assert all(math.isfinite(number) for number in (value["a"], *value["b"]))
