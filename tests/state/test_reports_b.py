"""What went wrong elsewhere in tracked containers, each as a test of its own."""

import collections
import copy
import dataclasses
import functools
import inspect
import json
import pickle
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter
from pydantic_core import to_json

from state_support import Consumer, plain
from statecast import StateError
from statecast.state import Document, TrackedDict, TrackedList, encode_json


def test_edits_in_place_are_sent_each_as_one_patch() -> None:
    consumer = Consumer({"items": [], "d": {"k": {}}, "rows": [{"tags": []}]})
    consumer.value["items"].append("x")
    assert consumer.paths() == [("add", "/items/0")]
    consumer.value["d"]["k"]["n"] = 1
    assert consumer.paths() == [("add", "/d/k/n")]
    consumer.value["rows"][0]["tags"].append("t")
    assert consumer.paths() == [("add", "/rows/0/tags/0")]


def test_keys_with_dots_slashes_and_brackets_arrive_as_they_are() -> None:
    consumer = Consumer({"files": {}})
    keys = ["a.b.c", "x/y~z", "[0]"]
    for key in keys:
        consumer.value["files"][key] = 1
    consumer.take()
    assert list(consumer.state["files"]) == keys


def test_writing_the_state_while_other_threads_change_it() -> None:
    document: Document[Any] = Document({"d": {}})
    errors: list[BaseException] = []

    def add(name: str) -> None:
        try:
            for number in range(2000):
                document.value["d"][f"{name}{number}"] = [number]
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=add, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        document.resync()
        document.take()
    for thread in threads:
        thread.join(20)
    assert not errors
    document.resync()
    taken = document.take()
    assert taken is not None
    assert json.loads(taken.json) == plain(document.value)
    assert len(document.value["d"]) == 4000


def test_other_code_takes_them_for_dicts_and_lists() -> None:
    state = Document({"d": {"a": 1}, "l": [2, 1]}).value
    d, items = state["d"], state["l"]
    assert isinstance(d, (dict, Mapping))
    assert (dict(d), {**d}, (lambda **given: given)(**d), {**d, "x": 1}) == (
        {"a": 1},
        {"a": 1},
        {"a": 1},
        {"a": 1, "x": 1},
    )
    assert (d | {"x": 1}, {"x": 1} | d) == ({"a": 1, "x": 1}, {"x": 1, "a": 1})
    assert ([*items], [0, *items][1:], sorted(items), len(items), bool(items)) == ([2, 1], [2, 1], [1, 2], 2, True)
    assert (repr(d), f"{items}") == ("{'a': 1}", "[2, 1]")
    match d, items:
        case {"a": 1}, [2, *_]:
            pass
        case _:
            pytest.fail("no match")


def test_encoders_write_them() -> None:
    state = Document({"d": {"a": [1]}, "l": [{"n": 1}]}).value
    assert json.dumps(state["l"]) == '[{"n": 1}]'
    assert json.dumps({"a": state["d"]}) == '{"a": {"a": [1]}}'
    assert to_json({"a": state["d"]}) == b'{"a":{"a":[1]}}'
    httpx = pytest.importorskip("httpx")
    assert httpx.Request("POST", "http://127.0.0.1", json=state["d"]).content == b'{"a":[1]}'


def test_orjson_writes_them() -> None:
    orjson = pytest.importorskip("orjson")
    assert orjson.dumps(Document({"a": [{"n": 1}]}).value) == b'{"a":[{"n":1}]}'


def test_pydantic_reads_and_writes_them() -> None:
    class Row(BaseModel):
        n: int

    class Out(BaseModel):
        rows: list[Row]
        raw: Any = None

    state = Document({"rows": [{"n": 1}]}).value
    assert Out(rows=state["rows"], raw=state).model_dump_json() == '{"rows":[{"n":1}],"raw":{"rows":[{"n":1}]}}'
    assert TypeAdapter(list[dict[str, Any]]).validate_python(state["rows"]) == [{"n": 1}]


