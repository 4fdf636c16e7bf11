"""Brings a tracked value up to date with another one in place: whoever holds it, and what of it is not written, stays."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from ..errors import StateError
from .containers import TrackedDict, TrackedList
from .document import Document
from .model import State
from .tracker import MISSING
from .values import jsonable, same

__all__ = ["update"]


class _Different(Exception):
    pass


def update(document: Document[Any], value: Any) -> None:
    """Makes the value of a document read like this one, a free-standing value of its type.

    Models and containers that correspond stay the objects that they are, with their excluded fields and private attributes.
    Where that does not work, as validators refuse what is between the two, the whole value is replaced.

    Raises:
        StateError: the value cannot be a state of this type.
    """
    wanted = jsonable(value)
    try:
        with document.batch():
            merged = _merged(document.value, value)
            if merged is not document.value:
                document.value = merged
            # One object at two places cannot become two that differ.
            if not same(jsonable(document.value), wanted):
                raise _Different
    except (StateError, ValidationError, _Different):
        document.value = value


def _merged(old: Any, new: Any) -> Any:
    """What stands in the place of `old`: itself, brought up to date, or `new`."""
    if isinstance(old, State) and type(new) is type(old):
        _merge_fields(old, new)
        return old
    if isinstance(old, TrackedList) and isinstance(new, list):
        _merge_items(old, new)
        return old
    if isinstance(old, TrackedDict) and isinstance(new, dict):
        _merge_members(old, new)
        return old
    return old if same(jsonable(old), jsonable(new)) else new


def _merge_fields(old: State, new: State) -> None:
    fields = old._fields_of()
    for name in fields.names:
        before = getattr(old, name)
        after = _merged(before, getattr(new, name))
        if after is not before:
            setattr(old, name, after)
    for name in fields.derived.keys() & type(old).model_fields.keys():
        setattr(old, name, getattr(new, name))


def _merge_members(old: TrackedDict, new: dict[str, Any]) -> None:
    for key in [key for key in old if key not in new]:
        del old[key]
    for key, value in new.items():
        before = old.get(key, MISSING)
        after = value if before is MISSING else _merged(before, value)
        if after is not before:
            old[key] = after


def _merge_items(old: TrackedList, new: list[Any]) -> None:
    ones, twos = [jsonable(item) for item in old], [jsonable(item) for item in new]
    short = min(len(ones), len(twos))
    first = next((at for at in range(short) if not same(ones[at], twos[at])), short)
    rest = short - first
    last = next((at for at in range(rest) if not same(ones[-1 - at], twos[-1 - at])), rest)
    if len(ones) != len(twos):
        old[first : len(ones) - last] = new[first : len(twos) - last]
        return
    for at in range(first, len(ones) - last):
        after = _merged(old[at], new[at])
        if after is not old[at]:
            old[at] = after
