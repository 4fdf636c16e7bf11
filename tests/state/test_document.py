"""Delta, snapshot or nothing; what the consumer holds; values whose changes Python does not show."""

import asyncio
import copy
import dataclasses
import gc
import json
import logging
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from state_support import Consumer, plain, text
from statecast import StateError
from statecast.state import Delta, Document, Snapshot, TrackedDict


class Note(BaseModel):
    text: str = ""
    tags: list[str] = []


@dataclasses.dataclass
class Point:
    x: Any = 1


def reasons(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage().partition(": ")[2] for record in caplog.records if record.levelno == logging.DEBUG]
    caplog.clear()
    return found


# The table of reasons


def test_the_first_take_is_a_snapshot_and_then_nothing_changed() -> None:
    document = Document({"a": [1]})
    assert document.take() == Snapshot({"a": [1]}, b'{"a":[1]}')
    assert document.take() is None
    assert document.take(delta=False) is None
    assert document.take(compare=False) is None


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.DEBUG, "statecast.state")
    return lambda: reasons(caplog)


FILL = "f" * 2000


@pytest.mark.parametrize(
    ("start", "edit", "reason"),
    [
        ({"a": 1}, lambda d: d.resync(), "the consumer's copy is unknown"),
        ({"a": 1}, lambda d: d.value.update(__proto__=1), "known consumers refuse a path of the delta"),
        (
            {"__proto__": {"a": 1}},
            lambda d: d.value["__proto__"].update(a=2),
            "known consumers refuse a path of the delta",
        ),
        (
            {"constructor": {"prototype": 1}},
            lambda d: d.value["constructor"].pop("prototype"),
            "known consumers refuse a path of the delta",
        ),
        ({"a": [1]}, lambda d: setattr(d, "value", 5), "the whole value was replaced"),
        ({"a": [1]}, lambda d: setattr(d, "value", [1]), "the whole value was replaced"),
        ("text", lambda d: setattr(d, "value", "other"), "the whole value was replaced"),
        ({"a": FILL * 40}, lambda d: setattr(d, "value", {"a": FILL * 39}), "the whole value was replaced"),
        ([1, 2, 3], lambda d: d.value.reverse(), "the delta is the whole value"),
        ({"a": 1}, lambda d: d.value.update(a=FILL), "the delta is not shorter than the state"),
    ],
)
def test_each_reason_for_a_snapshot(start: Any, edit: Any, reason: str, logged: Callable[[], list[str]]) -> None:
    consumer = Consumer(start)
    logged()
    edit(consumer.document)
    taken = consumer.take()
    assert isinstance(taken, Snapshot)
    assert [one.startswith(reason) for one in logged()] == [True]
    assert consumer.take() is None


def test_a_change_is_a_snapshot_if_a_delta_is_not_asked_for(logged: Callable[[], list[str]]) -> None:
    consumer = Consumer({"a": 1, "b": {"c": 1}})
    logged()
    consumer.value["a"] = 2
    assert isinstance(consumer.take(delta=False), Snapshot)
    consumer.value["b"]["c"] = 2
    consumer.value["a"] = 3
    assert isinstance(consumer.take(delta=False), Snapshot)
    consumer.value = {"z": 1}
    assert isinstance(consumer.take(delta=False), Snapshot)
    assert logged() == ["a delta was not asked for"] * 3
    consumer.value["a"] = consumer.value.get("a")
    consumer.take()
    assert consumer.take(delta=False) is None


def test_a_path_that_only_looks_like_one_that_is_refused_is_a_delta() -> None:
    consumer = Consumer({"constructor": {"a": {"prototype": 1}}, "prototype": {"constructor": 1}})
    consumer.value["constructor"]["a"]["prototype"] = 2
    consumer.value["prototype"]["constructor"] = 2
    consumer.value["proto"] = {"__proto__": 1}
    assert len(consumer.ops()) == 3


def test_a_delta_below_512_bytes_is_always_a_delta() -> None:
    consumer = Consumer({"a": 1})
    for length in (10, 100, 400):
        consumer.value["a"] = "x" * length
        assert isinstance(consumer.take(), Delta)
    consumer.value["a"] = "x" * 900
    taken = consumer.take()
    assert isinstance(taken, Snapshot)


