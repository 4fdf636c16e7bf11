"""What comes into a state: plain containers become tracked, what is not JSON is refused, and only then anything changes."""

from __future__ import annotations

import threading
import weakref
from math import isfinite
from typing import Any

from ..errors import StateError
from . import pointer
from .opaque import Opaque, text_of
from .parents import attach, living_parents
from .positions import ancestors, connected, depth_of, height_of, locate
from .tracker import LOOSE, Node, Spec, Tracker, acquire, tracker_of
from .values import (
    ATOMS,
    DEPTH,
    IMMUTABLE,
    MAPPING,
    NODE,
    NUMBER,
    OPAQUE,
    REFUSED,
    SAFE,
    SEQUENCE,
    TUPLE,
    immutable,
    kind_of,
    refusal,
)

__all__ = ["CONTAINERS", "LINKED", "Intake"]

CONTAINERS: dict[type, type[Any]] = {}
"""`dict` and `list` -> the tracked class that stands for it."""

PLAIN_KINDS = (MAPPING, SEQUENCE)
FIXED_KINDS = (IMMUTABLE, TUPLE)
TOO_DEEP = f"nested deeper than {DEPTH} levels"
MOVING = threading.Lock()
"""Held while nodes change their tracker, one after the other: nobody else may take them for parts of either meanwhile."""
ELSEWHERE = "this belongs to another document: assign a copy.deepcopy of it"
IN_ITSELF = "a container cannot be inside itself"


