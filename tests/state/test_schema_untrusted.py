"""What a client is not believed on: computed, excluded, private and `ReadOnly` members, at every depth."""

import copy
import dataclasses
from collections import OrderedDict, deque
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypeVar

import pytest
from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    RootModel,
    Tag,
    computed_field,
    model_validator,
)
from typing_extensions import TypeAliasType, TypedDict

from statecast.state import ReadOnly, State, StateType

T = TypeVar("T")


class Item(State):
    n: int = 0
    owner: Annotated[str, ReadOnly] = "server"
    hidden_key: str = Field(default="kept", exclude=True, alias="hiddenKey")
    _private: int = 7

    @computed_field(alias="twiceN")
    @property
    def twice(self) -> int:
        return 2 * self.n


EVIL = {"n": 1, "owner": "evil", "hiddenKey": "evil", "hidden_key": "evil", "_private": 9, "twice": 9, "twiceN": 9}
CLEAN = {"n": 1}


class PlainItem(BaseModel):
    n: int = 0
    owner: Annotated[str, ReadOnly] = "server"
    hidden_key: str = Field(default="kept", exclude=True, alias="hiddenKey")
    _private: int = 7

    @computed_field(alias="twiceN")
    @property
    def twice(self) -> int:
        return 2 * self.n


@dataclasses.dataclass
class Data:
    item: Item
    owner: Annotated[str, ReadOnly] = "server"
    made: int = dataclasses.field(default=1, init=False)


class Table(TypedDict):
    item: NotRequired[Item]
    owner: NotRequired[Annotated[str, ReadOnly]]


class Pair(NamedTuple):
    left: Item
    right: int


class Tree(State):
    item: Item = Item()
    children: "list[Tree]" = []
    by_name: "dict[str, Tree]" = {}


class Box(State, Generic[T]):
    item: T | None = None


class Roots(RootModel[list[Item]]):
    pass


class Checked(State):
    items: list[Item] = []

    @model_validator(mode="before")
    @classmethod
    def before(cls, data: Any) -> Any:
        return data

    @model_validator(mode="after")
    def after(self) -> "Checked":
        return self


class Cat(State):
    kind: Literal["cat"] = "cat"
    lives: Annotated[int, ReadOnly] = 9


class Dog(State):
    kind: Literal["dog"] = "dog"
    lives: int = 1


def kind_of(data: Any) -> str | None:
    return data.get("kind") if isinstance(data, dict) else getattr(data, "kind", None)


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]
CalledPet = Annotated[Annotated[Cat, Tag("cat")] | Annotated[Dog, Tag("dog")], Discriminator(kind_of)]
Recursive = TypeAliasType("Recursive", "Item | list[Recursive]")

STRIPPED = [
    (Item, EVIL, CLEAN),
    (PlainItem, EVIL, CLEAN),
    (list[Item], [EVIL, CLEAN], [CLEAN, CLEAN]),
    (list[PlainItem], [EVIL], [CLEAN]),
    (dict[str, Item], {"owner": EVIL}, {"owner": CLEAN}),
    (dict[str, list[Item]], {"a": [EVIL]}, {"a": [CLEAN]}),
    (tuple[int, Item], [1, EVIL], [1, CLEAN]),
    (tuple[Item, ...], [EVIL, EVIL], [CLEAN, CLEAN]),
    (Pair, [EVIL, 1], [CLEAN, 1]),
    (Pair, {"left": EVIL, "right": 1}, {"left": CLEAN, "right": 1}),
    (OrderedDict[str, Item], {"a": EVIL}, {"a": CLEAN}),
    (deque[Item], [EVIL], [CLEAN]),
    (Sequence[Item], [EVIL], [CLEAN]),
    (Mapping[str, Item], {"a": EVIL}, {"a": CLEAN}),
    (MutableMapping[str, Item], {"a": EVIL}, {"a": CLEAN}),
    (Item | None, EVIL, CLEAN),
    (Item | int, EVIL, CLEAN),
    (int | list[Item], [EVIL], [CLEAN]),
    (Annotated[list[Item], Field(max_length=3)], [EVIL], [CLEAN]),
    (Data, {"item": EVIL, "owner": "evil", "made": 5}, {"item": CLEAN}),
    (Table, {"item": EVIL, "owner": "evil"}, {"item": CLEAN}),
    (Box[Item], {"item": EVIL}, {"item": CLEAN}),
    (Box[list[Item]], {"item": [EVIL]}, {"item": [CLEAN]}),
    (Roots, [EVIL], [CLEAN]),
    (Checked, {"items": [EVIL]}, {"items": [CLEAN]}),
    (
        Tree,
        {"item": EVIL, "children": [{"item": EVIL, "children": [], "by_name": {"x": {"item": EVIL}}}]},
        {"item": CLEAN, "children": [{"item": CLEAN, "children": [], "by_name": {"x": {"item": CLEAN}}}]},
    ),
    (Pet, {"kind": "cat", "lives": 99}, {"kind": "cat"}),
    (Pet, {"kind": "dog", "lives": 99}, {"kind": "dog", "lives": 99}),
    (CalledPet, {"kind": "cat", "lives": 99}, {"kind": "cat"}),
    (CalledPet, {"kind": "dog", "lives": 99}, {"kind": "dog", "lives": 99}),
    (Cat | Dog, {"kind": "cat", "lives": 99}, {"kind": "cat"}),
    (Cat | Dog, {"kind": "dog", "lives": 99}, {"kind": "dog", "lives": 99}),
    (
        list[Cat | Dog],
        [{"kind": "dog", "lives": 2}, {"kind": "cat", "lives": 99}],
        [{"kind": "dog", "lives": 2}, {"kind": "cat"}],
    ),
    (Recursive, [[EVIL], EVIL], [[CLEAN], CLEAN]),
    (dict[str, Any], EVIL, EVIL),
    (Any, EVIL, EVIL),
]


