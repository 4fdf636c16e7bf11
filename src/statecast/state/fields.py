"""What a `State` class knows of its fields: how each is read when it is assigned, tracked, and written."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from .members import Schema, Schemas, members
from .specs import Maker, Reader, has_functions
from .tracker import Spec

__all__ = ["Fields"]

_TEMPORAL = ("datetime", "date", "time")


class Fields:
    """The fields of one class.

    Attributes:
        names: field -> name on the wire, of the fields that are written as their values show.
        derived: the fields and computed fields that only the model's serializer can write: field -> name on the wire.
        whole: the model has a serializer of its own, which writes all of it.
        specs: field -> what may stand in a container that is its value.
        readers: field -> how a new value is read, for the fields that nothing else judges.
        judged: the model has validators of its own, which judge every change.
    """

    def __init__(self, cls: type[BaseModel], settle: Any) -> None:
        schemas = Schemas(cls.__pydantic_core_schema__)
        chain = list(schemas.chain(schemas.root))
        model = next(node for node in chain if node["type"] == "model")
        config: Schema = model.get("config", {})
        inner = list(schemas.chain(model["schema"]))
        around = [node for node in chain[: chain.index(model)] if not _is(node, settle)]
        self.judged = any(node["type"].startswith("function-") for node in (*around, *inner))
        self.whole = any("serialization" in node for node in (*around, model))
        self.names: dict[str, str] = {}
        self.derived: dict[str, str] = {}
        self.specs: dict[str, Spec | None] = {}
        self.readers: dict[str, Reader] = {}
        maker = Maker(schemas, config)
        for member in members(schemas, model):
            if member.schema is None:
                self.derived[member.name] = member.wire
                continue
            field = inner[-1]["fields"][member.name]
            if member.written:
                shown = is_inferred(schemas, member.schema, config) and "serialization_exclude_if" not in field
                (self.names if shown else self.derived)[member.name] = member.wire
            self.specs[member.name] = maker.make(member.schema, self.judged)
            alone = not self.judged and not has_functions(schemas, member.schema, informed=True)
            if alone and not field.get("frozen") and not config.get("frozen"):
                self.readers[member.name] = Reader(member.schema, schemas, config)
        if self.whole:
            self.names = {}


def _is(node: Schema, function: Any) -> bool:
    return node["type"] == "function-after" and node["function"]["function"] is function


def is_inferred(schemas: Schemas, schema: Schema, config: Schema) -> bool:
    """Whether the JSON of a value of this type is what its value shows, whatever stands in the schema."""
    seen: set[int] = set()

    def search(node: Schema, config: Schema) -> bool:
        if _is_authors_json(node):
            return False
        node = schemas.follow(node)
        if id(node) in seen:
            return True
        seen.add(id(node))
        kind = node["type"]
        if _is_authors_json(node):
            return False
        if kind == "timedelta" and config.get("ser_json_timedelta", "iso8601") != "iso8601":
            return False
        if kind in (*_TEMPORAL, "timedelta") and config.get("ser_json_temporal", "iso8601") != "iso8601":
            return False
        if kind == "bytes" and config.get("ser_json_bytes", "utf8") != "utf8":
            return False
        if kind == "model" or (kind == "dataclass" and hasattr(node["cls"], "__pydantic_serializer__")):
            return True
        return all(search(child, node.get("config") or config) for child in _written(schemas, node))

    return search(schema, config)


def _is_authors_json(node: Schema) -> bool:
    serialization = node.get("serialization")
    if serialization is None or serialization["type"] in ("any", "to-string"):
        return False
    module = getattr(serialization.get("function"), "__module__", None) or ""
    return not module.startswith("pydantic")


def _written(schemas: Schemas, node: Schema) -> list[Schema]:
    found: list[Schema] = []
    for key in ("schema", "items_schema", "values_schema", "lax_schema", "json_schema"):
        inner = node.get(key)
        found += inner if isinstance(inner, list) else [inner] if isinstance(inner, dict) and "type" in inner else []
    choices = node.get("choices", ())
    for choice in choices.values() if isinstance(choices, dict) else choices:
        found.append(choice[0] if isinstance(choice, tuple) else choice)
    found += node.get("steps", ())[-1:]
    fields = node.get("fields", ())
    for field in fields.values() if isinstance(fields, dict) else fields:
        if isinstance(field, dict):
            found.append(field["schema"])
    return found
