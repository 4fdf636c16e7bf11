"""Faults of other frameworks with typed state, from their public reports: each is tried on ours."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import logging
import pickle
import uuid
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from model_support import Consumer, text
from statecast.errors import StateError
from statecast.state import Document, ReadOnly, State, StateType


class Color(enum.Enum):
    RED = "red"


class Size(enum.IntEnum):
    SMALL = 1


class Kinds(State):
    naive: datetime.datetime = datetime.datetime(2026, 1, 2, 3, 4, 5, 600)
    aware: datetime.datetime = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
    day: datetime.date = datetime.date(2026, 1, 2)
    clock: datetime.time = datetime.time(3, 4)
    wait: datetime.timedelta = datetime.timedelta(days=1, seconds=2)
    key: uuid.UUID = uuid.UUID(int=1)
    price: decimal.Decimal = decimal.Decimal("1.10")
    unique: set[int] = {2, 1}
    fixed: frozenset[str] = frozenset({"a"})
    pair: tuple[int, str] = (1, "a")
    path: Path = Path("a/b")
    color: Color = Color.RED
    size: Size = Size.SMALL
    raw: bytes = b"abc"
    free: Any = None


CHANGES: dict[str, Any] = {
    "naive": datetime.datetime(2027, 1, 2),
    "aware": datetime.datetime(2027, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
    "day": datetime.date(2027, 1, 2),
    "clock": datetime.time(5, 6, 7, 8),
    "wait": datetime.timedelta(milliseconds=5),
    "key": uuid.UUID(int=2),
    "price": decimal.Decimal("2.50"),
    "unique": {3},
    "fixed": frozenset({"b"}),
    "pair": (2, "b"),
    "path": Path("c"),
    "raw": b"def",
    "free": [decimal.Decimal("1.1"), uuid.UUID(int=3), datetime.date(2026, 1, 1), Color.RED],
}


def test_delta_and_snapshot_have_the_same_json_for_every_type() -> None:
    """crewAIInc/crewAI#7425"""
    consumer = Consumer(Kinds())
    for name, value in CHANGES.items():
        setattr(consumer.value, name, value)
        ops = consumer.sync()
        assert [op[1].split("/")[1] for op in ops] == [name]
        delta = consumer.copy
        consumer.document.resync()
        consumer.sync()
        assert text(delta) == text(consumer.copy)
    read = consumer.reread()
    assert {**read.model_dump(), "free": None} == {**consumer.value.model_dump(), "free": None}


def test_the_fields_of_a_plain_subclass_are_not_lost() -> None:
    """pydantic/pydantic#9378"""

    class Base(BaseModel):
        id: int

    class Chart(Base):
        points: list[int]

    class Board(State):
        cards: list[Base] = []

    document = Document(Board(cards=[Chart(id=1, points=[])]), baseline=None)
    copy = document.take().value  # type: ignore[union-attr]
    assert copy == {"cards": [{"id": 1, "points": []}]}
    document.value.cards[0].points.append(1)  # type: ignore[attr-defined]
    assert document.take().ops == [{"op": "add", "path": "/cards/0/points/0", "value": 1}]  # type: ignore[union-attr]


def test_required_members_that_are_null_are_sent_and_read_back() -> None:
    """soliplex/soliplex#1250"""

    class Review(State):
        status: str | None
        note: str | None

    class Made(State):
        review: Review | None = None

    consumer = Consumer(Made())
    consumer.value.review = Review(status=None, note=None)
    assert consumer.sent() == {"review": {"status": None, "note": None}}
    assert consumer.reread() == consumer.value


def test_an_integer_that_a_browser_rounded_does_not_overwrite_a_field_of_the_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Order(State):
        order_id: Annotated[int, ReadOnly] = 0
        shown: str = ""

    exact = 1234567890123456789
    document = Document(Order(order_id=exact))
    with caplog.at_level(logging.WARNING, "statecast.state"):
        taken = document.take()
    assert json.loads(taken.json)["order_id"] == exact  # type: ignore[union-attr]
    kind = StateType(Order)
    echoed = {"order_id": 1234567890123456800, "shown": "x"}
    assert kind.validate(kind.fill(kind.strip(echoed), Order(order_id=exact))) == Order(order_id=exact, shown="x")


