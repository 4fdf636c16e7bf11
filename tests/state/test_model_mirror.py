"""Random edits of a typed state: after every take the consumer's copy is pydantic's own JSON of the model."""

from __future__ import annotations

import datetime
import decimal
from contextlib import suppress
from typing import Annotated, Any, Literal, NotRequired

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, settings
from pydantic import BaseModel, Field, ValidationError, computed_field, model_validator
from typing_extensions import TypedDict

from model_support import Consumer
from statecast.errors import StateError
from statecast.state import State


class Cat(State):
    kind: Literal["cat"] = "cat"
    lives: int = 9
    toys: list[str] = []


class Dog(State):
    kind: Literal["dog"] = "dog"
    tricks: dict[str, float] = {}


class Note(BaseModel):
    text: str = ""
    tags: list[str] = []


class Row(TypedDict):
    id: int
    cells: list[int]
    note: NotRequired[str | None]


class Leaf(State):
    leaf_name: str = Field(default="", alias="leafName")
    score: float = 0.0
    due: datetime.datetime | None = None
    tags: list[str] = []

    @computed_field(alias="tagCount")
    @property
    def tag_count(self) -> int:
        return len(self.tags)


class Fixed(State, frozen=True):
    name: str = "fixed"
    items: list[int] = []


class Branch(State):
    title: str = Field(default="", alias="theTitle")
    leaves: list[Leaf] = []
    numbers: dict[str, list[int]] = Field(default={}, alias="theNumbers")
    main: Leaf | None = None
    pet: Cat | Dog = Field(default=Cat(), discriminator="kind")
    free: dict[str, Any] = {}
    limited: Annotated[list[int], Field(max_length=4)] = []
    fixed: Fixed = Fixed()
    row: Row = {"id": 0, "cells": []}
    rows: list[Row] = []
    note: Note = Note()
    price: decimal.Decimal = decimal.Decimal("1.10")
    either: list[int] | dict[str, int] | None = None
    hidden: list[int] = Field(default=[], exclude=True)
    kids: list[Branch] = []
    low: int = 0
    high: int = 100
    _bonus: int = 0

    @computed_field
    @property
    def total(self) -> int:
        return sum(map(sum, self.numbers.values())) + self._bonus + len(self.hidden)

    @computed_field(alias="leafNames")
    @property
    def leaf_names(self) -> list[str]:
        return [leaf.leaf_name for leaf in self.leaves]

    @model_validator(mode="after")
    def ordered(self) -> Branch:
        if self.low > self.high:
            raise ValueError("low is above high")
        return self


TEXT = st.text(max_size=4)
INT = st.integers(-3, 3)
FLOAT = st.sampled_from([0.0, -0.0, 1.0, 2.5, 1e300]) | INT
JSON = st.recursive(
    st.none() | st.booleans() | INT | FLOAT | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
DUE = st.none() | st.datetimes(timezones=st.just(datetime.UTC) | st.none())
LEAF = st.builds(Leaf, leafName=TEXT, score=FLOAT, due=DUE, tags=st.lists(TEXT, max_size=2)) | st.fixed_dictionaries(
    {}, optional={"leafName": TEXT, "score": FLOAT, "tags": st.lists(TEXT, max_size=2)}
)
PET = st.builds(Cat, lives=INT) | st.builds(Dog) | st.just({"kind": "dog", "tricks": {"sit": 1}})
ROW = st.fixed_dictionaries({"id": INT, "cells": st.lists(INT, max_size=2)}, optional={"note": st.none() | TEXT})
BRANCH = st.builds(
    Branch, theTitle=TEXT, leaves=st.lists(LEAF, max_size=2), theNumbers=st.dictionaries(TEXT, st.lists(INT))
)
BAD = st.just(object()) | st.just(float("nan")) | st.just({1: 2}) | st.just("bad")

FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "title": TEXT,
    "leaves": st.lists(LEAF, max_size=3),
    "numbers": st.dictionaries(TEXT, st.lists(INT, max_size=3), max_size=3),
    "main": st.none() | LEAF,
    "pet": PET,
    "free": st.dictionaries(TEXT, JSON, max_size=3),
    "limited": st.lists(INT, max_size=5),
    "row": ROW,
    "rows": st.lists(ROW, max_size=2),
    "note": st.builds(Note, text=TEXT, tags=st.lists(TEXT, max_size=2)),
    "price": st.decimals(0, 9, places=2),
    "either": st.none() | st.lists(INT, max_size=2) | st.dictionaries(TEXT, INT, max_size=2),
    "hidden": st.lists(INT, max_size=2),
    "kids": st.lists(BRANCH, max_size=2),
    "low": st.integers(-5, 105),
    "high": st.integers(-5, 105),
    "_bonus": INT,
}
LEAF_FIELDS = {"leaf_name": TEXT, "score": FLOAT, "due": DUE, "tags": st.lists(TEXT, max_size=3)}


def branches(root: Branch) -> list[Branch]:
    found = [root]
    for branch in found:
        found += [kid for kid in branch.kids if not any(kid is one for one in found)]
    return found


def lists_of(branch: Branch) -> list[tuple[list[Any], st.SearchStrategy[Any]]]:
    found: list[tuple[list[Any], st.SearchStrategy[Any]]] = [
        (branch.leaves, LEAF),
        (branch.limited, INT),
        (branch.fixed.items, INT),
        (branch.row["cells"], INT),
        (branch.rows, ROW),
        (branch.kids, BRANCH),
        *((numbers, INT) for numbers in branch.numbers.values()),
        *((leaf.tags, TEXT) for leaf in branch.leaves),
        *((row["cells"], INT) for row in branch.rows),
        *((value, JSON) for value in branch.free.values() if isinstance(value, list)),
    ]
    if isinstance(branch.either, list):
        found.append((branch.either, INT))
    if isinstance(branch.pet, Cat):
        found.append((branch.pet.toys, TEXT))
    return found


