"""What may stand in the containers of a typed field, and how an edit inside one is judged.

An item that enters is read as the item type says. That is all for `list[T]` and `dict[str, T]`; where the container has a
constraint or a validator of its own, the container is validated with the edit applied; where something round it judges (a
validator of the field or the model, a union that the container alone does not decide), the whole field is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, Protocol, cast
from weakref import WeakValueDictionary

from pydantic import BaseModel
from pydantic_core import CoreConfig, CoreSchema, SchemaValidator, core_schema

from ..errors import StateError
from .members import Schema, Schemas
from .tracker import Node, Spec, living_parents

__all__ = ["ContainerSpec", "Maker", "Reader", "has_functions"]

logger = logging.getLogger("statecast.state")

_ATOMS: dict[str, type] = {"str": str, "int": int, "bool": bool}
_CONTAINERS = ("list", "dict", "typed-dict")
_LEAVES = ("str", "int", "float", "bool", "none", "literal", "enum", "datetime", "date", "time", "timedelta", "decimal")
_LEAVES += ("uuid", "bytes", "url", "multi-host-url", "model", "dataclass", "tuple", "set", "frozenset", "named-tuple")


class Owner(Protocol):
    """A model that judges an edit inside one of its fields."""

    def _judge(self, field: str, value: Any, exact: bool) -> None: ...


class Reader:
    """Reads one value as a type says, and keeps what needs no reading: the same object comes back.

    Args:
        schema: the node of the type.
    """

    def __init__(self, schema: Schema, schemas: Schemas, config: Schema) -> None:
        self._validator = validator(schema, schemas, config)
        *_, last = chain = list(schemas.chain(schema))
        plain = all(node["type"] in ("default", "nullable", "definition-ref") for node in chain[:-1])
        known = {"type", "strict", "metadata", "ref"}
        texts = any(key.startswith("str_") for key in config)
        self.atom = _ATOMS.get(last["type"]) if plain and last.keys() <= known and not texts else None
        self.classes = _classes(schema, schemas)

    def __call__(self, value: Any, spec: Spec | None) -> Any:
        """The value to store. `spec` is the one that a container at this place has."""
        cls = type(value)
        if cls is self.atom:
            return value
        if spec is not None and isinstance(value, Node) and value._names is None:
            held = getattr(value, "_spec", None)
            if held is spec:
                return value
            if held is not None:
                raise StateError("this container has another item type: assign a copy of it")
        read = self._validator.validate_python(value)
        if read is value:
            if self.classes is not None and cls not in self.classes and isinstance(value, BaseModel):
                warn_of_subclass(cls, self.classes)
            return value
        return kept(value, read, spec)


def kept(value: Any, read: Any, spec: Spec | None) -> Any:
    """The tracked container itself where reading gave a copy of it that holds the same."""
    if not (isinstance(value, (list, dict)) and isinstance(value, Node) and _same(value, read)):
        return read
    if spec is not None:
        _retype(value, spec.inner)
    return value


def _retype(container: Any, spec: Spec | None) -> None:
    """Gives the containers inside one that becomes typed their specs."""
    for _, member in container._members():
        if isinstance(member, (list, dict)) and isinstance(member, Node) and spec is not None:
            if member._spec is None:
                member._spec = spec
            _retype(member, spec.inner)


def _same(one: Any, two: Any) -> bool:
    if one is two:
        return True
    if isinstance(one, list) and type(two) is list:
        return len(one) == len(two) and all(map(_same, one, two))
    if isinstance(one, dict) and type(two) is dict:
        return one.keys() == two.keys() and all(_same(member, two[key]) for key, member in one.items())
    return type(one) is type(two) and type(one) in (str, int, float, bool) and bool(one == two)


def validator(schema: Schema, schemas: Schemas, config: Schema) -> SchemaValidator:
    """A validator for one node of a schema."""
    node = core_schema.definitions_schema(cast(CoreSchema, schema), cast("list[CoreSchema]", schemas.definitions))
    return SchemaValidator(node if schemas.definitions else cast(CoreSchema, schema), cast(CoreConfig, config))


_warned: set[tuple[type, frozenset[type]]] = set()


def warn_of_subclass(cls: type, declared: frozenset[type]) -> None:
    """Says once that an instance of a subclass comes back as what was declared."""
    if (cls, declared) not in _warned:
        _warned.add((cls, declared))
        names = " | ".join(sorted(one.__name__ for one in declared))
        logger.warning(
            "a %s is sent whole where %s is declared, and the next run reads it back as that: declare a union with a "
            "discriminator",
            cls.__name__,
            names,
        )


def _classes(schema: Schema, schemas: Schemas) -> frozenset[type] | None:
    """The model classes that are declared for a value; `None` where any value may be, or none is."""
    found: set[type] = set()
    todo = [schema]
    while todo:
        node = schemas.unwrap(todo.pop())
        if node["type"] == "any":
            return None
        if node["type"] == "model":
            found.add(node["cls"])
        todo += _choices(node)
    return frozenset(found) or None


def _choices(node: Schema) -> list[Schema]:
    choices = node.get("choices", ())
    return [c[0] if isinstance(c, tuple) else c for c in (choices.values() if isinstance(choices, dict) else choices)]


def has_functions(schemas: Schemas, schema: Schema, *, informed: bool = False) -> bool:
    """Whether functions of the author judge a value of this type, its items included, but not what is inside a model.

    Args:
        informed: only functions that are told of the field and of the other fields.
    """
    seen: set[int] = set()

    def search(node: Schema) -> bool:
        node = schemas.follow(node)
        if id(node) in seen:
            return False
        seen.add(id(node))
        if _is_authors(node) and (not informed or node["function"]["type"] == "with-info"):
            return True
        if node["type"] in ("model", "dataclass"):
            return False
        return any(map(search, _inside(node)))

    return search(schema)


def _is_authors(node: Schema) -> bool:
    if not node["type"].startswith("function-"):
        return False
    module = getattr(node["function"]["function"], "__module__", None) or ""
    return not module.startswith("pydantic")


def _is_constrained(schemas: Schemas, node: Schema) -> bool:
    if "min_length" in node or "max_length" in node:
        return True
    keys = schemas.unwrap(node.get("keys_schema", {"type": "any"}))
    return keys["type"] not in ("any", "str") or not keys.keys() <= {"type", "metadata", "strict", "ref"}


def _key(schemas: Schemas, value: Any, seen: dict[int, int]) -> Any:
    """Something equal for equal types: a node without what says nothing of what is valid."""
    if isinstance(value, dict) and "type" in value:
        value = schemas.follow(value)
        if value["type"] == "model":
            return value["cls"]
        if id(value) in seen:
            return seen[id(value)]
        seen[id(value)] = len(seen)
    if isinstance(value, dict):
        left_out = ("metadata", "ref", "serialization", "default", "default_factory")
        return tuple((key, _key(schemas, value[key], seen)) for key in sorted(value, key=str) if key not in left_out)
    if isinstance(value, (list, tuple)):
        return tuple(_key(schemas, item, seen) for item in value)
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value if not isinstance(value, float) else repr(value)


def _inside(node: Schema) -> Iterator[Schema]:
    for key in ("schema", "items_schema", "values_schema", "keys_schema", "lax_schema", "json_schema", "python_schema"):
        inner = node.get(key)
        if isinstance(inner, list):
            yield from inner
        elif isinstance(inner, dict) and "type" in inner:
            yield inner
    yield from _choices(node)
    yield from node.get("steps", ())
    fields = node.get("fields", ())
    for field in fields.values() if isinstance(fields, dict) else fields:
        yield field["schema"]


class ContainerSpec:
    """What may stand in one kind of container.

    Args:
        read: reads an item that enters; `None`: any JSON.
        inner: gives the spec of a container in it.
        local: validates the container itself, with the edit applied.
        climbs: what the container hangs in judges too, up to the field of a model.
        exact: what was validated must be what is stored: nothing converts items one by one.
    """

    __slots__ = ("__weakref__", "_inner", "_local", "_read", "climbs", "exact", "whole")

    def __init__(
        self,
        read: Reader | None = None,
        inner: Callable[[], Spec | None] | None = None,
        local: SchemaValidator | None = None,
        climbs: bool = False,
        exact: bool = False,
    ) -> None:
        self._read = read
        self._inner: Any = inner
        self._local = local
        self.climbs = climbs
        self.exact = exact
        self.whole: Callable[[Any, Any], None] | None = self._judge if climbs or local is not None else None

    @property
    def inner(self) -> Spec | None:
        if callable(self._inner):
            self._inner = self._inner()
        return cast("Spec | None", self._inner)

    def item(self, value: Any) -> Any:
        return value if self._read is None else self._read(value, self.inner)

    def _judge(self, container: Any, candidate: Any) -> None:
        if self._local is not None:
            read = self._local.validate_python(candidate)
            if self.exact and not equal_to_read(candidate, read):
                raise StateError("this would be read back as something else: assign what the type says")
        if self.climbs:
            for owner, field, value in _owners(container, candidate):
                owner._judge(field, value, self.exact and self._local is None)


def equal_to_read(value: Any, read: Any) -> bool:
    """Whether reading a value, or a copy of it, gave the same again: equal, and of the same types."""
    if isinstance(value, (list, dict)):
        value = list(value) if isinstance(value, list) else dict(value)
        if type(value) is not type(read) or len(value) != len(read):
            return False
        if isinstance(value, list):
            return all(map(equal_to_read, value, read))
        return all(key in read and equal_to_read(member, read[key]) for key, member in value.items())
    return value is read or (type(value) is type(read) and bool(value == read))


def _owners(container: Any, candidate: Any) -> Iterator[tuple[Owner, str, Any]]:
    """The models in whose fields a container hangs, with the field's value as it is with the edit applied."""
    for parent, count, hint in living_parents(container):
        for key in parent._places(container, hint, count):
            if parent._names is not None:
                yield cast(Owner, parent), key, candidate
            else:
                outer: Any = list(parent) if isinstance(parent, list) else dict(parent._raw())
                outer[key] = candidate
                yield from _owners(parent, outer)


