"""Patches are as small as the edit, and right whatever was moved, aliased, replaced or changed back."""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from jsonpatch import JsonPatch

from interop_support import compare_patches
from state_support import Consumer, plain, text
from statecast.state import Delta, Snapshot

Edit = Callable[[Any], Any]


def rows(count: int) -> list[dict[str, Any]]:
    return [{"id": number, "name": f"row {number}", "tags": [number]} for number in range(count)]


def test_each_edit_of_a_leaf_is_one_operation() -> None:
    consumer = Consumer({"a": 1, "b": {"c": [1, {"d": 2}]}})
    state = consumer.value
    edits: list[tuple[Edit, dict[str, Any]]] = [
        (lambda s: s.update(a=2), {"op": "replace", "path": "/a", "value": 2}),
        (lambda s: s.update(new=None), {"op": "add", "path": "/new", "value": None}),
        (lambda s: s.pop("new"), {"op": "remove", "path": "/new"}),
        (lambda s: s["b"]["c"].append([]), {"op": "add", "path": "/b/c/2", "value": []}),
        (lambda s: s["b"]["c"][2].append(0), {"op": "add", "path": "/b/c/2/0", "value": 0}),
        (lambda s: s["b"]["c"][1].update(d=3), {"op": "replace", "path": "/b/c/1/d", "value": 3}),
        (lambda s: s["b"]["c"].insert(0, "x"), {"op": "add", "path": "/b/c/0", "value": "x"}),
        (lambda s: s["b"]["c"].pop(1), {"op": "remove", "path": "/b/c/1"}),
        (lambda s: s["b"].update({"x/y~z": 1}), {"op": "add", "path": "/b/x~1y~0z", "value": 1}),
    ]
    for edit, op in edits:
        edit(state)
        assert consumer.ops() == [op]
        assert consumer.take() is None


@pytest.mark.parametrize(
    ("edit", "paths"),
    [
        (lambda x: x.insert(0, {"id": "new"}), [("add", "/rows/0")]),
        (lambda x: x.insert(100, {"id": "new"}), [("add", "/rows/100")]),
        (lambda x: x.append({"id": "new"}), [("add", "/rows/200")]),
        (lambda x: x.pop(0), [("remove", "/rows/0")]),
        (lambda x: x.pop(), [("remove", "/rows/199")]),
        (lambda x: x.pop(100), [("remove", "/rows/100")]),
        (lambda x: x.__delitem__(slice(10, 12)), [("remove", "/rows/10")] * 2),
        (lambda x: x.__setitem__(5, 1), [("replace", "/rows/5")]),
        (lambda x: x.append(x.pop(0)), [("remove", "/rows/0"), ("add", "/rows/199")]),
        (lambda x: x.insert(0, x.pop()), [("add", "/rows/0"), ("remove", "/rows/200")]),
        (lambda x: x.insert(150, x.pop(50)), [("remove", "/rows/50"), ("add", "/rows/150")]),
        (lambda x: (x.pop(), x.append({"id": "new"})), [("replace", "/rows/199")]),
        (lambda x: x.__setitem__(slice(100, 100), [1, 2]), [("add", "/rows/100"), ("add", "/rows/101")]),
        (lambda x: x.clear(), [("replace", "/rows")]),
        (lambda x: x.__delitem__(slice(2, None)), [("replace", "/rows")]),
        (lambda x: x.__setitem__(slice(None), [one for one in x if one["id"] % 50]), [("remove", "/rows/0")]),
        (lambda x: (x.insert(0, 1), x.pop(0)), []),
        (lambda x: (x.append(1), x.pop()), []),
        (lambda x: (x.reverse(), x.reverse()), []),
        (lambda x: x.sort(key=lambda one: one["id"]), []),
        (lambda x: x.extend([]), []),
        (lambda x: x.__setitem__(slice(None), list(x)), []),
        (lambda x: x.__setitem__(slice(None), [dict(one) for one in x]), []),
    ],
)
def test_edits_of_a_long_list_are_as_small_as_they_are(edit: Edit, paths: list[tuple[str, str]]) -> None:
    consumer = Consumer({"rows": rows(200)})
    edit(consumer.value["rows"])
    found = consumer.paths()
    assert found[: len(paths)] == paths
    assert len(found) <= len(paths) + 3


