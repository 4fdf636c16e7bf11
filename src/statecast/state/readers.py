"""Reading the Python values that enter a typed state."""

from __future__ import annotations

import logging
from math import isfinite
from typing import Any, cast

from pydantic import BaseModel
from pydantic_core import CoreConfig, CoreSchema, SchemaValidator, core_schema

from ..errors import StateError
from .nodes import Schema, Schemas, choices
from .tracker import Node, Spec

__all__ = ["Reader", "fitting", "is_read_as", "kept", "validator"]

logger = logging.getLogger("statecast.state")

_ATOMS: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool}
_FREE = {"type", "strict", "metadata", "ref"}


class Reader:
    """Reads one value as a type says, and keeps what needs no reading: the same object comes back.

    Args:
        schema: the node of the type.
        config: the core configuration of the model in which it stands.

    Attributes:
        classes: the model classes that are declared; `None` where any value may be, or no model.
        atom: `str`, `int`, `float` or `bool` if finite values of exactly that type need no reading.
    """

    def __init__(self, schema: Schema, schemas: Schemas, config: Schema) -> None:
        self._validator = validator(schema, schemas, config)
        *outer, last = schemas.chain(schema)
        plain = (
            all(node["type"] in ("default", "nullable", "definition-ref") for node in outer) and last.keys() <= _FREE
        )
        texts = any(key.startswith("str_") for key in config)
        self.atom = _ATOMS.get(last["type"]) if plain and not texts else None
        self.classes = _declared(schema, schemas)

    def __call__(self, value: Any, spec: Spec | None) -> Any:
        """The value to store; `spec` is that of a container at this place. Raises `ValidationError` or `StateError`."""
        cls = type(value)
        if (cls is self.atom and (cls is not float or isfinite(value))) or fitting(value, spec):
            return value
        read = self._validator.validate_python(value)
        if read is not value:
            return kept(value, read, spec)
        self.warn(cls)
        return value

    def warn(self, cls: type) -> None:
        """Warns once if instances of `cls` come back as something else."""
        declared = self.classes
        if declared is None or cls in declared or not issubclass(cls, BaseModel) or (cls, declared) in _warned:
            return
        _warned.add((cls, declared))
        logger.warning(
            "a %s is sent whole where %s is declared, and the next run reads it back as that: declare a union of both",
            cls.__name__,
            " | ".join(sorted(one.__name__ for one in declared)),
        )


def validator(schema: Schema, schemas: Schemas, config: Schema) -> SchemaValidator:
    """A validator for one node of a schema."""
    node = cast(CoreSchema, schema)
    if schemas.definitions:
        node = core_schema.definitions_schema(node, cast("list[CoreSchema]", schemas.definitions))
    # One validator serves the fields of many models, so its errors name none of them.
    return SchemaValidator(node, cast(CoreConfig, {**config, "title": "what was put in"}))


def fitting(value: Any, spec: Spec | None) -> bool:
    """Whether this is a tracked container of the same item type, which is taken as it is.

    Raises:
        StateError: it has another item type. One container has one.
    """
    if not isinstance(value, Node) or value._names is not None or spec is None or value._spec is None:
        return False
    if value._spec is not spec:
        raise StateError("this container has another item type: assign a copy of it")
    return True


def kept(value: Any, read: Any, spec: Spec | None) -> Any:
    """The tracked container itself, where reading gave a copy of it that holds the same."""
    if not (isinstance(value, (list, dict)) and isinstance(value, Node) and _is_copy(value, read)):
        return read
    _type_inside(value, spec)
    return value


def _is_copy(value: Any, read: Any) -> bool:
    if value is read:
        return True
    if isinstance(value, list) and type(read) is list:
        return len(value) == len(read) and all(map(_is_copy, value, read))
    if isinstance(value, dict) and type(read) is dict:
        return value.keys() == read.keys() and all(_is_copy(member, read[key]) for key, member in value.items())
    return type(value) is type(read) and type(value) in (str, int, float, bool) and bool(value == read)


def _type_inside(container: Any, spec: Spec | None) -> None:
    """Gives the containers inside one that becomes typed their specs; the outermost gets its own when it is stored."""
    if spec is None:
        return
    for key, member in container._members():
        if isinstance(member, (list, dict)) and isinstance(member, Node):
            inner = spec.at(key) if isinstance(container, dict) else spec.inner
            if member._spec is None:
                member._spec = inner
            _type_inside(member, inner)


def is_read_as(value: Any, read: Any) -> bool:
    """Whether reading a value, or a copy of it, gave the same again: equal, and of the same types."""
    if isinstance(value, list):
        return type(read) is list and len(value) == len(read) and all(map(is_read_as, value, read))
    if isinstance(value, dict):
        return (
            type(read) is dict
            and value.keys() == read.keys()
            and all(is_read_as(value[key], read[key]) for key in read)
        )
    return value is read or (type(value) is type(read) and bool(value == read))


def _declared(schema: Schema, schemas: Schemas) -> frozenset[type] | None:
    """The model classes that are declared for a value; `None` where any value may be, or no model."""
    found: set[type] = set()
    todo = [schema]
    while todo:
        node = schemas.unwrap(todo.pop())
        if node["type"] == "any":
            return None
        if node["type"] == "model":
            found.add(node["cls"])
        todo += choices(node)
    return frozenset(found) or None


_warned: set[tuple[type, frozenset[type]]] = set()
