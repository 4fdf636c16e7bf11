"""TrackedDict and TrackedList: every name of dict and list is covered, and reading is the built-in's own."""

import bisect
import copy
import functools
import json
import operator
import pickle
import pprint
import random
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter
from pydantic_core import to_json

from state_support import Consumer, plain
from statecast import StateError
from statecast.state import Document, TrackedDict, TrackedList

INHERITED = {name for name in dir(object) if name not in ("__init__", "__setattr__", "__delattr__")}

DICT_MUTATORS: dict[str, list[Callable[[Any], Any]]] = {
    "__init__": [lambda d: d.__init__(new=1), lambda d: d.__init__([("a", 5)], self=1), lambda d: d.__init__()],
    "__setitem__": [
        lambda d: d.__setitem__("new", 1),
        lambda d: d.__setitem__("a", [1]),
        lambda d: d.__setitem__("b", 2),
    ],
    "__delitem__": [lambda d: d.__delitem__("a"), lambda d: d.__delitem__("missing"), lambda d: d.__delitem__(7)],
    "__ior__": [
        lambda d: operator.ior(d, {"a": 5, "new": {}}) is d,
        lambda d: operator.ior(d, [("new", 1)]) is d,
        lambda d: operator.ior(d, 5),
    ],
    "clear": [lambda d: d.clear()],
    "pop": [
        lambda d: d.pop("a"),
        lambda d: d.pop("missing", 5),
        lambda d: d.pop("missing"),
        lambda d: d.pop(),
        lambda d: d.pop("a", 1, 2),
        lambda d: d.pop(key="a"),
        lambda d: d.pop([]),
    ],
    "popitem": [lambda d: d.popitem(), lambda d: [d.popitem() for _ in range(9)]],
    "setdefault": [
        lambda d: d.setdefault("a", 9),
        lambda d: d.setdefault("new"),
        lambda d: d.setdefault("new", default=1),
        lambda d: d.setdefault("new", []).append(1),
        lambda d: d.setdefault("list", []).append(1),
    ],
    "update": [
        lambda d: d.update({"a": 5, "new": 1}),
        lambda d: d.update([("a", 5), ("new", 1)]),
        lambda d: d.update(a=5, new={"x": 1}),
        lambda d: d.update({"a": 5}, b=6),
        lambda d: d.update(self=1, cls=2, args=3, kwargs=4),
        lambda d: d.update((key, 1) for key in "xyz"),
        lambda d: d.update(),
        lambda d: d.update(5),
        lambda d: d.update([("a", 1, 2)]),
        lambda d: d.update({}, {}),
    ],
}
DICT_READERS = {
    *("__class_getitem__", "__contains__", "__getitem__", "__iter__", "__len__", "__or__", "__ror__", "__reversed__"),
    *("copy", "fromkeys", "get", "items", "keys", "values"),
}
LIST_MUTATORS: dict[str, list[Callable[[Any], Any]]] = {
    "__init__": [lambda x: x.__init__(), lambda x: x.__init__([1, [2]]), lambda x: x.__init__("ab")],
    "__setitem__": [
        lambda x: x.__setitem__(0, 5),
        lambda x: x.__setitem__(-1, {"n": 1}),
        lambda x: x.__setitem__(99, 1),
        lambda x: x.__setitem__(-99, 1),
        lambda x: x.__setitem__("a", 1),
        lambda x: x.__setitem__(slice(None), [1]),
        lambda x: x.__setitem__(slice(1, 1), ["a", "b"]),
        lambda x: x.__setitem__(slice(5, 2), ["x"]),
        lambda x: x.__setitem__(slice(-3, None), []),
        lambda x: x.__setitem__(slice(1, 3), (n for n in range(4))),
        lambda x: x.__setitem__(slice(None, None, -1), list("abcdef")[: len(x)]),
        lambda x: x.__setitem__(slice(None, None, 2), [7] * len(x[::2])),
        lambda x: x.__setitem__(slice(None, None, 2), [7]),
        lambda x: x.__setitem__(slice(0, 2), 5),
        lambda x: x.__setitem__(slice(0, 2, 0), [5]),
        lambda x: x.__setitem__(slice("a", 2), [5]),
    ],
    "__delitem__": [
        lambda x: x.__delitem__(0),
        lambda x: x.__delitem__(-1),
        lambda x: x.__delitem__(99),
        lambda x: x.__delitem__(slice(1, 3)),
        lambda x: x.__delitem__(slice(None, None, 2)),
        lambda x: x.__delitem__(slice(None, None, -2)),
        lambda x: x.__delitem__(slice(3, 1)),
        lambda x: x.__delitem__("a"),
    ],
    "__iadd__": [
        lambda x: operator.iadd(x, [1, [2]]) is x,
        lambda x: operator.iadd(x, "abc") is x,
        lambda x: operator.iadd(x, (n for n in range(3))) is x,
        lambda x: operator.iadd(x, {"k": 1}) is x,
        lambda x: operator.iadd(x, 5),
    ],
    "__imul__": [
        lambda x: operator.imul(x, 2) is x,
        lambda x: operator.imul(x, 0) is x,
        lambda x: operator.imul(x, -1) is x,
        lambda x: operator.imul(x, 1) is x,
        lambda x: operator.imul(x, True) is x,
        lambda x: operator.imul(x, 1.5),
    ],
    "append": [lambda x: x.append(1), lambda x: x.append({"a": []}), lambda x: x.append(), lambda x: x.append(value=1)],
    "clear": [lambda x: x.clear()],
    "extend": [
        lambda x: x.extend([1, {"a": 1}]),
        lambda x: x.extend(x),
        lambda x: x.extend(n for n in range(3)),
        lambda x: x.extend([]),
        lambda x: x.extend(5),
    ],
    "insert": [
        lambda x: x.insert(0, "start"),
        lambda x: x.insert(100, "end"),
        lambda x: x.insert(-100, "start"),
        lambda x: x.insert(-1, [1]),
        lambda x: x.insert(2, "middle"),
        lambda x: x.insert("a", 1),
    ],
    "pop": [
        lambda x: x.pop(),
        lambda x: x.pop(0),
        lambda x: x.pop(-2),
        lambda x: x.pop(99),
        lambda x: x.pop(-99),
        lambda x: [x.pop() for _ in range(9)],
        lambda x: x.pop("a"),
    ],
    "remove": [lambda x: x.remove(1), lambda x: x.remove({"n": 1}), lambda x: x.remove("missing")],
    "reverse": [lambda x: x.reverse()],
    "sort": [
        lambda x: x.sort(key=str),
        lambda x: x.sort(key=str, reverse=True),
        lambda x: x.sort(),
        lambda x: x.sort(str),
        lambda x: x.sort(key=lambda one: one["no"]),
    ],
}
LIST_READERS = {
    *("__add__", "__class_getitem__", "__contains__", "__getitem__", "__iter__", "__len__", "__mul__", "__reversed__"),
    *("__rmul__", "copy", "count", "index"),
}
# What object has too, with the reason why it is none of the two.
ELSEWHERE = {"__setattr__", "__delattr__"}


