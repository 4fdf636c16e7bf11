"""Assignment to a `State` does what assignment to a pydantic model does, with all kinds of validators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WrapValidator,
    computed_field,
    field_validator,
    model_validator,
)

from model_support import text
from statecast.state import Document, State


class Pydantic(BaseModel):
    model_config = ConfigDict(validate_assignment=True, validate_default=True, allow_inf_nan=False)


def plain(base: Any) -> Any:
    class Made(base):  # type: ignore[misc]
        n: int = 0
        name: str | None = None
        rows: list[int] = []
        by: dict[str, float] = {}

    return Made


def field_validators(base: Any) -> Any:
    class Made(base):  # type: ignore[misc]
        n: Annotated[int, Field(ge=0), AfterValidator(lambda value: value * 2)] = 1
        name: Annotated[str, BeforeValidator(lambda value: str(value))] = ""
        rows: Annotated[list[int], WrapValidator(lambda value, handler: sorted(handler(value)))] = []
        by: dict[str, float] = {}

        @field_validator("by", mode="before")
        @classmethod
        def pairs(cls, value: Any) -> Any:
            return dict.fromkeys(map(str, value), 0.0) if isinstance(value, list) else value

        @field_validator("name", mode="after")
        @classmethod
        def known(cls, value: str, info: Any) -> str:
            return f"{value}{info.data['n']}{info.field_name}"

    return Made


def model_after(base: Any) -> Any:
    class Made(base):  # type: ignore[misc]
        n: int = 0
        name: str = ""
        rows: list[int] = []
        by: dict[str, float] = {}

        @model_validator(mode="after")
        def check(self) -> Any:
            if self.n > 5 or len(self.rows) > 2:
                raise ValueError("too large")
            self.__dict__["name"] = f"{self.n}"
            return self

    return Made


def model_before(base: Any) -> Any:
    class Made(base):  # type: ignore[misc]
        n: int = 0
        name: str = ""
        rows: list[int] = []
        by: dict[str, float] = {}

        @model_validator(mode="before")
        @classmethod
        def prepare(cls, data: Any) -> Any:
            if isinstance(data, dict) and data.get("n") == "three":
                return {**data, "n": 3}
            return data

    return Made


def model_wrap(base: Any) -> Any:
    class Made(base):  # type: ignore[misc]
        n: int = 0
        name: str = ""
        rows: list[int] = []
        by: dict[str, float] = {}

        @model_validator(mode="wrap")
        @classmethod
        def around(cls, data: Any, handler: Any) -> Any:
            made = handler(data)
            if made.n < 0:
                raise ValueError("negative")
            return made

    return Made


def strict(base: Any) -> Any:
    class Made(base):  # type: ignore[misc]
        model_config = ConfigDict(strict=True, str_strip_whitespace=True, use_enum_values=True)
        n: int = 0
        name: str = Field(default="", max_length=3)
        rows: list[int] = []
        by: dict[str, float] = {}

        @computed_field
        @property
        def size(self) -> int:
            return len(self.rows)

    return Made


def frozen_field(base: Any) -> Any:
    class Made(base):  # type: ignore[misc]
        n: int = Field(default=0, frozen=True)
        name: str = ""
        rows: tuple[int, ...] = ()
        by: dict[str, float] = Field(default={}, exclude=True)

    return Made


KINDS = [plain, field_validators, model_after, model_before, model_wrap, strict, frozen_field]

ASSIGNED = [
    *(("n", value) for value in (1, "2", 3.0, 2.5, None, -1, 9, True, "three", 10**20)),
    *(("name", value) for value in ("a", None, 5, b"x", " pad ", "\ud83d", "long text")),
    *(("rows", value) for value in ([], [3, 1, 2], ["1"], (1, 2), {1}, None, "12", [1.5], [[1]], range(2))),
    *(
        ("by", value)
        for value in ({}, {"a": 1}, {"a": "2"}, {1: 2}, [["a", 1]], ["a"], None, {"a": float("nan")}, {"a": 1.0})
    ),
    ("nope", 1),
]


def outcome(model: Any, name: str, value: Any) -> Any:
    try:
        setattr(model, name, value)
    except (ValidationError, ValueError) as exc:
        errors = exc.errors(include_url=False, include_input=False) if isinstance(exc, ValidationError) else str(exc)
        return [(one["type"], one["loc"]) for one in errors] if isinstance(errors, list) else errors
    return text(model.model_dump(mode="json"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("in_a_document", [False, True])
def test_assignment_has_the_same_outcome_as_in_pydantic(kind: Callable[[Any], Any], in_a_document: bool) -> None:
    for name, value in ASSIGNED:
        ours, theirs = kind(State)(), kind(Pydantic)()
        before = text(theirs.model_dump(mode="json"))
        document = Document({"model": ours}) if in_a_document else None
        expected = outcome(theirs, name, value)
        assert outcome(ours, name, value) == expected, (name, value)
        if isinstance(expected, list):
            # pydantic itself keeps a value that a model validator refused.
            assert text(ours.model_dump(mode="json")) == before
            assert ours.model_fields_set <= {"rows", "by"}
        if document is not None:
            taken = document.take()
            assert taken is not None
            written = {key: item for key, item in ours.model_dump(mode="json").items() if key != "hidden"}
            assert text(taken.value["model"]) == text(written)  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", KINDS)
def test_a_sequence_of_assignments_ends_like_pydantics(kind: Callable[[Any], Any]) -> None:
    ours, theirs = kind(State)(), kind(Pydantic)()
    for name, value in ASSIGNED:
        before = theirs.__dict__.copy()
        expected = outcome(theirs, name, value)
        if isinstance(expected, list):
            theirs.__dict__.update(before)
        assert outcome(ours, name, value) == expected, (name, value)
    assert text(ours.model_dump(mode="json")) == text(theirs.model_dump(mode="json"))
