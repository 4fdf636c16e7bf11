"""What the protocol describes, read off the `ag_ui` models, and the removal of everything else.

The models keep members that they do not know; a consumer must not hand those on, and an agent must not see them. They also
take `"5"` for a number, and name the branches of unions when they complain. A *shape* is what a model says of its members:
their names, which are required, what they hold. Where the protocol is open (state, metadata, an activity's content, the
members of a patch's operations) nothing is looked into, or copied.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from ag_ui.core import Event, Message, RunAgentInput
from pydantic import BaseModel
from pydantic.fields import FieldInfo

__all__ = [
    "EVENTS",
    "INPUT",
    "MESSAGE",
    "UNKNOWN",
    "Fault",
    "Notes",
    "Path",
    "TooMany",
    "fields_of",
    "pointer_of",
    "printable",
]

UNKNOWN: Any = object()
"""What reading gives for a value of a kind that the protocol does not describe."""

MAX_NOTES = 100
"""Warnings, and faults, that one reading gives at most: a million bad members fill neither a log nor the memory."""

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
        self.faults.append(Fault(pointer_of(path), message, type))
        if len(self.faults) == MAX_NOTES:
            raise TooMany

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


class TooMany(Exception):
    """So much is wrong that the rest is not looked at."""


# Shapes. Each reads a value: a copy without what the shape does not describe, or `UNKNOWN` if that is the whole of it. What is
# of a wrong kind is a fault, and stays.


class Scalar:
    """Text, a number, a boolean, or an object that is open to any member."""

    def __init__(self, word: str, *types: type) -> None:
        self.types = types
        self.message = f"Input should be a valid {word}"
        self.type = f"{types[0].__name__.replace('str', 'string')}_type"

    def read(self, value: Any, notes: Notes, path: Path) -> Any:
        # Not isinstance: a boolean is no number.
        if type(value) not in self.types:
            notes.fault(path, self.message, self.type)
        return value


class Words:
    """One of several fixed words, a set that later versions may add to; or the only word that there is."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = frozenset(words)
        self.message = f"Input should be {' or '.join(map(repr, sorted(self.words)))}"

    def read(self, value: Any, notes: Notes, path: Path) -> Any:
        if not isinstance(value, str):
            notes.fault(path, TEXT.message, TEXT.type)
        elif value not in self.words:
            if notes.sent and len(self.words) > 1:
                return UNKNOWN
            notes.fault(path, self.message, "literal_error")
        return value


class ListOf:
    def __init__(self, item: Any, text: bool = False) -> None:
        self.item = item
        # Text may stand for the list.
        self.text = text

    def read(self, value: Any, notes: Notes, path: Path) -> Any:
        if not isinstance(value, list):
            if not (self.text and isinstance(value, str)):
                notes.fault(path, f"Input should be a valid {'string or ' if self.text else ''}list", "list_type")
            return value
        kept, indexes = [], []
        for index, inner in enumerate(value):
            one = self.item.read(inner, notes, (path, index))
            if one is UNKNOWN:
                notes.warn((path, index), "removed, it is of an unknown kind")
            else:
                kept.append(one)
                indexes.append(index)
        if len(kept) < len(value):
            notes.indexes[id(kept)] = indexes
        return kept