def start(kind: type) -> Any:
    if kind is dict:
        return {"a": 1, "b": {"c": [1]}, "list": [0], "d": "x"}
    return [3, 1, {"n": 1}, [1, 2], "x", None]


CASES = [(dict, name, edit) for name, edits in DICT_MUTATORS.items() for edit in edits]
CASES += [(list, name, edit) for name, edits in LIST_MUTATORS.items() for edit in edits]


@pytest.mark.parametrize(
    ("kind", "mutators", "readers"), [(dict, DICT_MUTATORS, DICT_READERS), (list, LIST_MUTATORS, LIST_READERS)]
)
def test_every_name_is_known_to_change_or_to_read(kind: type, mutators: Any, readers: set[str]) -> None:
    names = set(dir(kind)) - INHERITED - ELSEWHERE
    assert names - set(mutators) - readers == set(), "is it a mutator or a reader? Cover it, and add it to its table"
    tracked = TrackedDict if kind is dict else TrackedList
    for name in mutators:
        assert name in vars(tracked), f"{name} is the built-in's own: it would not be noticed"
    for name in ("__getitem__", "get", "__iter__", "__len__", "__contains__", "keys", "values", "items", "__eq__"):
        assert name not in vars(tracked), f"{name} must be the built-in's own"


@pytest.mark.parametrize(("kind", "name", "edit"), CASES)
@pytest.mark.parametrize("deep", [False, True])
def test_a_mutator_does_what_the_built_in_does_and_is_sent(
    kind: type, name: str, edit: Callable[[Any], Any], deep: bool
) -> None:
    twin = start(kind)
    consumer = Consumer({"deep": [{"at": start(kind)}]} if deep else start(kind))
    value = consumer.value["deep"][0]["at"] if deep else consumer.value
    outcomes = []
    for one in (value, twin):
        try:
            outcomes.append(repr(edit(one)))
        except Exception as error:
            outcomes.append(f"{type(error).__name__}")
    assert outcomes[0] == outcomes[1]
    assert value == twin
    assert repr(value) == repr(twin)
    assert list(value) == list(twin)
    consumer.take()
    assert consumer.take() is None
    # What came in is tracked, however deep.
    for count, tracked in enumerate(walk(value)):
        assert isinstance(tracked, (TrackedDict, TrackedList))
        tracked.append(1) if isinstance(tracked, list) else tracked.update(later=count)
        assert len(consumer.ops()) >= 1


