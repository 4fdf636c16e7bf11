"""`StateType`: reading JSON as a value, defaults, and the JSON Schema."""

import dataclasses
import datetime
import decimal
import enum
import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Generic, Literal, NotRequired, TypeVar

import pytest
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
    computed_field,
)
from typing_extensions import TypedDict

from statecast.state import Document, State, StateType

T = TypeVar("T")


class Stop(State):
    title: str
    minutes: int = 0


class Trip(State):
    city_name: str = Field(default="", alias="cityName")
    stops: list[Stop] = []

    @computed_field(alias="stopCount")
    @property
    def stop_count(self) -> int:
        return len(self.stops)


class Row(TypedDict):
    id: int
    note: NotRequired[str]


class Plain(BaseModel):
    when: datetime.date | None = None


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    when: datetime.datetime
    at: uuid.UUID
    parts: tuple[int, ...] = ()


class Box(State, Generic[T]):
    item: T


@dataclasses.dataclass
class Point:
    x: int = 0
    y: int = 0


class Color(enum.Enum):
    RED = "red"


READ = [
    (dict, {"a": [1, None, 2.5]}, {"a": [1, None, 2.5]}),
    (dict[str, Any], {"": {"x": True}}, {"": {"x": True}}),
    (Any, [1, "x"], [1, "x"]),
    (JsonValue, None, None),
    (list, [1], [1]),
    (list[int], [1], [1]),
    (int, 3, 3),
    (float, 3, 3.0),
    (str, "\ud83d", "\ud83d"),
    (dict, {"a": "\ud83d"}, {"a": "\ud83d"}),
    (None, None, None),
    (int | None, None, None),
    (Literal["a", "b"], "b", "b"),
    (Row, {"id": 1}, {"id": 1}),
    (Plain, {"when": "2026-01-02"}, Plain(when=datetime.date(2026, 1, 2))),
    (Point, {"x": 1, "y": 2}, Point(1, 2)),
    (Color, "red", Color.RED),
    (Trip, {"cityName": "Porto", "stops": [{"title": "A"}]}, Trip(cityName="Porto", stops=[Stop(title="A")])),
    (Box[int], {"item": 1}, Box[int](item=1)),
    (Box[Stop], {"item": {"title": "A"}}, Box[Stop](item=Stop(title="A"))),
    (
        Strict,
        {"when": "2026-01-02T03:04:05Z", "at": "12345678123456781234567812345678", "parts": [1]},
        Strict(
            when=datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC),
            at=uuid.UUID(int=0x12345678123456781234567812345678),
            parts=(1,),
        ),
    ),
    (decimal.Decimal, "1.10", decimal.Decimal("1.10")),
    (dict[Literal["a"], int], {"a": 1}, {"a": 1}),
]


@pytest.mark.parametrize(("annotation", "data", "value"), READ, ids=lambda v: str(v)[:40])
def test_reads_json_as_a_value_of_the_type(annotation: Any, data: Any, value: Any) -> None:
    before = json.dumps(data)
    read = StateType(annotation).read(data)
    assert read == value
    assert type(read) is type(value)
    assert json.dumps(data) == before


REFUSED = [
    (dict, [], ()),
    (list[int], ["x"], (0,)),
    (Row, {"note": "x"}, ("id",)),
    (Trip, {"stops": [{"minutes": 1}]}, ("stops", 0, "title")),
    (Trip, {"cityName": 1}, ("cityName",)),
    (dict, {"a": [float("nan")]}, ("a", 0)),
    (dict, {"a": float("-inf")}, ("a",)),
    (Any, [float("inf")], (0,)),
    (list[float], ["Infinity"], (0,)),
    (list[float], [" nan "], (0,)),
    (list[float], ["1e999"], (0,)),
    (list[float], ["\ud83d", "inf"], (0,)),
    (dict[str, float], {"x": 10**400}, ("x",)),
    (list[Point], [{"x": 1, "y": "z"}], (0, "y")),
]


@pytest.mark.parametrize(("annotation", "data", "loc"), REFUSED, ids=lambda v: str(v)[:40])
def test_refuses_what_is_not_of_the_type_and_numbers_that_are_not_finite(
    annotation: Any, data: Any, loc: tuple[Any, ...]
) -> None:
    with pytest.raises(ValidationError) as caught:
        StateType(annotation).read(data)
    assert caught.value.errors()[0]["loc"][: len(loc)] == loc


def test_names_are_the_wires() -> None:
    assert StateType(Trip).read({"city_name": "Porto"}).city_name == ""


