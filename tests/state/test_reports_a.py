"""What went wrong elsewhere in patches and in JSON, each as a test of its own."""

import asyncio
import dataclasses
import enum
import itertools
import json
import math
import time
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

import strict_patch
from interop_support import apply_patches
from state_support import PATCHES, Consumer, plain, text
from statecast import StateError
from statecast.state import Delta, Document, Snapshot, encode_json


@pytest.fixture(autouse=True)
def all_appliers_agree() -> Any:
    """Every patch of these tests goes through jsonpatch (in `Consumer`), a strict applier, and the clients' library."""
    PATCHES.clear()
    yield
    for before, ops, after in PATCHES:
        assert text(strict_patch.apply(before, ops)) == text(after)
    if PATCHES:
        for answer, (_, ops, after) in zip(
            apply_patches([(one, two) for one, two, _ in PATCHES]), PATCHES, strict=True
        ):
            assert "error" not in answer, (answer, ops)
            assert answer["result"] == json.loads(json.dumps(after)), ops


def test_lists_of_lists_and_dicts_are_not_patched_past_their_end() -> None:
    consumer = Consumer({"rows": [3, 7, ["done", None]], "sel": "x"})
    consumer.value.update(rows=[None, 3, []], sel=None)
    consumer.take()


def test_an_index_is_shifted_by_what_was_removed_before_it() -> None:
    consumer = Consumer({"rows": ["done", [3, 3], 7]})
    consumer.value["rows"] = [7, [3]]
    consumer.take()
    consumer = Consumer({"rows": ["done", [3, 3], 7]})
    rows = consumer.value["rows"]
    del rows[0]
    rows[0].pop(0)
    rows.reverse()
    consumer.take()


def test_tables_of_equal_scalars_are_right_quick_and_no_longer_than_the_state() -> None:
    import random

    generator = random.Random(1)
    alphabet = [None, True, 1, "a", 0.5]
    table = [[generator.choice(alphabet) for _ in range(20)] for _ in range(50)]
    consumer = Consumer({"cols": list(range(20)), "data": table})
    shuffled = generator.sample(plain(table), len(table))
    consumer.value.update(cols=list(reversed(range(20))), data=shuffled)
    start = time.perf_counter()
    taken = consumer.document.take()
    # The bar is 50 ms on a quiet machine.
    assert time.perf_counter() - start < 1
    assert taken is not None
    assert len(taken.json) <= len(encode_json(consumer.value)) + 100


def test_keys_of_digits_are_keys() -> None:
    consumer = Consumer({"rows": [], "7": 3})
    consumer.value["rows"].append(3)
    consumer.value["log"] = consumer.value.pop("7")
    consumer.take()
    for keys in itertools.permutations(["0", "007", "1e3", "-1"], 2):
        consumer.value[keys[0]] = 1
        consumer.take()
        consumer.value[keys[0]] = [2]
        consumer.value[keys[1]] = consumer.value.pop(keys[0])
        consumer.take()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"flags": [0, 1, 2]}, {"flags": [False, True, 2]}),
        ({"seen": 0, "hits": [1]}, {"seen": False, "hits": [True]}),
        ({"old": [1, 0.5]}, {"new": [True, 0.5]}),
        ({"l": [True, 1, 1.0]}, {"l": [1.0, True, 1]}),
    ],
)
def test_true_is_not_one(before: Any, after: Any) -> None:
    consumer = Consumer(before)
    consumer.value.clear()
    consumer.value.update(after)
    consumer.take()
    assert json.dumps(consumer.state, sort_keys=True) == json.dumps(after, sort_keys=True)
    consumer = Consumer(before)
    consumer.value = after
    consumer.take()
    assert json.dumps(consumer.state, sort_keys=True) == json.dumps(after, sort_keys=True)


@dataclasses.dataclass
class Log:
    lines: list[str] = dataclasses.field(default_factory=list)


class Note(BaseModel):
    lines: list[str] = []