def walk(value: Any) -> list[Any]:
    if not isinstance(value, (dict, list)):
        return []
    found = [value]
    for member in list(value.values() if isinstance(value, dict) else value):
        found += walk(member)
    return found


@pytest.mark.parametrize("kind", [dict, list])
def test_free_standing_containers_work_as_the_built_ins(kind: type) -> None:
    for case_kind, _, edit in CASES:
        if case_kind is kind:
            value = TrackedDict(start(dict)) if kind is dict else TrackedList(start(list))
            twin = start(kind)
            outcomes = []
            for one in (value, twin):
                try:
                    outcomes.append(repr(edit(one)))
                except Exception as error:
                    outcomes.append(type(error).__name__)
            assert outcomes[0] == outcomes[1]
            assert value == twin


# Reading


@pytest.fixture
def state() -> Any:
    return Document({"d": {"b": 1, "a": {"x": [1]}}, "l": [3, {"n": 1}, [2]]}).value


def test_they_are_dicts_and_lists(state: Any) -> None:
    assert isinstance(state["d"], (dict, Mapping, MutableMapping))
    assert isinstance(state["l"], (list, Sequence, MutableSequence))
    match state:
        case {"d": {"b": one}, "l": [3, {"n": two}, *rest]}:
            assert (one, two, rest) == (1, 1, [[2]])
        case _:
            pytest.fail("no match")
    assert (lambda **given: given)(**state["d"]) == {"b": 1, "a": {"x": [1]}}
    assert bool(state["d"])
    assert len(state["l"]) == 3
    assert f"{state['l']}" == "[3, {'n': 1}, [2]]"
    with pytest.raises(TypeError, match="unhashable"):
        hash(state["d"])


def test_what_is_made_of_them_is_plain_outside_and_tracked_inside(state: Any) -> None:
    d, x = state["d"], state["l"]
    made = [dict(d), {**d}, d | {"z": 1}, {"z": 1} | d, d.copy(), copy.copy(d)]
    made += [list(x), [*x], operator.add(x, [1]), operator.add([1], x), x[:], x[::-1], x * 2, 2 * x]
    made += [x.copy(), copy.copy(x), sorted(x, key=str)]
    for one in made:
        assert type(one) in (dict, list)
        inner = one["a"] if isinstance(one, dict) else next(item for item in one if isinstance(item, dict))
        assert inner is d["a"] or inner is x[1]
    assert TrackedDict.fromkeys("ab", 1) == {"a": 1, "b": 1}


def test_copies_all_the_way_down_are_plain(state: Any) -> None:
    for one in (copy.deepcopy(state), *(pickle.loads(pickle.dumps(state, protocol)) for protocol in range(6))):
        assert one == state
        assert [type(container) for container in walk(one)] == [
            dict if isinstance(container, dict) else list for container in walk(state)
        ]


def test_aliases_stay_aliases_in_a_deep_copy(state: Any) -> None:
    state["again"] = state["d"]
    copied = copy.deepcopy(state)
    assert copied["again"] is copied["d"]
    assert pickle.loads(pickle.dumps(state))["again"] == state["d"]


def test_children_are_the_tracked_ones_however_they_are_reached(state: Any) -> None:
    child, row = state["d"]["a"], state["l"][1]
    assert state["d"].get("a") is child
    assert list(state["d"].values())[1] is child
    assert dict(state["d"].items())["a"] is child
    assert state["d"].setdefault("a", {}) is child
    assert next(iter(state["l"][1:2])) is row
    assert next(one for one in state["l"] if isinstance(one, dict)) is row
    assert next(item for item in reversed(state["l"]) if isinstance(item, dict)) is row
    assert state["l"].pop(1) is row
    assert state["d"].pop("a") is child


