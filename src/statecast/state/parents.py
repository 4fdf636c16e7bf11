"""Where a child hangs: its parents, by weak references, so that a container that was dropped is neither kept nor looked at.

The two forms of the `_parents` slot are described in tracker.py.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .opaque import Opaque
    from .tracker import Node

__all__ = ["attach", "detach", "living_parents", "simplify"]


def attach(child: Node | Opaque, parent: Node, key: Any) -> None:
    """Notes that `child` hangs in `parent` once more, at `key`."""
    parents = child._parents
    if type(parents) is dict and len(parents) >= 8 and len(parents) & (len(parents) - 1) == 0:
        # At each doubling, so that those that are gone never pile up.
        simplify(child)
        parents = child._parents
    if type(parents) is dict:
        link = parents.get(id(parent))
        if link is None or link[0]() is not parent:
            parents[id(parent)] = [weakref.ref(parent), 1, key]
        else:
            link[1] += 1
            link[2] = key
        return
    known = None if parents is None else parents()
    if known is None:
        child._parents = weakref.ref(parent)
        child._key = key
    elif known is parent:
        child._parents = {id(parent): [parents, 2, key]}
    else:
        child._parents = {id(known): [parents, 1, child._key], id(parent): [weakref.ref(parent), 1, key]}


def simplify(child: Node | Opaque) -> None:
    """Forgets the parents that are gone, as lists that gave way to others: one weak reference is enough for one parent."""
    living = list(living_parents(child))
    if len(living) == 1 and living[0][1] == 1:
        child._parents = weakref.ref(living[0][0])
        child._key = living[0][2]
    else:
        child._parents = {id(parent): [weakref.ref(parent), count, hint] for parent, count, hint in living} or None


def detach(child: Node | Opaque, parent: Node) -> None:
    """Notes that `child` hangs in `parent` once less."""
    parents = child._parents
    if type(parents) is not dict:
        if parents is not None and parents() is parent:
            child._parents = child._key = None
        return
    link = parents.get(id(parent))
    if link is None or link[0]() is not parent:
        return
    link[1] -= 1
    if not link[1]:
        del parents[id(parent)]
    if len(parents) == 1:
        ((reference, count, hint),) = parents.values()
        if count == 1:
            child._parents = reference
            child._key = hint
    elif not parents:
        child._parents = child._key = None


def living_parents(child: Node | Opaque) -> Iterator[tuple[Node, int, Any]]:
    """The parents in which `child` hangs: `(parent, how often, hint)`."""
    parents = child._parents
    if parents is None:
        return
    if type(parents) is not dict:
        parent = parents()
        if parent is not None:
            yield parent, 1, child._key
        return
    for reference, count, hint in list(parents.values()):
        parent = reference()
        if parent is not None:
            yield parent, count, hint
