"""What happens to a model when it has been made: the containers in it become tracked, before anybody sees them."""

from __future__ import annotations

import weakref
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

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
        tracked = [name for name, value in model._members() if isinstance(value, Node)]
    if tracked:
        # A container can be filled without being assigned; `exclude_unset` shall not leave it out then.
        model.__pydantic_fields_set__.update(tracked)
    return model


def _simple(model: State) -> list[str] | None:
    """The quick way for a model that holds JSON of one level: new lists and dicts of atoms. `None`: it holds other things."""
    fields = model._fields_of()
    held = model.__dict__
    found: list[str] = []
    for name in fields.names:
        value = held.get(name)
        cls = type(value)
        if cls in ATOMS:
            if cls is int and not -SAFE <= value <= SAFE:
                return None
        elif cls is list or cls is dict:
            for item in value if cls is list else value.values():
                if type(item) not in ATOMS or (type(item) is int and not -SAFE <= item <= SAFE):
                    return None
            if cls is dict and not all(type(key) is str for key in value):
                return None
            found.append(name)
        elif cls is not float or not isfinite(value):
            return None
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
