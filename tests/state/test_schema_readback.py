"""A type of state must read what it writes; one that would not is refused before a run finds out."""

import dataclasses
import enum
import functools
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal

import pytest
from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    Json,
    PlainSerializer,
    PrivateAttr,
    Secret,
    SecretBytes,
    SecretStr,
    computed_field,
    field_serializer,
)
from typing_extensions import TypeAliasType, TypedDict

from statecast.state import State, StateType

Token = TypeAliasType("Token", SecretStr)


class Key(str, enum.Enum):  # noqa: UP042  the older spelling
    A = "a"


class Opaque:
    pass


class Vault(BaseModel):
    token: SecretStr = SecretStr("x")


def field(annotation: Any, default: Any = ..., **config: Any) -> Callable[[], type[State]]:
    """Defines a State with one field `f`."""
    namespace = {"__annotations__": {"f": annotation}, "model_config": ConfigDict(**config), "__module__": __name__}
    if default is not ...:
        namespace["f"] = default
    return lambda: type(State)("Made", (State,), dict(namespace))


REFUSED = {
    "another name is written": (field(int, Field(serialization_alias="fooBar")), r"Made\.f is written as 'fooBar'"),
    "another name is read": (field(int, Field(validation_alias="fooBar")), r"written as 'f' but read as 'fooBar'"),
    "two different aliases": (field(int, Field(validation_alias="a", serialization_alias="b")), "written as 'b'"),
    "choices without the written one": (field(int, Field(validation_alias=AliasChoices("a", "b"))), "written as 'f'"),
    "a path": (field(int, Field(validation_alias=AliasPath("a", 0))), "read as an AliasPath"),
    "alias ignored": (field(int, Field(alias="a"), validate_by_alias=False, validate_by_name=True), "written as 'a'"),
    "excluded and required": (field(int, Field(exclude=True)), "give it a default"),
    "excluded, read by a path": (
        field(int, Field(default=0, exclude=True, validation_alias=AliasPath("a", 0))),
        "cannot be read by an AliasPath",
    ),
    "a secret": (field(SecretStr, SecretStr("x")), r"Made\.f holds a secret"),
    "secrets in a list": (field(list[SecretBytes], []), "holds a secret"),
    "a secret or nothing": (field(SecretStr | None, None), "holds a secret"),
    "a secret number": (field(dict[str, Secret[int]], {}), "holds a secret"),
    "a secret behind a type alias": (field(Token, SecretStr("")), "holds a secret"),
    "a secret in a plain model": (field(Vault | None, None), r"Vault\.token holds a secret"),
    "a secret in a list of models": (field(dict[str, list[Vault]], {}), r"Vault\.token holds a secret"),
    "integer keys": (field(dict[int, str], {}), "keys that are not str"),
    "keys of several types": (field(dict[str | int, str], {}), "keys that are not str"),
    "integer keys deep inside": (field(list[dict[str, dict[int, str]]], []), "keys that are not str"),
    "literal keys": (field(dict[Literal["a", 1], str], {}), "keys that are not str"),
    "JSON in JSON": (field(Json[int]), "writes what is in it"),
    "a callable": (field(Callable[[], int]), "a callable is not JSON"),
    "a lazy iterable": (field(Iterable[int]), "declare list"),
    "a class": (field(type[int]), "a class is not JSON"),
    "an arbitrary class": (field(Opaque, arbitrary_types_allowed=True), "does not know how to read it"),
    "bytes written in another way than read": (field(bytes, b"", ser_json_bytes="hex"), "val_json_bytes"),
}


@pytest.mark.parametrize(("define", "message"), REFUSED.values(), ids=REFUSED)
def test_a_class_that_would_not_read_what_it_writes_is_refused_when_it_is_defined(
    define: Callable[[], type[State]], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        define()


ACCEPTED = {
    "an alias": field(int, Field(alias="fooBar")),
    "by name": field(int, Field(validation_alias="fooBar"), validate_by_name=True),
    "choices": field(int, Field(validation_alias=AliasChoices("f", "b", AliasPath("c", 0)))),
    "an excluded secret": field(SecretStr, Field(default=SecretStr("x"), exclude=True)),
    "an excluded callable": field(Callable[[], int] | None, Field(default=None, exclude=True)),
    "enum keys": field(dict[Key, int], {}),
    "constrained keys": field(dict[Annotated[str, Field(min_length=1)], int], {}),
    "the author's own JSON": field(Annotated[dict[int, str], PlainSerializer(lambda value: list(value))], {}),
    "bytes": field(bytes, b"", ser_json_bytes="base64", val_json_bytes="base64"),
}


@pytest.mark.parametrize("define", ACCEPTED.values(), ids=ACCEPTED)
def test_a_class_that_reads_what_it_writes_is_accepted(define: Callable[[], type[State]]) -> None:
    StateType(define())


def test_two_members_with_one_name() -> None:
    with pytest.raises(TypeError, match="both written as 'total'"):

        class Written(State):
            total: int = 0

            @computed_field(alias="total")
            @property
            def sum(self) -> int:
                return 1

    with pytest.raises(TypeError, match="both read 'a'"):

        class Read(State):
            a: int = Field(default=0, exclude=True)
            b: int = Field(default=0, alias="a")

    with pytest.raises(TypeError, match=r"Shadow\.c is written as 'x', which Shadow\.b would read back"):

        class Shadow(State):
            b: int = Field(default=0, validation_alias=AliasChoices("b", "x"))

            @computed_field(alias="x")
            @property
            def c(self) -> int:
                return 1


def test_a_typed_dict_with_other_names_on_the_wire_is_refused() -> None:
    class Aliased(TypedDict):
        a: Annotated[int, Field(alias="b")]

    with pytest.raises(TypeError, match=r"Aliased\.a .* use State"):
        StateType(list[Aliased])


@dataclasses.dataclass
class Needy:
    x: int
    y: dataclasses.InitVar[int]


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (dict[int, Any], "keys that are not str"),
        (list[SecretStr], "holds a secret"),
        (Vault, r"Vault\.token"),
        (TypedDict("Safe", {"code": SecretStr}), r"Safe\.code"),
        (Needy, r"Needy\.y is not sent"),
        (Opaque, "cannot be a state"),
        (Callable, "a callable"),
    ],
    ids=str,
)
def test_other_types_are_refused_when_the_state_type_is_made(annotation: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        StateType(annotation)


@pytest.mark.parametrize("computed", [True, False])
def test_a_cached_property_is_refused(computed: bool) -> None:
    with pytest.raises(TypeError, match=r"Made\.total is a cached_property"):

        class Made(State):
            n: int = 0

            if computed:

                @computed_field
                @functools.cached_property
                def total(self) -> int:
                    return self.n

            else:

                @functools.cached_property
                def total(self) -> int:
                    return self.n


def test_a_field_with_the_authors_serializer_is_left_to_the_author() -> None:
    class Made(State):
        table: dict[int, str] = {}
        _note: str = PrivateAttr("")

        @field_serializer("table")
        def as_pairs(self, value: dict[int, str]) -> list[Any]:
            return [[key, item] for key, item in value.items()]

    assert StateType(Made).default() == Made()
