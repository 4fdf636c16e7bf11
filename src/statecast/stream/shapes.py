"""What the protocol describes, read off the `ag_ui` models, and the removal of everything else.

The models keep members that they do not know; a consumer must not hand those on, and an agent must not see them. A *shape*
is a model's list of member names, at every depth. Places where the protocol is open (state, metadata, an activity's
content, an operation of a patch) have no shape and are never looked into.
"""

from __future__ import annotations

import types
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from ag_ui._generated import models
from ag_ui.core import Event, Message, RunAgentInput
from pydantic import BaseModel
from pydantic.fields import FieldInfo

__all__ = ["EVENTS", "INPUT", "MESSAGE", "UNKNOWN", "Fault", "Notes", "Path", "fields_of", "pointer_of", "strip"]

UNKNOWN: Any = object()
"""What `strip` returns for a value of a kind that the protocol does not describe."""

MAX_NOTES = 100
"""Warnings, and faults, that one reading gives at most: whoever sends a million bad members fills no log with them."""

Path = tuple[Any, str | int] | None
"""Where a value is: its container's path and its own key; `None` is the root."""

# Where an older peer sends `null` for an absent field, and a consumer reads it so (`model name`, `member`).
_LEGACY_NULLS = {
    ("RunFinishedEvent", "result"),
    ("RunFinishedEvent", "outcome"),
    ("SubagentFinishedEvent", "result"),
    ("ToolCallStartEvent", "parentMessageId"),
    ("ToolCallChunkEvent", "parentMessageId"),
    ("RunAgentInput", "state"),
    ("RunAgentInput", "forwardedProps"),
    ("Tool", "parameters"),
    ("ResumeEntry", "payload"),
}


@dataclass(frozen=True)
class Fault:
    """Something wrong at one place of a body.

    Attributes:
        pointer: the RFC 6901 JSON pointer of the place; `""` is the whole body.
        message: what is wrong, without the value that was found there.
        type: a machine-readable word, as pydantic gives it.
    """

    pointer: str
    message: str
    type: str


@dataclass
class Notes:
    """What came up while a value was stripped.

    Attributes:
        sent: the value was sent by a producer (an event), not by a client (an input): members of unions that it does not
            know go by their position, and a `null` for an absent field is a fault unless older peers are known for it.
        warnings: what was removed, each beginning with a JSON pointer.
        indexes: of a list that lost elements (by `id`), the index that each of the rest had.
    """

    sent: bool
    warnings: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    indexes: dict[int, list[int]] = field(default_factory=dict)
    left_out: int = 0

    def warn(self, path: Path, text: str) -> None:
        if len(self.warnings) < MAX_NOTES:
            self.warnings.append(f"{printable(pointer_of(path))}: {text}")
        else:
            self.left_out += 1

    def fault(self, path: Path, message: str, type: str) -> None:
        if len(self.faults) < MAX_NOTES:
            self.faults.append(Fault(pointer_of(path), message, type))

    def all_warnings(self) -> list[str]:
        if self.left_out:
            return [*self.warnings, f": {self.left_out} more warnings like these"]
        return self.warnings


def pointer_of(path: Path) -> str:
    """The JSON pointer of a path."""
    keys: list[str] = []
    while path is not None:
        path, key = path
        keys.append(str(key).replace("~", "~0").replace("/", "~1"))
    return "".join(f"/{key}" for key in reversed(keys))


def printable(text: str) -> str:
    """Text that came from outside, safe to write into a log: one line, no control characters, of bounded length."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
    return text if len(text) <= 200 else f"{text[:200]}…"


# Shapes


@dataclass(frozen=True)
class Member:
    shape: Any
    required: bool


@dataclass
class Object:
    name: str
    open: bool
    members: dict[str, Member] = field(default_factory=dict)


@dataclass(frozen=True)
class OneOf:
    discriminator: str
    objects: dict[str, Object]


@dataclass(frozen=True)
class ListOf:
    item: Any


@dataclass(frozen=True)
class Words:
    """One of several fixed words, a set that later versions may add to."""

    words: frozenset[str]


@dataclass(frozen=True)
class Scalar:
    """A number or a boolean, which pydantic would also take from text."""

    types: tuple[type, ...]
    message: str
    type: str


_INT = Scalar((int, float), "Input should be a valid integer", "int_type")
_BOOL = Scalar((bool,), "Input should be a valid boolean", "bool_type")
_OPERATIONS = (
    models.AddOperation,
    models.RemoveOperation,
    models.ReplaceOperation,
    models.MoveOperation,
    models.CopyOperation,
    models.TestOperation,
)
_objects: dict[type[BaseModel], Object] = {}


def _shape(annotation: Any, discriminator: Any = None) -> Any:
    """The shape of an annotation; `None` where there is nothing to look into."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        info = next((one for one in arguments[1:] if isinstance(one, FieldInfo)), None)
        return _shape(arguments[0], info.discriminator if info else None)
    if origin is Union or origin is types.UnionType:
        inner = [one for one in arguments if one is not type(None)]
        if discriminator is not None:
            return OneOf(discriminator, {tag: shape for one in inner for tag, shape in _tagged(one, discriminator)})
        # At most one member of such a union has a shape: `str | list[ContentPart]`.
        return next((shape for one in inner if (shape := _shape(one)) is not None), None)
    if origin is list:
        return ListOf(_shape(arguments[0]))
    if origin is Literal:
        return Words(frozenset(map(str, arguments))) if len(arguments) > 1 else None
    if annotation is bool:
        return _BOOL
    if annotation is int:
        return _INT
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return Words(frozenset(str(one.value) for one in annotation))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _object(annotation)
    return None


