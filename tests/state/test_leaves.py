"""One plain value that gives way to another goes out by a short way of its own, with what is known of the last time."""

import enum
import itertools
from typing import Any

import pytest
from pydantic import Field, computed_field

from state_support import Consumer
from statecast.state import Delta, Document, Snapshot, State

VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2**53 - 1, 2**53, -(2**53), 10**30, 0.0, -0.0, 1.0, 0.1, 1e22, 1e-7, 5e-324),
    *("", "a", "é", "\u2028", "\ud83d\ude00", '"\\\x00', "x" * 600, [], {}, [1], {"k": 1}),
]


@pytest.mark.parametrize("key", ["n", "a/b", "~", "__proto__", "é", ""])
def test_any_value_may_give_way_to_any_other_again_and_again(key: str) -> None:
    consumer = Consumer({key: None, "filler": "x" * 2000})
    for old, new in itertools.permutations(VALUES, 2):
        for value in (old, new):
            consumer.value[key] = value
            consumer.take()
        consumer.value[key] = old
        consumer.value[key] = new
        assert consumer.take() is None


def test_the_short_way_is_taken() -> None:
    document = Document({"n": 1, "deep": [{"n": 1}]}, baseline={"n": 1, "deep": [{"n": 1}]})
    document.take()
    for number in range(2, 5):
        document.value["n"] = number
        assert document.take_leaf() == b'[{"op":"replace","path":"/n","value":%d}]' % number
        document.value["deep"][0]["n"] = str(number)
        document.take()
        document.value["deep"][0]["n"] = f"{number}!"
        assert document.take_leaf() == b'[{"op":"replace","path":"/deep/0/n","value":"%d!"}]' % number
    assert document.take() is None


@pytest.mark.parametrize(
    "edit",
    [
        lambda value: None,
        lambda value: value.update(n=1, m=1),
        lambda value: value.pop("n"),
        lambda value: value.update(new=1),
        lambda value: value["list"].append(1),
        lambda value: value["list"].__setitem__(0, 1),
        lambda value: (value.update(n=1), value["list"].append(1)),
        lambda value: value.update(n=[]),
        lambda value: value.update(n="0"),
        lambda value: value.update(n=2**53),
    ],
)
def test_what_is_more_than_one_plain_value_goes_the_long_way(edit: Any) -> None:
    document = Document({"n": 0, "m": 0, "list": [0]}, baseline={"n": 0, "m": 0, "list": [0]})
    document.take()
    document.value["n"] = 5
    assert document.take_leaf() is not None
    edit(document.value)
    assert document.take_leaf() is None
    assert document._tracker.dirty or document.take() is None


def test_nothing_is_taken_while_a_batch_is_open() -> None:
    document = Document({"n": 0}, baseline={"n": 0})
    document.value["n"] = 1
    document.take()
    with document.batch():
        document.value["n"] = 2
        assert document.take_leaf() is None
    assert document.take_leaf() == b'[{"op":"replace","path":"/n","value":2}]'


class One(State):
    member: int = Field(0, alias="one")
    other: int = Field(0, alias="member")


class Two(State):
    member: int = Field(0, alias="two")


class Counted(State):
    foreign: set[int] = Field(default_factory=set, exclude=True)

    @computed_field
    def total(self) -> int:
        return sum(self.foreign)


class Outer(State):
    n: int = 0
    counted: Counted = Counted()


class Both(State):
    place: One | Two = One()
    rows: list[One] = []


def test_a_member_goes_under_the_name_that_it_has_where_it_is_now() -> None:
    consumer = Consumer(Both(rows=[One(), One()]))
    state = consumer.value

    def paths() -> list[tuple[str, str]]:
        return consumer.paths()

    state.place.member = 1
    assert paths() == [("replace", "/place/one")]
    state.place.other = 2
    assert paths() == [("replace", "/place/member")]
    state.place.member = 2
    assert paths() == [("replace", "/place/one")]
    state.place = Two()
    paths()
    state.place.member = 3
    assert paths() == [("replace", "/place/two")]
    row = state.rows[1]
    row.member = 4
    assert paths() == [("replace", "/rows/1/one")]
    state.rows.insert(0, One())
    paths()
    row.member = 5
    assert paths() == [("replace", "/rows/2/one")]
    state.rows.remove(row)
    paths()
    row.member = 6
    assert paths() == []
    state.place = row
    paths()
    row.member = 7
    assert paths() == [("replace", "/place/one")]


