"""What a `State` class knows of its fields: how each is read when it is assigned, tracked, and written."""

from __future__ import annotations

from typing import Any, cast, get_args, get_origin

from pydantic import BaseModel
from typing_extensions import TypeAliasType, is_typeddict

from .members import fields_node, hints, members
from .nodes import SCALARS, Schema, Schemas, children, is_authors_function, is_custom_json
from .readers import Reader, validator
from .specs import ContainerSpec, Specs

__all__ = ["Fields"]

_CONFIGURED = {
    "timedelta": (("ser_json_timedelta", "iso8601"), ("ser_json_temporal", "iso8601")),
    "datetime": (("ser_json_temporal", "iso8601"),),
    "date": (("ser_json_temporal", "iso8601"),),
    "time": (("ser_json_temporal", "iso8601"),),
    "bytes": (("ser_json_bytes", "utf8"),),
}
"""Kind of node -> what of the configuration decides its JSON, and the setting with which a value itself shows it."""


class Fields:
    """The fields of one class. A field is tracked if it is written as its value shows; the others are kept as they are.

    Attributes:
        names: tracked field -> its name on the wire.
        derived: field or computed field -> its name on the wire, for those that only the model's serializer can write.
        whole: the model has a serializer of its own, which writes all of it.
        volatile: what is derived may change without an edit, as it is made of mutable values that are not tracked.
        judged: the model has validators of its own.
        specs: tracked field -> what may stand in a container that is its value.
        declared: field -> what may be its value.
        readers: the same, for those that can be read alone when they are assigned.
        frozen: the fields that cannot be assigned.
        atoms: tracked field -> the JSON type whose values need no reading, where nothing else judges.
    """

    def __init__(self, cls: type[BaseModel]) -> None:
        schemas = Schemas(cls.__pydantic_core_schema__)
        chain = list(schemas.chain(schemas.root))
        model = chain[-1]
        config: Schema = model.get("config", {})
        node = cast(Schema, fields_node(schemas, model))
        self.judged = any(map(is_authors_function, (*chain, *schemas.chain(model["schema"]))))
        self.whole = any("serialization" in one for one in chain)
        self.names: dict[str, str] = {}
        self.derived: dict[str, str] = {}
        self.specs: dict[str, ContainerSpec | None] = {}
        self.readers: dict[str, Reader] = {}
        self.declared: dict[str, Reader] = {}
        self.frozen: set[str] = set()
        self._validator = validator(node, schemas, config)
        specs = Specs(schemas, config)
        annotations = hints(cls)
        changeable = False
        for member in members(schemas, model):
            if member.schema is None:
                self.derived[member.name] = member.wire
                continue
            field = node["fields"][member.name]
            self.declared[member.name] = Reader(member.schema, schemas, config)
            shown = "serialization_exclude_if" not in field and shows_itself(schemas, member.schema, config)
            if member.written and shown and not self.whole and not holds_special_dicts(annotations[member.name]):
                self.names[member.name] = member.wire
                self.specs[member.name] = specs.spec(member.schema, self.judged)
            else:
                if member.written:
                    self.derived[member.name] = member.wire
                changeable = changeable or not is_immutable(schemas, member.schema)
            if cls.model_config.get("frozen") or field.get("frozen"):
                self.frozen.add(member.name)
            elif not schemas.has_functions(member.schema, informed=True):
                self.readers[member.name] = self.declared[member.name]
        self.atoms = {
            name: reader.atom
            for name, reader in self.readers.items()
            if reader.atom and name in self.names and not self.judged
        }
        self.derives = bool(self.derived) or self.whole
        self.volatile = self.derives and changeable

    def read(self, held: dict[str, Any], name: str, value: Any) -> Any:
        """The value of one field, read without what judges the model as a whole. Raises `ValidationError`."""
        reader = self.readers.get(name)
        if reader is not None:
            return reader(value, self.specs.get(name))
        fields, *_ = cast("tuple[dict[str, Any], ...]", self._validator.validate_assignment(dict(held), name, value))
        return fields[name]


def shows_itself(schemas: Schemas, schema: Schema, config: Schema) -> bool:
    """Whether the JSON of a value of this type is what the value itself shows, whatever its type says."""
    seen: set[int] = set()

    def search(node: Schema, config: Schema) -> bool:
        custom = is_custom_json(node)
        node = schemas.follow(node)
        if custom or is_custom_json(node):
            return False
        kind = node["type"]
        if (
            id(node) in seen
            or kind == "model"
            or (kind == "dataclass" and hasattr(node["cls"], "__pydantic_serializer__"))
        ):
            return True
        seen.add(id(node))
        if any(config.get(setting, usual) != usual for setting, usual in _CONFIGURED.get(kind, ())):
            return False
        return all(search(child, node.get("config") or config) for child in children(node))

    return search(schema, config)


def holds_special_dicts(annotation: Any) -> bool:
    """Whether an OrderedDict, a Counter or a defaultdict stands in it: a tracked dict cannot do what they do."""
    if isinstance(annotation, TypeAliasType):
        return holds_special_dicts(annotation.__value__)
    origin = get_origin(annotation) or annotation
    if isinstance(origin, type) and issubclass(origin, dict) and origin is not dict:
        return not is_typeddict(origin)
    return any(map(holds_special_dicts, get_args(annotation)))


def is_immutable(schemas: Schemas, schema: Schema) -> bool:
    """Whether no value of this type can change in place."""
    node = schemas.unwrap(schema)
    if node["type"] in ("union", "tagged-union", "tuple", "named-tuple", "frozenset"):
        return all(is_immutable(schemas, child) for child in children(node))
    return node["type"] in SCALARS