def _tagged(model: type[BaseModel], discriminator: str) -> list[tuple[str, Object]]:
    tags = get_args(model.model_fields[discriminator].annotation)
    return [(str(tag.value if isinstance(tag, Enum) else tag), _object(model)) for tag in tags]


def _object(model: type[BaseModel]) -> Object:
    if model not in _objects:
        # RFC 6902, section 4: members that an operation does not define are ignored, not refused.
        shape = _objects[model] = Object(model.__name__, open=model in _OPERATIONS)
        for name, info in model.model_fields.items():
            member = Member(_shape(info.annotation, info.discriminator), info.is_required())
            shape.members[info.alias or name] = member
    return _objects[model]


EVENTS: OneOf = _shape(Event)
MESSAGE: OneOf = _shape(Message)
INPUT: Object = _shape(RunAgentInput)


def fields_of(event_type: str) -> frozenset[str]:
    """The member names of an event type, as they are on the wire."""
    return frozenset(EVENTS.objects[event_type].members)


# Stripping


def strip(shape: Any, value: Any, notes: Notes, path: Path = None) -> Any:
    """A copy of `value` without what `shape` does not describe; `UNKNOWN` if that is the whole of it.

    What an open place holds is not copied. Values of a wrong kind stay, for a validator to find.
    """
    match shape:
        case Object() if isinstance(value, dict):
            return _strip_object(shape, value, notes, path)
        case OneOf() if isinstance(value, dict):
            tag = value.get(shape.discriminator)
            if not isinstance(tag, str):
                return value
            one = shape.objects.get(tag)
            return UNKNOWN if one is None else _strip_object(one, value, notes, path)
        case ListOf() if isinstance(value, list):
            return _strip_list(shape, value, notes, path)
        case Words() if notes.sent and isinstance(value, str) and value not in shape.words:
            return UNKNOWN
        case Scalar() if type(value) not in shape.types:
            notes.fault(path, shape.message, shape.type)
    return value


def _strip_object(shape: Object, value: dict[str, Any], notes: Notes, path: Path) -> Any:
    kept = {}
    for name, inner in value.items():
        member = shape.members.get(name)
        if member is None:
            if shape.open:
                kept[name] = inner
            else:
                notes.warn((path, name), "removed, the protocol does not describe it")
            continue
        if inner is None and not member.required:
            if _null_is_absent(shape, name, notes, path):
                continue
        elif member.shape is not None:
            inner = strip(member.shape, inner, notes, (path, name))
            if inner is UNKNOWN:
                if not member.required:
                    notes.warn((path, name), "removed, it is of an unknown kind")
                    continue
                if notes.sent:
                    return UNKNOWN
                notes.fault((path, name), "Input is of an unknown kind", "unknown_kind")
                inner = value[name]
        kept[name] = inner
    return kept


def _null_is_absent(shape: Object, name: str, notes: Notes, path: Path) -> bool:
    """Reads a `null` in an optional place: absent, data, or a fault."""
    if name == "state" and shape is INPUT and not notes.sent:
        return False
    if notes.sent and name != "rawEvent":
        if (shape.name, name) in _LEGACY_NULLS:
            notes.warn((path, name), "null is read as absent")
        else:
            notes.fault((path, name), "Input should be left out, not null", "null")
    return True


def _strip_list(shape: ListOf, value: list[Any], notes: Notes, path: Path) -> list[Any]:
    if shape.item is None:
        return value
    kept, indexes = [], []
    for index, inner in enumerate(value):
        one = strip(shape.item, inner, notes, (path, index))
        if one is UNKNOWN:
            notes.warn((path, index), "removed, it is of an unknown kind")
        else:
            kept.append(one)
            indexes.append(index)
    if len(kept) < len(value):
        notes.indexes[id(kept)] = indexes
    return kept