class Object:
    def __init__(self, name: str, *, open: bool) -> None:
        self.name = name
        self.open = open
        # name on the wire -> (shape, or None where anything may be; required)
        self.members: dict[str, tuple[Any, bool]] = {}
        self.required: frozenset[str] = frozenset()

    def read(self, value: Any, notes: Notes, path: Path) -> Any:
        if not isinstance(value, dict):
            notes.fault(path, OBJECT.message, OBJECT.type)
            return value
        kept = {}
        for name, inner in value.items():
            member = self.members.get(name)
            if member is None:
                if self.open:
                    kept[name] = inner
                else:
                    notes.warn((path, name), "removed, the protocol does not describe it")
                continue
            shape, required = member
            if inner is None and not required:
                if self._absent(name, notes, path):
                    continue
            elif shape is not None:
                inner = shape.read(inner, notes, (path, name))
                if inner is UNKNOWN:
                    if not required:
                        notes.warn((path, name), "removed, it is of an unknown kind")
                        continue
                    if notes.sent:
                        return UNKNOWN
                    notes.fault((path, name), "Input is of an unknown kind", "unknown_kind")
            kept[name] = inner
        if not self.required <= kept.keys():
            for name in sorted(self.required - kept.keys()):
                notes.fault((path, name), "Field required", "missing")
        return kept

    def _absent(self, name: str, notes: Notes, path: Path) -> bool:
        """Whether a `null` in an optional place is absent; if not, it is data, or a fault."""
        if notes.sent:
            if name == "rawEvent" or (self.name, name) in _LEGACY_NULLS:
                notes.warn((path, name), "null is read as absent")
            else:
                notes.fault((path, name), "Input should be left out, not null", "null")
            return True
        return not (name == "state" and self is INPUT)


class OneOf:
    """An object whose kind one of its members tells."""

    def __init__(self, discriminator: str, objects: dict[str, Object]) -> None:
        self.discriminator = discriminator
        self.objects = objects

    def read(self, value: Any, notes: Notes, path: Path) -> Any:
        if not isinstance(value, dict):
            notes.fault(path, OBJECT.message, OBJECT.type)
            return value
        tag = value.get(self.discriminator)
        if not isinstance(tag, str):
            if self.discriminator in value:
                notes.fault((path, self.discriminator), TEXT.message, TEXT.type)
            else:
                notes.fault((path, self.discriminator), "Field required", "missing")
            return value
        one = self.objects.get(tag)
        return UNKNOWN if one is None else one.read(value, notes, path)


TEXT = Scalar("string", str)
OBJECT = Scalar("object", dict)
# A number without a fraction is an integer however it is written; the model looks at that.
_INTEGER = Scalar("integer", int, float)
_BOOLEAN = Scalar("boolean", bool)
_objects: dict[type[BaseModel], Object] = {}


def _shape(annotation: Any, discriminator: Any = None) -> Any:
    """The shape of an annotation; `None` where any value may be."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        info = next((one for one in arguments[1:] if isinstance(one, FieldInfo)), None)
        return _shape(arguments[0], info.discriminator if info else None)
    if origin is Union or origin is types.UnionType:
        inner = [one for one in arguments if one is not type(None)]
        if discriminator is not None:
            return OneOf(discriminator, {tag: _object(one) for one in inner for tag in _tags(one, discriminator)})
        if len(inner) == 1:
            return _shape(inner[0])
        # The only other union is that of a text and a list: `str | list[ContentPart]`.
        return ListOf(_shape(get_args(inner[1])[0]), text=True)
    if origin is list:
        return ListOf(_shape(arguments[0]))
    if origin is dict:
        return OBJECT
    if origin is Literal:
        return Words(one.value if isinstance(one, Enum) else one for one in arguments)
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return Words(str(one.value) for one in annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _object(annotation)
    return None


_SCALARS = {str: TEXT, int: _INTEGER, bool: _BOOLEAN}


def _tags(model: type[BaseModel], discriminator: str) -> list[str]:
    tags = get_args(model.model_fields[discriminator].annotation)
    return [str(tag.value if isinstance(tag, Enum) else tag) for tag in tags]


def _object(model: type[BaseModel]) -> Object:
    if model not in _objects:
        # The operations of a patch: members that they do not define are ignored, not refused (RFC 6902, section 4).
        shape = _objects[model] = Object(model.__name__, open="op" in model.model_fields)
        for name, info in model.model_fields.items():
            shape.members[info.alias or name] = (_shape(info.annotation, info.discriminator), info.is_required())
        shape.required = frozenset(name for name, (_, required) in shape.members.items() if required)
    return _objects[model]


EVENTS: OneOf = _shape(Event)
MESSAGE: OneOf = _shape(Message)
INPUT: Object = _shape(RunAgentInput)


def fields_of(event_type: str) -> frozenset[str]:
    """The member names of an event type, as they are on the wire."""
    return frozenset(EVENTS.objects[event_type].members)
