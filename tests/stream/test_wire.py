"""An input is read: what the protocol does not describe goes with a warning, what is wrong is a fault with a pointer."""

import json
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statecast.stream.wire import (
    NotJSON,
    WireError,
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
