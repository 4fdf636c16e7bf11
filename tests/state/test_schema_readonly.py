"""`ReadOnly`: fields that the server owns, and where their values come from."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, SecretStr
from typing_extensions import TypeAliasType, TypedDict

from statecast.state import ReadOnly, State, StateType

Owned = Annotated[str, ReadOnly]
OwnedAlias = TypeAliasType("OwnedAlias", Annotated[str, ReadOnly])


class Account(BaseModel):
    plan: Annotated[str, ReadOnly]
    theme: str = "light"


class Session(State):
    user_id: Annotated[int, ReadOnly] = Field(alias="userId")
    quota: Annotated[int, ReadOnly] = 5
    note: str = ""
    account: Account | None = None
    rows: list[Account] = []


INITIAL = Session(userId=42, quota=9, account=Account(plan="pro"))


def test_the_value_comes_from_the_initial_state() -> None:
    kind = StateType(Session)
    assert kind.has_read_only
    data = kind.strip({"userId": 1, "quota": 1000, "note": "hi", "account": {"plan": "evil", "theme": "dark"}})
    value = kind.validate(kind.fill(data, INITIAL))
    assert value == Session(userId=42, quota=9, note="hi", account=Account(plan="pro", theme="dark"))


def test_what_load_state_supplies_wins() -> None:
    kind = StateType(Session)
    data = kind.strip({"userId": 1, "account": {}})
    data |= {"userId": 7, "account": {"plan": "free"}}
    value = kind.validate(kind.fill(data, INITIAL))
    assert (value.user_id, value.quota, value.account.plan) == (7, 9, "free")


def test_fill_adds_no_object_that_the_state_does_not_have_and_changes_nothing() -> None:
    kind = StateType(Session)
    data: dict[str, Any] = {"note": "x", "account": None}
    assert kind.fill(data, INITIAL) == {"note": "x", "account": None, "userId": 42, "quota": 9}
    assert data == {"note": "x", "account": None}
    assert kind.fill([1], INITIAL) == [1]


def test_an_item_of_a_list_has_no_initial_value() -> None:
    kind = StateType(Session)
    assert kind.fill({"rows": [{}]}, INITIAL)["rows"] == [{}]


@pytest.mark.parametrize(
    ("annotation", "has"),
    [(Session, True), (list[Session], False), (dict, False), (TypedDict("Plain", {"a": int}), False)],
    ids=str,
)
def test_has_read_only(annotation: Any, has: bool) -> None:
    assert StateType(annotation).has_read_only is has


@pytest.mark.parametrize(
    "annotation", [Owned, OwnedAlias, Owned | None, Annotated[str | None, ReadOnly], Annotated[str, ReadOnly()]]
)
def test_the_mark_is_found_in_every_spelling(annotation: Any) -> None:
    made = type(State)("Made", (State,), {"__annotations__": {"f": annotation}, "f": "", "__module__": __name__})
    assert StateType(made).strip({"f": "evil"}) == {}


@pytest.mark.parametrize("annotation", [list[Owned], dict[str, Owned], list[Owned | None], tuple[Owned, int]])
def test_a_mark_that_would_do_nothing_is_refused(annotation: Any) -> None:
    with pytest.raises(TypeError, match="ReadOnly marks a field"):
        type(State)("Made", (State,), {"__annotations__": {"f": annotation}, "__module__": __name__})
    with pytest.raises(TypeError, match="ReadOnly marks a field"):
        StateType(annotation)
    with pytest.raises(TypeError, match="ReadOnly marks a field"):
        StateType(TypedDict("Made", {"f": annotation}))


def test_marks_and_secrets_in_types_of_a_local_scope_are_found() -> None:
    class Local(State):
        n: int = 0

    class Record(TypedDict):
        local: Local
        owner: Annotated[str, ReadOnly]

    class Wrong(TypedDict):
        local: Local
        owners: list[Annotated[str, ReadOnly]]

    class Leaky(TypedDict):
        local: Local
        codes: list[SecretStr]

    @dataclasses.dataclass
    class Data:
        local: Local
        owner: Annotated[str, ReadOnly] | None = "server"

    class Made(State):
        record: Record
        data: Data

    kind = StateType(Made)
    forged = {"record": {"local": {}, "owner": "evil"}, "data": {"local": {}, "owner": "evil"}}
    assert kind.strip(forged) == {"record": {"local": {}}, "data": {"local": {}}}
    with pytest.raises(TypeError, match="ReadOnly marks a field"):

        class Refused(State):
            wrong: Wrong

    with pytest.raises(TypeError, match="holds a secret"):

        class Refused2(State):
            leaky: Leaky


def test_the_schema_says_that_it_is_read_only() -> None:
    properties = StateType(Session).json_schema()["properties"]
    assert properties["userId"]["readOnly"] is True
    assert "readOnly" not in properties["note"]
