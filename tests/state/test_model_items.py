"""What enters a container of a typed field is validated; an edit that would make the field invalid is not done."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired

import pytest
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from typing_extensions import TypeAliasType, TypedDict

from model_support import Consumer
from statecast.errors import StateError
from statecast.state import Document, State, StateType, TrackedDict, TrackedList

Nested = TypeAliasType("Nested", "list[int | Nested]")


class Stop(State):
    title: str = ""
    tags: list[str] = []


class Row(TypedDict):
    id: int
    cells: list[int]
    stop: NotRequired[Stop]


class Open(TypedDict, total=False):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    n: int


def is_positive(value: int) -> int:
    if value <= 0:
        raise ValueError("not positive")
    return value


def even(values: list[int]) -> list[int]:
    if len(values) % 2:
        raise ValueError("an odd number of items")
    return values


def first_is_least(value: Any) -> Any:
    if value["cells"] and value["id"] > min(value["cells"]):
        raise ValueError("a cell is below the id")
    return value


class Typed(State):
    numbers: list[int] = []
    grid: list[list[int]] = []
    by_name: dict[str, list[int]] = {}
    deep: dict[str, dict[str, list[Stop]]] = {}
    stops: list[Stop] | None = []
    when: list[datetime.date] = []
    choices: list[Literal["a", "b"]] = []
    positive: list[Annotated[int, AfterValidator(is_positive)]] = []
    row: Row = {"id": 0, "cells": []}
    rows: list[Row] = []
    open: Open = {}
    guarded: Annotated[Row, AfterValidator(first_is_least)] = {"id": 0, "cells": []}
    nested: Nested = []
    sequence: Sequence[int] = []
    mapping: Mapping[str, int] = {}
    short: Annotated[list[str], Field(max_length=2)] = []
    keys: dict[Annotated[str, Field(min_length=2)], int] = {}
    pairs: Annotated[list[int], AfterValidator(even)] = []
    evens: dict[str, Annotated[list[int], AfterValidator(even)]] = {}
    either: list[int] | dict[str, int] = []
    text: Annotated[str, BeforeValidator(str)] = ""


def edits() -> list[tuple[Callable[[Typed], Any], Any]]:
    """Edits that are refused: with each, the Typed to start from."""
    return [
        (lambda m: m.numbers.append("x"), {}),
        (lambda m: m.numbers.extend([1, "x"]), {}),
        (lambda m: m.numbers.insert(0, None), {}),
        (lambda m: m.numbers.__setitem__(slice(0, 1), ["x"]), {"numbers": [1]}),
        (lambda m: m.numbers.__setitem__(0, "x"), {"numbers": [1]}),
        (lambda m: m.numbers.__iadd__(["x"]), {}),
        (lambda m: m.grid.append([1, "x"]), {}),
        (lambda m: m.grid[0].append("x"), {"grid": [[1]]}),
        (lambda m: m.grid.append("x"), {}),
        (lambda m: m.by_name.update(a=["x"]), {}),
        (lambda m: m.by_name.setdefault("a", 5), {}),
        (lambda m: m.by_name.__ior__({"a": {}}), {}),
        (lambda m: m.by_name["a"].append("x"), {"by_name": {"a": [1]}}),
        (lambda m: m.deep["a"]["b"].append(5), {"deep": {"a": {"b": []}}}),
        (lambda m: m.deep["a"]["b"].append({"title": 5}), {"deep": {"a": {"b": []}}}),
        (lambda m: m.deep.__setitem__("b", {"c": [5]}), {}),
        (lambda m: m.stops.append("x"), {}),
        (lambda m: m.stops[0].tags.append(5), {"stops": [{}]}),
        (lambda m: m.when.append("x"), {}),
        (lambda m: m.choices.append("c"), {}),
        (lambda m: m.positive.append(-1), {}),
        (lambda m: m.row.__setitem__("id", "x"), {}),
        (lambda m: m.row.__setitem__("other", 1), {}),
        (lambda m: m.row.pop("id"), {}),
        (lambda m: m.row.clear(), {}),
        (lambda m: m.row["cells"].append("x"), {}),
        (lambda m: m.row.update(stop="x"), {}),
        (lambda m: m.rows.append({"id": 1}), {}),
        (lambda m: m.rows[0].__setitem__("cells", ["x"]), {"rows": [{"id": 1, "cells": []}]}),
        (lambda m: m.rows[0]["cells"].append("x"), {"rows": [{"id": 1, "cells": []}]}),
        (lambda m: m.guarded.__setitem__("id", 5), {"guarded": {"id": 1, "cells": [3]}}),
        (lambda m: m.guarded["cells"].append(0), {"guarded": {"id": 1, "cells": [3]}}),
        (lambda m: m.open.__setitem__("n", "x"), {}),
        (lambda m: m.nested.append("x"), {}),
        (lambda m: m.nested[0].append("x"), {"nested": [[1]]}),
        (lambda m: m.nested[0][0].append("x"), {"nested": [[[1]]]}),
        (lambda m: m.sequence.append("x"), {}),
        (lambda m: m.mapping.__setitem__("a", "x"), {}),
        (lambda m: m.short.append("c"), {"short": ["a", "b"]}),
        (lambda m: m.short.extend("abc"), {}),
        (lambda m: m.short.append(5), {}),
        (lambda m: m.short.__imul__(2), {"short": ["a", "b"]}),
        (lambda m: m.keys.__setitem__("a", 1), {}),
        (lambda m: m.pairs.append(1), {}),
        (lambda m: m.pairs.pop(), {"pairs": [1, 2]}),
        (lambda m: m.pairs.remove(1), {"pairs": [1, 2]}),
        (lambda m: m.pairs.__delitem__(0), {"pairs": [1, 2]}),
        (lambda m: m.evens["a"].append(1), {"evens": {"a": []}}),
        (lambda m: m.evens.__setitem__("a", [1]), {}),
        (lambda m: m.either.append("x"), {"either": [1]}),
        (lambda m: m.either.append("5"), {"either": [1]}),
        (lambda m: m.either.__setitem__("a", "x"), {"either": {"a": 1}}),
    ]


@pytest.mark.parametrize(("edit", "start"), edits())
def test_an_edit_that_would_make_the_field_invalid_is_refused_and_not_done(
    edit: Callable[[Typed], Any], start: Any
) -> None:
    consumer = Consumer(Typed(**start))
    before = consumer.value.model_copy(deep=True)
    with pytest.raises((ValidationError, StateError)):
        edit(consumer.value)
    assert consumer.value == before
    assert consumer.sync() == []
    assert consumer.reread() == before


def test_an_edit_is_refused_in_a_model_that_is_in_no_document_too() -> None:
    for edit, start in edits():
        value = Typed(**start)
        before = value.model_copy(deep=True)
        with pytest.raises((ValidationError, StateError)):
            edit(value)
        assert value == before


def test_what_is_not_of_the_item_type_is_converted_as_in_an_assignment() -> None:
    consumer = Consumer(Typed())
    value: Any = consumer.value
    value.numbers += ["1", 2.0]
    value.grid.append(["3"])
    value.grid[0].append("4")
    value.by_name["a"] = ("5",)
    value.by_name["a"].append("6")
    value.stops.append({"title": "a"})
    value.when.append("2026-01-02")
    value.row["id"] = "7"
    value.row["cells"].append("8")
    value.row["stop"] = {"title": "b"}
    value.row["stop"].tags.append("t")
    value.rows.append({"id": "9", "cells": ["10"]})
    value.rows[0]["cells"].append("11")
    value.open["n"] = "12"
    value.sequence.append("13")
    value.mapping["a"] = "14"
    value.nested.append(["15"])
    value.short.append("x")
    value.evens["a"] = ["1", "2"]
    sent = consumer.sent()
    assert value.numbers == [1, 2]
    assert value.grid == [[3, 4]]
    assert value.by_name == {"a": [5, 6]}
    assert type(value.stops[0]) is Stop
    assert value.when == [datetime.date(2026, 1, 2)]
    assert sent["row"] == {"id": 7, "cells": [8], "stop": {"title": "b", "tags": ["t"]}}
    value.open["other"] = ["any"]
    value.open["other"].append("more")
    assert value.open == {"n": 12, "other": ["any", "more"]}
    del value.open["other"]
    assert sent["rows"] == [{"id": 9, "cells": [10, 11]}]
    assert consumer.sync() == []
    assert (value.sequence, value.mapping, value.nested) == ([13], {"a": 14}, [[15]])
    assert value.evens == {"a": [1, 2]}
    assert consumer.reread() == value


def test_valid_edits_of_judged_containers_are_done_at_every_depth() -> None:
    consumer = Consumer(Typed(pairs=[1, 2], evens={"a": [1, 2]}, either=[1], short=["a"]))
    value: Any = consumer.value
    value.pairs.extend([3, 4])
    value.evens["a"][1:] = [5]
    value.short.append("b")
    value.either.append(2)
    consumer.sync()
    value.either = {"a": 1}
    value.either["b"] = 2
    value.pairs.clear()
    value.pairs.reverse()
    value.short.sort(reverse=True)
    consumer.sync()
    assert (value.evens, value.either, value.short) == ({"a": [1, 5]}, {"a": 1, "b": 2}, ["b", "a"])


def test_one_container_has_one_item_type() -> None:
    class Other(State):
        floats: list[float] = []
        texts: dict[str, list[str]] = {}
        again: list[int] = []
        free: Any = None

    typed = Typed(numbers=[1])
    other = Other()
    for assign in (
        lambda: setattr(other, "floats", typed.numbers),
        lambda: other.texts.update(a=typed.numbers),
        lambda: typed.grid.append(typed.short),
    ):
        with pytest.raises(StateError, match="another item type"):
            assign()
    other.again = typed.numbers
    other.free = typed.numbers
    assert other.again is other.free is typed.numbers
    with pytest.raises(ValidationError):
        other.free.append("x")


def test_containers_inside_one_that_becomes_typed_are_typed_too() -> None:
    inner = TrackedList([1])
    outer = TrackedList([inner])
    typed = Typed()
    typed.grid = outer
    assert typed.grid is outer
    assert typed.grid[0] is inner
    with pytest.raises(ValidationError):
        inner.append("x")
    record = TrackedDict(id=1, cells=TrackedList())
    typed.row = record  # type: ignore[assignment]
    assert typed.row is record
    with pytest.raises(ValidationError):
        record["cells"].append("x")


def test_a_model_with_validators_judges_every_container_in_it() -> None:
    class Judged(State):
        limit: int = 2
        rows: list[list[int]] = []
        free: dict[str, Any] = {}
        size: int = 0

        @model_validator(mode="after")
        def judge(self) -> Judged:
            if sum(map(len, self.rows)) + len(self.free.get("rows", [])) > self.limit:
                raise ValueError("too much")
            self.size = sum(map(len, self.rows))
            return self

    consumer = Consumer(Judged(rows=[[1]], free={"rows": []}))
    value = consumer.value
    value.rows[0].append(2)
    assert value.size == 2
    for edit in (
        lambda: value.rows[0].append(3),
        lambda: value.rows.append([3]),
        lambda: value.free["rows"].append(1),
        lambda: value.free.update(rows=[1]),
        lambda: setattr(value, "limit", 1),
    ):
        with pytest.raises(ValidationError, match="too much"):
            edit()
    assert consumer.sent() == {"limit": 2, "rows": [[1, 2]], "free": {"rows": []}, "size": 2}
    held = value.rows.pop()
    held.append(4)
    assert value.size == 0
    assert consumer.sent()["size"] == 0


def test_a_field_validator_judges_edits_inside_the_field() -> None:
    class Made(State):
        rows: list[list[int]] = []

        @field_validator("rows")
        @classmethod
        def small(cls, value: list[list[int]]) -> list[list[int]]:
            if sum(map(sum, value)) > 10:
                raise ValueError("too large")
            return value

    consumer = Consumer(Made(rows=[[5]]))
    with pytest.raises(ValidationError, match="too large"):
        consumer.value.rows[0].append(6)
    with pytest.raises(ValidationError, match="too large"):
        consumer.value.rows.append([6])
    consumer.value.rows[0].append(5)
    assert consumer.sent() == {"rows": [[5, 5]]}


def test_a_field_validator_that_knows_the_other_fields_judges_edits_too() -> None:
    class Made(State):
        limit: int = 2
        rows: list[list[int]] = []

        @field_validator("rows")
        @classmethod
        def short(cls, value: list[list[int]], info: Any) -> list[list[int]]:
            if sum(map(len, value)) > info.data["limit"]:
                raise ValueError("too many")
            return value

    consumer = Consumer(Made(rows=[[1]]))
    with pytest.raises(ValidationError, match="too many"):
        consumer.value.rows.append([2, 3])
    with pytest.raises(ValidationError, match="too many"):
        consumer.value.rows[0].extend([2, 3])
    consumer.value.limit = 3
    consumer.value.rows[0].extend([2, 3])
    assert consumer.sent() == {"limit": 3, "rows": [[1, 2, 3]]}


def test_an_item_validator_that_knows_the_other_fields() -> None:
    def below(value: int, info: ValidationInfo) -> int:
        if value > info.data["limit"]:
            raise ValueError("above the limit")
        return value

    def titled(value: Stop, info: ValidationInfo) -> Stop:
        if len(value.title) > info.data["limit"]:
            raise ValueError(value.title)
        return value

    class Record(TypedDict):
        limit: int
        n: Annotated[int, AfterValidator(below)]

    class Made(State):
        limit: int = 2
        numbers: list[Annotated[int, AfterValidator(below)]] = []
        by: dict[str, list[Annotated[int, AfterValidator(below)]]] = {}
        record: Record = {"limit": 2, "n": 1}
        stop: Annotated[Stop, AfterValidator(titled)] = Stop()

    consumer = Consumer(Made(by={"a": []}))
    for edit in (
        lambda: consumer.value.numbers.append(3),
        lambda: consumer.value.by["a"].append(3),
        lambda: consumer.value.record.update(n=3),
        lambda: consumer.value.record.update(limit=0),
        lambda: setattr(consumer.value, "stop", Stop(title="above the limit")),
    ):
        with pytest.raises(ValidationError, match="above the limit"):
            edit()
    with pytest.raises(StateError, match="read back as something else"):
        consumer.value.numbers.append("1")  # type: ignore[arg-type]
    consumer.value.limit = 3
    consumer.value.numbers.append(3)
    consumer.value.by["a"].append(3)
    consumer.value.record.update(limit=5, n=4)
    with pytest.raises(StateError, match="read back as something else"):
        consumer.value.record["n"] = "2"  # type: ignore[typeddict-item]
    assert consumer.sent()["record"] == {"limit": 5, "n": 4}


def test_any_json_in_a_judged_model_is_judged() -> None:
    class Made(State):
        free: Any = None

        @model_validator(mode="after")
        def small(self) -> Made:
            if len(str(self.free)) > 20:
                raise ValueError("too large")
            return self

    consumer = Consumer(Made(free={"a": [1]}))
    with pytest.raises(ValidationError, match="too large"):
        consumer.value.free["a"].extend(range(20))
    with pytest.raises(ValidationError, match="too large"):
        consumer.value.free["b"] = "x" * 20
    consumer.value.free["a"].append(2)
    assert consumer.sent() == {"free": {"a": [1, 2]}}


def test_a_root_that_needs_no_reading_is_taken_itself() -> None:
    for kind in (dict, dict[str, Any], list[Any], Any):
        value: Any = [1] if kind == list[Any] else {"a": {}}
        assert StateType(kind).accept(value)[0] is value


def test_strict_models_do_not_convert_items() -> None:
    class Strict(State):
        model_config = ConfigDict(strict=True)
        numbers: list[int] = []

    value = Strict()
    with pytest.raises(ValidationError):
        value.numbers.append("1")  # type: ignore[arg-type]
    value.numbers.append(1)
    lax = Typed()
    lax.numbers.append("1")  # type: ignore[arg-type]
    assert value.numbers == lax.numbers == [1]


def test_string_settings_of_the_model_hold_for_items() -> None:
    class Trimmed(State):
        model_config = ConfigDict(str_strip_whitespace=True)
        name: str = ""
        names: list[str] = []

    value = Trimmed()
    value.name = " a "
    value.names.append(" b ")
    assert (value.name, value.names) == ("a", ["b"])


def test_a_failed_update_changes_nothing_of_what_came_before_it() -> None:
    consumer = Consumer(Typed(by_name={"a": [1]}))
    with pytest.raises(ValidationError):
        consumer.value.by_name.update({"a": [2], "b": "x"})  # type: ignore[dict-item]
    assert consumer.value.by_name == {"a": [1]}
    assert consumer.sync() == []


@pytest.mark.parametrize(
    ("kind", "value", "edit"),
    [
        (list[Stop], [], lambda v: v.append(5)),
        (list[Stop], [{"title": "a"}], lambda v: v[0].tags.append(5)),
        (dict[str, list[int]], {}, lambda v: v.update(a=["x"])),
        (dict[str, list[int]], {"a": []}, lambda v: v["a"].append("x")),
        (Row, {"id": 1, "cells": []}, lambda v: v.update(id="x")),
        (Row, {"id": 1, "cells": []}, lambda v: v["cells"].append("x")),
        (Row, {"id": 1, "cells": []}, lambda v: v.pop("id")),
        (Annotated[list[int], Field(max_length=1)], [1], lambda v: v.append(2)),
    ],
)
def test_the_root_of_a_document_is_typed_too(kind: Any, value: Any, edit: Callable[[Any], Any]) -> None:
    document: Document[Any] = Document(value, type=kind)
    document.take()
    with pytest.raises((ValidationError, StateError)):
        edit(document.value)
    assert document.take() is None


def test_a_new_root_is_held_to_the_type() -> None:
    document: Document[Any] = Document(Typed(), type=Typed)
    document.value = {"numbers": ["1"]}
    assert type(document.value) is Typed
    assert document.value.numbers == [1]
    with pytest.raises(StateError, match="valid integer") as caught:
        document.value = {"numbers": [1, "x"]}
    assert caught.value.pointer == "/numbers/1"
    assert document.value.numbers == [1]
    kept = Typed()
    document.value = kept
    assert document.value is kept


class Plain(BaseModel):
    x: int = 0


def test_plain_models_as_items_are_validated_when_they_enter() -> None:
    class Made(State):
        items: list[Plain] = []

    consumer = Consumer(Made())
    consumer.value.items.append({"x": "1"})  # type: ignore[arg-type]
    assert consumer.value.items == [Plain(x=1)]
    with pytest.raises(ValidationError):
        consumer.value.items.append({"x": "a"})  # type: ignore[arg-type]
    consumer.value.items[0].x = 5
    assert consumer.sent() == {"items": [{"x": 5}]}


def test_fields_of_the_same_item_type_share_a_container_with_a_default_and_without() -> None:
    class Shares(State):
        required: list[int]
        filled: list[int] = []
        optional: list[int] | None = None
        by_name: dict[str, list[int]] = {}

    consumer = Consumer(Shares(required=[1]))
    shares = consumer.value
    shares.filled = shares.optional = shares.required
    shares.by_name["x"] = shares.required
    assert shares.filled is shares.optional is shares.by_name["x"] is shares.required
    shares.filled.append(2)
    consumer.sync()
    with pytest.raises(ValidationError):
        shares.optional.append("no")


class Row(TypedDict):
    id: int


class Sheet(State):
    rows: list[Row] = Field(default=[], alias="Rows")
    marks: list[int] | dict[str, int] = []
    texts: list[str] = []
    by_name: dict[str, list[str]] = {}


class Book(State):
    sheets: list[Sheet] = []


@pytest.mark.parametrize(
    ("edit", "pointer"),
    [
        (lambda sheet, numbers: setattr(sheet, "texts", numbers), "/sheets/1/texts"),
        (lambda sheet, numbers: sheet.by_name.update(a=numbers), "/sheets/1/by_name/a"),
        (lambda sheet, numbers: sheet.rows[0].update(no=2), "/sheets/1/Rows/0/no"),
        (lambda sheet, numbers: sheet.rows[0].clear(), "/sheets/1/Rows/0/id"),
        (lambda sheet, numbers: sheet.marks.append("1"), "/sheets/1/marks"),
        (lambda sheet, numbers: delattr(sheet, "rows"), "/sheets/1/Rows"),
    ],
)
def test_an_error_names_the_place_in_the_whole_state(edit: Any, pointer: str) -> None:
    numbers = Typed(numbers=[1]).numbers
    consumer = Consumer(Book(sheets=[Sheet(), Sheet(Rows=[{"id": 1}])]))
    with pytest.raises(StateError) as caught:
        edit(consumer.value.sheets[1], numbers)
    assert caught.value.pointer == pointer
    assert consumer.sync() == []
