"""A state comes back with the next run, so its type must be able to read what it writes. Checked before any run."""

from __future__ import annotations

import enum
import functools
from typing import Any, get_args, get_origin

from pydantic import Secret, SecretBytes, SecretStr
from typing_extensions import TypeAliasType

from .members import Member, fields_node, hints, members
from .nodes import MAPPINGS, Schema, Schemas, children, choices, positions

__all__ = ["check_no_cached_property", "check_reads_back", "check_secrets", "reads_infinities"]

SECRET = "{} holds a secret, and clients see the state: mark it Field(exclude=True, default=…)"
_UNREADABLE = {
    "callable": "a callable is not JSON",
    "is-instance": "pydantic does not know how to read it from JSON",
    "is-subclass": "a class is not JSON",
    "json": "Json reads a text and writes what is in it",
    "generator": "an Iterable is read lazily and only once: declare list[…]",
}


def check_reads_back(schemas: Schemas, name: str) -> None:
    """Walks a type.

    Raises:
        TypeError: names the field that would not come back, and says what to do.
    """
    _Check(schemas).node(schemas.root, name)


def check_secrets(annotation: Any, place: str) -> None:
    """Raises TypeError if a secret type stands anywhere in the annotation."""
    if _holds_secret(annotation):
        raise TypeError(SECRET.format(place))


def _is_secret(node: Schema) -> bool:
    function = (node.get("serialization") or {}).get("function")
    name = getattr(function, "__name__", "")
    return "secret" in name and (getattr(function, "__module__", None) or "").startswith("pydantic.")


def _holds_secret(annotation: Any) -> bool:
    if isinstance(annotation, TypeAliasType):
        return _holds_secret(annotation.__value__)
    origin = get_origin(annotation) or annotation
    if isinstance(origin, TypeAliasType):
        return _holds_secret(origin.__value__) or any(map(_holds_secret, get_args(annotation)))
    if isinstance(origin, type) and issubclass(origin, (SecretStr, SecretBytes, Secret)):
        return True
    return any(_holds_secret(arg) for arg in get_args(annotation))


class _Check:
    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._seen: set[int] = set()
        self._config: dict[str, Any] = {}

    def node(self, schema: Schema, place: str) -> None:
        if any(map(_is_secret, self._schemas.chain(schema))):
            raise TypeError(SECRET.format(place))
        if self._schemas.has_custom_json(schema):
            return
        schema = self._schemas.unwrap(schema)
        if id(schema) in self._seen:
            return
        self._seen.add(id(schema))
        kind = schema["type"]
        if kind in ("model", "dataclass", "typed-dict"):
            outer, self._config = self._config, schema.get("config") or self._config
            self._object(schema, place)
            self._config = outer
        elif kind == "bytes":
            written = self._config.get("ser_json_bytes", "utf8")
            if written != self._config.get("val_json_bytes", "utf8"):
                raise TypeError(f"{place} would not read back what it writes: set val_json_bytes={written!r} too")
        elif kind in _UNREADABLE:
            raise TypeError(f"{place} would not read back what it writes: {_UNREADABLE[kind]}")
        elif kind in MAPPINGS:
            self._keys(schema, place)
            if "values_schema" in schema:
                self.node(schema["values_schema"], place)
        elif (fields := positions(schema)) is not None:
            for field in fields:
                self.node(field["schema"], f"{place}.{field['name']}")
        else:
            for child in children(schema):
                self.node(child, place)

    def _object(self, schema: Schema, place: str) -> None:
        if "serialization" in schema:
            # What a model's own serializer writes is the author's to read.
            return
        cls = schema.get("cls")
        place = getattr(cls, "__name__", place)
        found = list(members(self._schemas, schema))
        readers: dict[str, Member] = {}
        writers: dict[str, Member] = {}
        for member in found:
            where = f"{place}.{member.name}"
            for key in member.reads:
                other = readers.setdefault(key, member)
                if other is not member:
                    raise TypeError(f"{where} and {place}.{other.name} both read {key!r}")
            if member.written:
                other = writers.setdefault(member.wire, member)
                if other is not member:
                    raise TypeError(f"{where} and {place}.{other.name} are both written as {member.wire!r}")
            self._member(member, where, cls, schema["type"] == "typed-dict")
        for member in found:
            reader = readers.get(member.wire)
            if member.written and not member.read and reader is not None and reader.read:
                raise TypeError(
                    f"{place}.{member.name} is written as {member.wire!r}, which {place}.{reader.name} would read back"
                )
        node = fields_node(self._schemas, schema)
        if node is not None and "extras_schema" in node:
            self.node(node["extras_schema"], place)

    def _member(self, member: Member, where: str, cls: type | None, is_dict: bool) -> None:
        if not member.read and member.path:
            raise TypeError(f"{where} is not believed when a client sends it, so it cannot be read by an AliasPath")
        if is_dict and (member.wire != member.name or not member.written):
            raise TypeError(
                f"{where} has another name on the wire, or none: a TypedDict is written as it is, use State"
            )
        if not member.written:
            if member.required:
                raise TypeError(f"{where} is not sent, so it does not come back: give it a default")
            return
        if member.schema is not None and member.read and member.wire not in member.reads:
            accepted = ", ".join(sorted(map(repr, member.reads))) or "an AliasPath"
            raise TypeError(
                f"{where} is written as {member.wire!r} but read as {accepted}: use alias=, or accept both with "
                f"AliasChoices or validate_by_name=True"
            )
        if cls is not None and member.name in (types := hints(cls)):
            check_secrets(types[member.name], where)
        if member.schema is not None:
            self.node(member.schema, where)

    def _keys(self, schema: Schema, place: str) -> None:
        if "keys_schema" in schema and not self._is_text(schema["keys_schema"]):
            raise TypeError(f"{place} has keys that are not str, and JSON has no others: use dict[str, …]")

    def _is_text(self, schema: Schema) -> bool:
        schema = self._schemas.unwrap(schema)
        match schema["type"]:
            case "str" | "any":
                return True
            case "literal":
                return all(isinstance(value, str) for value in schema["expected"])
            case "enum":
                return issubclass(schema["cls"], str) and issubclass(schema["cls"], enum.Enum)
            case "union":
                return all(map(self._is_text, choices(schema)))
            case kind:
                return bool(kind.startswith("function-plain"))


def reads_infinities(schemas: Schemas) -> bool:
    """Whether a float that the type reads may become infinite, or no number: `"inf"` and `"nan"` are read as such."""

    def search(schema: Schema, allowed: bool) -> bool:
        schema = schemas.follow(schema)
        if (id(schema), allowed) in seen:
            return False
        seen.add((id(schema), allowed))
        if schema["type"] == "float":
            return bool(schema.get("allow_inf_nan", allowed))
        allowed = (schema.get("config") or {}).get("allow_inf_nan", allowed)
        return any(search(child, allowed) for child in children(schema))

    seen: set[tuple[int, bool]] = set()
    return search(schemas.root, True)


def check_no_cached_property(cls: type) -> None:
    """Raises TypeError for a `cached_property`: it would go on showing what it computed from an older state."""
    for base in cls.__mro__:
        for name, value in list(vars(base).items()):
            inner = getattr(value, "wrapped", value)
            if isinstance(inner, functools.cached_property):
                raise TypeError(
                    f"{cls.__name__}.{name} is a cached_property, which no change of the state resets: use property"
                )