def test_comparison_is_by_value(state: Any) -> None:
    assert state["l"] == [3, {"n": 1}, [2]]
    assert state["l"].index({"n": 1}) == 1
    assert {"n": 1} in state["l"]
    assert state["l"].count([2]) == 1
    assert state["d"] != {"b": 1}
    assert state["l"] < [4]


def test_encoders_write_them_as_plain_ones(state: Any) -> None:
    expected = '{"d": {"b": 1, "a": {"x": [1]}}, "l": [3, {"n": 1}, [2]]}'
    assert json.dumps(state) == expected
    assert json.dumps({"rows": state["l"]}) == '{"rows": [3, {"n": 1}, [2]]}'
    assert json.loads(to_json(state)) == json.loads(expected)


def test_pydantic_takes_them(state: Any) -> None:
    class Out(BaseModel):
        rows: list[Any]
        members: dict[str, Any]

    out = Out(rows=state["l"], members=state["d"])
    assert json.loads(out.model_dump_json()) == {"rows": plain(state["l"]), "members": plain(state["d"])}
    assert TypeAdapter(list[Any]).validate_python(state["l"]) == state["l"]


def test_they_print_as_plain_ones(state: Any) -> None:
    assert repr(state) == repr(copy.deepcopy(state))
    assert str(state["l"]) == "[3, {'n': 1}, [2]]"
    wide = Document({"k" * 30: ["v" * 30] * 3}).value
    assert pprint.pformat(wide) == pprint.pformat(copy.deepcopy(wide))


def test_rich_prints_them_as_plain_ones(state: Any) -> None:
    pretty = pytest.importorskip("rich.pretty")
    for width in (10, 80):
        expected = pretty.pretty_repr(copy.deepcopy(state), max_width=width)
        assert pretty.pretty_repr(state, max_width=width) == expected


def test_other_libraries_of_the_standard_library_change_them_rightly() -> None:
    consumer = Consumer({"l": [1, 3, 5], "n": list(range(10))})
    bisect.insort(consumer.value["l"], 4)
    assert consumer.ops() == [{"op": "add", "path": "/l/2", "value": 4}]
    random.Random(1).shuffle(consumer.value["n"])
    consumer.take()
    MutableMapping.update(consumer.value, {"z": 1})
    consumer.take()
    MutableSequence.extend(consumer.value["l"], [7])
    assert consumer.ops() == [{"op": "add", "path": "/l/4", "value": 7}]
    operator.setitem(consumer.value, "z", functools.reduce(operator.add, consumer.value["l"]))
    assert consumer.ops() == [{"op": "replace", "path": "/z", "value": 20}]


# All or nothing


def test_an_edit_that_cannot_be_done_whole_is_not_done() -> None:
    consumer = Consumer({"l": [1, 2, 3], "d": {"a": 1}})
    bad: Any = object()

    def failing() -> Any:
        yield 1
        raise RuntimeError("half way")

    edits: list[tuple[type[Exception], Callable[[], Any]]] = [
        (StateError, lambda: consumer.value["l"].extend([4, bad])),
        (StateError, lambda: consumer.value["l"].__setitem__(slice(0, 2), [4, {"x": bad}])),
        (StateError, lambda: consumer.value["d"].update({"a": 2, "b": bad})),
        (StateError, lambda: consumer.value.update([("e", 1), ("d", [bad])])),
        (RuntimeError, lambda: consumer.value["l"].extend(failing())),
        (RuntimeError, lambda: consumer.value["d"].update((str(one), 1) for one in failing())),
        (TypeError, lambda: consumer.value["l"].sort(key=lambda one: "x" if one == 2 else one)),
        (ValueError, lambda: consumer.value["l"].__setitem__(slice(0, 3, 2), [{"x": 1}])),
    ]
    for expected, edit in edits:
        with pytest.raises(expected):
            edit()
        assert consumer.value == {"l": [1, 2, 3], "d": {"a": 1}}
        assert consumer.take() is None
    assert consumer.changes == 0


def test_a_value_that_was_refused_beside_existing_ones_leaves_them_where_they_are() -> None:
    consumer = Consumer({"a": {"n": 1}, "b": []})
    child = consumer.value["a"]
    with pytest.raises(StateError):
        consumer.value["b"].extend([child, [child], object()])
    child["n"] = 2
    assert consumer.paths() == [("replace", "/a/n")]