def dicts_of(branch: Branch) -> list[tuple[dict[str, Any], st.SearchStrategy[Any], st.SearchStrategy[str]]]:
    found: list[tuple[dict[str, Any], st.SearchStrategy[Any], st.SearchStrategy[str]]] = [
        (branch.numbers, st.lists(INT, max_size=2), TEXT),
        (branch.free, JSON, TEXT),
        (branch.row, st.lists(INT, max_size=2) | INT | TEXT, st.sampled_from(["id", "cells", "note", "other"])),
    ]
    if isinstance(branch.either, dict):
        found.append((branch.either, INT, TEXT))
    if isinstance(branch.pet, Dog):
        found.append((branch.pet.tricks, FLOAT, TEXT))
    return found


def edit_list(draw: Any, items: list[Any], item: st.SearchStrategy[Any]) -> None:
    size = len(items)
    match draw(st.integers(0, 10)):
        case 0:
            items.append(draw(item))
        case 1:
            items.insert(draw(st.integers(-2, 4)), draw(item))
        case 2 if size:
            items[draw(st.integers(0, size - 1))] = draw(item)
        case 3 if size:
            items.pop(draw(st.integers(0, size - 1)))
        case 4:
            items.extend(draw(st.lists(item, max_size=2)))
        case 5:
            items.reverse()
        case 6:
            items[draw(st.integers(0, 2)) : draw(st.integers(0, 3))] = draw(st.lists(item, max_size=2))
        case 7:
            items.clear()
        case 8:
            items.append(draw(BAD))
        case 9 if size:
            items.append(items[0])
        case _:
            items += [draw(item)]


def edit_dict(draw: Any, members: dict[str, Any], value: st.SearchStrategy[Any], key: st.SearchStrategy[str]) -> None:
    match draw(st.integers(0, 6)):
        case 0 | 1:
            members[draw(key)] = draw(value)
        case 2:
            members.pop(draw(key), None)
        case 3:
            members.update({draw(key): draw(value), draw(key): draw(value)})
        case 4:
            members.setdefault(draw(key), draw(value))
        case 5 if members:
            members.popitem()
        case _:
            members[draw(key)] = draw(BAD)


def edit(draw: Any, root: Branch) -> None:
    branch = draw(st.sampled_from(branches(root)))
    match draw(st.integers(0, 9)):
        case 0 | 1 | 2:
            name = draw(st.sampled_from(list(FIELDS)))
            setattr(branch, name, draw(FIELDS[name]))
        case 3:
            leaves = [*branch.leaves, *([branch.main] if branch.main else [])]
            if leaves:
                name = draw(st.sampled_from(list(LEAF_FIELDS)))
                setattr(draw(st.sampled_from(leaves)), name, draw(LEAF_FIELDS[name]))
        case 4 | 5:
            edit_list(draw, *draw(st.sampled_from(lists_of(branch))))
        case 6 | 7:
            edit_dict(draw, *draw(st.sampled_from(dicts_of(branch))))
        case 8:
            branch.note.tags.append(draw(TEXT))
            branch.hidden.append(draw(INT))
            if branch.leaves:
                branch.main = branch.leaves[0]
        case 9:
            other = draw(st.sampled_from(branches(root)))
            branch.leaves, other.leaves = other.leaves, branch.leaves


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_the_consumer_holds_pydantics_own_json_after_every_take(data: st.DataObject) -> None:
    consumer = Consumer(data.draw(BRANCH))
    for _ in range(data.draw(st.integers(1, 12))):
        for _ in range(data.draw(st.integers(1, 3))):
            with suppress(ValidationError, StateError):
                edit(data.draw, consumer.value)
        consumer.sync()
    for branch in branches(consumer.value):
        # What never leaves the server does not come back, nor what is computed of it.
        branch.hidden, branch._bonus = [], 0
    consumer.sync()
    consumer.reread()


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_batch_that_fails_leaves_the_model_as_it_was(data: st.DataObject) -> None:
    consumer = Consumer(data.draw(BRANCH))
    for _ in range(data.draw(st.integers(1, 4))):
        before = consumer.value.model_dump_json(by_alias=True)
        unset = consumer.value.model_dump_json(by_alias=True, exclude_unset=True)
        hidden = list(consumer.value.hidden)
        try:
            with consumer.document.batch():
                for _ in range(data.draw(st.integers(1, 5))):
                    try:
                        if data.draw(st.booleans()):
                            name = data.draw(
                                st.sampled_from([name for name in FIELDS if name not in ("_bonus", "note")])
                            )
                            setattr(consumer.value, name, data.draw(FIELDS[name]))
                        else:
                            edit_dict(data.draw, *data.draw(st.sampled_from(dicts_of(consumer.value))))
                    except (ValidationError, StateError):
                        pass
                raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        assert consumer.value.model_dump_json(by_alias=True) == before
        assert consumer.value.model_dump_json(by_alias=True, exclude_unset=True) == unset
        assert consumer.value.hidden == hidden
        assert consumer.sync() == []
        edit_free(data.draw, consumer)


def edit_free(draw: Any, consumer: Consumer[Branch]) -> None:
    consumer.value.free = draw(FIELDS["free"])
    consumer.sync()
