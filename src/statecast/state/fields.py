"""What a `State` class knows of its fields: how each is read when it is assigned, tracked, and written."""

from __future__ import annotations

from pydantic import BaseModel

from .members import members
from .nodes import Schema, Schemas, children, is_authors_function, is_custom_json
from .readers import Reader
from .specs import Specs
from .tracker import Spec

__all__ = ["Fields"]

_CONFIGURED = {
    "timedelta": (("ser_json_timedelta", "iso8601"), ("ser_json_temporal", "iso8601")),
    "datetime": (("ser_json_temporal", "iso8601"),),
    "date": (("ser_json_temporal", "iso8601"),),
    "time": (("ser_json_temporal", "iso8601"),),
    "bytes": (("ser_json_bytes", "utf8"),),
}
"""Kind of node -> what of the configuration decides its JSON, and the value with which that is what the value itself shows."""


class Fields:
    """The fields of one class.

    Attributes:
        names: field -> its name on the wire, for those that are written as their values show.
        derived: field or computed field -> its name on the wire, for those that only the model's serializer can write.
        whole: the model has a serializer of its own, which writes all of it.
        specs: field -> what may stand in a container that is its value.
        readers: field -> how a new value is read, for those that nothing else judges.
    """

    def __init__(self, cls: type[BaseModel]) -> None:
        schemas = Schemas(cls.__pydantic_core_schema__)
        chain = list(schemas.chain(schemas.root))
        model = chain[-1]
        inner = list(schemas.chain(model["schema"]))
        config: Schema = model.get("config", {})
        judged = any(map(is_authors_function, (*chain, *inner)))
        self.whole = any("serialization" in node for node in chain)
        self.names: dict[str, str] = {}
        self.derived: dict[str, str] = {}
        self.specs: dict[str, Spec | None] = {}
        self.readers: dict[str, Reader] = {}
        specs = Specs(schemas, config)
        for member in members(schemas, model):
            if member.schema is None:
                self.derived[member.name] = member.wire
                continue
            field = inner[-1]["fields"][member.name]
            if member.written:
                shown = "serialization_exclude_if" not in field and shows_itself(schemas, member.schema, config)
                (self.names if shown and not self.whole else self.derived)[member.name] = member.wire
            self.specs[member.name] = specs.spec(member.schema, judged)
            alone = not judged and not schemas.has_functions(member.schema, informed=True)
            if alone and not field.get("frozen") and not config.get("frozen"):
                self.readers[member.name] = Reader(member.schema, schemas, config)


def shows_itself(schemas: Schemas, schema: Schema, config: Schema) -> bool:
    """Whether the JSON of a value of this type is what the value itself shows, whatever its type says."""
    seen: set[int] = set()

    def search(node: Schema, config: Schema) -> bool:
        custom = is_custom_json(node)
        node = schemas.follow(node)
        if custom or is_custom_json(node):
            return False
        kind = node["type"]
        if id(node) in seen or kind == "model" or (kind == "dataclass" and hasattr(node["cls"], "__pydantic_serializer__")):
            return True
        seen.add(id(node))
        if any(config.get(setting, usual) != usual for setting, usual in _CONFIGURED.get(kind, ())):
            return False
        return all(search(child, node.get("config") or config) for child in children(node))

    return search(schema, config)
