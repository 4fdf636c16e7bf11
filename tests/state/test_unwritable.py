"""What became unwritable holds the state back as long as it is part of it: taking it out, or repairing it, is enough."""

import dataclasses
from typing import Any

import pytest
from pydantic import Field, computed_field

from state_support import Consumer
from statecast import State, StateError


@dataclasses.dataclass
class Point:
    x: Any = 1


class Share(State):
    parts: int = 1

    @computed_field
    def each(self) -> float:
        return 1 / self.parts


class Mean(State):
    hidden: list[int] = Field([1], exclude=True)

    @computed_field
    def mean(self) -> float:
        return sum(self.hidden) / len(self.hidden)


def spoil(value: Any) -> None:
    match value:
        case Point():
            value.x = float("nan")
        case Share():
            value.parts = 0
        case Mean():
            value.hidden.clear()


def repair(value: Any, number: int) -> None:
    match value:
        case Point():
            value.x = number
        case Share():
            value.parts = number
        case Mean():
            value.hidden.append(number)


def fails(consumer: Consumer, pointer: str) -> None:
    with pytest.raises(StateError) as caught:
        consumer.take()
    assert caught.value.pointer.startswith(pointer)


@pytest.mark.parametrize("kind", [Point, Share, Mean])
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("debug", [False, True])
def test_taking_it_out_is_enough(kind: type[Any], inside: bool, debug: bool) -> None:
    value = kind()
    consumer = Consumer({"l": [{"v": value} if inside else value], "n": 0}, debug=debug)
    spoil(value)
    fails(consumer, "/l/0/v/" if inside else "/l/0/")
    item = consumer.value["l"].pop()
    consumer.take()
    consumer.value["n"] = 1
    assert consumer.ops() == [{"op": "replace", "path": "/n", "value": 1}]

    # It is the same when it comes back: not writable until it is repaired.
    if not isinstance(item, Point):
        consumer.value["again"] = item
        fails(consumer, "/again/")
        repair(value, 3)
        consumer.take()
    repair(value, 4)
    consumer.take()
    consumer.value["l"].append(item)
    consumer.take()
    repair(value, 5)
    consumer.take()


@pytest.mark.parametrize("kind", [Point, Share, Mean])
def test_another_whole_value_is_enough(kind: type[Any]) -> None:
    value = kind()
    consumer = Consumer({"v": value})
    spoil(value)
    fails(consumer, "/v/")
    consumer.value = {"n": 1}
    consumer.take()


def test_a_whole_value_that_cannot_be_written_gives_way() -> None:
    consumer = Consumer(Point())
    spoil(consumer.value)
    fails(consumer, "/x")
    consumer.value = {"n": 1}
    consumer.take()