def test_sort_shows_nobody_an_empty_list() -> None:
    document = Document([3, 1, 2])
    seen = []

    def key(one: int) -> int:
        seen.append(list(document.value))
        return one

    document.value.sort(key=key)
    assert document.value == [1, 2, 3]
    assert seen == [[3, 1, 2]] * 3


def test_sort_and_remove_start_again_if_the_list_was_changed_meanwhile() -> None:
    document: Document[Any] = Document([3, 1, 2])

    def key(one: int) -> int:
        if len(document.value) == 3:
            document.value.append(0)
        return one

    document.value.sort(key=key)
    assert document.value == [0, 1, 2, 3]

    class Same:
        def __eq__(self, other: object) -> bool:
            if len(document.value) == 4:
                document.value.insert(0, 9)
            return other == 2

        __hash__ = None  # type: ignore[assignment]

    document.value.remove(Same())
    assert document.value == [9, 0, 1, 3]


# Depth and cycles


def nested(levels: int) -> Any:
    value: Any = []
    for level in range(levels - 1):
        value = [value] if level % 2 else {"a": value}
    return value


def test_a_hundred_levels_are_accepted_and_no_more() -> None:
    Consumer(nested(100))
    with pytest.raises(StateError, match="deeper than 100"):
        Document(nested(101))
    consumer = Consumer({"a": nested(98)})
    deep = consumer.value["a"]
    while deep:
        deep = deep["a"] if isinstance(deep, dict) else deep[0]
    deep.append({})
    with pytest.raises(StateError, match="deeper than 100") as raised:
        deep[0]["b"] = {}
    assert raised.value.pointer.count("/") == 100
    deep[0]["b"] = 1
    consumer.take()


def test_a_container_that_would_get_too_deep_is_refused_where_it_is_moved_to() -> None:
    consumer = Consumer({"deep": nested(60), "flat": nested(60), "list": []})
    deep = consumer.value["deep"]
    while deep:
        deep = deep["a"] if isinstance(deep, dict) else deep[0]
    for value in (consumer.value["flat"], {"x": consumer.value["flat"]}, TrackedList([nested(40)])):
        with pytest.raises(StateError, match="deeper than 100"):
            deep.append(value)
    consumer.value["list"].append(consumer.value["flat"])
    consumer.value["list"].append([consumer.value["flat"]])
    consumer.take()
    with pytest.raises(StateError, match="deeper than 100"):
        Document(TrackedList([nested(100)]))


def test_many_aliases_are_not_walked_through_again_and_again() -> None:
    consumer = Consumer({})
    at: Any = consumer.value
    for _ in range(60):
        child: Any = TrackedDict()
        at["a"] = child
        at["b"] = child
        at = child
    at["leaf"] = 1
    assert consumer.document.value["a"]["b"] is consumer.value["b"]["a"]


@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: [value], lambda value: {"x": [value]}])
def test_a_container_cannot_get_into_itself(wrap: Callable[[Any], Any]) -> None:
    consumer = Consumer({"a": {"b": [{}]}, "c": []})
    state = consumer.value
    for edit in (
        lambda: state.__setitem__("self", wrap(state)),
        lambda: state["a"]["b"].append(wrap(state["a"]["b"])),
        lambda: state["a"]["b"][0].update(up=wrap(state["a"])),
        lambda: state["a"]["b"].insert(0, wrap(state)),
        lambda: state["a"]["b"].__setitem__(0, wrap(state["a"])),
    ):
        with pytest.raises(StateError, match="inside itself"):
            edit()
    state["c"].append(state["a"])
    with pytest.raises(StateError, match="inside itself"):
        state["a"]["b"][0]["c"] = wrap(state["c"])
    assert state == {"a": {"b": [{}]}, "c": [{"b": [{}]}]}


def test_a_plain_cycle_is_refused_with_its_place() -> None:
    one: dict[str, Any] = {}
    two = {"one": [one]}
    one["two"] = two
    document: Document[Any] = Document({})
    with pytest.raises(StateError, match="inside itself") as raised:
        document.value["at"] = one
    assert raised.value.pointer == "/at/two/one/0"
    with pytest.raises(StateError):
        Document(two)


def test_one_plain_object_met_twice_becomes_one_container() -> None:
    row: dict[str, Any] = {"n": 1}
    consumer = Consumer({})
    consumer.value["rows"] = [row, row, {"again": row}]
    rows = consumer.value["rows"]
    assert rows[0] is rows[1] is rows[2]["again"]
    consumer.take()
    rows[1]["n"] = 2
    assert consumer.paths() == [("replace", "/rows/0/n"), ("replace", "/rows/1/n"), ("replace", "/rows/2/again/n")]