@pytest.mark.parametrize(
    ("before", "edit", "paths"),
    [
        (["p", "q"], lambda x: x.reverse(), [("replace", "/l"), ("replace", "/l/0"), ("replace", "/l/1")]),
        (["m", "k", "k"], lambda x: x.__delitem__(slice(1, 3)), [("replace", "/l")]),
        (["n", "n", "n"], lambda x: x.__delitem__(slice(1, 2)), [("remove", "/l/1"), ("remove", "/l/2")]),
        ([1, 1], lambda x: x.append(x.pop(0)), []),
        (
            [1, 2],
            lambda x: x.__setitem__(slice(None), [2, 1]),
            [("replace", "/l"), ("remove", "/l/0"), ("add", "/l/1")],
        ),
    ],
)
def test_short_lists(before: list[Any], edit: Edit, paths: list[tuple[str, str]]) -> None:
    consumer = Consumer({"l": before})
    edit(consumer.value["l"])
    assert set(consumer.paths()) <= set(paths)


def test_a_reorder_is_one_replacement_when_that_is_shorter() -> None:
    consumer = Consumer({"numbers": list(range(500)), "rest": list(range(2000))})
    random.Random(1).shuffle(consumer.value["numbers"])
    assert consumer.paths() == [("replace", "/numbers")]
    consumer.value["numbers"].insert(3, consumer.value["numbers"].pop())
    assert len(consumer.ops()) == 2
    wide = Consumer({"rows": [{"id": number, "text": "x" * 2000} for number in range(20)]})
    wide.value["rows"][0], wide.value["rows"][19] = wide.value["rows"][19], wide.value["rows"][0]
    taken = wide.take()
    assert isinstance(taken, Delta)
    assert len(taken.json) < 10_000


def test_an_edit_in_an_item_that_was_moved_is_written_where_the_item_is() -> None:
    consumer = Consumer({"rows": rows(50)})
    state = consumer.value["rows"]
    row = state[20]
    state.insert(0, "new")
    row["name"] = "edited"
    state.pop(5)
    row["tags"].append("t")
    assert consumer.paths() == [
        ("add", "/rows/0"),
        ("remove", "/rows/5"),
        ("replace", "/rows/20/name"),
        ("add", "/rows/20/tags/1"),
    ]
    state.sort(key=lambda one: str(one), reverse=True)
    row["name"] = "again"
    consumer.take()
    state.remove(row)
    row["name"] = "nobody sees it"
    consumer.take()
    row["name"] = "nor this"
    assert consumer.take() is None


def test_many_edits_in_the_middle_of_a_long_list() -> None:
    consumer = Consumer({"rows": list(range(3000))})
    state = consumer.value["rows"]
    generator = random.Random(7)
    for count in (1, 10, 63, 64, 65, 66, 200):
        for _ in range(count):
            at = generator.randrange(len(state))
            if generator.random() < 0.5:
                state.insert(at, f"new {generator.random()}")
            else:
                del state[at]
        taken = consumer.take()
        assert isinstance(taken, Delta)
        assert len(taken.ops) <= count


# Aliases and moves


def test_a_change_of_an_alias_shows_at_all_its_places() -> None:
    consumer = Consumer({"rows": [{"n": 1}], "selected": None})
    row = consumer.value["rows"][0]
    consumer.value["selected"] = row
    assert consumer.ops() == [{"op": "replace", "path": "/selected", "value": {"n": 1}}]
    row["n"] = 2
    assert sorted(consumer.paths()) == [("replace", "/rows/0/n"), ("replace", "/selected/n")]
    consumer.value["rows"] *= 3
    row["n"] = 3
    consumer.take()
    del consumer.value["rows"][1]
    row["n"] = 4
    assert sorted(consumer.paths()) == [
        ("remove", "/rows/1"),
        ("replace", "/rows/0/n"),
        ("replace", "/rows/1/n"),
        ("replace", "/selected/n"),
    ]
    consumer.value["rows"].clear()
    consumer.take()
    row["n"] = 5
    assert consumer.paths() == [("replace", "/selected/n")]


@pytest.mark.parametrize("count", [7, 8, 9, 16, 100])
def test_one_row_in_many_lists(count: int) -> None:
    consumer = Consumer({"row": {"n": 0}, "lists": [], "fill": "x" * 20_000})
    row = consumer.value["row"]
    for number in range(count):
        consumer.value["lists"].append([number, row])
        if number % 3 == 0:
            consumer.value["lists"].append([row])
    consumer.take()
    row["n"] = 1
    assert len(consumer.ops()) == 1 + len(consumer.value["lists"])
    del consumer.value["lists"][2:]
    row["n"] = 2
    consumer.take()
    consumer.value["lists"].clear()
    row["n"] = 3
    consumer.take()
    row["n"] = 4
    assert consumer.paths() == [("replace", "/row/n")]