def test_a_slice_is_a_list_of_its_own_whose_items_are_the_state() -> None:
    consumer = Consumer({"rows": [{"k": 0}, {"k": 1}, {"k": 2}]})
    rows = consumer.value["rows"]
    for part in (rows[:2], rows[::-1][1:], rows.copy(), list(rows)):
        part.append("x")
        assert consumer.take() is None
        part[0]["k"] += 10
        assert len(consumer.ops()) == 1


def test_a_container_that_was_just_assigned_is_tracked() -> None:
    consumer = Consumer({})
    state = consumer.value
    for edit in (
        lambda: state.update(items=[]),
        lambda: state["items"].append(1),
        lambda: state.update(d={}),
        lambda: state["d"].update(a={}),
        lambda: state["d"]["a"].update(b=1),
    ):
        edit()
        assert len(consumer.ops()) == 1


def test_an_append_gives_a_delta_on_this_python() -> None:
    document = Document({"l": []})
    document.take()
    document.value["l"].append(1)
    assert document.take() is not None, "tracking does not work on this version of Python"


def test_what_methods_return_is_not_the_state() -> None:
    consumer = Consumer({"d": {"a": 1}, "text": "a b", "note": Note()})
    state = consumer.value
    dumped = state["note"].model_dump()
    dumped["x"] = 1
    words = state["text"].split()
    words.append("c")
    missing = state["d"].get("missing", [])
    missing.append(1)
    keys = list(state["d"].keys())
    keys.append("b")
    assert consumer.take() is None


class Note(BaseModel):
    text: str = ""


@dataclasses.dataclass
class Point:
    x: int = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Fixed:
    x: int = 1


def test_dataclasses_stay_what_they_are() -> None:
    consumer = Consumer({"point": Point(), "fixed": Fixed()})
    state = consumer.value
    assert [field.name for field in dataclasses.fields(state["point"])] == ["x"]
    match state["point"]:
        case Point(x=1):
            pass
        case _:
            pytest.fail("no match")
    assert state["point"] == Point()
    assert hash(state["fixed"]) == hash(Fixed())
    state["point"].x = 2
    assert consumer.ops() == [{"op": "replace", "path": "/point/x", "value": 2}]


def test_a_container_kept_from_an_earlier_run_does_not_write_to_the_next() -> None:
    first = Consumer({"rows": [[1]]})
    first.value["selected"] = first.value["rows"][0]
    first.take()
    kept = first.value["rows"]
    second = Consumer(plain(first.value))
    kept.append("x")
    kept[0].append("y")
    assert second.take() is None
    assert second.state["selected"] == [1]
    with pytest.raises(StateError, match="another document"):
        second.value["rows"] = kept


def test_copies_are_plain_and_apart() -> None:
    consumer = Consumer({"d": {"k": {"n": 1}}, "rows": []})
    shallow = copy.copy(consumer.value["d"])
    shallow["x"] = 1
    deep = copy.deepcopy(consumer.value)
    deep["rows"].append(1)
    deep["d"]["k"]["n"] = 2
    assert type(shallow) is dict
    assert {type(deep), type(deep["d"]), type(deep["d"]["k"])} == {dict}
    assert type(deep["rows"]) is list
    assert consumer.take() is None


def test_edits_that_do_nothing_say_nothing() -> None:
    consumer = Consumer({"d": {"a": 1}, "l": [1, 2], "s": {1}})
    state = consumer.value
    state["d"].setdefault("a", 2)
    state["d"].update({})
    state["l"].extend([])
    state["l"] += []
    state["s"].discard(5)
    state["s"].add(1)
    state["d"].pop("missing", None)
    state["l"].sort()
    state["d"] = state["d"]
    state["d"]["a"] = 1
    assert consumer.take() is None


@pytest.mark.parametrize(("tracked", "kind"), [(TrackedDict, dict), (TrackedList, list)])
def test_signatures_are_those_of_the_built_ins(tracked: type, kind: type) -> None:
    for name in vars(tracked):
        own, known = getattr(tracked, name), getattr(kind, name, None)
        if name.startswith("_") or known is None:
            continue
        try:
            expected = inspect.signature(known)
        except ValueError:
            continue
        given = inspect.signature(own).parameters
        for parameter in expected.parameters.values():
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                assert given[parameter.name].kind is inspect.Parameter.KEYWORD_ONLY
                assert given[parameter.name].default == parameter.default