def test_keys_and_pointers_are_not_confused() -> None:
    consumer = Consumer({"a": {"b": 0}, "a/b": 0, "": {"b": 0}, "b": 0})
    state = consumer.value
    for number in range(1, 3):
        for holder, key, path in (
            (state["a"], "b", "/a/b"),
            (state, "a/b", "/a~1b"),
            (state[""], "b", "//b"),
            (state, "b", "/b"),
        ):
            holder[key] = number
            assert consumer.paths() == [("replace", path)]


def test_a_value_that_hangs_twice_is_told_twice() -> None:
    shared = {"n": 0}
    consumer = Consumer({"one": shared, "two": shared})
    consumer.value["one"]["n"] = 1
    assert len(consumer.paths()) == 2
    del consumer.value["two"]
    consumer.take()
    consumer.value["one"]["n"] = 2
    assert consumer.paths() == [("replace", "/one/n")]
    consumer.value["three"] = consumer.value["one"]
    consumer.take()
    consumer.value["one"]["n"] = 3
    assert len(consumer.paths()) == 2


def test_what_was_edited_and_then_went_to_another_document_is_not_in_the_way() -> None:
    consumer, other = Consumer({"job": {"n": 1}}), Consumer({})
    job = consumer.value.pop("job")
    consumer.take()
    job["n"] = 2
    other.value["job"] = job
    assert consumer.paths() == []
    assert other.paths() == [("add", "/job")]
    consumer.value["new"] = 1
    job["n"] = 3
    assert consumer.paths() == [("add", "/new")]
    assert other.paths() == [("replace", "/job/n")]


class Key(enum.StrEnum):
    A = "a/b"


class Named(str, enum.Enum):  # noqa: UP042  `format` and `str` of it are not its value
    A = "a"


@pytest.mark.parametrize(("key", "path"), [(Key.A, "/a~1b"), (Named.A, "/a")])
def test_a_key_that_was_written_past_the_methods_has_its_own_value(key: str, path: str) -> None:
    consumer = Consumer({"x": 1})
    dict.__setitem__(consumer.value, key, {"n": 1})
    consumer.document.touch()
    consumer.document.take()
    consumer.value[key.value]["n"] = 2  # type: ignore[attr-defined]
    assert consumer.document.take().ops == [{"op": "replace", "path": f"{path}/n", "value": 2}]


def test_a_value_that_is_longer_than_the_rest_comes_as_a_snapshot() -> None:
    consumer = Consumer({"text": "a", "n": 0})
    consumer.value["text"] = "b"
    assert isinstance(consumer.take(), Delta)
    consumer.value["text"] = "c" * 600
    assert isinstance(consumer.take(), Snapshot)
    consumer.value["text"] = "d" * 600
    assert isinstance(consumer.take(), Snapshot)


def test_what_only_a_comparison_finds_goes_out_with_it() -> None:
    consumer = Consumer(Outer(), type=Outer)
    for number in range(1, 4):
        consumer.value.n = number
        consumer.value.counted.foreign.add(number)
        assert consumer.paths() == [("replace", "/n"), ("replace", "/counted/total")]


def test_the_size_of_the_state_is_followed() -> None:
    consumer = Consumer({"a": "", "b": "", "c": "", "filler": ""})
    for key in "ab":
        consumer.value[key] = "x" * 450
        assert isinstance(consumer.take(), Delta)
    # Shorter than the state, and longer than the state was when it was measured.
    consumer.value["c"] = "x" * 550
    assert isinstance(consumer.take(), Delta)


def test_operations_are_read_only_when_somebody_looks() -> None:
    document = Document({"n": 0}, baseline={"n": 0})
    document.value["n"] = 1
    one = document.take()
    document.value["n"] = 0
    document.take()
    document.value["n"] = 1
    two = document.take()
    assert isinstance(one, Delta)
    assert one.ops == [{"op": "replace", "path": "/n", "value": 1}]
    assert one == two
    assert one != [{"op": "replace", "path": "/n", "value": 1}]
    assert "'/n'" in repr(one)