class Maker:
    """Makes the specs for the fields of one model.

    Args:
        schemas: the model's.
        config: the model's core configuration.
    """

    def __init__(self, schemas: Schemas, config: Schema) -> None:
        self._schemas = schemas
        self._config = config
        self._setting = repr(sorted((key, value) for key, value in config.items() if key != "title"))

    def make(self, schema: Schema, climbs: bool = False) -> Spec | None:
        """The spec of a container that a value of this type is, `None` where any JSON may stand in it."""
        chain = list(self._schemas.chain(schema))
        if any(node["type"] == "model" for node in chain):
            return None
        key = (_key(self._schemas, schema, {}), self._setting, climbs)
        spec = _specs.get(key)
        if spec is None:
            spec = self._new(schema, chain, climbs)
            if spec is not None:
                _specs[key] = spec
        return spec

    def _new(self, schema: Schema, chain: list[Schema], climbs: bool) -> ContainerSpec | None:
        last = chain[-1]
        kind = last["type"]
        if kind in ("union", "tagged-union"):
            return self._union(schema, last, climbs)
        if kind == "any":
            return ANYTHING if climbs else None
        judges = any(map(_is_authors, chain))
        if kind not in _CONTAINERS:
            return ANYTHING if judges else None
        informed = any(_is_authors(node) and node["function"]["type"] == "with-info" for node in chain)
        judged = judges or _is_constrained(self._schemas, last)
        climbs = climbs or informed
        inner_climbs = climbs or judges
        exact = kind == "typed-dict"
        item = last.get("items_schema" if kind == "list" else "values_schema")
        if exact:
            inner: Callable[[], Spec | None] = lambda: AMBIGUOUS
        elif item is None:
            inner = lambda: ANYTHING if inner_climbs else None
        else:
            inner = lambda: self.make(item, inner_climbs)
        read = None if item is None or exact else Reader(item, self._schemas, self._config)
        if not judged and not climbs and not exact and (item is None or self._schemas.unwrap(item)["type"] == "any"):
            return None
        local = validator(schema, self._schemas, self._config) if (judged or exact) and not informed else None
        return ContainerSpec(read, inner, local, climbs, exact)

    def _union(self, schema: Schema, union: Schema, climbs: bool) -> ContainerSpec | None:
        choices = _choices(union)
        kinds = [self._schemas.unwrap(choice)["type"] for choice in choices]
        if all(kind in _LEAVES for kind in kinds):
            return None
        open_ones = [choice for choice, kind in zip(choices, kinds, strict=True) if kind not in _LEAVES]
        if len(open_ones) == 1 and not has_functions(self._schemas, schema):
            return cast("ContainerSpec | None", self.make(open_ones[0], climbs))
        return AMBIGUOUS


ANYTHING = ContainerSpec(climbs=True)
ANYTHING._inner = ANYTHING
AMBIGUOUS = ContainerSpec(climbs=True, exact=True)
AMBIGUOUS._inner = AMBIGUOUS

_specs: WeakValueDictionary[Any, ContainerSpec] = WeakValueDictionary()
