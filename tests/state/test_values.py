"""Which values may stand in a state, what they are in JSON, and what the others are told."""

import asyncio
import dataclasses
import enum
import json
import math
from collections import Counter, OrderedDict, UserDict, UserList, defaultdict, deque, namedtuple
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from ipaddress import ip_address
from pathlib import Path, PurePosixPath
from types import MappingProxyType, SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from pydantic import AnyUrl, BaseModel, Field, SecretBytes, SecretStr
from pydantic.dataclasses import dataclass as pydantic_dataclass

from state_support import Consumer, plain, text
from statecast import StateError
from statecast.state import Delta, Document, State, TrackedDict, TrackedList, encode_json


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Key(str, enum.Enum):  # noqa: UP042
    A = "a"


class Name(str):
    def __str__(self) -> str:
        return "not the value"


class Count(int):
    pass


class Ratio(float):
    pass


class Row(BaseModel):
    first: int = Field(1, alias="firstOne")
    inner: dict[str, Any] = {}


@dataclasses.dataclass
class Point:
    x: int = 1
    tags: set[str] = dataclasses.field(default_factory=set)


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    x: int = 1


@pydantic_dataclass
class Checked:
    when: date = date(2026, 1, 2)


class Numbered(State):
    id: int = 0


Pair = namedtuple("Pair", "one two")