@pytest.mark.parametrize("make", [list, dict, Log, Note])
def test_an_operation_that_was_taken_is_not_changed_by_later_edits(make: Any) -> None:
    consumer = Consumer({})
    consumer.value["log"] = make()
    first = consumer.take()
    assert isinstance(first, Delta)
    before = json.dumps(first.ops)
    log = consumer.value["log"]
    lines = getattr(log, "lines", log)
    lines.append("a") if isinstance(lines, list) else lines.update(a=1)
    consumer.take()
    assert json.dumps(first.ops) == before
    assert first.json == encode_json(json.loads(before))


def test_new_keys_are_added_and_escaped() -> None:
    consumer = Consumer({})
    keys = ["user/name", "a~b", "~1", "/", "", " "]
    for value in (1, 2):
        for key in keys:
            consumer.value[key] = value
        assert {op["op"] for op in consumer.ops()} == {"add" if value == 1 else "replace"}
    for key in keys:
        del consumer.value[key]
    assert {op["op"] for op in consumer.ops()} == {"remove"}


def test_pieces_of_arguments_that_stream_into_an_empty_state_always_apply() -> None:
    consumer = Consumer({}, baseline={})
    for piece in ("a", "b"):
        consumer.value.setdefault("steps", []).append(piece)
        consumer.value["text"] = consumer.value.get("text", "") + piece
        consumer.take()
    assert consumer.state == {"steps": ["a", "b"], "text": "ab"}


def test_escaped_keys_are_edited_removed_and_moved_between() -> None:
    consumer = Consumer({"files": {"src/app.py": [1], "a~b": [{"n": 1}]}})
    files = consumer.value["files"]
    files["src/app.py"].append(2)
    consumer.take()
    files["src/app.py"].append(files["a~b"].pop())
    consumer.take()
    files["src/app.py"][2]["n"] = 2
    consumer.take()
    del files["a~b"]
    files["~/"] = files.pop("src/app.py")
    consumer.take()
    assert consumer.state == {"files": {"~/": [1, 2, {"n": 2}]}}


def test_falsy_values_give_way_to_each_other() -> None:
    values: list[Any] = [None, False, 0, 0.0, "", "0", [], {}, "null"]
    for one, two in itertools.product(values, values):
        consumer = Consumer({"key": one, "list": [one], "fill": "x" * 600})
        consumer.value["key"] = plain(two)
        consumer.value["list"][0] = plain(two)
        assert len(consumer.ops()) == (0 if text(one) == text(two) else 2)


def test_an_edit_at_the_front_does_not_rewrite_the_rest() -> None:
    consumer = Consumer({"rows": [{"id": number, "name": f"row {number}"} for number in range(200)]})
    for edit in (
        lambda rows: rows.insert(0, {"id": "new"}),
        lambda rows: rows.pop(0),
        lambda rows: rows.__delitem__(100),
        lambda rows: rows.__setitem__(slice(None), rows[1:]),
    ):
        edit(consumer.value["rows"])
        taken = consumer.take()
        assert isinstance(taken, Delta)
        assert len(taken.ops) == 1
        assert len(taken.json) < 1000


def test_emptying_and_filling_a_list_is_one_operation() -> None:
    consumer = Consumer({"items": list(range(5000)), "fill": "x" * 40_000})
    consumer.value["items"].clear()
    assert len(consumer.ops()) == 1
    consumer.value["items"].extend(range(100))
    assert len(consumer.ops()) == 1
    consumer.value["items"] = []
    assert len(consumer.ops()) == 1
    consumer.value["items"] += list(range(5000))
    assert len(consumer.ops()) == 1


@pytest.mark.parametrize(
    ("before", "after"), [(["p", "q"], ["q", "p"]), (["m", "k", "k"], ["m"]), (["n", "n", "n"], ["n"])]
)
def test_swaps_and_removed_duplicates_leave_the_right_list(before: list[str], after: list[str]) -> None:
    consumer = Consumer({"l": before})
    consumer.value["l"] = after
    consumer.take()
    consumer = Consumer({"l": before})
    consumer.value["l"][:] = after
    consumer.take()
    consumer = Consumer({"l": ["p", "q", "r"]})
    items = consumer.value["l"]
    items[0], items[1] = items[1], items[0]
    consumer.take()
    assert consumer.state == {"l": ["q", "p", "r"]}