class Intake:
    """Prepares the values of one edit of `node`, outside the lock.

    Args:
        node: the node into which the values go, `None` for the root of a document.
        tracker: the tracker that will have them.
    """

    __slots__ = (
        *("_deepest", "_existing", "_foreign", "_fresh", "_known", "_links", "_models", "_open", "_path"),
        *("height", "node", "tracker"),
    )

    def __init__(self, node: Node | None, tracker: Tracker) -> None:
        self.node = node
        self.tracker = tracker
        self.height = 0
        self._path: list[Any] = []
        self._deepest: tuple[Any, ...] = ()
        self._open: list[int] = []
        # One plain object met twice becomes one tracked container. The object is kept, as its id must stay its own.
        self._known: dict[int, tuple[Any, Node]] = {}
        self._fresh: list[Node] = []
        self._foreign: dict[int, Opaque] = {}
        self._models: list[Node] = []
        self._existing: list[tuple[Node, tuple[Any, ...]]] = []
        # What hangs in fresh nodes but is shared already, or opaque: linked under the lock only.
        self._links: list[tuple[Any, Node, Any]] = []

    def member(self, value: Any, key: Any, spec: Spec | None = None) -> Any:
        """What is stored for a value that goes to `key` of the node. Raises `StateError`."""
        cls = type(value)
        if cls in ATOMS or (cls is float and isfinite(value)):
            if cls is int and not -SAFE <= value <= SAFE:
                self.tracker.large = self.node, key
            return value
        self._path.append(key)
        value = self._take(value, spec)
        self._path.pop()
        return value

    def root(self, value: Any, spec: Spec | None = None) -> Any:
        """What is stored for the value of a document. Raises `StateError`."""
        return self._take(value, spec)

    def admit(self, tracker: Tracker) -> None:
        """The last checks, under the lock. Raises `StateError`; if not, everything is ready to be linked to the node."""
        if tracker is not self.tracker:
            # The node entered a document in another thread meanwhile.
            self._change_tracker(tracker)
        if self.height or self._existing:
            depth = 0 if self.node is None else depth_of(self.node)
            if depth + self.height > DEPTH:
                self._path = list(self._deepest)
                raise self._error(TOO_DEEP)
            if self._existing:
                self._check_existing(depth)
        if tracker.active:
            for key, entry in self._foreign.items():
                if key not in tracker.opaque:
                    tracker.opaque[key] = entry
                    tracker.entered.append(entry)
            for model in self._models:
                # Its derived members must be asked for before it can be written.
                if model._old is None:
                    tracker.begin(model, {})
                if model._volatile:
                    tracker.volatile[id(model)] = weakref.ref(model)
        for value, parent, key in self._links:
            tracker.link(value, parent, key)

    def _check_existing(self, depth: int) -> None:
        above = set() if self.node is None else ancestors(self.node)
        heights: dict[int, int] = {}
        depths: dict[int, int] = {}
        for node, path in self._existing:
            self._path = list(path)
            if node._tracker is not self.tracker:
                # Another thread put it into another document since it was prepared.
                raise self._error(ELSEWHERE)
            if id(node) in above:
                raise self._error(IN_ITSELF)
            level = depth + len(path) + (self.node is None)
            for parent, _, _ in living_parents(node):
                if id(parent) not in depths:
                    depths[id(parent)] = depth_of(parent)
                if depths[id(parent)] + 1 >= level:
                    # It stands as deep as that already. So a list of all the items of another one is not looked into.
                    break
            else:
                if level + height_of(node, heights) - 1 > DEPTH:
                    raise self._error(TOO_DEEP)

    def _take(self, value: Any, spec: Spec | None) -> Any:
        cls = type(value)
        if cls in ATOMS:
            return value
        kind = kind_of(cls)
        if kind == NUMBER:
            if not isfinite(value):
                raise self._error(f"{value!r} is not JSON")
            return value
        if kind == NODE:
            return self._take_node(value, spec)
        if kind in PLAIN_KINDS:
            return self._take_container(value, kind, spec)
        if kind in FIXED_KINDS:
            try:
                immutable(value)
            except StateError as error:
                if kind == IMMUTABLE:
                    raise self._error(error.reason) from error.__cause__
            else:
                return value
        if kind == REFUSED:
            raise self._error(refusal(value))
        self._take_foreign(value)
        return value

    def _take_container(self, value: Any, kind: int, spec: Spec | None) -> Any:
        known = self._known.get(id(value))
        if known is not None and known[1]._spec is spec:
            return known[1]
        depth = len(self._path)
        if id(value) in self._open:
            raise self._error(IN_ITSELF)
        if depth > DEPTH:
            raise self._error(TOO_DEEP)
        if self.node is None:
            depth += 1
        if depth > self.height:
            self.height = depth
            self._deepest = tuple(self._path)
        self._open.append(id(value))
        node: Any
        members: Any
        if kind == MAPPING:
            container: Any = CONTAINERS[dict]
            members = _named(value, self)
            pairs: Any = members.items()
        else:
            container = CONTAINERS[list]
            members = list(value)
            pairs = enumerate(members)
        node = container.__new__(container)
        node._tracker = self.tracker
        node._spec = spec
        self._fresh.append(node)
        reference = None
        for key, member in pairs:
            known_type = type(member)
            if known_type in ATOMS:
                if known_type is int and not -SAFE <= member <= SAFE:
                    self.tracker.large = node, key
            else:
                if reference is None:
                    reference = weakref.ref(node)
                inner = spec and (spec.at(key) if kind == MAPPING else spec.inner)
                members[key] = self._inside(member, node, reference, key, inner)
        if kind == MAPPING:
            dict.update(node, members)
        else:
            list.extend(node, members)
        self._open.pop()
        self._known[id(value)] = (value, node)
        if self.tracker.original is not None:
            self.tracker.original(value, node)
        return node

    def _inside(self, value: Any, parent: Node, reference: weakref.ref[Node], key: Any, spec: Spec | None) -> Any:
        """What is stored for a member of a container that is being built, or of a model that is being linked."""
        kind = kind_of(type(value))
        self._path.append(key)
        if kind in PLAIN_KINDS:
            node = self._take_container(value, kind, spec)
            self._path.pop()
            if node._parents is None:
                node._parents = reference
                node._key = key
            else:
                attach(node, parent, key)
            return node
        taken = self._take(value, spec)
        self._path.pop()
        if kind == NODE or id(taken) in self._foreign:
            self._links.append((taken, parent, key))
        return taken

    def _take_foreign(self, value: Any) -> None:
        if id(value) not in self._foreign:
            try:
                # A known one keeps its text: the next compare finds out whether it changed, at all its places.
                entry = self.tracker.opaque.get(id(value)) or Opaque(value, text_of(value))
            except StateError as error:
                raise self._error(error.reason, error.pointer) from error.__cause__
            self._foreign[id(value)] = entry

    def _take_node(self, node: Node, spec: Spec | None) -> Node:
        tracker = tracker_of(node)
        if node._names is not None and node._spec is None:
            self._take_model(node)
        elif tracker is not self.tracker:
            if self.tracker is LOOSE:
                self._follow(tracker)
            else:
                self._move(node)
        if spec is not None and node._names is None and node._spec is not spec:
            if node._spec is not None:
                raise self._error("this container has another item type: assign a copy of it")
            node._spec = spec
        self._existing.append((node, tuple(self._path)))
        return node

    def _take_model(self, model: Node) -> None:
        # A model that was never part of a state holds plain containers, and nothing in it knows where it hangs.
        if id(model) in self._open:
            raise self._error(IN_ITSELF)
        self._open.append(id(model))
        model._tracker = self.tracker
        self._fresh.append(model)
        reference = weakref.ref(model)
        names = model._names or {}
        depth = len(self._path)

        def take(value: Any, key: str, spec: Spec | None = None) -> Any:
            if type(value) in ATOMS:
                return value
            taken = self._inside(value, model, reference, key, spec)
            if depth + 1 > DEPTH:
                self._path.append(names.get(key, key))
                raise self._error(TOO_DEEP)
            return taken

        model._adopt(take)
        model._spec = LINKED
        self._open.pop()
        if model._derives:
            model._sent = None
            self._models.append(model)

    def _move(self, node: Node) -> None:
        """Makes everything that is connected with `node` part of this tracker, unless another living document holds it."""
        with MOVING:
            old = acquire(node)
            try:
                if old is self.tracker:
                    return
                nodes = connected(node, old)
                if nodes is None or old.log is not None:
                    raise self._error(ELSEWHERE)
                old.leave(nodes)
                for one in nodes:
                    one._tracker = self.tracker
                    one._old = None
            finally:
                old.release()
        for one in nodes:
            if one._derives:
                one._sent = None
                self._models.append(one)
            for key, member in list(one._members()):
                if type(member) is int:
                    if not -SAFE <= member <= SAFE:
                        self.tracker.large = one, key
                elif is_foreign(member):
                    self._take_foreign(member)
                    self._links.append((member, one, key))

    def _follow(self, tracker: Tracker) -> None:
        """Something of a document enters a loose node: this follows it into the document."""
        self._change_tracker(tracker)
        if self.node is not None:
            self._move(self.node)
        for node, _ in self._existing:
            self._move(node)

    def _change_tracker(self, tracker: Tracker) -> None:
        self.tracker = tracker
        for node in (*self._fresh, *self._models):
            node._tracker = tracker

    def _error(self, reason: str, inside: str = "") -> StateError:
        where = "" if self.node is None else locate(self.node)
        return StateError(reason, where + pointer.join(*self._path) + inside)


def _named(value: dict[Any, Any], intake: Intake) -> dict[str, Any]:
    """The members of a plain dict in a new one, under exact strings."""
    members = dict(value)
    for key in members:
        if type(key) is not str:
            break
    else:
        return members
    for key in members:
        if not isinstance(key, str):
            intake._path.append(repr(key))
            raise intake._error(f"a key must be a string, not {type(key).__qualname__}")
    return {str.__str__(key): member for key, member in members.items()}


def is_foreign(value: Any) -> bool:
    """Whether a stored value is opaque: a mutable object, or a tuple that holds one."""
    kind = kind_of(type(value))
    if kind == TUPLE:
        return any(kind_of(type(item)) in (MAPPING, SEQUENCE, NODE) or is_foreign(item) for item in value)
    return kind == OPAQUE


class _Linked:
    inner = whole = None

    def at(self, key: str) -> None:
        return None

    def item(self, value: Any, key: str | None = None) -> Any:
        return value


LINKED: Spec = _Linked()
"""The spec of a model whose members know where they hang."""
