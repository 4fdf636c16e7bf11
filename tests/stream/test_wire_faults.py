"""Faults of an application's own models: where they are, and never what was found there."""

from datetime import date, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import AfterValidator, BaseModel, Field, HttpUrl, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from statecast.stream.wire import (
    Fault,
    faults_of,
)

SECRET = "hunter2"


class Inner(BaseModel):
    count: Annotated[int, AfterValidator(lambda value: _refuse())]


class Outer(BaseModel):
    kind: Literal["outer"] = "outer"
    inner: Inner | None = None
    either: int | list[Inner] = 0


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


def _refuse() -> int:
    raise ValueError(f"bad {SECRET}")


def _custom(value: str) -> str:
    raise PydanticCustomError("secret_error", f"bad {SECRET}")


def errors(kind: Any, data: Any, **options: Any) -> list[Fault]:
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(kind).validate_python(data)
    return faults_of(raised.value, data, **options)


def test_texts_of_validators_are_hidden_unless_debug() -> None:
    data = {"inner": {"count": 1}}
    assert errors(Outer, data) == [Fault("/inner/count", "Invalid value", "value_error")]
    assert SECRET in errors(Outer, data, debug=True)[0].message


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (Annotated[str, AfterValidator(_custom)], "x"),
        (UUID, SECRET),
        (date, SECRET),
        (timedelta, SECRET),
        (HttpUrl, f"https://{SECRET}:x"),
        (Annotated[Cat | Dog, Field(discriminator="kind")], {"kind": SECRET}),
    ],
    ids=["custom", "uuid", "date", "timedelta", "url", "tag"],
)
def test_no_fault_holds_a_value(kind: Any, data: Any) -> None:
    assert SECRET not in str(errors(kind, data))


def test_branches_of_unions_are_not_in_pointers() -> None:
    assert [fault.pointer for fault in errors(Outer, {"either": [{"count": "x"}]})] == ["/either/0/count"]
    assert [fault.pointer for fault in errors(Outer, {"either": "x"}, at="/state")] == ["/state/either"]


def test_one_fault_for_each_place() -> None:
    assert len(errors(int | list[int] | dict[str, int], "x")) == 1