@pytest.mark.parametrize(("annotation", "data", "left"), STRIPPED, ids=lambda value: str(value)[:50])
def test_strip_takes_out_what_a_client_is_not_believed_on(annotation: Any, data: Any, left: Any) -> None:
    before = copy.deepcopy(data)
    kind = StateType(annotation)
    assert kind.strip(data) == left
    assert data == before
    if left is not data:
        assert kind.read(data) == kind.validate(left)


@pytest.mark.parametrize("annotation", [Item, PlainItem])
def test_what_was_taken_out_has_the_value_of_the_server(annotation: Any) -> None:
    item = StateType(annotation).read(EVIL)
    assert (item.n, item.owner, item.hidden_key, item._private, item.twice) == (1, "server", "kept", 7, 2)


def test_nothing_is_copied_where_nothing_is_taken_out() -> None:
    data = {"item": {"n": 1}, "children": [{"item": {}}]}
    assert StateType(Tree).strip(data) is data


def test_data_that_fits_no_member_of_a_union_loses_what_any_member_hides() -> None:
    kind = StateType(Cat | Item)
    assert kind.strip({"kind": "bird", "lives": 9, "owner": "evil", "n": "x"}) == {"kind": "bird", "n": "x"}


@pytest.mark.parametrize(
    "data", [None, 3, "x", [], [[]], {"kind": ["unhashable"]}, {"item": 3, "children": {}, "by_name": []}]
)
@pytest.mark.parametrize("annotation", [Tree, Pet, Cat | Dog, list[Item], Pair, dict[str, Item], Table])
def test_strip_leaves_data_of_another_shape_to_validation(annotation: Any, data: Any) -> None:
    StateType(annotation).strip(data)


def test_a_model_that_forbids_extra_members_reads_its_own_computed_ones() -> None:
    class Closed(State):
        model_config = ConfigDict(extra="forbid")
        n: int = 1

        @computed_field
        @property
        def twice(self) -> int:
            return 2 * self.n

    kind = StateType(Closed)
    assert kind.read(Closed(n=2).model_dump(mode="json")) == Closed(n=2)
    union = StateType(Closed | Item)
    assert type(union.read({"n": 2, "twice": 4})) is Closed


def test_all_names_under_which_a_hidden_field_would_be_read_are_taken_out() -> None:
    class Made(State):
        key: str = Field(default="kept", exclude=True, validation_alias=AliasChoices("a", "b"), serialization_alias="c")
        model_config = ConfigDict(validate_by_name=True)

    assert StateType(Made).strip({"a": 1, "b": 2, "c": 3, "key": 4, "d": 5}) == {"d": 5}


def test_a_hidden_field_does_not_take_the_name_of_another_member() -> None:
    class Made(State):
        key: Annotated[str, ReadOnly] = Field(default="", alias="apiKey")
        shown: str = Field(default="", alias="key")

    assert StateType(Made).strip({"apiKey": "evil", "key": "mine"}) == {"key": "mine"}