def test_validators_of_a_root_run_once_on_what_a_client_sent() -> None:
    doubled = Annotated[list[int], AfterValidator(lambda values: [2 * value for value in values])]
    kind = StateType(doubled)
    document: Document[list[int]] = Document(kind.read([1, 2]), type=kind)
    assert document.value == [2, 4]


def test_both_names_are_read_where_the_class_says_so() -> None:
    class Both(State):
        model_config = ConfigDict(validate_by_name=True)
        one: int = Field(alias="uno")
        two: int = Field(validation_alias=AliasChoices("two", "dos"))

    assert StateType(Both).read({"one": 1, "dos": 2}) == StateType(Both).read({"uno": 1, "two": 2})


DEFAULTS = [
    (dict, {}),
    (dict[str, int], {}),
    (list, []),
    (list[int], []),
    (int, 0),
    (str, ""),
    (Any, {}),
    (object, {}),
    (JsonValue, None),
    (None, None),
    (int | None, None),
    (Trip | None, None),
    (Mapping[str, int], {}),
    (Sequence[int], []),
    (TypedDict("Loose", {"a": NotRequired[int]}), {}),
    (Plain, Plain()),
    (Point, Point()),
    (Trip, Trip()),
    (Annotated[list[int], Field(max_length=2)], []),
]


@pytest.mark.parametrize(("annotation", "value"), DEFAULTS, ids=str)
def test_default(annotation: Any, value: Any) -> None:
    kind = StateType(annotation)
    default = kind.default()
    assert default == value
    assert type(default) is type(value)
    assert value is None or type(value) in (int, str) or kind.default() is not default


@pytest.mark.parametrize(
    "annotation",
    [
        Stop,
        Row,
        Literal["a"],
        Color,
        int | str,
        Trip | Plain,
        Annotated[list[int], Field(min_length=1)],
        datetime.date,
        Box[int],
    ],
    ids=str,
)
def test_a_type_without_a_default_says_what_to_override(annotation: Any) -> None:
    with pytest.raises(TypeError, match=r"override initial_state\(\)"):
        StateType(annotation).default()


@pytest.mark.parametrize(
    ("annotation", "accepted"),
    [(dict, False), (Trip, False), (Trip | None, True), (Any, True), (None, True), (JsonValue, True), (list, False)],
    ids=str,
)
def test_accepts_null(annotation: Any, accepted: bool) -> None:
    assert StateType(annotation).accepts_null is accepted


def test_json_schema_speaks_of_what_is_sent() -> None:
    class Hiding(Trip):
        key: str = Field(default="", exclude=True)
        _private: int = 0

    schema = StateType(Hiding).json_schema()
    assert set(schema["properties"]) == {"cityName", "stops", "stopCount"}
    assert schema["properties"]["stopCount"]["readOnly"] is True
    assert set(schema["$defs"]["Stop"]["properties"]) == {"title", "minutes"}


def test_a_forward_reference_is_resolved_at_first_use() -> None:
    class Early(State):
        late: "list[Late]" = []

    kind = StateType(Early)

    class Late(BaseModel):
        n: int
        key: str = Field(default="", exclude=True)

    Early.model_rebuild(_types_namespace={"Late": Late})
    assert kind.read({"late": [{"n": 1, "key": "evil"}]}).late == [Late(n=1)]


def test_a_fault_behind_a_forward_reference_is_found_at_first_use() -> None:
    class Early(State):
        late: "dict[int, Late]" = {}

    kind = StateType(Early)

    class Late(BaseModel):
        n: int

    Early.model_rebuild(_types_namespace={"Late": Late})
    with pytest.raises(TypeError, match="keys that are not str"):
        kind.read({})


def test_an_unresolved_forward_reference_is_a_type_error() -> None:
    class Early(State):
        late: "Nowhere" = None  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(TypeError, match="Nowhere"):
        StateType(Early).read({})


def test_json_schema_is_silent_on_what_only_the_author_writes(recwarn: pytest.WarningsRecorder) -> None:
    class Matrix:
        pass

    class Made(State):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        matrix: Annotated[Matrix | None, PlainSerializer(lambda value: value and [1, 2])] = None
        broken: Annotated[list[int], WithJsonSchema({"type": "array"})] = []
        odd: Any = Color.RED

    schema = StateType(Made).json_schema()
    assert set(schema["properties"]) == {"matrix", "broken", "odd"}
    json.dumps(schema)
    assert not recwarn.list