def test_a_longer_delta_is_compared_with_the_last_known_size() -> None:
    consumer = Consumer({"a": "x" * 2000})
    consumer.value["b"] = "y" * 1000
    assert isinstance(consumer.take(), Delta)
    # Deltas since the last snapshot count as growth of the state.
    consumer.value["c"] = "z" * 2500
    assert isinstance(consumer.take(), Delta)
    consumer.value["d"] = "z" * 9000
    assert isinstance(consumer.take(), Snapshot)


def test_the_size_of_a_given_baseline_is_measured_at_the_first_delta_that_needs_it() -> None:
    small = Consumer({"a": 1}, baseline={"a": 1})
    small.value["b"] = "y" * 1000
    assert isinstance(small.take(), Snapshot)
    large = Consumer({"a": "x" * 2000}, baseline={"a": "x" * 2000})
    large.value["b"] = "y" * 1000
    assert isinstance(large.take(), Delta)


def test_an_array_state_may_be_a_delta_and_one_scalar_never_is(caplog: pytest.LogCaptureFixture) -> None:
    consumer = Consumer([1, [2]])
    consumer.value.append(3)
    assert consumer.ops() == [{"op": "add", "path": "/2", "value": 3}]
    scalar = Consumer(None)
    for value in (0, 0.0, False, "", "a", None, 1, True, 1.0):
        scalar.value = value
        assert isinstance(scalar.take(), Snapshot)
        scalar.value = value
        assert scalar.take() is None
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2
    assert "not an object" in caplog.text


# Replacement of the whole


def test_the_whole_value_is_compared_when_it_is_replaced() -> None:
    consumer = Consumer({"rows": [{"n": 1}, {"n": 2}], "name": "a"})
    consumer.value = {"rows": [{"n": 1}, {"n": 3}], "name": "a"}
    assert consumer.ops() == [{"op": "replace", "path": "/rows/1/n", "value": 3}]
    consumer.value = {**consumer.value, "new": True}
    assert consumer.ops() == [{"op": "add", "path": "/new", "value": True}]
    consumer.value = plain(consumer.value)
    assert consumer.take() is None
    consumer.value["rows"].append(1)
    assert consumer.paths() == [("add", "/rows/2")]
    consumer.value = consumer.value
    assert consumer.take() is None


@pytest.mark.parametrize("value", [{}, {"other": 1}, {"rows": []}])
def test_a_replacement_never_has_the_empty_path(value: Any) -> None:
    consumer = Consumer({"rows": [1], "name": "a"})
    consumer.value = value
    taken = consumer.take()
    assert taken is not None
    if isinstance(taken, Delta):
        assert all(op["path"] for op in taken.ops)


def test_edits_around_a_replacement() -> None:
    consumer = Consumer({"a": {"n": 1}})
    old = consumer.value
    old["a"]["n"] = 2
    consumer.value = {"a": {"n": 3}}
    old["a"]["n"] = 4
    consumer.value["a"]["n"] = 5
    assert consumer.ops() == [{"op": "replace", "path": "/a/n", "value": 5}]
    old["a"]["n"] = 6
    assert consumer.take() is None
    consumer.value = old
    consumer.value["a"]["n"] = 7
    consumer.take()
    consumer.value = {"x": 1}
    consumer.value = old
    assert consumer.take() is None


def test_equal_replacements_of_all_kinds_say_nothing() -> None:
    for value in (None, 1, "a", [1, {"a": []}], {"a": {"b": [None]}}, {"f": 1.0}):
        consumer = Consumer(copy.deepcopy(value))
        consumer.value = copy.deepcopy(value)
        assert consumer.take() is None


# The baseline


@pytest.mark.parametrize("value", [None, False, 0, 0.0, "", [], {}, {"a": [1, None]}, "text", 2.5])
@pytest.mark.parametrize("baseline", [None, False, 0, 0.0, "", [], {}, {"a": [1, None]}, "text", 2.5])
def test_a_baseline_is_what_the_consumer_holds(value: Any, baseline: Any) -> None:
    consumer = Consumer(copy.deepcopy(value), baseline=copy.deepcopy(baseline))
    taken = consumer.take()
    assert (taken is None) == (text(value) == text(baseline))
    assert consumer.take() is None


def test_a_baseline_that_differs_is_brought_up_to_date() -> None:
    consumer = Consumer({"a": 1, "rows": [1, 2]}, baseline={"a": 1, "rows": [1], "gone": 1})
    assert sorted(consumer.paths()) == [("add", "/rows/1"), ("remove", "/gone")]
    consumer = Consumer({"a": 1.0}, baseline={"a": 1})
    assert text(consumer.ops()) == text([{"op": "replace", "path": "/a", "value": 1.0}])


