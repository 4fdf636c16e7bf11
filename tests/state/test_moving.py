"""Containers and models that go from one document to another: what each consumer has is known, or it is told anew."""

import copy
from typing import Any

import pytest
from pydantic import computed_field

from state_support import Consumer, plain
from statecast import State
from statecast.state import Document, Snapshot

FILL = ["f" * 30] * 30


class Card(State):
    n: int = 1
    tags: list[str] = []

    @computed_field
    def double(self) -> int:
        return 2 * self.n


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("inside", [False, True])
def test_a_container_that_changed_in_another_document_comes_back(debug: bool, inside: bool) -> None:
    one = Consumer({"x": {"n": 1, "in": {"m": 1}}, "l": [{"n": 1}, {"n": 2}]}, debug=debug)
    x, item = one.value.pop("x"), one.value["l"].pop(0)
    two = Consumer({"x": x, "item": item})
    if inside:
        x["in"]["m"] = 2
    else:
        x["n"] = item["n"] = 3
    two.take()
    two.value.clear()
    one.value["x"] = x
    one.value["l"].insert(0, item)
    one.take()
    x["in"]["m"] = 7
    one.take()


def test_a_model_that_changed_in_another_document_comes_back() -> None:
    card = Card()
    one = Consumer({"card": card})
    del one.value["card"]
    two = Consumer({"card": card})
    card.n = 2
    card.tags.append("a")
    two.take()
    del two.value["card"]
    one.value["card"] = card
    one.take()
    card.n = 3
    one.take()


def test_a_whole_value_that_was_another_documents_comes_back() -> None:
    one = Consumer({"n": 1})
    value = one.value
    one.document.value = {}
    two = Consumer(value)
    value["n"] = 2
    two.document.value = {}
    one.document.value = value
    one.take()


def test_a_part_that_went_and_came_back_unchanged_between_two_takes_is_there_still() -> None:
    one = Consumer({"x": {"n": 1}})
    x = one.value.pop("x")
    two = Consumer({"x": x})
    del two.value["x"]
    one.value["x"] = x
    one.take()
    one.value["x"]["n"] = 2
    taken = one.take()
    assert taken.ops == [{"op": "replace", "path": "/x/n", "value": 2}]


def test_a_large_delta_where_what_the_consumer_has_is_not_all_known() -> None:
    value: dict[str, Any] = {"x": {"k": 1}, "l": []}
    document = Document(copy.deepcopy(value), baseline=value)
    assert document.take() is None
    elsewhere = Document({"x": document.value.pop("x")})
    document.value["l"].extend(FILL)
    taken = document.take()
    assert isinstance(taken, Snapshot)
    assert taken.value == {"l": FILL}
    assert plain(elsewhere.value) == {"x": {"k": 1}}


def test_a_large_delta_of_what_was_touched() -> None:
    value = {"x": {"n": FILL}, "y": FILL * 3}
    document = Document(copy.deepcopy(value), baseline=value)
    assert document.take() is None
    document.touch("/x")
    taken = document.take()
    assert taken is not None
    assert taken.ops == [{"op": "replace", "path": "/x", "value": {"n": FILL}}]
