# ruff: noqa: PT012
"""Batches: one patch for the block, or as if it had never begun."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from state_support import Consumer, plain, text
from statecast.state import Delta, Document, TrackedDict


class Undo(Exception):
    pass


def everything(value: Any) -> list[Any]:
    """All containers, with their members as they are: identities and the order of keys."""
    found: list[Any] = [(value, list(value.items()) if isinstance(value, dict) else list(value))]
    for member in value.values() if isinstance(value, dict) else value:
        if isinstance(member, (dict, list)):
            found += everything(member)
    return found


def assert_same(value: Any, before: list[Any]) -> None:
    after = everything(value)
    assert len(after) == len(before)
    for (one, members), (other, others) in zip(after, before, strict=True):
        assert one is other
        assert len(members) == len(others)
        for member, known in zip(members, others, strict=True):
            if isinstance(one, dict):
                assert member[0] == known[0]
                member, known = member[1], known[1]
            assert member is known


def start() -> Any:
    return {"d": {"a": 1, "b": {"c": [1]}, "z": 0}, "l": [{"n": 1}, 2, [3]], "t": "x"}


EDITS: list[Callable[[Any], Any]] = [
    lambda s: s.update(t="y", new=[1]),
    lambda s: s["d"].pop("a"),
    lambda s: s["d"].clear(),
    lambda s: [s["d"].popitem() for _ in range(2)],
    lambda s: s["d"].update(s["d"].pop("b")),
    lambda s: s["d"].__setitem__("a", s["d"].pop("a")),
    lambda s: s["d"]["b"]["c"].append({}),
    lambda s: s["l"].reverse(),
    lambda s: s["l"].sort(key=str),
    lambda s: s["l"].insert(0, s["l"].pop()),
    lambda s: s["l"].__setitem__(slice(0, 2), [s["d"]]),
    lambda s: s["l"].__delitem__(slice(None, None, 2)),
    lambda s: s["l"].__imul__(3),
    lambda s: s["l"].clear(),
    lambda s: s.__setitem__("l", s.pop("d")),
    lambda s: s["l"][0].update(n=2) or s["l"].pop(0),
]


@pytest.mark.parametrize("number", range(len(EDITS)))
def test_a_batch_that_raises_leaves_every_container_as_it_was(number: int) -> None:
    consumer = Consumer(start())
    before = everything(consumer.value)
    with pytest.raises(Undo), consumer.document.batch():
        EDITS[number](consumer.value)
        for edit in EDITS[number + 1 :]:
            with suppress(KeyError, IndexError, TypeError, AttributeError):
                edit(consumer.value)
        raise Undo
    assert_same(consumer.value, before)
    assert consumer.take() is None
    # And everything is still tracked, at its place.
    consumer.value["l"][0]["n"] = 5
    consumer.value["d"]["b"]["c"].append(6)
    consumer.value["l"][2].append(7)
    assert sorted(consumer.paths()) == [("add", "/d/b/c/1"), ("add", "/l/2/1"), ("replace", "/l/0/n")]
    assert consumer.value["d"].popitem() == ("z", 0)


def test_a_batch_that_ends_well_is_one_patch() -> None:
    consumer = Consumer(start())
    with consumer.document.batch():
        consumer.value["t"] = "y"
        assert consumer.document.take() is None
        consumer.value["l"].append(1)
        assert consumer.document.take() is None
    assert consumer.paths() == [("replace", "/t"), ("add", "/l/3")]


def test_what_was_changed_before_the_batch_stays_and_is_sent() -> None:
    consumer = Consumer(start())
    consumer.value["t"] = "before"
    consumer.value["l"].insert(0, "before")
    with pytest.raises(Undo), consumer.document.batch():
        consumer.value["t"] = "inside"
        consumer.value["l"].pop(0)
        consumer.value["l"].insert(1, "inside")
        raise Undo
    assert consumer.ops() == [
        {"op": "replace", "path": "/t", "value": "before"},
        {"op": "add", "path": "/l/0", "value": "before"},
    ]


def test_a_batch_in_a_batch_is_a_savepoint() -> None:
    consumer = Consumer(start())
    with consumer.document.batch():
        consumer.value["t"] = "outer"
        consumer.value["d"].pop("a")
        with pytest.raises(Undo), consumer.document.batch():
            consumer.value["t"] = "inner"
            consumer.value["d"].pop("b")
            raise Undo
        assert consumer.value["t"] == "outer"
        assert list(consumer.value["d"]) == ["b", "z"]
        with consumer.document.batch():
            consumer.value["l"].pop()
        assert consumer.document.take() is None
    assert sorted(consumer.paths()) == [("remove", "/d/a"), ("remove", "/l/2"), ("replace", "/t")]


def test_an_inner_batch_that_ended_well_is_undone_with_the_outer_one() -> None:
    consumer = Consumer(start())
    before = everything(consumer.value)
    with pytest.raises(Undo), consumer.document.batch():
        consumer.value["d"].pop("b")
        with consumer.document.batch():
            consumer.value["d"].pop("a")
            consumer.value["d"]["new"] = 1
        raise Undo
    assert_same(consumer.value, before)
    assert consumer.take() is None


def test_the_whole_value_is_put_back() -> None:
    consumer = Consumer(start())
    old, before = consumer.value, everything(consumer.value)
    with pytest.raises(Undo), consumer.document.batch():
        consumer.value["t"] = 1
        consumer.value = {"new": [1]}
        consumer.value["new"].append(old["l"])
        consumer.value = 5
        raise Undo
    assert consumer.value is old
    assert_same(old, before)
    assert consumer.take() is None
    old["l"].append(1)
    assert consumer.paths() == [("add", "/l/3")]


def test_what_entered_in_a_batch_that_was_undone_is_out_again() -> None:
    consumer = Consumer(start())
    row = TrackedDict(n=1)
    with pytest.raises(Undo), consumer.document.batch():
        consumer.value["l"].append(row)
        row["n"] = 2
        raise Undo
    row["m"] = 3
    assert consumer.take() is None
    consumer.value["l"].append(row)
    assert consumer.ops() == [{"op": "add", "path": "/l/3", "value": plain(row)}]


def test_opaque_values_are_put_back_but_not_what_is_inside() -> None:
    consumer = Consumer({"set": {1}, "rows": [{2}]})
    one = consumer.value["set"]
    with pytest.raises(Undo), consumer.document.batch():
        one.add(3)
        consumer.value["set"] = {9}
        consumer.value["rows"].clear()
        raise Undo
    assert consumer.value["set"] is one
    assert consumer.paths() == [("add", "/set/1")]
    consumer.value["rows"][0].add(4)
    assert consumer.paths() == [("add", "/rows/0/1")]


def test_cancellation_and_system_exit_undo_as_well() -> None:
    for error in (asyncio.CancelledError, SystemExit, KeyboardInterrupt):
        document = Document({"a": 1})
        with pytest.raises(error), document.batch():
            document.value["a"] = 2
            raise error
        assert document.value == {"a": 1}


def test_a_refused_edit_that_is_caught_inside_undoes_nothing_else() -> None:
    consumer = Consumer(start())
    with consumer.document.batch():
        consumer.value["t"] = "y"
        with pytest.raises(ValueError, match="not JSON"):
            consumer.value["l"].extend([1, object()])
        consumer.value["l"].append(4)
    assert consumer.paths() == [("replace", "/t"), ("add", "/l/3")]


def test_on_change_is_called_again_when_a_take_came_too_early() -> None:
    taken: list[Any] = []
    document: Document[Any] = Document({"a": 1}, baseline={"a": 1}, on_change=lambda: taken.append(document.take()))
    with document.batch():
        document.value["a"] = 2
        document.value["b"] = 3
    assert taken[0] is None
    assert isinstance(taken[1], Delta)
    assert len(taken) == 2
    assert len(taken[1].ops) == 2


def test_a_batch_works_in_a_thread() -> None:
    consumer = Consumer(start())

    def work() -> None:
        with pytest.raises(Undo), consumer.document.batch():
            consumer.value["t"] = "y"
            raise Undo
        with consumer.document.batch():
            consumer.value["t"] = "z"

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(10)
    assert consumer.ops() == [{"op": "replace", "path": "/t", "value": "z"}]


def test_undoing_costs_what_was_touched_and_not_the_size() -> None:
    consumer = Consumer({"rows": [{"n": number} for number in range(5000)]})
    rows = consumer.value["rows"]
    with pytest.raises(Undo), consumer.document.batch():
        rows[2500]["n"] = -1
        rows.pop(100)
        log = consumer.document._tracker.log
        assert log is not None
        assert len(log) == 2
        assert sum(len(part) for entry in log for part in entry if isinstance(part, list) and part is not rows) == 1
        raise Undo
    assert text(plain(rows[2500])) == '{"n": 2500}'
    assert consumer.take() is None
