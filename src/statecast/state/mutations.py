"""Edits of nodes with named members: dicts and models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .intake import Intake
from .positions import hangs_in
from .tracker import MISSING, PLAIN, Node, Spec, Tracker, acquire, tracker_of
from .values import SAFE

__all__ = ["edit", "link_members", "put", "readopt", "touched"]

_get, _set = dict.get, dict.__setitem__


def edit(
    node: Node,
    changes: Mapping[str, Any],
    specs: Mapping[str, Spec | None] | None = None,
    undo: tuple[Any, ...] | None = None,
) -> None:
    """Sets members of a node that has named ones, all or none; `MISSING` as a value deletes one.

    Args:
        node: a dict, or a model.
        changes: key or field -> value. A value that is there already, the same object, is no change.
        specs: key or field -> the spec for a container that is built for it.
        undo: `(function, *arguments)` that is called too when a batch is undone.

    Raises:
        StateError: a value cannot be part of the state. Nothing was changed then.
    """
    intake = Intake(node, tracker_of(node))
    names: Mapping[str, str] = node._names or {}
    taken = {}
    for key, value in changes.items():
        if value is MISSING or node._raw().get(key, MISSING) is value:
            taken[key] = value
        else:
            taken[key] = intake.member(value, names.get(key, key), specs.get(key) if specs else None)
    tracker = acquire(node)
    try:
        intake.admit(tracker)
        if undo is not None and tracker.log is not None:
            tracker.log.append(undo)
        for key, value in taken.items():
            put(tracker, node, key, value)
    finally:
        tracker.release()


def link_members(model: Node) -> None:
    """Makes the members of a free-standing model tracked: one that is read before the model enters a state is the one in it.

    Raises:
        StateError: a member cannot be part of a state.
    """
    intake = Intake(None, tracker_of(model))
    intake._take_model(model)
    tracker = acquire(model)
    try:
        intake.admit(tracker)
    finally:
        tracker.release()


def touched(node: Node) -> None:
    """Notes that what a model derives may have changed, without any member having changed."""
    tracker = acquire(node)
    try:
        if node._old is None:
            tracker.begin(node, {})
    finally:
        tracker.release()


def put(tracker: Tracker, node: Node, key: str, value: Any, *, log: bool = True) -> None:
    """One change of a named member, under the lock: noted, done, linked. `MISSING` deletes it."""
    raw = node._raw()
    old = _get(raw, key, MISSING)
    if old is value:
        return
    record = node._old
    if record is None:
        tracker.begin(node, {key: old})
    elif key not in record:
        record[key] = old
    if tracker.log is not None and log:
        order = None
        if value is MISSING and next(reversed(raw)) != key and tracker.first_deletion(node):
            order = list(raw)
        tracker.log.append((_put_back, tracker, node, key, old, order))
    kind = type(value)
    if kind in PLAIN:
        if kind is int and not -SAFE <= value <= SAFE:
            tracker.large = node, key
        _set(raw, key, value)
    elif value is MISSING:
        dict.__delitem__(raw, key)
    else:
        _set(raw, key, value)
        tracker.link(value, node, key)
    if type(old) not in PLAIN:
        tracker.unlink(old, node)


def _put_back(tracker: Tracker, node: Node, key: str, old: Any, order: list[str] | None) -> None:
    put(tracker, node, key, old, log=False)
    if order is not None:
        raw = node._raw()
        members = {key: dict.__getitem__(raw, key) for key in order}
        dict.clear(raw)
        dict.update(raw, members)


def readopt(node: Node) -> None:
    """Something may have written past the methods of this node, or of nodes in it: takes over what they hold now.

    Raises:
        StateError: it is not JSON.
    """
    todo = [node]
    while todo:
        one = todo.pop()
        for key, member in list(one._members()):
            if type(member) in PLAIN:
                continue
            intake = Intake(one, tracker_of(one))
            taken = intake.member(member, key, one._spec.at(key) if one._spec is not None else None)
            tracker = acquire(one)
            try:
                intake.admit(tracker)
                if isinstance(one, list):
                    list.__setitem__(one, key, taken)
                else:
                    dict.__setitem__(one._raw(), key, taken)
                child = taken if isinstance(taken, Node) else tracker.opaque.get(id(taken))
                if child is not None and not hangs_in(child, one):
                    tracker.link(taken, one, key)
            finally:
                tracker.release()
            if isinstance(taken, Node):
                todo.append(taken)
