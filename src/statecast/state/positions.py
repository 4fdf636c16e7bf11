"""Where nodes stand: how deep, below what, at which pointer. Under the lock, or for the text of an error only."""

from __future__ import annotations

from typing import Any

from ..errors import StateError
from . import pointer
from .opaque import Opaque
from .parents import living_parents
from .tracker import Node, Tracker, tracker_of

__all__ = ["ancestors", "connected", "depth_of", "find", "hangs_in", "height_of", "locate", "located"]


def depth_of(node: Node, known: dict[int, int] | None = None) -> int:
    """How many containers stand inside each other down to this node, itself included, on its longest way."""
    above = 1
    while type(node._parents) is not dict:
        parent = None if node._parents is None else node._parents()
        if parent is None:
            return above
        node = parent
        above += 1
    known = {} if known is None else known
    depth = known.get(id(node))
    if depth is None:
        depths = [depth_of(parent, known) for parent, _, _ in living_parents(node)]
        depth = known[id(node)] = max(depths, default=0)
    return depth + above


def height_of(node: Node, known: dict[int, int] | None = None) -> int:
    """How many containers stand inside each other from this node down, itself included."""
    known = {} if known is None else known
    height = known.get(id(node))
    if height is None:
        inside = [height_of(member, known) for _, member in node._members() if isinstance(member, Node)]
        height = known[id(node)] = 1 + max(inside, default=0)
    return height


def ancestors(node: Node | Opaque) -> set[int]:
    """The ids of the node and of everything above it."""
    seen = {id(node)}
    todo: list[Node | Opaque] = [node]
    while todo:
        for parent, _, _ in living_parents(todo.pop()):
            if id(parent) not in seen:
                seen.add(id(parent))
                todo.append(parent)
    return seen


def connected(node: Node, tracker: Tracker) -> list[Node] | None:
    """The node and all that is above or below it, and above or below that, and so on, as far as this tracker reaches.

    `None` if the root of the living document is among it.
    """
    seen = {id(node): node}
    todo = [node]
    while todo:
        one = todo.pop()
        if tracker.is_root(one):
            return None
        near = [member for _, member in one._members() if isinstance(member, Node)]
        # Parents are looked at first: where a document holds the node, they lead to its root.
        near += [parent for parent, _, _ in living_parents(one)]
        for other in near:
            if id(other) not in seen and tracker_of(other) is tracker:
                seen[id(other)] = other
                todo.append(other)
    return list(seen.values())


def locate(node: Node | Opaque) -> str:
    """The pointer of a node in its document, one of them if there are several."""
    tokens: list[str | int] = []
    while not (isinstance(node, Node) and node._tracker.is_root(node)):
        found = next(living_parents(node), None)
        if found is None:
            break
        parent, count, hint = found
        places = parent._places(node.value if isinstance(node, Opaque) else node, hint, count)
        key = places[0] if places else hint
        tokens.append(parent._names.get(key, key) if parent._names is not None else key)
        node = parent
    return pointer.join(*reversed(tokens))


def located(error: StateError, node: Node, key: Any = None) -> StateError:
    """The error of a value that was to go to this member of the node, or of the node itself, with the place in the document."""
    where = locate(node)
    if key is not None:
        where += pointer.join(node._names.get(key, key) if node._names is not None else key)
    return StateError(error.reason, where + error.pointer)


def hangs_in(child: Node | Opaque, parent: Node) -> bool:
    """Whether `child` is noted to hang in this parent."""
    return any(known is parent for known, _, _ in living_parents(child))


def find(value: Any, token: str) -> Any:
    """The member of a stored value that a token of a pointer names. Raises `LookupError`."""
    if isinstance(value, list):
        if not token.isdecimal():
            raise KeyError(token)
        return value[int(token)]
    if not isinstance(value, Node):
        raise KeyError(token)
    raw = value._raw()
    if value._names is None:
        return raw[token]
    for key, name in value._names.items():
        if name == token:
            return raw[key]
    raise KeyError(token)
