"""The nodes of a pydantic core schema: what a type reads and writes, with references followed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

__all__ = [
    "MAPPINGS",
    "SCALARS",
    "Schema",
    "Schemas",
    "children",
    "choices",
    "is_authors_function",
    "is_custom_json",
    "positions",
    "type_key",
]

Schema = dict[str, Any]
"""A node of a pydantic core schema."""

# Nodes that read the same input as the node inside them.
_WRAPPERS = {
    "default": "schema",
    "function-before": "schema",
    "function-after": "schema",
    "function-wrap": "schema",
    "custom-error": "schema",
    "nullable": "schema",
    "lax-or-strict": "lax_schema",
    "json-or-python": "json_schema",
}


SCALARS = frozenset(
    {
        "str",
        "int",
        "float",
        "bool",
        "none",
        "literal",
        "enum",
        "datetime",
        "date",
        "time",
        "timedelta",
        "decimal",
        "uuid",
    }
    | {"bytes", "url", "multi-host-url", "complex"}
)
"""Kinds of nodes whose values are immutable and hold no others."""

MAPPINGS = ("dict", "ordered-dict", "counter", "frozendict")
"""Kinds of nodes that read an object with one type of value."""

_BUILT_IN = ("pydantic.", "pydantic_core.", f"{__name__.rpartition('.')[0]}.")


class Schemas:
    """The nodes of one core schema, with references followed."""

    def __init__(self, root: Any) -> None:
        self._definitions: dict[str, Schema] = {}
        self.root = cast(Schema, root)
        while self.root["type"] == "definitions":
            self._definitions.update({item["ref"]: item for item in self.root["definitions"]})
            self.root = self.root["schema"]

    @property
    def definitions(self) -> list[Schema]:
        return list(self._definitions.values())

    def follow(self, schema: Schema) -> Schema:
        """The node that a reference stands for."""
        while schema["type"] == "definition-ref":
            schema = self._definitions[schema["schema_ref"]]
        return schema

    def unwrap(self, schema: Schema) -> Schema:
        """The node that decides what JSON is read: below references, defaults, `None`, and validators."""
        *_, last = self.chain(schema)
        return last

    def chain(self, schema: Schema) -> Iterator[Schema]:
        """The nodes from this one down to the one that decides what JSON is read."""
        while True:
            yield schema
            kind = schema["type"]
            if kind == "definition-ref":
                schema = self._definitions[schema["schema_ref"]]
            elif kind in _WRAPPERS:
                schema = schema[_WRAPPERS[kind]]
            elif kind == "chain":
                schema = schema["steps"][0]
            elif kind == "model" and schema.get("root_model"):
                schema = schema["schema"]
            else:
                return

    def has_functions(self, schema: Schema, *, informed: bool = False) -> bool:
        """Whether functions of authors judge a value of this type or its items; not what judges inside a model.

        Args:
            informed: only functions that are told of the field and of the other fields.
        """
        seen: set[int] = set()

        def search(node: Schema) -> bool:
            node = self.follow(node)
            if id(node) in seen:
                return False
            seen.add(id(node))
            chain = list(self.chain(node))
            if informed and any(is_authors_function(one) and one["function"]["type"] == "with-info" for one in chain):
                return True
            # The other fields that a function inside of one of these is told of are those beside it.
            if chain[-1]["type"] in (("model", "dataclass", "typed-dict") if informed else ("model", "dataclass")):
                return False
            return (not informed and is_authors_function(node)) or any(map(search, children(node)))

        return search(schema)

    def has_custom_json(self, schema: Schema) -> bool:
        """Whether the author's own function serializes the value, so that its JSON is not known from its type."""
        return any(is_custom_json(node) for node in self.chain(schema))


def is_custom_json(node: Schema) -> bool:
    """Whether the author's own function serializes the values of this very node; not a model's own serializer."""
    serialization = node.get("serialization")
    if serialization is None or serialization["type"] in ("any", "to-string"):
        return False
    function = serialization.get("function")
    if _is_built_in(function):
        return False
    decorators = getattr(node.get("cls"), "__pydantic_decorators__", None)
    return decorators is None or all(one.func is not function for one in decorators.model_serializers.values())


def is_authors_function(node: Schema) -> bool:
    """Whether a node is a validator that neither pydantic nor `State` added."""
    return bool(node["type"].startswith("function-")) and not _is_built_in(node["function"]["function"])


def _is_built_in(function: Any) -> bool:
    return (getattr(function, "__module__", None) or "").startswith(_BUILT_IN)


def positions(node: Schema) -> list[Schema] | None:
    """The fields of a NamedTuple, with `name` and `schema`; `None` if the node is none."""
    if node["type"] == "named-tuple":
        return list(node["fields"])
    if node["type"] == "call" and node["arguments_schema"]["type"] == "arguments":
        # As pydantic 2.11 does it.
        return list(node["arguments_schema"]["arguments_schema"])
    return None


def choices(node: Schema) -> list[Schema]:
    """The members of a union."""
    found = node.get("choices", ())
    return [
        item[0] if isinstance(item, tuple) else item for item in (found.values() if isinstance(found, dict) else found)
    ]


def children(node: Schema) -> Iterator[Schema]:
    """The nodes of the values that a value of this node holds, or that it is read as from JSON."""
    for key in (
        "schema",
        "items_schema",
        "keys_schema",
        "values_schema",
        "extras_schema",
        "lax_schema",
        "json_schema",
        "steps",
    ):
        inner = node.get(key)
        if isinstance(inner, list):
            yield from inner
        elif isinstance(inner, dict) and "type" in inner:
            yield inner
    yield from choices(node)
    fields = positions(node) or node.get("fields", ())
    for field in fields.values() if isinstance(fields, dict) else fields:
        if isinstance(field, dict):
            yield field["schema"]


def type_key(schemas: Schemas, value: Any, seen: dict[int, int] | None = None) -> Any:
    """Something hashable that is equal for nodes that read alike."""
    seen = {} if seen is None else seen
    if isinstance(value, dict) and "type" in value:
        value = schemas.follow(value)
        if value["type"] == "model":
            return value["cls"]
        if id(value) in seen:
            return seen[id(value)]
        seen[id(value)] = len(seen)
    if isinstance(value, dict):
        left_out = ("metadata", "ref", "serialization", "default", "default_factory")
        return tuple(
            (key, type_key(schemas, value[key], seen)) for key in sorted(value, key=str) if key not in left_out
        )
    if isinstance(value, (list, tuple)):
        return tuple(type_key(schemas, item, seen) for item in value)
    try:
        hash(value)
    except TypeError:
        return id(value)
    return repr(value) if isinstance(value, (bool, int, float)) else value
