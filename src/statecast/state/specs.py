"""What may stand in the containers of a typed state, and how an edit inside one is judged.

A member that enters a `list[T]`, a `dict[str, T]` or a TypedDict is read as its type says, and nothing else is looked
at. Where the container has a constraint or a validator of its own, the container is validated with the edit applied.
Where something round it judges (a validator of the field or the model, a union that the container alone does not
decide), the whole field is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, cast
from weakref import WeakValueDictionary

from pydantic_core import SchemaValidator

from ..errors import StateError
from .nodes import MAPPINGS, SCALARS, Schema, Schemas, choices, is_authors_function, positions, type_key
from .parents import living_parents
from .positions import located
from .readers import Reader, is_read_as, validator

__all__ = ["Specs"]

_CONTAINERS = ("list", *MAPPINGS, "typed-dict")
_UNTRACKED = SCALARS | {"model", "dataclass", "tuple", "set", "frozenset", "named-tuple", "deque"}
"""Types whose values are never tracked containers."""


class Owner(Protocol):
    """A model that judges edits inside its fields."""

    def _judge(self, field: str, value: Any, exact: bool) -> None: ...


class ContainerSpec:
    """What may stand in one kind of container.

    Args:
        read: reads a member that enters; `None`: any JSON.
        inner: gives the spec of a container in it.
        local: validates the container itself, with an edit applied.
        climbs: what the container hangs in judges too, up to the field of a model.
        exact: for that, what was read must be what is stored, as no member was read alone.
    """

    __slots__ = ("__weakref__", "_climbs", "_exact", "_inner", "_local", "_read", "whole")

    def __init__(
        self,
        read: Reader | None = None,
        inner: Callable[[], ContainerSpec | None] | None = None,
        local: SchemaValidator | None = None,
        climbs: bool = False,
        exact: bool = False,
    ) -> None:
        self._read = read
        self._inner: Any = inner
        self._local = local
        self._climbs = climbs
        self._exact = exact
        self.whole: Callable[[Any, Any], None] | None = self._judge if climbs or local is not None else None

    @property
    def inner(self) -> ContainerSpec | None:
        # Made when it is asked for, as a type may hold itself.
        if callable(self._inner):
            self._inner = self._inner()
        return cast("ContainerSpec | None", self._inner)

    def at(self, key: Any) -> ContainerSpec | None:
        """The spec of a container that is the member `key`."""
        return self.inner

    def warn(self, members: Iterable[Any]) -> None:
        """Warns once if members that entered without being read one by one come back as something else."""
        if self._read is not None and self._read.classes is not None:
            for cls in set(map(type, members)):
                self._read.warn(cls)

    def item(self, value: Any, key: Any = None) -> Any:
        """What is stored for a member that enters."""
        return value if self._read is None else self._read(value, self.inner)

    def _judge(self, container: Any, candidate: Any) -> None:
        if self._local is not None:
            read = self._local.validate_python(candidate)
            if self._exact and not is_read_as(candidate, read):
                raise located(
                    StateError("this would be read back as something else: assign what the type says"), container
                )
        if self._climbs:
            for owner, field, value in _owners(container, candidate):
                owner._judge(field, value, self._exact)


class RecordSpec(ContainerSpec):
    """What may stand in a TypedDict: each key has its own type.

    Args:
        keys: the keys that are declared.
        readers: key -> how its value is read, where it can be read alone.
        inners: key -> gives the spec of a container that is its value.
        required: the keys that must be there.
        closed: there may be no other keys.
    """

    __slots__ = ("_closed", "_inners", "_keys", "_name", "_readers", "_required")

    def __init__(
        self,
        name: str,
        keys: frozenset[str],
        readers: Mapping[str, Reader],
        inners: Mapping[str, Callable[[], ContainerSpec | None]],
        required: frozenset[str],
        closed: bool,
        local: SchemaValidator | None,
        climbs: bool,
    ) -> None:
        super().__init__(local=local, climbs=climbs, exact=len(readers) < len(keys))
        self._name = name
        self._keys = keys
        self._readers = readers
        self._inners: dict[str, Any] = dict(inners)
        self._required = required
        self._closed = closed
        self.whole = self._judge

    def at(self, key: Any) -> ContainerSpec | None:
        inner = self._inners.get(key)
        if callable(inner):
            inner = self._inners[key] = inner()
        return cast("ContainerSpec | None", inner)

    def item(self, value: Any, key: Any = None) -> Any:
        reader = self._readers.get(key)
        return value if reader is None else reader(value, self.at(key))

    def _judge(self, container: Any, candidate: Any) -> None:
        if self._closed:
            for key in candidate.keys() - self._keys:
                unknown = StateError(f"{self._name} has no key {key!r}: the next run would not read it back")
                raise located(unknown, container, key)
        for key in self._required - candidate.keys():
            raise located(StateError(f"{self._name} cannot be without its key {key!r}"), container, key)
        super()._judge(container, candidate)


def _owners(container: Any, candidate: Any) -> Iterator[tuple[Owner, str, Any]]:
    """The models in whose fields a container hangs, and the field's value as it would be."""
    for parent, count, hint in living_parents(container):
        for key in parent._places(container, hint, count):
            if parent._names is not None:
                yield cast(Owner, parent), key, candidate
            else:
                outer: Any = list(parent) if isinstance(parent, list) else dict(parent._raw())
                outer[key] = candidate
                yield from _owners(parent, outer)


