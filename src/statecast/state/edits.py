"""From what changed to RFC 6902 operations: a walk up from what is dirty, and then down to it from the root.

Only `add`, `remove` and `replace`: the main consumer copies its whole document for every `move` and `copy`. Every value in an
operation is a copy of exact built-in types, so that what an author changes later changes nothing that was sent.
"""

from __future__ import annotations

from typing import Any

from . import pointer
from .opaque import Opaque
from .scripts import script
from .splices import LENGTH, hunks_of
from .tracker import MISSING, PLAIN, Node, Tracker, living_parents
from .values import encode, immutable, same

__all__ = ["Changes", "only_path"]

Op = dict[str, Any]


class Changes:
    """What changed under one tracker since its last take. Used under its lock.

    Args:
        rewrite: id of a node -> a node that may have changed without a record: it is written whole.

    Attributes:
        ops: the operations.
        models: the models that must be asked what they derive.
        derived: id of a model -> what it derives now; of others what was sent is still right.
    """

    def __init__(self, tracker: Tracker, rewrite: dict[int, Any] | None = None) -> None:
        self.tracker = tracker
        self.rewrite = {} if rewrite is None else rewrite
        self.derived: dict[int, dict[str, Any]] = {}
        self.ops: list[Op] = []
        # id of a node -> its children under which something changed
        self._marks: dict[int, dict[int, Node | Opaque]] = {}
        self.models: list[Node] = []

    def collect(self) -> None:
        """Walks up from everything that is dirty."""
        for node in self.tracker.dirty:
            if node._tracker is self.tracker:
                if node._derives:
                    self.models.append(node)
                self.mark(node)

    def collect_volatile(self) -> None:
        """Adds the models that derive from what changes without a sign."""
        volatile = self.tracker.volatile
        known = {id(model) for model in self.models}
        for key, reference in list(volatile.items()):
            model = reference()
            if model is None or model._tracker is not self.tracker:
                del volatile[key]
            else:
                self.mark(model)
                if key not in known and key not in self._marks:
                    self.models.append(model)

    def mark(self, child: Node | Opaque) -> None:
        """Something changed in `child`: all that is above it will be walked through."""
        todo = [child]
        while todo:
            child = todo.pop()
            for parent, _, _ in living_parents(child):
                marked = self._marks.get(id(parent))
                if marked is not None:
                    marked[id(child)] = child
                elif parent._tracker is self.tracker:
                    self._marks[id(parent)] = {id(child): child}
                    if parent._derives and parent._old is None:
                        self.models.append(parent)
                    todo.append(parent)

    # JSON of values, built anew: as it is, and as the consumer has it

    def plain(self, value: Any) -> Any:
        """The JSON of a stored value as it is now."""
        if type(value) in PLAIN:
            return value
        if isinstance(value, dict):
            return {key: item if type(item) in PLAIN else self.plain(item) for key, item in value.items()}
        if isinstance(value, list):
            return [item if type(item) in PLAIN else self.plain(item) for item in value]
        if isinstance(value, Node):
            raw = value._raw()
            names = value._names or {}
            found = {name: self.plain(raw[key]) for key, name in names.items() if key in raw}
            if value._derives:
                found.update(self.derived.get(id(value)) or value._sent or {})
            return found
        entry = self.tracker.opaque.get(id(value))
        return immutable(value) if entry is None else entry.plain()

    def before(self, value: Any) -> Any:
        """The JSON of a stored value as it was at the last take; `MISSING` if that is not known any more."""
        if type(value) in PLAIN:
            return value
        if not isinstance(value, Node):
            entry = self.tracker.opaque.get(id(value))
            if entry is None:
                return immutable(value)
            return MISSING if entry.sent is None else entry.plain_sent()
        if value._tracker is not self.tracker or id(value) in self.rewrite:
            return MISSING
        if isinstance(value, list):
            return self._all(enumerate(old_items(value)), [])
        raw = old_members(value)
        if value._names is None:
            return self._all(raw.items(), {})
        found = self._all([(name, raw[key]) for key, name in value._names.items() if key in raw], {})
        if found is not MISSING and value._derives:
            if value._sent is None:
                return MISSING
            found.update(value._sent)
        return found

    def _all(self, members: Any, found: Any) -> Any:
        for key, member in members:
            plain = self.before(member)
            if plain is MISSING:
                return MISSING
            if isinstance(found, list):
                found.append(plain)
            else:
                found[key] = plain
        return found

    def equal(self, old: Any, new: Any) -> bool:
        """Whether the consumer's `old` is the JSON of `new` already, which is another object."""
        kind, other = type(old), type(new)
        if kind in PLAIN or other in PLAIN:
            return kind is other and same(old, new)
        if isinstance(old, Node) and isinstance(new, Node):
            if isinstance(old, list) is not isinstance(new, list):
                return False
            if isinstance(old, list) and isinstance(new, list) and type(old._old) is not list:
                # Told apart without copying either.
                length = len(old) if old._old is None else old._old[-1]
                if length != len(new):
                    return False
        before = self.before(old)
        return before is not MISSING and same(before, self.plain(new))

    # Operations

    def write(self, node: Node, path: str) -> None:
        """Appends the operations that bring the consumer's copy of `node`, which is at `path`, up to date."""
        if id(node) in self.rewrite:
            self.ops.append({"op": "replace", "path": path, "value": self.plain(node)})
        elif isinstance(node, list):
            self._write_list(node, path)
        else:
            self._write_members(node, path)

    def _write_members(self, node: Node, path: str) -> None:
        raw = node._raw()
        names = node._names
        record = node._old or NONE
        for key, old in record.items():
            name = key if names is None else names.get(key)
            new = dict.get(raw, key, MISSING)
            if name is not None and new is not old:
                self.change(f"{path}/{pointer.escape(name)}", old, new)
        for child in self._marks[id(node)].values() if id(node) in self._marks else ():
            known = living(child, node)
            for key in node._places(target(child), *known) if known else ():
                name = key if names is None else names.get(key)
                if name is not None and record.get(key, raw[key]) is raw[key]:
                    self._write_child(child, f"{path}/{pointer.escape(name)}")
        if node._derives:
            self._write_derived(node, path)

    def _write_derived(self, node: Node, path: str) -> None:
        now = self.derived.get(id(node))
        if now is None:
            return
        sent = node._sent or {}
        for name in sent.keys() | now.keys():
            old, new = sent.get(name, MISSING), now.get(name, MISSING)
            if old is MISSING or new is MISSING or not same(old, new):
                self.change(f"{path}/{pointer.escape(name)}", old, new, plain=True)

    def _write_list(self, node: Any, path: str) -> None:
        record = node._old
        marks = self._marks.get(id(node))
        if type(record) is dict and marks is None and self._write_simple(record, node, path):
            return
        whole: set[int] = set()
        if record is not None:
            steps = script(hunks_of(node._old, len(node)), node, self.equal, whole)
            if len(steps) > 1 and self._is_longer(steps, node, path):
                self.ops.append({"op": "replace", "path": path, "value": self.plain(node)})
                return
            for op, index in steps:
                if op == "remove":
                    self.ops.append({"op": op, "path": f"{path}/{index}"})
                else:
                    self.ops.append({"op": op, "path": f"{path}/{index}", "value": self.plain(node[index])})
        for child in marks.values() if marks is not None else ():
            known = living(child, node)
            for index in node._places(target(child), *known) if known else ():
                if index not in whole:
                    self._write_child(child, f"{path}/{index}")

    def _write_simple(self, record: dict[int, Any], node: Any, path: str) -> bool:
        """The edits that are most frequent and need no script: items appended, or one item replaced."""
        size, length = len(node), record[LENGTH]
        if len(record) == 1 and length < size <= length + SIMPLE:
            for index in range(length, size):
                self.ops.append({"op": "add", "path": f"{path}/{index}", "value": self.plain(node[index])})
            return True
        if len(record) == 2 and length == size:
            for index, old in record.items():
                if index != LENGTH and old is not node[index]:
                    self.change(f"{path}/{index}", old, node[index])
            return True
        return False

    def _is_longer(self, steps: list[tuple[str, int]], node: Any, path: str) -> bool:
        """Whether these operations are longer than the whole list."""
        written = [index for op, index in steps if op != "remove"]
        overhead = sum(len(path) + len(op) + len(str(index)) + OVERHEAD for op, index in steps)
        if overhead < 2 * (len(node) - len(written)):
            # The items that are not written take two bytes at least, each.
            return False
        if len(written) >= len(node):
            return True
        values = encode([self.plain(node[index]) for index in written])
        return overhead + len(values) >= len(encode(self.plain(node))) + len(path) + OVERHEAD

    def _write_child(self, child: Node | Opaque, path: str) -> None:
        if isinstance(child, Opaque):
            if child.sent is not None and child.sent != child.text:
                self.change(path, child.plain_sent(), child.plain(), plain=True)
        else:
            self.write(child, path)

    def change(self, path: str, old: Any, new: Any, *, plain: bool = False) -> None:
        """One value gave way to another; `MISSING` is no value."""
        if new is MISSING:
            if old is not MISSING:
                self.ops.append({"op": "remove", "path": path})
        elif old is MISSING:
            self.ops.append({"op": "add", "path": path, "value": new if plain else self.plain(new)})
        elif not (same(old, new) if plain else self.equal(old, new)):
            self.ops.append({"op": "replace", "path": path, "value": new if plain else self.plain(new)})