def test_reverse_sort_index_and_pop_take_what_those_of_a_list_take() -> None:
    consumer = Consumer({"l": [3, 1, 2, 1]})
    items = consumer.value["l"]
    items.sort(key=lambda one: -one, reverse=True)
    assert items == [1, 1, 2, 3]
    consumer.take()
    items.reverse()
    consumer.take()
    assert items.index(1, 3, 4) == 3
    assert items.pop(-1) == 1
    items.remove(1)
    consumer.take()
    assert consumer.state == {"l": [3, 2]}


def test_slices_are_assigned_and_deleted_as_in_a_list() -> None:
    twin: list[Any] = list(range(8))
    consumer = Consumer({"l": list(twin)})
    items = consumer.value["l"]
    edits: list[Any] = [
        lambda x: x.__setitem__(slice(1, 1), ["a", "b"]),
        lambda x: x.__delitem__(slice(None, None, 2)),
        lambda x: x.__setitem__(slice(None, None, -1), list(x)),
        lambda x: x.__setitem__(slice(5, 2), ["x"]),
        lambda x: x.__setitem__(slice(-3, None), []),
        lambda x: x.__delitem__(slice(-1, -5, -2)),
        lambda x: x.__setitem__(slice(None), [1]),
    ]
    for edit in edits:
        edit(items)
        edit(twin)
        assert items == twin
        consumer.take()
        assert consumer.state == {"l": twin}


def test_what_setdefault_gives_back_is_tracked() -> None:
    consumer = Consumer({"old": []})
    consumer.value.setdefault("rows", []).append(1)
    assert consumer.ops() == [{"op": "add", "path": "/rows", "value": [1]}]
    consumer.value.setdefault("rows", []).append(2)
    assert consumer.paths() == [("add", "/rows/1")]
    consumer.value["groups"] = collections.defaultdict(list, {"a": [1]})
    consumer.value["groups"]["a"].append(2)
    (consumer.value.get("old") or consumer.value["groups"]["a"]).append(3)
    consumer.take()
    assert consumer.state["groups"] == {"a": [1, 2, 3]}


def test_no_single_method_is_forgotten() -> None:
    consumer = Consumer({"l": [1, 2, 3], "d": {"a": 1, "b": 2}, "s": {1, 2}})
    state = consumer.value
    edits: list[Any] = [
        lambda: state["l"].remove(2),
        lambda: state["l"].extend(n for n in (7,)),
        lambda: state["l"].insert(1, 9),
        lambda: state["d"].popitem(),
        lambda: state["d"].update([("c", 3)]),
        lambda: state["d"].update(e=4),
        lambda: state["d"].__ior__({"f": 5}),
        lambda: state["d"].__delitem__("a"),
        lambda: state["s"].__iand__({1}),
        lambda: state["s"].__ixor__({5, 1}),
        lambda: state["s"].__isub__({5}),
        lambda: state["s"].__ior__({6}),
        lambda: state["l"].clear(),
        lambda: state["d"].clear(),
    ]
    for edit in edits:
        edit()
        assert len(consumer.ops()) == 1
    assert consumer.take() is None


def test_after_pickling_an_edit_marks_its_own_container() -> None:
    consumer = Consumer(pickle.loads(pickle.dumps(Document({"a": {}, "b": {}}).value)))
    consumer.value["a"]["n"] = 1
    assert consumer.paths() == [("add", "/a/n")]


def test_changed_and_changed_back_is_no_event_in_one_flush_and_two_in_two() -> None:
    consumer = Consumer({"x": 1, "l": []})
    consumer.value["x"] = 2
    consumer.value["x"] = 1
    consumer.value["l"].append(1)
    consumer.value["l"].pop()
    assert consumer.take() is None
    consumer.value["x"] = 2
    assert len(consumer.ops()) == 1
    consumer.value["x"] = 1
    assert len(consumer.ops()) == 1


