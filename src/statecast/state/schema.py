"""`StateType`: reads states of one type from the wire, and says what they look like there."""

from __future__ import annotations

import inspect
import json
import math
import operator
import re
import types
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, PydanticUndefinedAnnotation, PydanticUserError, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, JsonSchemaWarningKind
from pydantic_core import InitErrorDetails, to_json
from typing_extensions import is_typeddict

from ..errors import StateError
from . import pointer
from .intake import Intake
from .nodes import Schemas
from .readback import check_reads_back, check_secrets, reads_infinities
from .readers import fitting, kept
from .readonly import is_read_only
from .specs import Specs
from .tracker import LOOSE, Spec
from .untrusted import ObjectPlan, Plan, plan

__all__ = ["StateType"]

_UNBOUNDED = re.compile(rb'"\s*[+-]?(?:inf|nan)|[\d_]{300}|\d[eE][+]?\d{3}', re.IGNORECASE)
"""Text that pydantic may read as a float that is not finite."""


class StateType:
    """A type of state: a `State` subclass, `dict`, a TypedDict, a pydantic model, a list or any other JSON type.

    A client's state goes through `strip`, which takes out what the client is not believed on, and `validate`; `read` is
    both. What is done to the data in between, as by `Agent.load_state`, is believed.

    Raises:
        TypeError: a state of this type could not be read back from what it is written as, or holds a secret. At first
            use, if there are forward references that cannot be resolved yet.

    Attributes:
        annotation: the type as it was given.
    """

    def __init__(self, annotation: Any) -> None:
        self.annotation = annotation
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(annotation)
        except (PydanticUserError, PydanticUndefinedAnnotation) as exc:
            raise TypeError(f"{_name(annotation)} cannot be a state: {exc.message}") from exc
        if self._adapter.pydantic_complete:
            _ = self._schemas

    def __repr__(self) -> str:
        return f"StateType({_name(self.annotation)})"

    def read(self, data: Any) -> Any:
        """A value from a client's JSON, already parsed, which is not changed: `validate(strip(data))`.

        Raises:
            ValidationError: it is not valid; a number that is not finite never is.
        """
        return self.validate(self.strip(data))

    def strip(self, data: Any) -> Any:
        """`data` without what a client is not believed on: computed, excluded, private and `ReadOnly` members, at every
        depth. A copy where something was taken out; `data` itself is never changed."""
        return data if self._plan is None else self._plan.strip(data)

    def fill(self, data: Any, initial: Any) -> Any:
        """`data` with `ReadOnly` members that it lacks taken from `initial`, a value of this type.

        Only members that are reached from the root through objects: no initial item corresponds to an item of a list.
        """
        if not isinstance(self._plan, ObjectPlan):
            return data
        return _filled(self._plan, data, self._adapter.dump_python(initial, mode="json", by_alias=True))

    def validate(self, data: Any) -> Any:
        """A value from JSON that is believed, by the wire's names.

        Raises:
            ValidationError: it is not valid; a number that is not finite never is.
        """
        self._schemas  # noqa: B018 (a type that cannot be read is a TypeError, not a ValidationError)
        if self.annotation is Any:
            _refuse_non_finite(data)
            return data
        try:
            text = to_json(data, inf_nan_mode="constants")
        except ValueError:
            # A lone surrogate, which JavaScript writes and the JSON parser refuses.
            _refuse_non_finite(data)
            value = self._adapter.validate_python(data)
            text = json.dumps(data).encode()
        else:
            if b"NaN" in text or b"Infinity" in text:
                _refuse_non_finite(data)
            value = self._adapter.validate_json(text)
        if self._reads_infinities and _UNBOUNDED.search(text):
            _refuse_non_finite(self._adapter.dump_python(value, mode="json", by_alias=True, warnings=False))
        return self._tracked(value)

    def accept(self, value: Any) -> tuple[Any, Spec | None]:
        """What is stored for a Python value that becomes the whole state, and the spec of it if it is a container.

        An instance of the type is kept itself; of containers a copy is made where reading changes something in them.

        Raises:
            StateError: it is not of this type.
        """
        spec = self._spec
        if fitting(value, spec) or type(value) is self._open:
            return value, spec
        try:
            read = self._adapter.validate_python(value)
        except ValidationError as exc:
            first = exc.errors(include_url=False, include_input=False)[0]
            raise StateError(f"not a {_name(self.annotation)}: {first['msg']}", pointer.join(*first["loc"])) from exc
        if _holds_the_same(value, read):
            return value, spec
        return kept(value, read, spec), spec

    @cached_property
    def _open(self) -> type | None:
        """The plain container whose items may be anything, if this type is one."""
        return (get_origin(self.annotation) or self.annotation) if self.annotation in _EMPTY else None

    @cached_property
    def accepts_null(self) -> bool:
        """JSON `null` is a value of this type."""
        try:
            self.validate(None)
        except ValidationError:
            return False
        return True

    @property
    def has_read_only(self) -> bool:
        """A `ReadOnly` member is reached from the root through objects, so that `fill` may find something to do."""
        return isinstance(self._plan, ObjectPlan) and _owns(self._plan, set())

    def default(self) -> Any:
        """A new value to start from: what the class gives without arguments, `{}`, `[]`, or `None` where it is allowed.

        Raises:
            TypeError: there is none; `Agent.initial_state` must give one.
        """
        annotation = self.annotation
        while get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        factory = get_origin(annotation) or annotation
        if annotation in _EMPTY:
            return factory()
        try:
            if factory in (Any, object):
                return {}  # what an absent state means (I1): a run that changes nothing then has nothing to say
            if factory in (Union, types.UnionType):
                if self.accepts_null:
                    return None
                raise TypeError("it is one of several types")
            if isinstance(annotation, type) and issubclass(annotation, BaseModel):
                return annotation()
            if is_typeddict(factory):
                return self.validate({})
            if inspect.isabstract(factory):
                return self.validate({} if issubclass(factory, Mapping) else [])
            if isinstance(factory, type) and annotation is not type(None):
                return self._adapter.validate_python(factory())
            if self.accepts_null:
                return None
            reason = "it is not a class"
        except ValidationError as exc:
            reason = "; ".join(f"{_place(error['loc'])}{error['msg']}" for error in exc.errors())
        except TypeError as exc:
            reason = str(exc)
        raise TypeError(f"{_name(self.annotation)} has no default ({reason}): override initial_state()")

    def json_schema(self) -> dict[str, Any]:
        """The JSON Schema (2020-12) of what is sent: the wire's names, computed members included, excluded ones not."""
        self._schemas  # noqa: B018
        return self._adapter.json_schema(by_alias=True, mode="serialization", schema_generator=_Generator)

    @cached_property
    def _schemas(self) -> Schemas:
        if not self._adapter.pydantic_complete:
            try:
                self._adapter.rebuild(raise_errors=True)
            except (PydanticUserError, PydanticUndefinedAnnotation) as exc:
                raise TypeError(f"{_name(self.annotation)} cannot be a state: {exc.message}") from exc
        schemas = Schemas(self._adapter.core_schema)
        name = _name(self.annotation)
        if is_read_only(self.annotation):
            raise TypeError(f"ReadOnly marks a field, not a whole state: {name}")
        check_secrets(self.annotation, name)
        check_reads_back(schemas, name)
        return schemas

    @cached_property
    def _spec(self) -> Spec | None:
        return Specs(self._schemas, {}).spec(self._schemas.root)

    def _tracked(self, value: Any) -> Any:
        """The value as a tracked container, where reading it again, as a document does, might change it once more."""
        if self._spec is None or type(value) not in (list, dict) or not self._schemas.has_functions(self._schemas.root):
            return value
        intake = Intake(None, LOOSE)
        tracked = intake.root(value, self._spec)
        intake.admit(LOOSE)
        return tracked

    @cached_property
    def _plan(self) -> Plan | None:
        return plan(self._schemas)

    @cached_property
    def _reads_infinities(self) -> bool:
        return reads_infinities(self._schemas)


