"""How the parts of a state know each other: the tracker of a document, its nodes, their parents and records.

A *node* is a part of a state that can be edited: `TrackedDict`, `TrackedList`, and any `State` model. Its slots are in `SLOTS`:

* `_tracker`: the `Tracker` of its document, or `LOOSE` while it belongs to none. A node and its parents and children always
  share one tracker.
* `_parents`: where it hangs. `None`; one weak reference, with the key or index where it was last seen in `_key`; or
  `{id(parent): [reference, count, hint]}` when there are several, or it hangs twice in one. A dead reference is no parent.
* `_key`: see above. A hint: always verified by identity, never believed.
* `_old`: the *record*, what the document's consumer still holds of the members that were touched since the last take; `None`
  for a clean node. `{key: old value or MISSING}` for a node with named members; lists have a record of their own (splices.py).
  A node is appended to `tracker.dirty` when its record begins. Nothing is marked upwards: a take walks up from the dirty nodes.
* `_spec`: what may stand in it (`Spec`), or `None` for any JSON. Of a model: `None` until its members are linked.

Every edit has the same five steps, the first one outside the lock, as it may run code of authors (iterators, validators):

1. prepare: `intake = Intake(node)` turns what comes in into what is stored (intake.py), or raises `StateError`;
2. `tracker = acquire(node)`, later `tracker.release()` in a `finally`;
3. `intake.admit(tracker)`: the last checks (cycles, depth); the last line that may raise;
4. note: the old value in the record (`tracker.begin(node)` starts one), and the inverse in `tracker.log` if that is a list;
5. change the node, then `tracker.unlink(old, node)` and `tracker.link(new, node, key)`.

`edit(node, changes)` in mutations.py does all five for nodes with named members; it is what a `State` needs.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from .parents import attach, detach

if TYPE_CHECKING:
    from .opaque import Opaque

__all__ = [
    "LOOSE",
    "MISSING",
    "PLAIN",
    "SLOTS",
    "Node",
    "Spec",
    "Tracker",
    "acquire",
]


class Missing:
    """The type of `MISSING`, which stands where there is no value, not even `None`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "MISSING"


MISSING = Missing()
PLAIN = frozenset({str, int, float, bool, type(None)})
"""Types whose values are never linked to the nodes that hold them."""
SLOTS = ("_tracker", "_parents", "_key", "_old", "_spec")

_set_slot = object.__setattr__  # past the slow `__setattr__` of models


class Spec(Protocol):
    """What may stand in a container. Mutators call it outside the lock, before any change."""

    @property
    def inner(self) -> Spec | None:
        """The spec of a container that is built for an item of a list: of the inner lists in `list[list[int]]`."""

    def at(self, key: str) -> Spec | None:
        """The spec of a container that is built for this key of a dict."""

    def item(self, value: Any, key: str | None = None) -> Any:
        """Validates one item that enters, and gives what is stored: the value itself, or what it was read as.

        Raises whatever the author shall see: pydantic's `ValidationError`, or `StateError`.
        """

    @property
    def whole(self) -> Callable[[Any, Any], None] | None:
        """`whole(container, candidate)` judges an edit: `candidate` is a plain shallow copy that shows it done.

        `None` if items alone decide.
        """