def test_edits_before_the_first_take_count_against_the_baseline() -> None:
    consumer = Consumer({"a": 1, "rows": [{"n": 1}]}, baseline={"a": 1, "rows": [{"n": 1}]})
    consumer.value["rows"].insert(0, {"n": 0})
    assert consumer.ops() == [{"op": "add", "path": "/rows/0", "value": {"n": 0}}]
    consumer = Consumer({"a": 1}, baseline={"b": 1})
    consumer.value["b"] = 1
    del consumer.value["a"]
    assert consumer.take() is None


def test_a_baseline_is_copied() -> None:
    baseline: Any = {"a": [1]}
    document = Document({"a": [1]}, baseline=baseline)
    baseline["a"].append(2)
    assert document.take() is None


def test_without_a_delta_an_equal_baseline_still_says_nothing() -> None:
    document = Document({"a": 1}, baseline={"a": 1})
    assert document.take(delta=False) is None
    document.value["a"] = 2
    assert isinstance(document.take(delta=False), Snapshot)


def test_resync_makes_the_next_take_a_snapshot_once() -> None:
    consumer = Consumer({"a": 1})
    consumer.document.resync()
    assert isinstance(consumer.take(), Snapshot)
    assert consumer.take() is None
    consumer.value["a"] = 2
    consumer.document.resync()
    assert isinstance(consumer.take(), Snapshot)
    consumer.value["a"] = 3
    assert isinstance(consumer.take(), Delta)


# What was taken is plain and stays what it was


def test_what_was_taken_never_changes() -> None:
    document: Document[Any] = Document({"log": [], "d": {}, "note": Note(), "point": Point()})
    snapshot = document.take()
    document.value["log"].append({"n": []})
    document.value["d"] = {"x": []}
    first = document.take()
    assert isinstance(first, Delta)
    kept = copy.deepcopy((snapshot, first))
    document.value["log"][0]["n"].append(1)
    document.value["d"]["x"].append(1)
    document.value["note"].tags.append("t")
    document.value["point"].x = [1]
    document.take()
    assert (snapshot, first) == kept
    json.dumps([first.ops, snapshot.value])  # type: ignore[union-attr]
    for op in first.ops:
        assert type(op.get("value", {})) in (dict, list)


def test_changing_what_was_taken_changes_nothing() -> None:
    consumer = Consumer({"log": [[1]]})
    consumer.value["log"].append([2])
    taken = consumer.take()
    assert isinstance(taken, Delta)
    taken.ops[0]["value"].append("mine")
    snapshot = Document({"a": [1]}).take()
    assert isinstance(snapshot, Snapshot)
    snapshot.value["a"].append(2)
    assert consumer.value == {"log": [[1], [2]]}
    assert consumer.take() is None


# Waking


def test_on_change_is_called_once_when_it_gets_dirty() -> None:
    consumer = Consumer({"a": 1, "b": [{}]})
    assert consumer.changes == 0
    consumer.value["a"] = 2
    consumer.value["b"].append(1)
    consumer.value["b"][0]["x"] = 1
    assert consumer.changes == 1
    consumer.take()
    consumer.take()
    assert consumer.changes == 1
    consumer.value["b"].sort(key=str)
    consumer.value = {"new": 1}
    assert consumer.changes == 2
    consumer.take()
    consumer.value = {"new": 2}
    assert consumer.changes == 3
    consumer.take()
    consumer.value["new"] = 3
    assert consumer.changes == 4


def test_on_change_may_take() -> None:
    taken: list[Any] = []
    document: Document[Any] = Document({"a": 1}, baseline={"a": 1}, on_change=lambda: taken.append(document.take()))
    document.value["a"] = 2
    document.value.update(a=3)
    document.value = {"a": 4}
    assert [one.ops for one in taken] == [[{"op": "replace", "path": "/a", "value": number}] for number in (2, 3, 4)]


def test_an_edit_that_changes_nothing_wakes_nobody() -> None:
    consumer = Consumer({"a": {}, "l": [1]})
    state = consumer.value
    state["a"] = state["a"]
    state.update({})
    state["l"].extend([])
    state["l"] += []
    state.pop("missing", None)
    state.setdefault("l", [])
    state["l"] *= 1
    state["a"].clear()
    state["l"][5:] = []
    del state["l"][5:]
    assert consumer.changes == 0


# Opaque values


