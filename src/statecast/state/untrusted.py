"""What a client is not believed on, taken out of its JSON.

A `Plan` is made once for a type; it walks only where the type hides something, and copies only what it changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

from pydantic import ValidationError
from pydantic_core import CoreSchema, SchemaValidator, core_schema, to_json

from .members import Member, fields_node, members
from .nodes import MAPPINGS, Schema, Schemas, children, choices, positions

__all__ = ["Plan", "plan"]


class Plan(Protocol):
    def strip(self, data: Any) -> Any:
        """`data` without the members that the client may not set; the same object if there are none."""

    def inner(self) -> list[Plan]: ...


class ObjectPlan:
    """A model, a dataclass or a TypedDict."""

    def __init__(self) -> None:
        self.hidden: frozenset[str] = frozenset()
        self.members: dict[str, Plan] = {}
        self.extras: Plan | None = None
        self.owned: list[Member] = []
        self.nested: list[tuple[Member, Plan]] = []

    def inner(self) -> list[Plan]:
        return [*self.members.values(), *([self.extras] if self.extras else [])]

    def strip(self, data: Any) -> Any:
        if type(data) is not dict:
            return data
        changed: dict[str, Any] = {}
        for key in data.keys() & self.members.keys() if self.extras is None else data.keys():
            inner = self.members.get(key, self.extras)
            if inner is not None and (value := inner.strip(data[key])) is not data[key]:
                changed[key] = value
        if changed or not self.hidden.isdisjoint(data):
            return {key: changed.get(key, value) for key, value in data.items() if key not in self.hidden}
        return data


class ItemsPlan:
    """A list, set or tuple: one plan for every item, or one for each position."""

    def __init__(self) -> None:
        self.positions: list[Plan | None] = []
        self.rest: Plan | None = None

    def inner(self) -> list[Plan]:
        return [item for item in (*self.positions, self.rest) if item]

    def strip(self, data: Any) -> Any:
        if type(data) is not list:
            return data
        plans = self.positions[: len(data)]
        plans += [self.rest] * (len(data) - len(plans))
        items = [item if plan is None else plan.strip(item) for item, plan in zip(data, plans, strict=True)]
        return data if all(new is old for new, old in zip(items, data, strict=True)) else items


class NamedPlan(ItemsPlan):
    """A NamedTuple, which is read from an array, and from an object."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def strip(self, data: Any) -> Any:
        if type(data) is not dict:
            return super().strip(data)
        plans = {name: plan for name, plan in zip(self.names, self.positions, strict=True) if plan is not None}
        result = {key: plans[key].strip(value) if key in plans else value for key, value in data.items()}
        return data if all(result[key] is value for key, value in data.items()) else result