def test_an_alias_made_and_edited_in_one_flush() -> None:
    consumer = Consumer({"a": {"n": [1]}, "b": None})
    consumer.value["a"]["n"].append(2)
    consumer.value["b"] = consumer.value["a"]
    consumer.value["b"]["n"].append(3)
    consumer.take()
    consumer.value["b"]["n"].pop(0)
    assert sorted(consumer.paths()) == [("remove", "/a/n/0"), ("remove", "/b/n/0")]


@pytest.mark.parametrize("takes", [False, True])
def test_a_card_that_is_popped_here_and_put_there(takes: bool) -> None:
    consumer = Consumer({"todo": rows(5), "done": rows(3)})
    card = consumer.value["todo"].pop(1)
    card["name"] = "on its way"
    if takes:
        consumer.take()
        card["name"] = "still on its way"
        assert consumer.take() is None
    consumer.value["done"].insert(0, card)
    card["moved"] = True
    consumer.take()
    card["tags"].append(9)
    assert consumer.paths() == [("add", "/done/0/tags/1")]


def test_swaps_and_rotations_across_containers() -> None:
    consumer = Consumer({"a": {"x": {"n": 1}}, "b": [{"n": 2}], "c": {"n": 3}})
    state = consumer.value
    for turn in range(6):
        state["a"]["x"], state["b"][0], state["c"] = state["b"][0], state["c"], state["a"]["x"]
        state["c"]["turn"] = turn
        if turn % 2:
            consumer.take()
    consumer.take()


def test_a_detached_container_says_nothing_until_it_is_put_back() -> None:
    consumer = Consumer({"row": {"n": 1, "inner": {"m": 1}}})
    row = consumer.value.pop("row")
    inner = row["inner"]
    consumer.take()
    for number in range(3):
        row["n"] = number
        inner["m"] = number
        assert consumer.take() is None
    consumer.value["row"] = row
    assert consumer.ops() == [{"op": "add", "path": "/row", "value": {"n": 2, "inner": {"m": 2}}}]
    inner["m"] = 9
    assert consumer.paths() == [("replace", "/row/inner/m")]


def test_a_part_becomes_the_whole_and_the_old_whole_a_part() -> None:
    consumer = Consumer({"part": {"n": 1}})
    old = consumer.value
    consumer.value = old["part"]
    consumer.take()
    consumer.value["n"] = 2
    assert consumer.paths() == [("replace", "/n")]
    del old["part"]
    consumer.value["old"] = old
    consumer.take()
    old["x"] = 1
    assert consumer.paths() == [("add", "/old/x")]


# Equal, and changed back


@pytest.mark.parametrize(
    "edit",
    [
        lambda s: s.update(n=1),
        lambda s: s.update(n=2) or s.update(n=1),
        lambda s: s.update(d={"a": [1, {"b": None}]}),
        lambda s: s["d"].update(a=[1, {"b": None}]),
        lambda s: s["d"]["a"].__setitem__(1, {"b": None}),
        lambda s: s["d"]["a"].append(1) or s["d"]["a"].pop(),
        lambda s: s["d"]["a"].insert(0, 5) or s["d"]["a"].pop(0),
        lambda s: s.pop("n") and s.update(n=1),
        lambda s: s.update(new=1) or s.pop("new"),
        lambda s: s.update({}),
        lambda s: s.setdefault("n", 5),
        lambda s: s.pop("missing", None),
        lambda s: s.__setitem__("d", s["d"]),
        lambda s: s.__ior__({"n": 1}),
        lambda s: s.__setitem__("l", s["l"] + []),
        lambda s: s["l"].sort(),
        lambda s: s["l"].__setitem__(slice(None), [1, 2, 2, 3]),
        lambda s: s["l"].append(s["l"].pop(1)) or s["l"].insert(2, s["l"].pop()),
        lambda s: s["twins"].append(s["twins"].pop(0)),
        lambda s: s["twins"].reverse(),
    ],
)
def test_what_is_the_same_in_the_end_says_nothing(edit: Edit) -> None:
    consumer = Consumer({"n": 1, "d": {"a": [1, {"b": None}]}, "l": [1, 2, 2, 3], "twins": [{"a": 1}, {"a": 1}]})
    edit(consumer.value)
    assert consumer.take() is None


def test_changed_in_one_flush_and_back_in_the_next_says_both() -> None:
    consumer = Consumer({"n": 1})
    consumer.value["n"] = 2
    assert len(consumer.ops()) == 1
    consumer.value["n"] = 1
    assert len(consumer.ops()) == 1


