"""What happens to a model when it has been made: the containers in it become tracked, before anybody sees them."""

from __future__ import annotations

import weakref
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from .containers import TrackedDict, TrackedList
from .intake import LINKED
from .mutations import link_members
from .tracker import Node
from .values import ATOMS, SAFE

if TYPE_CHECKING:
    from .model import State

__all__ = ["settle"]

M = TypeVar("M", bound="State")


def settle(model: M) -> M:
    """Makes the members of a new model tracked. Does nothing to one that was settled before.

    Raises:
        StateError: a member cannot be part of a state.
    """
    if model._spec is not None:
        return model
    tracked = _simple(model)
    if tracked is None:
        link_members(model)
        _warn(model)
        tracked = [name for name, value in model._members() if isinstance(value, Node)]
    if tracked:
        # A container can be filled without being assigned; `exclude_unset` shall not leave it out then.
        model.__pydantic_fields_set__.update(tracked)
    return model


def _warn(model: State) -> None:
    fields = model._fields_of()
    for name, value in model._members():
        spec = fields.specs[name]
        if isinstance(value, BaseModel):
            fields.declared[name].warn(type(value))
        elif spec is not None and isinstance(value, (list, dict)):
            spec.warn(value.values() if isinstance(value, dict) else value)


def _is_safe(value: Any) -> bool:
    """Whether a value is JSON as it is, and needs no warning."""
    cls = type(value)
    if cls is int:
        return bool(-SAFE <= value <= SAFE)
    return cls in ATOMS or (cls is float and isfinite(value))


def _simple(model: State) -> list[str] | None:
    """The quick way for a model that holds JSON of one level, lists and dicts of atoms. `None`: it holds other things."""
    fields = model._fields_of()
    held = model.__dict__
    found: list[str] = []
    for name in fields.names:
        value: Any = held.get(name)
        if _is_safe(value):
            continue
        if type(value) is list:
            items: Any = value
        elif type(value) is dict and all(type(key) is str for key in value):
            items = value.values()
        else:
            return None
        if not all(map(_is_safe, items)):
            return None
        found.append(name)
    if len(found) > 1 and len({id(held[name]) for name in found}) < len(found):
        return None
    reference = weakref.ref(model) if found else None
    for name in found:
        value = held[name]
        node: Any
        if type(value) is list:
            node = TrackedList()
            list.extend(node, value)
        else:
            node = TrackedDict()
            dict.update(node, value)
        node._spec = fields.specs[name]
        node._parents = reference
        node._key = name
        held[name] = node
    model._spec = LINKED
    return found