class UnknownPlan:
    """Something of which it is not known where its parts stand in the JSON."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.parts: list[Plan] = []

    def inner(self) -> list[Plan]:
        return self.parts

    def strip(self, data: Any) -> Any:
        raise TypeError(f"what a client sends inside a {self.kind} cannot be looked through")


class ValuesPlan:
    """A dict with one type of value."""

    def __init__(self) -> None:
        self.value: Plan | None = None

    def inner(self) -> list[Plan]:
        return [self.value] if self.value else []

    def strip(self, data: Any) -> Any:
        if type(data) is not dict or self.value is None:
            return data
        result = {key: self.value.strip(value) for key, value in data.items()}
        return data if all(result[key] is value for key, value in data.items()) else result


class TaggedPlan:
    """A union with a discriminator."""

    def __init__(self, discriminator: Any) -> None:
        self._discriminator = discriminator
        self.choices: dict[Any, Plan] = {}

    def inner(self) -> list[Plan]:
        return list(self.choices.values())

    def strip(self, data: Any) -> Any:
        try:
            tag = self._discriminator(data) if callable(self._discriminator) else self._look_up(data)
            chosen = self.choices.get(tag)
        except Exception:  # an author's discriminator, or a tag that cannot be hashed: validation will say so
            chosen = None
        return data if chosen is None else chosen.strip(data)

    def _look_up(self, data: Any) -> Any:
        discriminator = self._discriminator
        if isinstance(discriminator, str):
            return data.get(discriminator)
        for path in discriminator if isinstance(discriminator[0], list) else [discriminator]:
            value = data
            try:
                for step in path:
                    value = value[step]
            except (KeyError, IndexError, TypeError):
                continue
            return value
        return None


class _Chosen(Exception):
    def __init__(self, index: int) -> None:
        self.index = index


class UnionPlan:
    """A union without a discriminator: the member is the one that validation will choose for what is left."""

    def __init__(self, union: Schema, schemas: Schemas) -> None:
        self.choices: list[Plan | None] = []
        self._union = union
        self._schemas = schemas
        self._validator: SchemaValidator | None = None

    def inner(self) -> list[Plan]:
        return [choice for choice in self.choices if choice]

    def strip(self, data: Any) -> Any:
        if type(data) is not dict and type(data) is not list:
            return data
        candidates = [data if choice is None else choice.strip(data) for choice in self.choices]
        if all(candidate is data for candidate in candidates):
            return data
        for index, candidate in enumerate(candidates):
            if self._choice(candidate) == index:
                return candidate
        # It is not valid as it is, though `load_state` may repair it: what any member hides is not believed.
        for choice in self.inner():
            data = choice.strip(data)
        return data

    def _choice(self, data: Any) -> int | None:
        if self._validator is None:
            marked = [
                core_schema.no_info_after_validator_function(_marking(index), cast(CoreSchema, choice))
                for index, choice in enumerate(choices(self._union))
            ]
            union = {**self._union, "choices": marked}
            union.pop("ref", None)
            self._validator = SchemaValidator(
                core_schema.definitions_schema(
                    cast(CoreSchema, union), cast("list[CoreSchema]", self._schemas.definitions)
                )
            )
        try:
            chosen = self._validator.validate_json(to_json(data))
        except (ValueError, ValidationError):
            return None
        return chosen.index if isinstance(chosen, _Chosen) else None


def _marking(index: int) -> Callable[[Any], Any]:
    return lambda value: _Chosen(index)


def plan(schemas: Schemas) -> Plan | None:
    """The plan for a type; `None` if it hides nothing."""
    return _pruned(_Maker(schemas).make(schemas.root))


class _Maker:
    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._made: dict[int, Plan] = {}

    def make(self, schema: Schema) -> Plan:
        schema = self._schemas.unwrap(schema)
        if id(schema) not in self._made:
            maker = _MAKERS.get(schema["type"])
            if maker is None and positions(schema) is not None:
                maker = _Maker.named_tuple
            (maker or _Maker.unknown)(self, schema)
        return self._made[id(schema)]

    def object(self, schema: Schema) -> None:
        plan = self._made[id(schema)] = ObjectPlan()
        hidden: set[str] = set()
        believed: set[str] = set()
        for member in members(self._schemas, schema):
            if not member.read:
                hidden |= {member.name, member.wire, *member.reads}
                if member.read_only and member.written:
                    plan.owned.append(member)
                continue
            believed |= member.reads
            if member.schema is not None:
                inner = self.make(member.schema)
                plan.members.update(dict.fromkeys(member.reads, inner))
                plan.nested.append((member, inner))
        hidden |= set(getattr(schema.get("cls"), "__private_attributes__", ()))
        plan.hidden = frozenset(hidden - believed)
        node = fields_node(self._schemas, schema)
        if node is not None and "extras_schema" in node:
            plan.extras = self.make(node["extras_schema"])

    def items(self, schema: Schema) -> None:
        plan = self._made[id(schema)] = ItemsPlan()
        items = schema.get("items_schema")
        if isinstance(items, dict):
            plan.rest = self.make(items)
        elif items is not None:
            variadic = schema.get("variadic_item_index")
            plans: list[Plan | None] = [self.make(item) for item in items]
            plan.positions = plans[:variadic]
            if variadic is not None:
                plan.rest = plans[variadic]

    def named_tuple(self, schema: Schema) -> None:
        plan = self._made[id(schema)] = NamedPlan()
        fields = positions(schema) or []
        plan.names = [field["name"] for field in fields]
        plan.positions = [self.make(field["schema"]) for field in fields]

    def unknown(self, schema: Schema) -> None:
        plan = self._made[id(schema)] = UnknownPlan(schema["type"])
        plan.parts = [inner for inner in map(self.make, children(schema)) if inner is not None]

    def values(self, schema: Schema) -> None:
        plan = self._made[id(schema)] = ValuesPlan()
        if "values_schema" in schema:
            plan.value = self.make(schema["values_schema"])

    def tagged(self, schema: Schema) -> None:
        plan = self._made[id(schema)] = TaggedPlan(schema["discriminator"])
        for tag, choice in schema["choices"].items():
            inner = self.make(choice)
            if inner is not None:
                plan.choices[tag] = inner

    def union(self, schema: Schema) -> None:
        plan = self._made[id(schema)] = UnionPlan(schema, self._schemas)
        plan.choices = [self.make(choice) for choice in choices(schema)]


_MAKERS: dict[str, Callable[[_Maker, Schema], None]] = {
    "model": _Maker.object,
    "dataclass": _Maker.object,
    "typed-dict": _Maker.object,
    "list": _Maker.items,
    "set": _Maker.items,
    "frozenset": _Maker.items,
    "deque": _Maker.items,
    "tuple": _Maker.items,
    **dict.fromkeys(MAPPINGS, _Maker.values),
    "union": _Maker.union,
    "tagged-union": _Maker.tagged,
}


def _pruned(root: Plan | None) -> Plan | None:
    """The plan without what never strips anything, so that most data is never walked."""
    if root is None:
        return None
    reached: dict[int, Plan] = {}
    queue = [root]
    while queue:
        plan = queue.pop()
        if id(plan) not in reached:
            reached[id(plan)] = plan
            queue += plan.inner()
    strips = {key for key, plan in reached.items() if isinstance(plan, ObjectPlan) and plan.hidden}
    grown = -1
    while grown != len(strips):
        grown = len(strips)
        strips |= {key for key, plan in reached.items() if any(id(inner) in strips for inner in plan.inner())}

    def keep(plan: Plan | None) -> Plan | None:
        return plan if id(plan) in strips else None

    for plan in reached.values():
        if isinstance(plan, UnknownPlan) and id(plan) in strips:
            raise TypeError(
                f"what a client sends inside a {plan.kind} cannot be looked through for what it may not set"
            )
        if isinstance(plan, ObjectPlan):
            plan.members = {key: inner for key, inner in plan.members.items() if id(inner) in strips}
            plan.nested = [(member, inner) for member, inner in plan.nested if id(inner) in strips]
            plan.extras = keep(plan.extras)
        elif isinstance(plan, ItemsPlan):
            plan.positions, plan.rest = [keep(item) for item in plan.positions], keep(plan.rest)
        elif isinstance(plan, ValuesPlan):
            plan.value = keep(plan.value)
        elif isinstance(plan, TaggedPlan):
            plan.choices = {tag: inner for tag, inner in plan.choices.items() if id(inner) in strips}
        elif isinstance(plan, UnionPlan):
            plan.choices = [keep(choice) for choice in plan.choices]
    return keep(root)