# Containers that give way to others of their kind


def test_a_list_that_is_made_anew_of_the_same_items_is_written_as_its_difference() -> None:
    consumer = Consumer({"rows": rows(300)})
    state = consumer.value
    state["rows"] = [*state["rows"], {"id": "new"}]
    assert consumer.paths() == [("add", "/rows/300")]
    state["rows"] = [row for row in state["rows"] if row["id"] != 7]
    assert consumer.paths() == [("remove", "/rows/7")]
    state["rows"] = [{**row, "name": "x"} if row["id"] == 9 else row for row in state["rows"]]
    assert consumer.paths() == [("replace", "/rows/8/name")]
    state["rows"][20]["name"] = "edited"
    state["rows"] = ["first", *state["rows"]]
    state["rows"][30]["name"] = "edited"
    assert consumer.paths() == [("add", "/rows/0"), ("replace", "/rows/21/name"), ("replace", "/rows/30/name")]


def test_a_value_loaded_again_is_written_as_its_difference() -> None:
    consumer = Consumer({"board": {"rows": rows(100), "title": "t"}})
    again = plain(consumer.value["board"])
    again["rows"][50]["tags"].append(1)
    again["title"] = "u"
    del again["rows"][3]["name"]
    consumer.value["board"] = again
    assert sorted(consumer.paths()) == [
        ("add", "/board/rows/50/tags/1"),
        ("remove", "/board/rows/3/name"),
        ("replace", "/board/title"),
    ]


def test_a_table_that_is_loaded_again_with_other_rows_in_between() -> None:
    consumer = Consumer({"rows": rows(200)})
    again = plain(consumer.value["rows"])
    again.insert(0, {"id": "first"})
    del again[100:103]
    again.append({"id": "last"})
    consumer.value["rows"] = again
    assert consumer.paths() == [("add", "/rows/0"), *[("remove", "/rows/100")] * 3, ("add", "/rows/198")]
    again = plain(consumer.value["rows"])
    again.insert(50, 1)
    again[70]["name"] = "x"
    consumer.value["rows"][:] = again
    assert consumer.paths() == [("add", "/rows/50"), ("replace", "/rows/70/name")]
    consumer.value["rows"][150]["name"] = "edited"
    assert consumer.paths() == [("replace", "/rows/150/name")]


def test_items_of_lists_that_were_made_anew_again_and_again_do_not_grow() -> None:
    consumer = Consumer({"rows": rows(3)})
    for number in range(100):
        consumer.value["rows"] = [*consumer.value["rows"][:3], number]
        consumer.take()
    row = consumer.value["rows"][0]
    assert not isinstance(row._parents, dict) or len(row._parents) <= 9
    row["name"] = "x"
    assert consumer.paths() == [("replace", "/rows/0/name")]


def test_a_dict_that_is_made_anew_is_written_as_its_difference() -> None:
    consumer = Consumer({"d": {f"key {number}": [number] for number in range(100)}})
    consumer.value["d"] = {**consumer.value["d"], "key 3": 3, "new": 1}
    assert sorted(consumer.paths()) == [("add", "/d/new"), ("replace", "/d/key 3")]
    consumer.value["d"]["key 4"].append(1)
    consumer.value["d"] = {key: value for key, value in consumer.value["d"].items() if key != "key 5"}
    assert sorted(consumer.paths()) == [("add", "/d/key 4/1"), ("remove", "/d/key 5")]


def test_what_has_little_in_common_is_replaced_whole() -> None:
    consumer = Consumer(
        {"d": {f"key {number}": number for number in range(20)}, "l": list(range(50)), "fill": "x" * 5000}
    )
    consumer.value["d"] = {f"other {number}": number for number in range(20)}
    consumer.value["l"] = [str(number) for number in range(50)]
    assert sorted(consumer.paths()) == [("replace", "/d"), ("replace", "/l")]
    consumer.value["d"].clear()
    consumer.value["d"].update({f"key {number}": number for number in range(20)})
    assert consumer.paths() == [("replace", "/d")]


@pytest.mark.parametrize("values", [({"size": [1, 2]}, [{"size": 1}, {"size": 2}], "none", {"size": []}, None, [])])
def test_a_member_that_changes_its_kind_is_one_replacement(values: tuple[Any, ...]) -> None:
    consumer = Consumer({"pref": []})
    for value in values:
        consumer.value["pref"] = value
        assert consumer.paths() == [("replace", "/pref")]
    for value in values:
        consumer.value["pref"] = value
    assert consumer.take() is None