IMMUTABLE = [
    (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05Z"),
    (datetime(2026, 1, 2, 3, 4, 5), "2026-01-02T03:04:05"),
    (date(2026, 1, 2), "2026-01-02"),
    (time(3, 4), "03:04:00"),
    (timedelta(hours=1), "PT1H"),
    (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (Decimal("1.10"), "1.10"),
    (PurePosixPath("/a/b"), "/a/b"),
    (Path("a"), "a"),
    (b"bytes", "bytes"),
    (ip_address("::1"), "::1"),
    (AnyUrl("https://example.org/"), "https://example.org/"),
    (Color.RED, "red"),
    (Level.HIGH, 3),
    (Key.A, "a"),
    (Name("value"), "value"),
    (Count(5), 5),
    (Ratio(0.5), 0.5),
    ((1, "a", (None, Color.RED)), [1, "a", [None, "red"]]),
    (Pair(1, 2), [1, 2]),
]
OPAQUE = [
    (lambda: Row(firstOne=2, inner={"a": 1}), {"firstOne": 2, "inner": {"a": 1}}),
    (lambda: Point(tags={"b", "a"}), {"x": 1, "tags": ["a", "b"]}),
    (Frozen, {"x": 1}),
    (Checked, {"when": "2026-01-02"}),
    (lambda: {3, 1, 2}, [1, 2, 3]),
    (lambda: frozenset({"b", "a"}), ["a", "b"]),
    (lambda: deque([1, 2]), [1, 2]),
    (lambda: ([1], {"a": 2}), [[1], {"a": 2}]),
]
REFUSED = [
    math.nan,
    math.inf,
    -math.inf,
    Ratio("nan"),
    object(),
    SimpleNamespace(a=1),
    int,
    len,
    lambda: 1,
    (one for one in [1]),
    iter([1]),
    range(3),
    {}.values(),
    {}.keys(),
    MappingProxyType({}),
    UserDict(),
    UserList(),
    1j,
    Fraction(1, 2),
    memoryview(b"a"),
    SecretStr("hunter2"),
    SecretBytes(b"hunter2"),
    b"\xff",
    asyncio.Event(),
    {1: "a"},
    {None: 1},
    {("a",): 1},
    {UUID(int=1): 1},
    {Color.RED: 1},
    [math.nan],
    {"a": [{"b": object()}]},
    (1, object()),
    {math.nan},
    Point(x=math.nan),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("value", "json_value"), IMMUTABLE, ids=lambda value: type(value).__name__)
def test_immutable_values_stay_what_they_are_and_are_written(value: Any, json_value: Any) -> None:
    consumer = Consumer({"at": None, "list": []})
    consumer.value["at"] = value
    consumer.value["list"].append(value)
    consumer.value["list"].insert(0, [value])
    assert consumer.value["at"] is value
    assert consumer.value["list"][1] is value
    consumer.take()
    assert text(consumer.state) == text({"at": json_value, "list": [[json_value], json_value]})
    assert not consumer.document.compares
    assert consumer.take() is None
    assert text(json.loads(encode_json(value))) == text(json_value)


@pytest.mark.parametrize(("make", "json_value"), OPAQUE, ids=lambda value: getattr(value, "__name__", ""))
def test_mutable_objects_stay_what_they_are_and_are_compared(make: Any, json_value: Any) -> None:
    value = make()
    consumer = Consumer({"at": None})
    consumer.value["at"] = value
    assert consumer.value["at"] is value
    assert consumer.document.compares
    consumer.take()
    assert text(consumer.state) == text({"at": json_value})
    assert consumer.take() is None
    del consumer.value["at"]
    consumer.take()
    assert not consumer.document.compares


@pytest.mark.parametrize("value", REFUSED, ids=repr)
def test_everything_else_is_refused_where_it_is_assigned(value: Any) -> None:
    consumer = Consumer({"deep": [{"at": 1}]})
    at = consumer.value["deep"][0]
    for assign in (
        lambda: at.__setitem__("at", value),
        lambda: at.update(other=2, at=value),
        lambda: at.setdefault("new", value),
        lambda: at.__ior__({"other": 2, "at": value}),
    ):
        with pytest.raises(StateError) as raised:
            assign()
        assert raised.value.pointer.startswith(("/deep/0/at", "/deep/0/new"))
    for assign in (
        lambda: consumer.value["deep"].append(value),
        lambda: consumer.value["deep"].extend([2, value]),
        lambda: consumer.value["deep"].insert(0, value),
        lambda: consumer.value["deep"].__setitem__(0, value),
        lambda: consumer.value["deep"].__setitem__(slice(0, 1), [3, value]),
        lambda: consumer.value["deep"].__setitem__(slice(None, None, -1), [value]),
        lambda: consumer.value["deep"].__iadd__([value]),
    ):
        with pytest.raises(StateError) as raised:
            assign()
        assert raised.value.pointer.startswith("/deep/")
    with pytest.raises(StateError):
        Document(value)
    with pytest.raises(StateError):
        encode_json(value)
    assert consumer.value == {"deep": [{"at": 1}]}
    assert consumer.take() is None


def test_the_pointer_names_the_place_inside_the_value() -> None:
    document = Document({"a": [{}]})
    with pytest.raises(StateError) as raised:
        document.value["a"][0]["x/y"] = {"b": [1, {"~": math.nan}]}
    assert raised.value.pointer == "/a/0/x~1y/b/1/~0"
    with pytest.raises(StateError) as raised:
        document.value["a"].extend([1, 2, {"b": object()}])
    assert raised.value.pointer == "/a/3/b"
    with pytest.raises(StateError) as raised:
        document.value["a"].append(Point(x=[1, object()]))  # type: ignore[arg-type]
    assert raised.value.pointer == "/a/1/x/1"


def test_the_message_says_what_to_do() -> None:
    document: Document[Any] = Document({})
    with pytest.raises(StateError, match="make it a list"):
        document.value["a"] = range(3)
    with pytest.raises(StateError, match="must not leave the server"):
        document.value["a"] = SecretStr("hunter2")
    with pytest.raises(StateError) as raised:
        document.value["a"] = SecretStr("hunter2")
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    "value",
    [OrderedDict(a=[1]), defaultdict(list, a=[1]), Counter(a=1), type("Own", (dict,), {})(a={"b": 1})],
    ids=lambda value: type(value).__name__,
)
def test_kinds_of_dict_become_tracked_dicts(value: Any) -> None:
    consumer = Consumer({})
    consumer.value["at"] = value
    consumer.take()
    assert type(consumer.value["at"]) is TrackedDict
    consumer.value["at"]["new"] = 1
    assert consumer.ops() == [{"op": "add", "path": "/at/new", "value": 1}]


def test_keys_of_a_str_enumeration_are_their_values() -> None:
    consumer = Consumer({Key.A: 1})
    assert consumer.state == {"a": 1}
    consumer.value[Key.A] = 2
    assert consumer.ops() == [{"op": "replace", "path": "/a", "value": 2}]
    consumer.value[Name("n")] = 3
    assert consumer.ops() == [{"op": "add", "path": "/n", "value": 3}]
    assert all(type(key) is str for key in consumer.value)
    assert consumer.value[Key.A] == 2
    assert consumer.value.pop(Key.A) == 2
    del consumer.value[Name("n")]
    assert consumer.paths() == [("remove", "/a"), ("remove", "/n")]


def test_a_key_of_another_type_is_refused_but_may_be_asked_for() -> None:
    document = Document({"7": 1})
    with pytest.raises(StateError, match="a key must be a string, not int"):
        document.value[7] = 2
    with pytest.raises(KeyError):
        del document.value[7]
    assert document.value.pop(7, None) is None
    with pytest.raises(TypeError):
        document.value.pop([])
    assert document.value == {"7": 1}


@pytest.mark.parametrize("value", ["\ud800", "a\udfffb", {"\ud800": 1}], ids=ascii)
def test_a_lone_surrogate_is_written_as_an_escape(value: Any) -> None:
    document = Document({"a": "\u00e4"})
    document.take()
    document.value["at"] = value
    taken = document.take()
    assert isinstance(taken, Delta)
    taken.json.decode("ascii")
    assert json.loads(taken.json) == [{"op": "add", "path": "/at", "value": value}]
    document.resync()
    taken = document.take()
    assert taken is not None
    assert json.loads(taken.json) == {"a": "\u00e4", "at": value}
    assert json.loads(encode_json(value)) == value


def test_text_is_utf_8_where_it_can_be() -> None:
    assert encode_json({"a": "\u00e4\U0001f600"}) == '{"a":"\u00e4\U0001f600"}'.encode()


def test_encode_json_takes_tracked_and_plain_values() -> None:
    document = Document({"rows": [{"at": date(2026, 1, 2)}], "opaque": Point()})
    assert json.loads(encode_json(document.value)) == plain(document.value)
    assert encode_json(document.value["rows"]) == b'[{"at":"2026-01-02"}]'
    assert encode_json({"a": document.value["rows"]}) == b'{"a":[{"at":"2026-01-02"}]}'
    assert encode_json(TrackedList([TrackedDict(a=1.0)])) == b'[{"a":1.0}]'
    assert encode_json(Point(tags={"z", "y"})) == b'{"x":1,"tags":["y","z"]}'
    assert encode_json(2**70) == str(2**70).encode()


def test_encode_json_names_the_place_of_what_is_not_json() -> None:
    with pytest.raises(StateError) as raised:
        encode_json({"a": [1, {"b/c": math.inf}]})
    assert raised.value.pointer == "/a/1/b~1c"


def test_numbers_are_told_apart_by_their_text() -> None:
    values = [0, 0.0, -0.0, False, 1, 1.0, True, "1", None, "", [], {}]
    consumer = Consumer({"at": values[0], "list": [values[0]]})
    for old in values:
        for new in values:
            consumer.value["at"] = old
            consumer.value["list"][0] = old
            consumer.take()
            consumer.value["at"] = new
            consumer.value["list"][0] = new
            assert len(consumer.ops()) == (0 if text(old) == text(new) else 2), (old, new)


def test_a_large_integer_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    consumer = Consumer({"rows": [{"id": 2**53 - 1}]})
    assert not caplog.records
    consumer.value["rows"].append({"id": 2**53})
    assert consumer.ops() == [{"op": "add", "path": "/rows/1", "value": {"id": 2**53}}]
    consumer.value["rows"][0]["id"] = -(2**60)
    consumer.take()
    assert [record.name for record in caplog.records] == ["statecast.state"]
    assert "'/rows/1/id'" in caplog.text


@pytest.mark.parametrize(
    "edit",
    [
        lambda state: state.__setitem__("id", 2**53),
        lambda state: state.update(id=2**53),
        lambda state: state["list"].append(-(2**53)),
        lambda state: state["list"].extend([1, 2**53]),
        lambda state: state["list"].__setitem__(0, 2**53),
        lambda state: state.__setitem__("x", [[2**53]]),
        lambda state: state.__setitem__("x", TrackedList([TrackedDict(id=2**53)])),
        lambda state: state.__setitem__("x", Numbered(id=2**53)),
    ],
)
def test_a_large_integer_is_seen_wherever_it_enters(edit: Any, caplog: pytest.LogCaptureFixture) -> None:
    consumer = Consumer({"list": [0]})
    edit(consumer.value)
    consumer.take()
    assert "2**53" in caplog.text


def test_a_dataclass_with_a_field_that_was_never_set_is_refused_where_it_is_assigned() -> None:
    @dataclasses.dataclass
    class Unset:
        given: int
        never: int = dataclasses.field(init=False)

    document = Document({"l": [1]})
    with pytest.raises(StateError, match="never") as caught:
        document.value["l"].append({"x": Unset(1)})
    assert caught.value.pointer == "/l/1/x"
    assert document.value == {"l": [1]}