@pytest.mark.parametrize(
    ("make", "change", "value"),
    [
        (Note, lambda note: note.tags.append("t"), {"text": "", "tags": ["t"]}),
        (Point, lambda point: setattr(point, "x", [1]), {"x": [1]}),
        (set, lambda one: one.update("ba"), ["a", "b"]),
        (deque, lambda one: one.append(1), [1]),
        (lambda: ([], {}), lambda one: one[0].append(1), [[1], {}]),
    ],
)
def test_a_change_inside_an_opaque_value_is_found_by_comparison(make: Any, change: Any, value: Any) -> None:
    consumer = Consumer({"at": make(), "rows": [1, make()]})
    change(consumer.value["at"])
    assert consumer.take(compare=False) is None
    consumer.take()
    assert consumer.state["at"] == value
    change(consumer.value["rows"][1])
    consumer.value["rows"].insert(0, 0)
    assert isinstance(consumer.take(compare=False), Delta)
    consumer.take()
    assert consumer.state["rows"] == [0, 1, value]
    assert consumer.changes == 1


def test_an_opaque_value_as_the_whole() -> None:
    consumer = Consumer(Note(text="a"))
    assert consumer.document.compares
    consumer.value.text = "b"
    assert consumer.ops() == [{"op": "replace", "path": "/text", "value": "b"}]
    consumer.value.tags.append("t")
    assert consumer.ops() == [{"op": "add", "path": "/tags/0", "value": "t"}]
    consumer.value = Note(text="b", tags=["t"])
    assert consumer.take() is None
    consumer.value = Note(text="c", tags=["t"])
    assert consumer.ops() == [{"op": "replace", "path": "/text", "value": "c"}]
    consumer.value = {}
    consumer.take()
    assert not consumer.document.compares
    baseline = Consumer(Note(text="a"), baseline={"text": "a", "tags": []})
    assert baseline.take() is None


def test_an_opaque_value_at_several_places_changes_at_all_of_them() -> None:
    note = Note(text="a")
    consumer = Consumer({"one": note, "rows": [note, note]})
    note.text = "b"
    assert sorted(consumer.paths()) == [
        ("replace", "/one/text"),
        ("replace", "/rows/0/text"),
        ("replace", "/rows/1/text"),
    ]
    note.text = "c"
    consumer.value["three"] = note
    consumer.value["rows"].pop()
    # It was not looked at: what is added is what the consumer holds elsewhere.
    taken = consumer.take(compare=False)
    assert isinstance(taken, Delta)
    assert {"op": "add", "path": "/three", "value": {"text": "b", "tags": []}} in taken.ops
    assert sorted(consumer.paths()) == [
        ("replace", "/one/text"),
        ("replace", "/rows/0/text"),
        ("replace", "/three/text"),
    ]


def test_an_opaque_value_that_was_moved_is_found() -> None:
    notes = [Note(text=str(number)) for number in range(100)]
    consumer = Consumer({"notes": notes, "other": []})
    state = consumer.value["notes"]
    state.insert(0, 1)
    state.pop(40)
    state.reverse()
    consumer.value["other"].append(state.pop(3))
    notes[7].text = "seven"
    notes[96].text = "moved"
    consumer.take()
    notes[7].text = "again"
    assert consumer.paths() == [("replace", f"/notes/{state.index(notes[7])}/text")]


def test_an_opaque_value_that_is_replaced_by_an_equal_one_says_nothing() -> None:
    consumer = Consumer({"note": Note(text="a"), "rows": [Note()]})
    consumer.value["note"] = Note(text="a")
    consumer.value["rows"] = [Note()]
    assert consumer.take() is None
    consumer.value["note"] = {"text": "a", "tags": []}
    assert consumer.take() is None
    consumer.value["note"]["text"] = "b"
    assert consumer.paths() == [("replace", "/note/text")]


def test_an_opaque_value_that_cannot_be_written_any_more_raises_and_the_baseline_stays() -> None:
    point = Point()
    consumer = Consumer({"a": 1, "deep": [point]})
    consumer.value["a"] = 2
    point.x = float("nan")
    for _ in range(2):
        with pytest.raises(StateError) as raised:
            consumer.document.take()
        assert raised.value.pointer == "/deep/0/x"
    assert consumer.take(compare=False) is not None
    point.x = 2
    assert consumer.paths() == [("replace", "/deep/0/x")]