def test_an_item_that_moves_into_a_later_one() -> None:
    consumer = Consumer({"tree": ["leaf", {"kids": []}]})
    tree = consumer.value["tree"]
    leaf = tree.pop(0)
    tree[0]["kids"].append(leaf)
    consumer.take()
    assert consumer.state == {"tree": [{"kids": ["leaf"]}]}


@pytest.mark.parametrize("first", ["edit", "delete"])
def test_an_edit_and_a_deletion_before_it_in_one_flush(first: str) -> None:
    consumer = Consumer({"rows": [{"qty": number} for number in range(5)]})
    rows = consumer.value["rows"]
    if first == "edit":
        rows[4]["qty"] = 9
        del rows[1]
    else:
        del rows[1]
        rows[3]["qty"] = 9
    assert consumer.paths() == [("remove", "/rows/1"), ("replace", "/rows/3/qty")]


def test_appends_use_the_index_and_not_a_dash() -> None:
    consumer = Consumer({"l": [1]})
    consumer.value["l"].append(2)
    consumer.value["l"].extend([3, 4])
    assert [op["path"] for op in consumer.ops()] == ["/l/1", "/l/2", "/l/3"]


@pytest.mark.parametrize("value", [{"other": 1}, {}, [1], "text"])
def test_the_whole_is_never_replaced_under_the_empty_path(value: Any) -> None:
    consumer = Consumer({"a": 1, "b": [2], "fill": "x" * 1000})
    consumer.value = value
    taken = consumer.take()
    if isinstance(taken, Delta):
        assert all(op["path"] for op in taken.ops)


@pytest.mark.parametrize("key", [7, UUID(int=1), date(2026, 1, 2), enum.Enum("E", "A").A, ("a",), None, 1.5, True])
def test_keys_that_are_not_strings_are_refused(key: Any) -> None:
    consumer = Consumer({"by_id": {}})
    with pytest.raises(StateError, match="a key must be a string"):
        consumer.value["by_id"][key] = "a"
    with pytest.raises(StateError, match="a key must be a string"):
        consumer.value["by_id"] = {"1": "b", key: "a"}
    assert consumer.take() is None
    echoed: Document[Any] = Document({"by_id": {"7": "b"}})
    echoed.value["by_id"]["7"] = "c"


class Kind(enum.Enum):
    A = "a"
    B = "b"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


def test_values_that_are_not_json_are_written_in_one_form_everywhere() -> None:
    pairs: dict[str, tuple[Any, Any]] = {
        "naive": (datetime(2026, 1, 2), datetime(2026, 1, 3)),
        "aware": (datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)),
        "date": (date(2026, 1, 2), date(2026, 1, 3)),
        "delta": (timedelta(seconds=1), timedelta(days=2)),
        "uuid": (UUID(int=1), UUID(int=2)),
        "decimal": (Decimal("1.10"), Decimal("2.20")),
        "set": ({1, 2}, {2, 3}),
        "frozenset": (frozenset("ab"), frozenset("bc")),
        "tuple": ((1, "a"), (2, "b")),
        "path": (Path("a/b"), Path("c")),
        "enum": (Kind.A, Kind.B),
        "int enum": (Level.LOW, Level.HIGH),
        "bytes": (b"a", b"b"),
    }
    consumer = Consumer({"fill": "x" * 3000, **{key: one for key, (one, _) in pairs.items()}})
    for key, (_, two) in pairs.items():
        consumer.value[key] = two
    ops = consumer.ops()
    assert {op["path"] for op in ops if op["path"].count("/") == 1} >= {"/naive", "/uuid", "/decimal", "/enum"}
    by_deltas = consumer.state
    consumer.document.resync()
    consumer.take()
    assert text(by_deltas) == text(consumer.state)
    assert consumer.state["decimal"] == "2.20"
    assert consumer.state["int enum"] == 2