OVERHEAD = 30
"""Bytes of an operation besides its path, its index and its value, about."""
SIMPLE = 8
"""So many items appended are written without asking whether the whole list is shorter: it would be by a few bytes at most."""
NONE: dict[Any, Any] = {}


def only_path(node: Node, root: Any) -> str | None:
    """The pointer of a node that hangs at one place only, if nothing above it must be asked too; else `None`."""
    path = ""
    while node is not root:
        parents = node._parents
        if parents is None or type(parents) is dict:
            return None
        parent = parents()
        if parent is None or parent._derives:
            return None
        hint = node._key
        if isinstance(parent, list):
            hint += parent._shift
            if not (0 <= hint < len(parent) and parent[hint] is node):
                return None
            path = f"/{hint}{path}"
        else:
            names = parent._names
            name = hint if names is None else names.get(hint)
            if name is None or parent._raw().get(hint) is not node:
                return None
            path = f"/{pointer.escape(name)}{path}"
        node = parent
    return path


def target(child: Node | Opaque) -> Any:
    """The object that hangs in the parents."""
    return child.value if isinstance(child, Opaque) else child


def living(child: Node | Opaque, parent: Node) -> tuple[Any, int] | None:
    """Hint and count of a child in this parent."""
    for known, count, hint in living_parents(child):
        if known is parent:
            return hint, count
    return None


def old_items(node: Any) -> list[Any]:
    """The items of a list at the last take."""
    if node._old is None:
        return list(node)
    items: list[Any] = []
    at = 0
    for lo, hi, old in hunks_of(node._old, len(node)):
        items += node[at:lo]
        items += old
        at = hi
    return items + node[at:]


def old_members(node: Node) -> dict[str, Any]:
    """The named members of a node at the last take."""
    members = dict(node._raw())
    for key, old in (node._old or NONE).items():
        if old is MISSING:
            members.pop(key, None)
        else:
            members[key] = old
    return members