def test_edits_in_place_are_sent_one_by_one() -> None:

    class Row(State):
        tags: list[str] = []

    class Made(State):
        items: list[str] = []
        d: dict[str, dict[str, int]] = {"k": {}}
        rows: list[Row] = [Row()]

    consumer = Consumer(Made())
    consumer.value.items.append("x")
    assert len(consumer.sync()) == 1
    consumer.value.d["k"]["n"] = 1
    assert len(consumer.sync()) == 1
    consumer.value.rows[0].tags.append("t")
    assert len(consumer.sync()) == 1


def test_what_is_assigned_is_tracked_at_once() -> None:
    class Made(State):
        items: list[int] = [5]
        d: dict[str, dict[str, int]] = {}

    consumer = Consumer(Made())
    consumer.value.items = []
    consumer.sync()
    consumer.value.items.append(1)
    assert consumer.sync() == [("add", "/items/0", 1)]
    consumer.value.d = {}
    consumer.value.d["a"] = {}
    consumer.value.d["a"]["b"] = 1
    assert consumer.sync() == [("add", "/d/a", {"b": 1})]


def test_what_methods_return_is_not_part_of_the_state() -> None:
    """reflex-dev/reflex#5986"""

    class Made(State):
        text: str = "a b"
        d: dict[str, list[int]] = {}

    consumer = Consumer(Made())
    dumped = consumer.value.model_dump()
    dumped["x"] = 1
    dumped["d"]["x"] = 1
    consumer.value.text.split().append("c")
    consumer.value.d.get("missing", []).append(1)
    assert consumer.sync() == []


@dataclasses.dataclass
class Point:
    x: int = 0
    y: int = 0


@dataclasses.dataclass(frozen=True)
class Pin:
    x: int = 0


def test_dataclasses_stay_dataclasses_and_are_followed() -> None:
    class Made(State):
        point: Point = Point()
        pin: Pin = Pin(1)

    consumer = Consumer(Made())
    point = consumer.value.point
    assert dataclasses.fields(point)[0].name == "x"
    match point:
        case Point(x=0):
            pass
        case _:
            pytest.fail("does not match")
    assert point == Point()
    point.x = 3
    assert consumer.sent()["point"] == {"x": 3, "y": 0}
    assert hash(consumer.value.pin) == hash(Pin(1))


def test_values_that_were_hashable_stay_so() -> None:
    class Made(State):
        pin: Pin = Pin()
        color: Color = Color.RED
        pair: tuple[int, int] = (1, 2)
        pins: list[Pin] = [Pin(1)]

    value = Consumer(Made()).value

    @lru_cache
    def seen(key: Any) -> Any:
        return key

    for key in (value.pin, value.color, value.pair, value.pins[0]):
        assert {key: 1}[seen(key)] == 1


def test_two_dicts_are_told_apart_after_a_reload() -> None:
    class Made(State):
        a: dict[str, int] = {}
        b: dict[str, int] = {}

    globals()["Made"] = Made
    Made.__qualname__ = "Made"
    consumer = Consumer(pickle.loads(pickle.dumps(Made(a={"x": 1}, b={"x": 1}))))
    consumer.value.a["x"] = 2
    assert consumer.sync() == [("replace", "/a/x", 2)]


def test_a_dict_that_was_assigned_is_not_the_state() -> None:
    """assistant-ui/assistant-ui#6910"""

    class Made(State):
        opts: dict[str, Any] = {}

    consumer = Consumer(Made())
    opts = {"lang": "en"}
    consumer.value.opts = opts
    consumer.sync()
    opts["lang"] = "fi"
    assert consumer.sync() == []
    consumer.document.resync()
    assert consumer.sent() == {"opts": {"lang": "en"}}


def test_fields_made_in_a_loop_have_their_own_paths() -> None:
    namespace = {
        "__annotations__": {f"f{i}": list[int] for i in range(5)},
        "__module__": __name__,
        **{f"f{i}": [] for i in range(5)},
    }
    made = type(State)("Looped", (State,), namespace)
    consumer = Consumer(made())
    other = Consumer(made())
    for index in range(5):
        getattr(consumer.value, f"f{index}").append(index)
    assert sorted(op[1] for op in consumer.sync()) == [f"/f{i}/0" for i in range(5)]
    assert other.sync() == []