class Node:
    """What every part of a state can say of itself. A mixin without slots of its own: each class has `SLOTS`.

    Assigning to the slots must work plainly and be cheap. A node whose `_tracker` slot is unset (a copy that ran no
    `__init__`) is treated as loose.

    A third kind of node besides dict and list has named members, as a dict has, and overrides what differs:
    """

    if TYPE_CHECKING:
        _tracker: Tracker
        _parents: Any
        _key: Any
        _old: Any
        _spec: Spec | None
        _sent: dict[str, Any] | None
    else:
        # The slots belong to the classes, as a dict and a list cannot share a base that has some.
        __slots__ = ()

    _names: ClassVar[Mapping[str, str] | None] = None
    """Member -> its name on the wire, for members that are written from their values. `None`: all, under their own keys.

    A member that is not in it is not written (excluded, private), but still noted, linked and undone.
    """

    _derives: ClassVar[bool] = False
    """Whether `_derive` gives anything. Such a class has one more slot, `_sent`."""

    _volatile: ClassVar[bool] = False
    """Whether what it derives may change without an edit, as it is made of foreign mutable objects: asked at comparisons."""

    def _raw(self) -> dict[str, Any]:
        """The real dict that holds the members: a `TrackedDict` itself, `__dict__` of a model."""
        raise NotImplementedError

    def _members(self) -> Iterable[tuple[Any, Any]]:
        """The members that are there, with their keys."""
        return self._raw().items()

    def _places(self, value: Any, hint: Any, count: int) -> list[Any]:
        """The keys at which exactly this object hangs `count` times, `hint` where it was last seen."""
        raw = self._raw()
        if count == 1 and raw.get(hint) is value:
            return [hint]
        return [key for key, member in raw.items() if member is value]

    def _adopt(self, take: Callable[[Any, str, Spec | None], Any]) -> None:
        """A loose model enters a state: puts `take(value, key, spec)` in the place of every member that is a plain container.

        `take` gives back what is stored. Called outside the lock, before the model hangs anywhere. Dicts and lists need none.
        """

    def _derive(self) -> dict[str, Any]:
        """JSON by wire name of the members that only the model's own serializer can tell: computed and custom serialised.

        Called outside the lock, when this node or anything under it changed: it is code of authors. What it gave when the
        last take succeeded is kept in `_sent`; a difference is what is written.
        """
        return {}