# Beside others

EDITS: dict[str, Edit] = {
    "leaf": lambda s: s["rows"][5].update(name="new"),
    "append": lambda s: s["rows"].append({"id": 1}),
    "prepend": lambda s: s["rows"].insert(0, {"id": 1}),
    "pop first": lambda s: s["rows"].pop(0),
    "pop last": lambda s: s["rows"].pop(),
    "middle": lambda s: s["rows"][50]["tags"].append(1),
    "move": lambda s: s["other"].append(s["rows"].pop(10)),
    "sort": lambda s: s["numbers"].sort(),
    "reverse": lambda s: s["numbers"].reverse(),
    "new list": lambda s: s.update(numbers=[*s["numbers"], 1]),
    "new key": lambda s: s.update(key=[1]),
    "filter": lambda s: s["rows"].__setitem__(slice(None), [row for row in s["rows"] if row["id"] % 10]),
}


@pytest.mark.parametrize("name", EDITS)
def test_no_patch_is_longer_than_the_two_that_compare_everything(name: str) -> None:
    numbers = list(range(100))
    random.Random(3).shuffle(numbers)
    consumer = Consumer({"rows": rows(100), "other": rows(3), "numbers": numbers})
    before = plain(consumer.value)
    EDITS[name](consumer.value)
    taken = consumer.take()
    assert isinstance(taken, Delta)
    after = plain(consumer.value)
    ours = json.dumps(taken.ops, separators=(",", ":"))
    assert len(ours) <= len(
        json.dumps(JsonPatch.from_diff(before, after, optimization=False).patch, separators=(",", ":"))
    )
    assert len(ours) <= compare_patches([(before, after)])[0]["bytes"]


def test_a_shuffled_table_is_quick_and_never_longer_than_the_state() -> None:
    generator = random.Random(5)
    table = [[generator.choice([None, True, 0, "a", 1.5]) for _ in range(20)] for _ in range(50)]
    consumer = Consumer({"cols": list(range(20)), "data": table})
    consumer.value["cols"] = list(reversed(range(20)))
    shuffled = plain(consumer.value["data"])
    generator.shuffle(shuffled)
    consumer.value["data"] = shuffled
    taken = consumer.take()
    assert taken is not None
    assert len(taken.json) <= len(json.dumps(plain(consumer.value), separators=(",", ":"))) + 100
    generator.shuffle(consumer.value["data"])
    taken = consumer.take()
    assert isinstance(taken, (Delta, Snapshot))
    assert text(consumer.state) == text(plain(consumer.value))


@pytest.mark.parametrize("at", [1, 4, 6, 9])
def test_an_item_is_found_wherever_earlier_edits_have_moved_it(at: int) -> None:
    consumer = Consumer({"rows": rows(10)})
    state = consumer.value["rows"]
    items = list(state)
    for edit in (lambda: state.insert(at, "new"), lambda: state.pop(at - 1), lambda: state.insert(at, ["new"])):
        edit()
        consumer.take()
        for item in items:
            item["name"] = f"{len(state)} {consumer.changes}"
            place = next((index for index, one in enumerate(state) if one is item), None)
            assert consumer.paths() == ([] if place is None else [("replace", f"/rows/{place}/name")])


def test_an_item_that_stood_twice_is_found_where_it_still_stands() -> None:
    consumer = Consumer({"d": {}, "l": [0, 0, 0]})
    row = consumer.value["d"].setdefault("a", {"n": 1})
    consumer.value["d"]["b"] = row
    del consumer.value["d"]["b"]
    consumer.take()
    row["n"] = 2
    assert consumer.paths() == [("replace", "/d/a/n")]
    consumer.value["l"][0] = consumer.value["l"][2] = row
    del consumer.value["d"]["a"]
    consumer.value["l"][2] = 0
    consumer.take()
    row["n"] = 3
    assert consumer.paths() == [("replace", "/l/0/n")]


def test_a_dirty_item_inside_a_new_container_that_looks_like_the_old_one() -> None:
    consumer = Consumer({"rows": [{"x": {"n": 1}}, {"x": {"n": 2}}]})
    item = consumer.value["rows"][1]["x"]
    item["n"] = 3
    consumer.value["rows"] = [{"x": {"n": 1}}, {"x": item}]
    assert consumer.paths() == [("replace", "/rows/1/x/n")]
    item["n"] = 4
    consumer.value["rows"][1] = {"x": item}
    consumer.value["rows"].insert(0, 0)
    consumer.take()
