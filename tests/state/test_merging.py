"""A value is brought up to date in place: what is not written of it, and who holds it, stays."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pydantic import Field, PrivateAttr, model_validator

from model_support import Consumer
from statecast import State, StateError
from statecast.state import StateType, update


class Stop(State):
    name: str = ""
    tags: list[str] = []
    key: str = Field("", exclude=True)
    _seen: int = PrivateAttr(0)


class Trip(State):
    city: str = Field("", alias="City")
    stops: list[Stop] = []
    by_name: dict[str, Stop] = {}
    best: Stop | None = None
    free: Any = None
    token: str = Field("", exclude=True)


TRIP = StateType(Trip)


def test_what_is_not_written_stays_and_so_do_the_objects() -> None:
    stops = [Stop(name=name, key=name) for name in "abc"]
    consumer = Consumer(Trip(stops=stops, best=Stop(key="best"), token="t"))
    trip, held, best = consumer.value, consumer.value.stops, consumer.value.best
    trip.stops[2]._seen = 5
    update(
        consumer.document,
        TRIP.validate({"City": "Rome", "best": {"name": "x"}, "stops": [{"name": n} for n in ("a", "new", "b", "c")]}),
    )
    assert consumer.value is trip
    assert trip.stops is held
    assert trip.best is best
    assert [stop.key for stop in held] == ["a", "", "b", "c"]
    assert (held[3]._seen, best.key, trip.token) == (5, "best", "t")
    assert {path for _, path, _ in consumer.sync()} == {"/City", "/best/name", "/stops/1"}
    held[1].tags.append("later")
    assert consumer.sync() == [("add", "/stops/1/tags/0", "later")]


def test_one_object_at_two_places_that_now_differ() -> None:
    shared = Stop(name="a")
    consumer = Consumer(Trip(stops=[shared], best=shared))
    update(consumer.document, TRIP.validate({"stops": [{"name": "b"}], "best": {"name": "c"}}))
    assert (consumer.value.stops[0].name, consumer.value.best.name) == ("b", "c")
    consumer.sync()


class Span(State):
    low: int = 0
    high: int = 1

    @model_validator(mode="after")
    def ordered(self) -> Span:
        if self.low > self.high:
            raise ValueError("low > high")
        return self


def test_a_way_that_validators_refuse_is_not_taken() -> None:
    consumer = Consumer(Span())
    update(consumer.document, Span(low=5, high=6))
    assert (consumer.value.low, consumer.value.high) == (5, 6)
    consumer.sync()


def test_a_value_of_another_type_changes_nothing() -> None:
    consumer = Consumer(Trip(City="Rome"), type=Trip)
    with pytest.raises(StateError):
        update(consumer.document, Stop())
    assert consumer.sync() == []


@pytest.mark.parametrize("seed", range(40))
def test_random_values(seed: int) -> None:
    pick = random.Random(seed)

    def stop() -> dict[str, Any]:
        return {"name": pick.choice("ab"), "tags": pick.choices("xy", k=pick.randrange(3))}

    def trip() -> dict[str, Any]:
        return {
            "City": pick.choice("ab"),
            "stops": [stop() for _ in range(pick.randrange(4))],
            "by_name": {key: stop() for key in pick.sample("ab~/", pick.randrange(3))},
            "best": pick.choice([None, stop()]),
            "free": pick.choice([None, 1, 1.0, True, [1, {"a": []}], {"k": 1}, {"k": [1, 2]}]),
        }

    consumer = Consumer(TRIP.validate(trip()))
    root = consumer.value
    for _ in range(5):
        if root.stops and pick.random() < 0.5:
            root.best = root.stops[0]
        value = TRIP.validate(trip())
        wanted = value.model_dump(by_alias=True)
        update(consumer.document, value)
        consumer.sync()
        assert consumer.value.model_dump(by_alias=True) == wanted
        root = consumer.value