class Tracker:
    """What the nodes of one document share: its lock, what is dirty, and the undo log of an open batch.

    Attributes:
        lock: held round every edit and every take; not round reading, and never while code of authors runs.
        edits: counts the edits, so that a take can tell whether something happened while it had to let go of the lock.
        log: `None`, or inside a batch `(function, *arguments)` for each edit: called in reverse order, they undo it.
        opaque: id of a foreign mutable object -> how its JSON is known.
        entered: those of them that the consumer was never told of.
        left: id of a node -> weak reference to it, of those that went to another document since the last take.
        large: where an integer entered that JavaScript cannot hold, `(node, key)`.
        volatile: id of a model -> weak reference to it, of models whose derived members are compared like opaque values.
    """

    __slots__ = (
        *(
            "__weakref__",
            "_saved",
            "_signalled",
            "_wake",
            "active",
            "dirty",
            "document",
            "edits",
            "entered",
            "large",
            "left",
            "lock",
        ),
        *("log", "on_change", "opaque", "original", "root", "volatile"),
    )

    def __init__(self, document: Any = None, on_change: Callable[[], None] | None = None) -> None:
        self.lock = threading.RLock()
        self.active = document is not None
        self.document = None if document is None else weakref.ref(document, self._close)
        self.root: weakref.ref[Node] | None = None
        self.dirty: list[Node] = []
        self.log: list[tuple[Any, ...]] | None = None
        self.opaque: dict[int, Opaque] = {}
        self.entered: list[Opaque] = []
        self.volatile: dict[int, weakref.ref[Node]] = {}
        self.on_change = on_change
        self.original: Callable[[Any, Any], None] | None = None
        self.edits = 0
        self.left: dict[int, weakref.ref[Node]] = {}
        self.large: tuple[Node | None, Any] | None = None
        self._saved: list[set[int]] = []
        self._signalled = self._wake = False

    def begin(self, node: Node, record: Any) -> Any:
        """Starts the record of a clean node."""
        if self.active:
            if node._names is None:
                node._old = record
            else:
                _set_slot(node, "_old", record)
            self.dirty.append(node)
            if not self._signalled:
                self._signalled = self._wake = True
        return record

    def signal(self) -> None:
        """The document is dirty: `on_change` is called once, when the lock is released."""
        if not self._signalled:
            self._signalled = self._wake = True

    def settle(self) -> None:
        """The document is clean."""
        self._signalled = self._wake = False
        if self.left:
            self.left = {}

    def settle_leaf(self, node: Node) -> None:
        """The document is clean: all that was dirty is this node."""
        if node._names is None:
            node._old = None
        else:
            _set_slot(node, "_old", None)
        self.dirty.clear()
        self._signalled = self._wake = False

    def signal_again(self) -> None:
        """The document is dirty still, and nothing was taken when `on_change` was called, as a batch was open."""
        self._wake = self._signalled

    def release(self) -> None:
        """Ends what `acquire` began."""
        self.edits += 1
        if not self._wake:
            self.lock.release()
            return
        self._wake = False
        due = self.on_change
        self.lock.release()
        if due is not None:
            due()

    def notify(self) -> None:
        """Calls `on_change` if it is due. Without the lock."""
        with self.lock:
            due = self.on_change if self._wake else None
            self._wake = False
        if due is not None:
            due()

    def link(self, value: Any, parent: Node, key: Any) -> None:
        """This value hangs at `key` now, if it is a node or an opaque value."""
        if isinstance(value, Node):
            attach(value, parent, key)
        elif self.opaque and (entry := self.opaque.get(id(value))) is not None:
            attach(entry, parent, key)

    def unlink(self, value: Any, parent: Node) -> None:
        """This value hangs in `parent` once less, if it is a node or an opaque value."""
        if isinstance(value, Node):
            detach(value, parent)
        elif self.opaque and (entry := self.opaque.get(id(value))) is not None:
            detach(entry, parent)

    def drop_unused(self, root: Opaque | None) -> None:
        """Forgets the opaque values that hang nowhere any more, unless one is the whole value."""
        unused = [key for key, entry in self.opaque.items() if entry is not root and not entry.hangs(self)]
        for key in unused:
            del self.opaque[key]

    def leave(self, nodes: Iterable[Node]) -> None:
        """These nodes go to another document: their records are lost."""
        if self.active:
            self.left.update({id(node): weakref.ref(node) for node in nodes})

    def returned(self) -> dict[int, Node]:
        """Those of the nodes that left which are here again, by their ids."""
        nodes = {key: reference() for key, reference in self.left.items()}
        return {key: node for key, node in nodes.items() if node is not None and node._tracker is self}

    def set_root(self, value: Any) -> None:
        """What the document holds now."""
        self.root = weakref.ref(value) if isinstance(value, Node) else None

    def is_root(self, node: Node) -> bool:
        """Whether this node is the root of the document, which lives."""
        return self.root is not None and self.root() is node

    # Batches: how far the log must be undone, and which dicts had their order saved since

    def savepoint(self) -> int:
        """Begins a batch in which edits are logged. Returns where the log stands."""
        if self.log is None:
            self.log = []
        self._saved.append(set())
        return len(self.log)

    def undo(self, start: int) -> None:
        """Undoes what was logged since the savepoint `start`."""
        log = self.log or []
        while len(log) > start:
            function, *arguments = log.pop()
            function(*arguments)

    def end_savepoint(self) -> None:
        """Ends the innermost batch."""
        self._saved.pop()
        if not self._saved:
            self.log = None

    def first_deletion(self, node: Node) -> bool:
        """Whether no order of this node was logged yet in the innermost batch."""
        saved = self._saved[-1]
        if id(node) in saved:
            return False
        saved.add(id(node))
        return True

    def _close(self, _: Any) -> None:
        # The document is gone. Its nodes may live on, and may enter another one.
        self.active = False
        self.log = self.root = self.on_change = self.original = None
        self.dirty = []
        self.entered = []
        self.opaque = {}
        self.volatile = {}
        self.left = {}


class _Loose(Tracker):
    __slots__ = ()

    large = property(lambda self: None, lambda self, value: None)

    def begin(self, node: Node, record: Any) -> Any:
        return record


LOOSE = _Loose()
"""The tracker of all nodes that belong to no document: it notes nothing."""


def tracker_of(node: Node) -> Tracker:
    """The node's tracker. Gives a node with unset slots its first ones."""
    try:
        return node._tracker
    except AttributeError:
        node._parents = node._key = node._old = node._spec = None
        node._tracker = LOOSE
        return LOOSE


def acquire(node: Node) -> Tracker:
    """Locks the tracker of this node, whichever it is by then."""
    while True:
        try:
            tracker = node._tracker
        except AttributeError:
            tracker = tracker_of(node)
        tracker.lock.acquire()
        if node._tracker is tracker:
            return tracker
        tracker.lock.release()
