"""Copies of a model: `copy`, `deepcopy`, `model_copy`, pickle, `model_construct`, and reading an instance."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, Field, PrivateAttr, TypeAdapter, ValidationError, computed_field, model_validator

from model_support import Consumer
from statecast.errors import StateError
from statecast.state import Document, State, TrackedDict, TrackedList


class Stop(State):
    title: str = ""
    tags: list[str] = []


class Trip(State):
    city_name: str = Field(default="", alias="cityName")
    stops: list[Stop] = []
    by_day: dict[str, list[int]] = {}
    first: Stop | None = None
    key: str = Field(default="", exclude=True)
    _note: list[str] = PrivateAttr(default_factory=list)

    @computed_field
    @property
    def size(self) -> int:
        return len(self.stops) + len(self._note)


def made() -> Trip:
    trip = Trip(
        cityName="Porto", stops=[Stop(title="a", tags=["x"])], by_day={"mon": [1]}, first=Stop(title="f"), key="k"
    )
    trip._note.append("n")
    return trip


COPIES: dict[str, Callable[[Any], Any]] = {
    "deepcopy": copy.deepcopy,
    "model_copy deep": lambda value: value.model_copy(deep=True),
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "pickle 2": lambda value: pickle.loads(pickle.dumps(value, protocol=2)),
    "dump and read": lambda value: type(value).model_validate(value.model_dump(by_alias=True)),
    "construct": lambda value: type(value).model_construct(
        **{
            **value.model_dump(exclude={"stops", "first"}),
            "stops": [Stop(title="a", tags=["x"])],
            "first": Stop(title="f"),
        }
    ),
}


@pytest.mark.parametrize("in_a_document", [False, True])
@pytest.mark.parametrize("make", COPIES.values(), ids=COPIES)
def test_a_deep_copy_is_equal_tracked_and_on_its_own(make: Callable[[Any], Any], in_a_document: bool) -> None:
    consumer = Consumer(made())
    original = consumer.value if in_a_document else made()
    copied = make(original)
    assert copied.model_dump(exclude={"size", "key"}) == original.model_dump(exclude={"size", "key"})
    assert type(copied) is Trip
    assert type(copied.stops) is TrackedList
    assert type(copied.by_day) is TrackedDict
    assert type(copied.by_day["mon"]) is TrackedList
    assert type(copied.stops[0].tags) is TrackedList
    tags = copied.stops[0].tags
    other = Consumer(copied)
    tags.append("y")
    copied.by_day["mon"].append(2)
    copied.first.title = "g"
    assert len(other.sync()) >= 3
    assert consumer.sync() == []
    for edit in (
        lambda: copied.stops.append(5),
        lambda: copied.by_day["mon"].append("x"),
        lambda: setattr(copied, "stops", 5),
    ):
        with pytest.raises(ValidationError):
            edit()


@pytest.mark.parametrize(
    "make", [copy.copy, lambda value: value.model_copy(), lambda value: value.model_copy(update={"key": "z"})]
)
def test_a_shallow_copy_shares_what_is_in_it(make: Callable[[Trip], Trip]) -> None:
    consumer = Consumer(made())
    copied = make(consumer.value)
    assert copied.stops is consumer.value.stops
    copied.city_name = "Faro"
    assert consumer.sync() == []
    copied.stops.append(Stop(title="b"))
    assert [op[1] for op in consumer.sync()] == ["/stops/1", "/size"]
    with pytest.raises(StateError, match="another document"):
        Document(copied)
    consumer.document.value = copied
    assert consumer.sent()["cityName"] == "Faro"
    copied.stops.pop()
    assert len(consumer.sent()["stops"]) == 1


@pytest.mark.parametrize(
    "make", [copy.copy, copy.deepcopy, lambda v: v.model_copy(), lambda v: pickle.loads(pickle.dumps(v))]
)
def test_a_copy_is_validated_and_tracked_like_any_other(make: Callable[[Judged], Judged]) -> None:
    copied = make(Judged(low=1))
    with pytest.raises(ValidationError):
        copied.low = 11
    copied.rows = [1]
    assert type(copied.rows) is TrackedList
    assert (copied.low, copied.width) == (1, 9)


class Judged(State):
    low: int = 0
    rows: list[int] = []
    width: int = 10

    @model_validator(mode="after")
    def judge(self) -> Judged:
        if self.low > 10:
            raise ValueError("too high")
        self.width = 10 - self.low
        return self


def test_a_copy_with_an_update_is_tracked_and_the_update_is_not_validated() -> None:
    copied = made().model_copy(update={"stops": [Stop(title="z")], "city_name": "Faro"})
    assert type(copied.stops) is TrackedList
    consumer = Consumer(copied)
    copied.stops[0].title = "y"
    assert consumer.sync() == [("replace", "/stops/0/title", "y")]
    assert {"stops", "city_name"} <= copied.model_fields_set


def test_copies_of_private_attributes_and_excluded_fields_are_their_own() -> None:
    original = made()
    copied = copy.deepcopy(original)
    copied._note.append("m")
    assert original._note == ["n"]
    assert copied.key == "k"


def test_a_model_constructed_without_validation_is_tracked() -> None:
    value = Trip.model_construct(city_name="x", stops=[])
    stops = value.stops
    consumer = Consumer(value)
    stops.append(Stop(title="a"))
    assert [op[1] for op in consumer.sync()] == ["/stops/0", "/size"]


def test_a_model_constructed_with_what_is_not_json_is_refused() -> None:
    with pytest.raises(StateError) as caught:
        Trip.model_construct(stops=[object()])
    assert caught.value.pointer == "/stops/0"


def test_reading_an_instance_gives_the_instance() -> None:
    consumer = Consumer(made())
    assert Trip.model_validate(consumer.value) is consumer.value
    assert TypeAdapter(list[Stop]).validate_python(consumer.value.stops)[0] is consumer.value.stops[0]


def test_dumps_are_plain_and_changing_them_changes_nothing() -> None:
    consumer = Consumer(made())
    dumped = consumer.value.model_dump()
    assert type(dumped["stops"]) is list
    assert type(dumped["by_day"]) is dict
    dumped["by_day"]["mon"].append(5)
    dumped["x"] = 1
    assert consumer.sync() == []


def test_tracked_values_go_into_other_models_and_adapters() -> None:
    class Out(BaseModel):
        stops: list[Stop]
        by_day: dict[str, list[int]]

    consumer = Consumer(made())
    out = Out(stops=consumer.value.stops, by_day=consumer.value.by_day)
    assert out.model_dump_json() == '{"stops":[{"title":"a","tags":["x"]}],"by_day":{"mon":[1]}}'
    assert TypeAdapter(dict[str, Any]).validate_python(consumer.value.by_day) == {"mon": [1]}
    assert (
        TypeAdapter(Trip).dump_json(consumer.value, by_alias=True)
        == consumer.value.model_dump_json(by_alias=True).encode()
    )
    assert consumer.sync() == []


def test_weak_references_and_garbage() -> None:
    consumer = Consumer(made())
    gone = weakref.ref(consumer.value.stops[0])
    consumer.value.stops.clear()
    consumer.sync()
    gc.collect()
    assert gone() is None


def test_repr_is_that_of_pydantic() -> None:
    assert repr(Stop(title="a", tags=["x"])) == "Stop(title='a', tags=['x'])"
