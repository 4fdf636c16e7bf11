"""Whatever a client sends, at whatever depth, no member that it may not set is taken from it."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypeVar

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, settings
from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError, computed_field, model_validator
from typing_extensions import TypedDict

from statecast.state import ReadOnly, State, StateType

T = TypeVar("T")
FORGED = "forged"


class Guarded(BaseModel):
    """What every model here has: members that are the server's."""

    owner: Annotated[str, ReadOnly] = "server"
    role: Annotated[str, ReadOnly, Field(alias="theRole")] = "server"
    cache: str = Field(default="server", exclude=True, alias="theCache")
    _private: str = "server"

    @computed_field(alias="theLabel")
    @property
    def label(self) -> str:
        return "server"


class Leaf(Guarded, State):
    n: int = 0


class Plain(Guarded):
    n: int = 0


class Closed(Guarded, State):
    model_config = ConfigDict(extra="forbid")
    only_here: int


class Free(Guarded):
    model_config = ConfigDict(extra="allow")


class Checked(Guarded, State):
    n: int = 0

    @model_validator(mode="after")
    def check(self) -> Checked:
        return self


class Cat(Guarded, State):
    kind: Literal["cat"] = "cat"


class Dog(Guarded, State):
    kind: Literal["dog"] = "dog"
    cat: Cat | None = None


@dataclasses.dataclass
class Data:
    leaf: Leaf
    owner: Annotated[str, ReadOnly] = "server"


class Table(TypedDict):
    leaf: NotRequired[Leaf]
    owner: NotRequired[Annotated[str, ReadOnly]]


class Pair(NamedTuple):
    left: Leaf
    right: Plain


class Leaves(RootModel[list[Leaf]]):
    pass


class Box(Guarded, State, Generic[T]):
    item: T


class Tree(Guarded, State):
    leaf: Leaf | None = None
    plain: Plain | None = None
    closed: Closed | Leaf | None = None
    mixed: int | list[Leaf] | dict[str, Plain] | Checked | None = None
    pet: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None
    data: Data | None = None
    table: Table | None = None
    pair: Pair | None = None
    leaves: Leaves | None = None
    box: Box[list[Leaf]] | None = None
    free: Free | None = None
    rows: list[dict[str, list[Leaf]]] = Field(default=[], alias="theRows")
    ordered: OrderedDict[str, Leaf] = OrderedDict()
    fixed: tuple[int, Leaf] | tuple[Leaf, ...] = ()
    mapping: Mapping[str, Sequence[Leaf]] = {}
    trees: list[Tree] = []
    by_name: dict[str, Tree] = {}


NAMES = ["owner", "role", "theRole", "cache", "theCache", "_private", "label", "theLabel"]
evil = st.dictionaries(st.sampled_from(NAMES), st.just(FORGED), min_size=1)


def with_evil(shape: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(lambda data, more: {**data, **more}, shape, evil)


leaf = with_evil(st.fixed_dictionaries({}, optional={"n": st.integers(0, 3), "only_here": st.integers(0, 3)}))
pet = with_evil(
    st.one_of(
        st.just({"kind": "cat"}), st.just({"kind": "dog"}), st.fixed_dictionaries({"kind": st.just("dog"), "cat": leaf})
    )
)
leaf_list = st.lists(leaf, max_size=2)
leaf_dict = st.dictionaries(st.sampled_from(["a", "owner", "theRole"]), leaf, max_size=2)
anything = st.one_of(leaf, leaf_list, leaf_dict, pet, st.integers(), st.none())


def tree(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    shapes: dict[str, st.SearchStrategy[Any]] = {
        "leaf": leaf,
        "plain": leaf,
        "closed": leaf,
        "mixed": anything,
        "pet": pet,
        "data": with_evil(st.fixed_dictionaries({"leaf": leaf})),
        "table": with_evil(st.fixed_dictionaries({}, optional={"leaf": leaf})),
        "pair": st.tuples(leaf, leaf).map(list) | st.fixed_dictionaries({"left": leaf, "right": leaf}),
        "leaves": leaf_list,
        "box": with_evil(st.fixed_dictionaries({"item": leaf_list})),
        "free": with_evil(st.just({"more": 1})),
        "theRows": st.lists(st.dictionaries(st.just("owner"), leaf_list, max_size=1), max_size=2),
        "ordered": leaf_dict,
        "fixed": st.tuples(st.integers(), leaf).map(list) | leaf_list,
        "mapping": st.dictionaries(st.sampled_from(["a", "cache"]), leaf_list, max_size=1),
        "trees": st.lists(inner, max_size=2),
        "by_name": st.dictionaries(st.sampled_from(["a", "owner"]), inner, max_size=1),
    }
    return with_evil(st.fixed_dictionaries({}, optional=shapes))


TREE = st.recursive(with_evil(st.just({})), tree, max_leaves=4)


def objects(value: Any) -> Iterator[Any]:
    """Every model, dataclass and dict inside a value."""
    if isinstance(value, (BaseModel, Data, dict)):
        yield value
    if isinstance(value, RootModel):
        yield from objects(value.root)
    elif isinstance(value, BaseModel):
        for member in value.__dict__.values():
            yield from objects(member)
        for member in (value.__pydantic_extra__ or {}).values():
            yield from objects(member)
    elif isinstance(value, Data):
        yield from objects(value.leaf)
    elif isinstance(value, dict):
        for member in value.values():
            yield from objects(member)
    elif isinstance(value, (list, tuple)):
        for member in value:
            yield from objects(member)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(TREE)
def test_nothing_forged_is_believed(data: dict[str, Any]) -> None:
    kind = StateType(Tree)
    try:
        value = kind.read(data)
    except ValidationError:
        return
    for one in objects(value):
        if isinstance(one, Guarded):
            assert (one.owner, one.role, one.cache, one._private) == ("server",) * 4
            assert FORGED not in (one.__pydantic_extra__ or {}).values()
        elif isinstance(one, Data):
            assert one.owner == "server"
        elif isinstance(one, dict):
            assert FORGED not in one.values()
    assert FORGED not in repr(value)