# Containers of one's own


def test_a_container_made_by_hand_is_adopted_itself() -> None:
    consumer = Consumer({"rows": []})
    row = TrackedDict(n=1, inner=TrackedList([{"x": 1}]))
    consumer.value["rows"].append(row)
    assert consumer.value["rows"][0] is row
    consumer.take()
    row["n"] = 2
    row["inner"][0]["x"] = 2
    row["inner"].append(3)
    assert len(consumer.ops()) == 3


def test_a_container_read_out_of_a_free_standing_one_is_adopted_with_all_around_it() -> None:
    outer = TrackedDict(inner={"n": 1}, opaque={1, 2})
    consumer = Consumer({})
    consumer.value["at"] = outer["inner"]
    consumer.take()
    outer["inner"]["n"] = 2
    assert consumer.paths() == [("replace", "/at/n")]
    consumer.value["whole"] = outer
    consumer.take()
    outer["opaque"].add(3)
    outer["inner"]["n"] = 3
    expected = [("add", "/whole/opaque/2"), ("replace", "/at/n"), ("replace", "/whole/inner/n")]
    assert sorted(consumer.paths()) == expected


def test_a_part_of_a_document_that_enters_a_free_standing_container_takes_it_along() -> None:
    consumer = Consumer({"row": {"n": 1}})
    held = TrackedList([{1, 2}])
    held.append(consumer.value["row"])
    consumer.value["held"] = held
    consumer.take()
    consumer.value["row"]["n"] = 2
    held[0].add(3)
    assert len(consumer.ops()) == 3


def test_a_container_belongs_to_one_living_document() -> None:
    one, two = Consumer({"row": {"inner": {}}}), Consumer({"rows": []})
    for value in (
        one.value,
        one.value["row"],
        one.value["row"]["inner"],
        [one.value["row"]],
        TrackedList([[one.value]]),
    ):
        with pytest.raises(StateError, match="deepcopy"):
            two.value["rows"].append(value)
    with pytest.raises(StateError, match="deepcopy"):
        Document(one.value)
    with pytest.raises(StateError, match="deepcopy"):
        two.document.value = one.value["row"]
    two.value["rows"].append(copy.deepcopy(one.value["row"]))
    one.value["row"]["n"] = 1
    assert one.paths() == [("add", "/row/n")]
    two.take()
    assert two.take() is None


def test_a_container_that_left_its_document_may_enter_another() -> None:
    one, two = Consumer({"rows": [{"n": [1]}]}), Consumer({"rows": []})
    row = one.value["rows"].pop()
    row["n"].append(2)
    two.value["rows"].append(row)
    assert one.paths() == [("remove", "/rows/0")]
    two.take()
    row["n"].append(3)
    assert one.take() is None
    assert two.paths() == [("add", "/rows/0/n/2")]


def test_what_left_for_another_document_is_no_business_of_its_first_one() -> None:
    one, two = Consumer({"rows": [{"n": 1}, {"n": 2}]}), Consumer({"rows": []})
    row = one.value["rows"][0]
    row["n"] = 3
    one.value["rows"].pop(0)
    two.value["rows"].append(row)
    two.take()
    row["n"] = 4
    one.take()
    assert two.ops() == [{"op": "replace", "path": "/rows/0/n", "value": 4}]
    one.value["other"] = one.value["rows"].pop()
    assert one.take() is not None


def test_a_container_of_a_document_that_is_gone_may_enter_another() -> None:
    row = Document({"rows": [{"n": 1}]}).value["rows"][0]
    consumer = Consumer({"rows": []})
    consumer.value["rows"].append(row)
    assert consumer.value["rows"][0] is row
    consumer.take()
    row["n"] = 2
    assert consumer.paths() == [("replace", "/rows/0/n")]


@pytest.mark.parametrize("typed", [False, True])
def test_a_key_that_changes_the_list_it_sorts_is_an_error_as_in_python(typed: bool) -> None:
    consumer = Consumer({"l": [3, 2, 1]}, type=dict[str, list[int]] if typed else None)
    rows = consumer.value["l"]

    def key(row: int) -> int:
        rows.append(0)
        return row

    with pytest.raises(ValueError, match="list modified during sort"):
        rows.sort(key=key)
    consumer.take()