ANYTHING = ContainerSpec(climbs=True)
"""Any JSON, in a field that is judged."""
ANYTHING._inner = ANYTHING
AMBIGUOUS = ContainerSpec(climbs=True, exact=True)
"""In a union of which the container alone does not show the member."""
AMBIGUOUS._inner = AMBIGUOUS

_made: WeakValueDictionary[Any, ContainerSpec] = WeakValueDictionary()


class Specs:
    """Makes the specs for the fields of one model, or for a type of state. Equal item types have the same spec.

    Args:
        config: the core configuration of the model.
    """

    def __init__(self, schemas: Schemas, config: Schema) -> None:
        self._schemas = schemas
        self._config = config
        self._setting = repr(sorted((key, value) for key, value in config.items() if key != "title"))

    def spec(self, schema: Schema, climbs: bool = False) -> ContainerSpec | None:
        """The spec of a container that is a value of this type, `None` where any JSON may stand in it.

        Args:
            climbs: what the container hangs in judges too.
        """
        while (schema := self._schemas.follow(schema))["type"] in ("default", "nullable"):
            # They say nothing of a container that is there: with and without them it is of the same type.
            schema = schema["schema"]
        chain = list(self._schemas.chain(schema))
        if any(node["type"] == "model" for node in chain):
            return None
        key = (type_key(self._schemas, schema), self._setting, climbs)
        spec = _made.get(key)
        if spec is None:
            spec = self._make(schema, chain, climbs)
            if spec is not None:
                _made[key] = spec
        return spec

    def _make(self, schema: Schema, chain: list[Schema], climbs: bool) -> ContainerSpec | None:
        last = chain[-1]
        kind = last["type"]
        functions = [node for node in chain if is_authors_function(node)]
        if kind in ("union", "tagged-union"):
            return self._union(last, climbs or bool(functions))
        if kind == "any":
            return ANYTHING if climbs or functions else None
        if kind in _UNTRACKED or positions(last) is not None:
            return None
        # A function that is told of the other fields can only be called by the model.
        informed = self._schemas.has_functions(schema, informed=True)
        if kind not in _CONTAINERS:
            if informed:
                return ANYTHING
            return ContainerSpec(None, lambda: ANYTHING, validator(schema, self._schemas, self._config), climbs)
        climbs = climbs or informed
        within = climbs or bool(functions)
        judges = not informed and (functions or self._is_constrained(last))
        local = validator(schema, self._schemas, self._config) if judges else None
        if kind == "typed-dict":
            return self._record(last, local, climbs, within)
        item = last.get("items_schema" if kind == "list" else "values_schema")
        if item is None or self._schemas.follow(item)["type"] == "any":
            if local is None and not climbs:
                return None
            return ContainerSpec(None, (lambda: ANYTHING) if within else None, local, climbs)
        if self._schemas.has_functions(item, informed=True):
            return AMBIGUOUS
        reader = Reader(item, self._schemas, self._config)
        return ContainerSpec(reader, lambda: self.spec(item, within), local, climbs)

    def _record(self, node: Schema, local: SchemaValidator | None, climbs: bool, within: bool) -> RecordSpec:
        config = node.get("config", self._config)
        fields = node["fields"]

        def later(field: Schema) -> Callable[[], ContainerSpec | None]:
            return lambda: Specs(self._schemas, config).spec(field["schema"], within)

        # Nor can one in a TypedDict, which is told of its other keys, be called for one key.
        alone = [n for n, field in fields.items() if not self._schemas.has_functions(field["schema"], informed=True)]
        if len(alone) < len(fields) and not climbs:
            local = validator(node, self._schemas, config)
        return RecordSpec(
            name=getattr(node.get("cls"), "__name__", "the TypedDict"),
            keys=frozenset(fields),
            readers={name: Reader(fields[name]["schema"], self._schemas, config) for name in alone},
            inners={name: later(field) for name, field in fields.items()},
            required=frozenset(n for n, field in fields.items() if field.get("required", node.get("total", True))),
            closed=node.get("extra_behavior", config.get("extra_fields_behavior", "ignore")) != "allow",
            local=local,
            climbs=climbs,
        )

    def _union(self, union: Schema, climbs: bool) -> ContainerSpec | None:
        others = [one for one in choices(union) if self._schemas.unwrap(one)["type"] not in _UNTRACKED]
        if not others:
            return None
        if len(others) == 1 and not climbs and not self._schemas.has_functions(union):
            return self.spec(others[0])
        return AMBIGUOUS

    def _is_constrained(self, node: Schema) -> bool:
        if "min_length" in node or "max_length" in node:
            return True
        keys = self._schemas.unwrap(node.get("keys_schema", {"type": "any"}))
        return keys["type"] not in ("any", "str") or not keys.keys() <= {"type", "metadata", "strict", "ref"}
