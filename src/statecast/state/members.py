"""The members of an object type: what pydantic reads and writes for each."""

from __future__ import annotations

import functools
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from .nodes import MAPPINGS, Schema, Schemas, children, choices
from .readonly import is_mark, is_read_only

__all__ = ["Member", "fields_node", "hints", "members"]


@dataclass(frozen=True, slots=True)
class Member:
    """One field or computed field of a model, a dataclass or a TypedDict.

    Attributes:
        name: its Python name.
        wire: the key under which it is written.
        reads: the keys from which validation takes it.
        path: validation also takes it from inside another key.
        written: it is part of what is written.
        read: the client is believed on it.
        read_only: it is marked `ReadOnly`.
        required: validation fails without it.
        schema: the node of its value; `None` for computed fields.
    """

    name: str
    wire: str
    reads: frozenset[str]
    path: bool
    written: bool
    read: bool
    read_only: bool
    required: bool
    schema: Schema | None


def fields_node(schemas: Schemas, schema: Schema) -> Schema | None:
    """The node that lists the fields of a `model`, `dataclass` or `typed-dict` node; `None` where there is none."""
    if schema["type"] == "typed-dict":
        return schema
    inner = schemas.unwrap(schema["schema"])
    return inner if inner["type"] in ("model-fields", "dataclass-args") else None


def members(schemas: Schemas, schema: Schema) -> Iterator[Member]:
    """The members of a `model`, `dataclass` or `typed-dict` node."""
    node = fields_node(schemas, schema)
    if node is None:
        return
    fields = node["fields"]
    named = fields.items() if isinstance(fields, dict) else ((field["name"], field) for field in fields)
    by_alias, by_name = _reading(schema)
    marked = read_only_names(schema.get("cls"))
    for name, field in named:
        reads, path = _reads(name, field.get("validation_alias"), by_alias, by_name)
        kept = field.get("init", True)
        owned = name in marked or shows_mark(schemas, field["schema"], name)
        excluded = field.get("serialization_exclude", False) or field.get("init_only", False)
        yield Member(
            name=name,
            wire=field.get("serialization_alias", name),
            reads=reads,
            path=path,
            written=not excluded,
            read=kept and not field.get("serialization_exclude", False) and not owned,
            read_only=owned,
            required=kept and _required(schemas, schema["type"], field, node),
            schema=field["schema"],
        )
    for field in node.get("computed_fields") or schema.get("computed_fields") or ():
        yield Member(
            name=field["property_name"],
            wire=field.get("alias", field["property_name"]),
            reads=frozenset(),
            path=False,
            written=not field.get("serialization_exclude", False),
            read=False,
            read_only=False,
            required=False,
            schema=None,
        )


def _reading(schema: Schema) -> tuple[bool, bool]:
    config: dict[str, Any] = dict(schema.get("config") or {})
    config |= getattr(schema.get("cls"), "model_config", {})
    by_name = bool(config.get("validate_by_name") or config.get("populate_by_name"))
    return config.get("validate_by_alias") is not False, by_name


def _reads(name: str, alias: Any, by_alias: bool, by_name: bool) -> tuple[frozenset[str], bool]:
    if alias is None:
        return frozenset((name,)), False
    paths = [[alias]] if isinstance(alias, str) else alias if isinstance(alias[0], list) else [alias]
    keys = {path[0] for path in paths if len(path) == 1} if by_alias else set()
    if by_name:
        keys.add(name)
    return frozenset(keys), by_alias and any(len(path) > 1 for path in paths)


def _required(schemas: Schemas, kind: str, field: Schema, node: Schema) -> bool:
    if kind == "typed-dict":
        return bool(field.get("required", node.get("total", True)))
    value = schemas.follow(field["schema"])
    while value["type"].startswith("function-") and "schema" in value:
        value = schemas.follow(value["schema"])
    return bool(value["type"] != "default")


@functools.lru_cache(maxsize=4096)
def hints(cls: type) -> dict[str, Any]:
    """The annotations of the fields of a model, a dataclass or a TypedDict, with what `Annotated` adds.

    None for a dataclass or a TypedDict whose annotations name what only their own scope knows, as pydantic did.
    """
    fields = getattr(cls, "__pydantic_fields__", None)
    if fields is not None:
        return {name: Annotated[(field.annotation, *(field.metadata or [None]))] for name, field in fields.items()}
    try:
        return typing.get_type_hints(typing.get_origin(cls) or cls, include_extras=True)
    except NameError:
        return {}


def read_only_names(cls: type | None) -> frozenset[str]:
    """The names of the fields of `cls` whose annotations are marked `ReadOnly`."""
    return frozenset() if cls is None else frozenset(name for name, hint in hints(cls).items() if is_read_only(hint))


def shows_mark(schemas: Schemas, schema: Schema, place: str, seen: frozenset[int] = frozenset()) -> bool:
    """Whether pydantic saw the mark on a value of this node.

    Raises:
        TypeError: it stands inside a container, where no field is.
    """
    chain = list(schemas.chain(schema))
    if any(map(_carries_mark, chain)):
        return True
    if id(chain[-1]) in seen:
        return False
    seen |= {id(chain[-1])}
    if any(shows_mark(schemas, one, place, seen) for one in choices(chain[-1])):
        return True
    if chain[-1]["type"] in ("list", "set", "frozenset", "tuple", "deque", *MAPPINGS):
        for child in children(chain[-1]):
            if shows_mark(schemas, child, place, seen):
                raise TypeError(f"ReadOnly marks a field: it cannot stand inside the type of {place}")
    return False


def _carries_mark(node: Schema) -> bool:
    functions = (node.get("metadata") or {}).get("pydantic_js_annotation_functions", ())
    return any(is_mark(getattr(function, "__self__", None)) for function in functions)