def test_circles_end_in_a_clear_error_at_once() -> None:
    consumer = Consumer({"a": {}})
    state = consumer.value
    one: dict[str, Any] = {}
    two: dict[str, Any] = {"one": one}
    one["two"] = two
    start = time.perf_counter()
    for assign, place in (
        (lambda: state.update(self=state), "/self"),
        (lambda: state["a"].update(parent=state), "/a/parent"),
        (lambda: state.update(pair=one), "/pair/two/one"),
        (lambda: state.update(event=asyncio.Event()), "/event"),
    ):
        with pytest.raises(StateError) as raised:
            assign()
        assert raised.value.pointer == place
    assert time.perf_counter() - start < 1
    assert consumer.take() is None


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, [math.inf, -math.inf], {"mean": math.nan}])
def test_nan_and_infinity_are_refused_and_later_flushes_are_quiet(value: Any) -> None:
    consumer = Consumer({"score": 1.5})
    with pytest.raises(StateError, match="is not JSON"):
        consumer.value["score"] = value
    assert consumer.value == {"score": 1.5}
    assert consumer.take() is None


def test_numbers_of_numpy() -> None:
    numpy = pytest.importorskip("numpy")
    consumer = Consumer({})
    consumer.value["mean"] = numpy.float64(0.5)
    assert consumer.ops() == [{"op": "add", "path": "/mean", "value": 0.5}]
    with pytest.raises(StateError, match="nan"):
        consumer.value["mean"] = numpy.float64("nan")


def test_arrays_are_refused_with_a_hint_and_never_compared() -> None:
    class Array:
        """Compares like an array: to something that has no truth."""

        def tolist(self) -> list[int]:
            return [1, 2]

        def __eq__(self, other: object) -> Any:
            raise ValueError("the truth value is ambiguous")

        __hash__ = None  # type: ignore[assignment]

    consumer = Consumer({"x": None})
    for _ in range(2):
        with pytest.raises(StateError, match=r"\.tolist\(\)") as raised:
            consumer.value["x"] = Array()
        assert raised.value.pointer == "/x"
    consumer.value["x"] = Array().tolist()
    assert consumer.paths() == [("replace", "/x")]


def test_ids_of_64_bits_are_sent_whole_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    consumer = Consumer({})
    consumer.value["order_id"] = 2**53 + 1
    assert consumer.ops() == [{"op": "add", "path": "/order_id", "value": 9007199254740993}]
    consumer.value["order_id"] = 1234567890123456789
    taken = consumer.document.take()
    assert isinstance(taken, Delta)
    assert b"1234567890123456789" in taken.json
    assert caplog.text.count("JavaScript rounds it") == 1
    PATCHES.clear()


def test_a_list_that_grows_by_nulls() -> None:
    consumer = Consumer({"l": [1, 2], "fill": "x" * 600})
    items = consumer.value["l"]
    for edit in (
        lambda: items.__iadd__([None] * 4),
        lambda: items.__setitem__(slice(3, 5), []),
        lambda: items.insert(100, "end"),
        lambda: items.insert(-100, "start"),
    ):
        edit()
        consumer.take()
    assert consumer.state["l"] == ["start", 1, 2, None, None, "end"]


def test_a_member_that_changes_its_kind_is_replaced_at_once() -> None:
    consumer = Consumer({"pref": {"size": [1, 2]}})
    values: list[Any] = [[{"size": 1}, {"size": 2}], "none", {"size": []}]
    for value in values:
        consumer.value["pref"] = value
        assert consumer.paths() == [("replace", "/pref")]
    for value in [*values, {"size": [1, 2]}]:
        consumer.value["pref"] = value
    assert len(consumer.ops()) == 1


def test_a_test_operation_is_never_sent() -> None:
    consumer = Consumer({"n": 1, "l": [1, [2]]})
    consumer.value["n"] = True
    consumer.value["l"][1][0] = False
    assert {op["op"] for op in consumer.ops()} == {"replace"}
    assert consumer.take() is None
    assert isinstance(Document({}).take(), Snapshot)