class _Generator(GenerateJsonSchema):
    """Says nothing of what has no schema, such as what a serializer of the author writes."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> JsonSchemaValue:
        return {}


def _holds_the_same(value: Any, read: Any) -> bool:
    """Whether reading gave a copy of a plain container that holds the very same objects."""
    if type(value) is not type(read) or type(value) not in (dict, list) or len(value) != len(read):
        return False
    if type(value) is list:
        return all(map(operator.is_, value, read))
    return all(key in read and read[key] is member for key, member in value.items())


_EMPTY = (dict, dict[str, Any], list, list[Any])


def _name(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) and not get_args(annotation) else str(annotation)


def _place(loc: tuple[int | str, ...]) -> str:
    return ".".join(map(str, loc)) + ": " if loc else ""


def _owns(plan: ObjectPlan, seen: set[int]) -> bool:
    if id(plan) in seen:
        return False
    seen.add(id(plan))
    return bool(plan.owned) or any(isinstance(p, ObjectPlan) and _owns(p, seen) for _, p in plan.nested)


def _filled(plan: ObjectPlan, data: Any, initial: Any) -> Any:
    if type(data) is not dict or type(initial) is not dict:
        return data
    result = dict(data)
    for member in plan.owned:
        if member.wire in initial and member.reads.isdisjoint(data):
            result[member.wire if member.wire in member.reads else min(member.reads)] = initial[member.wire]
    for member, inner in plan.nested:
        if isinstance(inner, ObjectPlan) and member.wire in initial:
            for key in member.reads & data.keys():
                result[key] = _filled(inner, data[key], initial[member.wire])
    return result


def _refuse_non_finite(data: Any) -> None:
    """Raises ValidationError, as pydantic takes `NaN` for a number in JSON, and `"inf"` for one in a float."""
    details: list[InitErrorDetails] = []

    def walk(value: Any, loc: tuple[int | str, ...]) -> None:
        if isinstance(value, float) and not math.isfinite(value):
            details.append({"type": "finite_number", "loc": loc, "input": value})
        elif isinstance(value, dict):
            for key, item in value.items():
                walk(item, (*loc, key))
        elif isinstance(value, list):
            for index, item in enumerate(value):
                walk(item, (*loc, index))

    walk(data, ())
    if details:
        raise ValidationError.from_exception_data("state", details, input_type="json")