def test_the_original_of_what_was_assigned_is_not_the_state() -> None:
    consumer = Consumer({})
    options: dict[str, Any] = {"deep": []}
    consumer.value["opts"] = options
    consumer.take()
    options["lang"] = "fi"
    options["deep"].append(1)
    assert consumer.take() is None
    consumer.document.resync()
    consumer.take()
    assert consumer.state == {"opts": {"deep": []}}


def test_plus_equals_does_what_it_does_for_a_list_and_for_a_string() -> None:
    consumer = Consumer({"items": [], "text": "a"})
    for more in ("abc", (1, 2), (n for n in (3,)), {"k": 1}):
        consumer.value["items"] += more
        consumer.take()
    consumer.value["text"] += "bc"
    consumer.take()
    assert consumer.state == {"items": ["a", "b", "c", 1, 2, 3, "k"], "text": "abc"}


def test_each_member_has_its_own_path() -> None:
    consumer = Consumer({name: [] for name in "abcde"})
    other = Consumer({name: [] for name in "abcde"})
    for name in "abcde":
        consumer.value[name].append(name)
    assert sorted(consumer.paths()) == [("add", f"/{name}/0") for name in "abcde"]
    assert other.take() is None


def test_they_may_stand_in_other_payloads() -> None:
    state = Document({"rows": [{"n": 1}], "d": {"a": None}}).value
    payload = {"name": "progress", "value": state["rows"], "more": (state["d"], [state["rows"][0]])}
    assert encode_json(payload) == b'{"name":"progress","value":[{"n":1}],"more":[{"a":null},[{"n":1}]]}'


def test_a_card_that_moves_inside_the_document_is_no_error() -> None:
    consumer = Consumer({"todo": [{"n": 1}], "done": [{"n": 2}]})
    card = consumer.value["todo"].pop(0)
    consumer.value["done"].append(card)
    card["moved"] = True
    consumer.take()
    consumer.value["done"].insert(0, consumer.value["done"].pop())
    card["n"] = 3
    consumer.take()
    card["n"] = 4
    assert consumer.paths() == [("replace", "/done/0/n")]


def test_a_held_item_is_written_where_it_is_now() -> None:
    consumer = Consumer({"rows": [{"n": number} for number in (3, 1, 2)]})
    rows = consumer.value["rows"]
    row = rows[2]
    del rows[0]
    row["x"] = 1
    assert consumer.paths() == [("remove", "/rows/0"), ("add", "/rows/1/x")]
    rows.sort(key=lambda one: -one["n"])
    consumer.take()
    row["x"] = 2
    assert consumer.paths() == [("replace", "/rows/0/x")]
    rows.remove(row)
    consumer.take()
    row["x"] = 3
    assert consumer.take() is None


def test_changed_and_assigned_again_is_one_delta() -> None:
    consumer = Consumer({"d": {"a": 1}})
    d = consumer.value["d"]
    d["x"] = 1
    consumer.value["d"] = d
    assert consumer.paths() == [("add", "/d/x")]
    raw = dict(consumer.value["d"])
    raw["y"] = 2
    consumer.value["d"] = raw
    assert consumer.paths() == [("add", "/d/y")]


def test_what_was_hashable_still_is() -> None:
    consumer = Consumer({"fixed": Fixed(), "pair": (1, "a")})
    state = consumer.value

    @functools.cache
    def seen(value: Any) -> str:
        return repr(value)

    assert seen(state["fixed"]) == repr(Fixed())
    assert {state["pair"]: 1, state["fixed"]: 2}[(1, "a")] == 1


def test_taking_inside_a_batch_neither_ends_nor_blocks_it() -> None:
    consumer = Consumer({"a": 0, "b": 0})

    def tool() -> None:
        with consumer.document.batch():
            consumer.value["c"] = 3

    with consumer.document.batch():
        consumer.value["a"] = 1
        assert consumer.document.take() is None
        tool()
        assert consumer.document.take() is None
        consumer.value["b"] = 2
    assert sorted(consumer.paths()) == [("add", "/c"), ("replace", "/a"), ("replace", "/b")]