def test_every_way_into_a_typed_list_has_the_same_policy() -> None:
    """pydantic/pydantic#8575"""

    class Made(State):
        tags: list[str] = []

    value = Consumer(Made()).value
    for put in (
        lambda: value.tags.append(1),  # type: ignore[arg-type]
        lambda: value.tags.extend([1]),  # type: ignore[list-item]
        lambda: value.tags.insert(0, 1),  # type: ignore[arg-type]
        lambda: value.tags.__iadd__([1]),  # type: ignore[list-item]
        lambda: value.tags.__setitem__(slice(None), [1]),  # type: ignore[list-item]
        lambda: setattr(value, "tags", [1]),
    ):
        with pytest.raises(ValidationError):
            put()
    assert value.tags == []


def test_a_container_that_is_edited_and_assigned_again_sends_one_change() -> None:
    class Made(State):
        d: dict[str, int] = {}

    consumer = Consumer(Made())
    held = consumer.value.d
    held["x"] = 1
    consumer.value.d = held
    assert consumer.sync() == [("add", "/d/x", 1)]
    plain = dict(consumer.value.d)
    plain["y"] = 2
    consumer.value.d = plain
    assert consumer.sent() == {"d": {"x": 1, "y": 2}}


def test_a_default_list_that_was_only_appended_to_is_in_partial_dumps() -> None:
    """pydantic/pydantic#9866"""

    class Made(State):
        items: list[int] = []
        n: int = 0

    value = Made()
    value.items.append(1)
    assert value.model_dump(exclude_unset=True) == {"items": [1]}


class Session(State):
    items: list[int] = []
    notes: list[str] = ["hello"]
    owner: Annotated[str, ReadOnly] = "server"
    cache: dict[str, int] = Field(default={}, exclude=True)
    _trusted: int = 7


@pytest.mark.parametrize("data", [{}, {"items": [1]}, {"notes": []}])
def test_declared_defaults_fill_a_partial_state(data: dict[str, Any]) -> None:
    value = StateType(Session).read(data)
    assert value == Session(**data)
    value.items.append(1)


@pytest.mark.parametrize("data", [None, [], "x", 3, [{}]])
def test_a_state_of_another_shape_is_refused_before_anything_runs(data: Any) -> None:
    with pytest.raises(ValidationError):
        StateType(Session).read(data)


def test_forged_members_of_the_server_have_no_effect() -> None:
    forged = {"owner": "evil", "cache": {"x": 1}, "_trusted": 0, "_note": 1, "unknown": {"owner": "evil"}}
    value = StateType(Session).read({**forged, "items": [1]})
    assert value == Session(items=[1])
    assert (value.owner, value.cache, value._trusted) == ("server", {}, 7)
    assert Consumer(value).copy == {"items": [1], "notes": ["hello"], "owner": "server"}


def test_keys_that_are_not_strings_are_refused_where_they_are_declared_and_where_they_are_put() -> None:
    with pytest.raises(TypeError, match="not str"):

        class Made(State):
            by_id: dict[int, str] = {}

    class Free(State):
        free: Any = None

    for key in (7, uuid.UUID(int=1), datetime.date(2026, 1, 1), Color.RED, (1, 2), None):
        with pytest.raises(StateError):
            Consumer(Free()).value.free = {key: "a"}


def test_models_and_adapters_take_tracked_values() -> None:
    """reflex-dev/reflex#4942"""

    class Made(State):
        rows: list[dict[str, int]] = [{"a": 1}]

    class Out(BaseModel):
        rows: list[dict[str, int]]

    value = Consumer(Made()).value
    assert Out(rows=value.rows).model_dump_json() == '{"rows":[{"a":1}]}'
    assert TypeAdapter(list[dict[str, int]]).validate_python(value.rows) == [{"a": 1}]
    assert json.dumps(value.rows) == '[{"a": 1}]'


def test_a_token_is_appended_to_a_string_field() -> None:
    class Made(State):
        report: str = ""

    consumer = Consumer(Made())
    for _ in range(100):
        consumer.value.report += "tok "
    ops = consumer.sync()
    assert len(ops) == 1
    assert consumer.copy == {"report": "tok " * 100}