def test_a_large_opaque_value_is_replaced_and_a_small_one_is_compared() -> None:
    consumer = Consumer({"note": Note(tags=["t" * 100] * 1000), "small": Note(tags=["t"] * 50), "fill": "x" * 200_000})
    consumer.value["note"].text = "new"
    consumer.value["small"].text = "new"
    assert sorted(consumer.paths()) == [("replace", "/note"), ("replace", "/small/text")]


def test_slow_comparisons_are_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    consumer = Consumer({"few": [Note()], "many": {"notes": [Note() for _ in range(3000)]}})
    consumer.take()
    consumer.take()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "3001 objects" in caplog.text
    assert "'/many/notes'" in caplog.text


def test_opaque_values_that_left_are_not_kept() -> None:
    consumer = Consumer({"note": Note(), "rows": []})
    gone = weakref.ref(consumer.value["note"])
    for _ in range(50):
        consumer.value["note"] = Note()
        consumer.value["rows"].append(Point())
        consumer.take()
        consumer.value["rows"].clear()
    consumer.take()
    assert gone() is None
    assert len(consumer.document._tracker.opaque) == 1


# touch


def test_touch_looks_at_an_opaque_value_at_the_next_take() -> None:
    note = Note()
    consumer = Consumer({"note": note})
    note.text = "a"
    assert consumer.take(compare=False) is None
    consumer.document.touch("/note")
    assert consumer.changes == 1
    assert consumer.ops(compare=False) == [{"op": "replace", "path": "/note/text", "value": "a"}]


def test_touch_writes_a_container_that_was_changed_past_its_methods() -> None:
    consumer = Consumer({"heap": [3, 2, 1], "deep": [{"rows": []}]})
    heap = consumer.value["heap"]
    list.sort(heap)
    list.append(heap, {"plain": []})
    assert consumer.document.take() is None
    consumer.document.touch("/heap")
    assert consumer.ops() == [{"op": "replace", "path": "/heap", "value": [1, 2, 3, {"plain": []}]}]
    heap[3]["plain"].append(1)
    assert consumer.paths() == [("add", "/heap/3/plain/0")]
    list.append(consumer.value["deep"][0]["rows"], 1)
    dict.__setitem__(consumer.value, "new", {"a": 1})
    consumer.document.touch()
    assert isinstance(consumer.take(), Snapshot)
    assert type(consumer.value["new"]) is TrackedDict


@pytest.mark.parametrize("pointer", ["/deep/n", "/deep/s", "/deep"])
def test_touch_of_a_plain_member_writes_the_container_that_holds_it(pointer: str) -> None:
    consumer = Consumer({"deep": {"n": 1, "s": "a"}, "pad": ["x" * 100]})
    dict.update(consumer.value["deep"], n=2, s="b")
    consumer.document.touch(pointer)
    assert consumer.ops(compare=False) == [{"op": "replace", "path": "/deep", "value": {"n": 2, "s": "b"}}]


@pytest.mark.parametrize(("pointer", "error"), [("a", ValueError), ("/missing", LookupError), ("/a/9", LookupError)])
def test_touch_of_what_is_not_there(pointer: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        Document({"a": [1]}).touch(pointer)


# Life


def test_a_document_and_its_state_are_freed_without_the_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        document = Document({"rows": [{"n": [1]}, {"n": [2]}], "note": Note()}, on_change=lambda: None)
        document.take()
        document.value["rows"].append({"n": 3})
        document.value["rows"][0]["n"].append(1)
        document.take()
        references = [weakref.ref(document.value["rows"][0]), weakref.ref(document.value), weakref.ref(document)]
        del document
        assert [reference() for reference in references] == [None, None, None]
    finally:
        gc.enable()


def test_a_part_that_outlives_its_document_works_on() -> None:
    document: Document[Any] = Document({"rows": [{"n": 1}], "note": Note()})
    rows = document.value["rows"]
    document.take()
    del document
    rows.append({"m": [1]})
    rows[1]["m"] += [2]
    rows.insert(0, Point())
    assert plain(rows) == [{"x": 1}, {"n": 1}, {"m": [1, 2]}]


def test_something_that_is_no_value_is_refused_whole() -> None:
    for value in (asyncio.Event, object(), {"a": object()}):
        with pytest.raises(StateError):
            Document(value)
    document: Document[Any] = Document({"a": 1})
    document.take()
    with pytest.raises(StateError):
        document.value = {"b": object()}
    assert document.value == {"a": 1}
    assert document.take() is None
