"""From what changed to RFC 6902 operations: a walk up from what is dirty, and then down to it from the root.

Only `add`, `remove` and `replace`: the main consumer copies its whole document for every `move` and `copy`. Every value in an
operation is a copy of exact built-in types, so that what an author changes later changes nothing that was sent.
"""

from __future__ import annotations

from typing import Any

from jsonpatch import JsonPatch

from . import pointer
from .images import Images, old_items, old_members, weight
from .opaque import Opaque
from .parents import living_parents, simplify
from .scripts import Step, script
from .splices import LENGTH, Hunk, hunks_of
from .tracker import MISSING, Node, Tracker
from .values import encode, same

__all__ = ["Changes", "diff", "leaf_head", "only_path"]

DIFFED = 64 * 1024
"""Bytes of JSON up to which two whole plain values are compared."""
MANY = 256
"""More operations on one list are not written before it is known that they are shorter than the list."""
OVERHEAD = 30
"""Bytes of an operation besides its path and its value, about."""
SIMPLE = 8
"""So many appended items or touched keys are written one by one, even if the whole container were a few bytes shorter."""


class Changes(Images):
    """What changed under one tracker since its last take. Used under its lock.

    Attributes:
        ops: the operations.
        models: the models that must be asked what they derive.
    """

    def __init__(self, tracker: Tracker, rewrite: dict[int, Any] | None = None) -> None:
        super().__init__(tracker, rewrite)
        self.ops: list[dict[str, Any]] = []
        self.models: list[Node] = []

    # Up: what must be walked through

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
                if key not in known and key not in self.marks:
                    self.models.append(model)
                self.mark(model)

    def mark(self, child: Node | Opaque) -> None:
        """Something changed in `child`: all that is above it will be walked through."""
        todo = [child]
        while todo:
            child = todo.pop()
            for parent, _, _ in living_parents(child):
                marked = self.marks.get(id(parent))
                if marked is not None:
                    marked[id(child)] = child
                elif parent._tracker is self.tracker:
                    self.marks[id(parent)] = {id(child): child}
                    if parent._derives and parent._old is None:
                        self.models.append(parent)
                    todo.append(parent)

    # Down: the operations

    def write(self, node: Node, path: str) -> None:
        """Appends the operations that bring the consumer's copy of `node`, which is at `path`, up to date."""
        if id(node) in self.rewrite:
            self.ops.append({"op": "replace", "path": path, "value": self.plain(node)})
        elif isinstance(node, list):
            self._write_list(node, path)
        else:
            self._write_members(node, path)

    def change(self, path: str, old: Any, new: Any) -> None:
        """One stored value gave way to another; `MISSING` is no value."""
        if new is MISSING:
            if old is not MISSING:
                self.ops.append({"op": "remove", "path": path})
        elif old is MISSING:
            self.ops.append({"op": "add", "path": path, "value": self.plain(new)})
        elif isinstance(old, Node) and isinstance(new, Node) and self.known(old) and alike(old, new):
            self._write_pair(old, new, path)
        elif not self.equal(old, new):
            self.ops.append({"op": "replace", "path": path, "value": self.plain(new)})

    def change_plain(self, path: str, old: Any, new: Any) -> None:
        """One plain value gave way to another; `MISSING` is no value."""
        if new is MISSING:
            self.ops.append({"op": "remove", "path": path})
        elif old is MISSING:
            self.ops.append({"op": "add", "path": path, "value": new})
        elif not same(old, new):
            whole = {"op": "replace", "path": path, "value": new}
            ops = diff(old, new, path)
            self.ops += [whole] if ops is None or len(encode(ops)) >= len(encode([whole])) else ops

    def _write_members(self, node: Node, path: str) -> None:
        raw = node._raw()
        names = node._names
        record = node._old
        start = len(self.ops)
        if record is not None:
            for key, old in record.items():
                name = key if names is None else names.get(key)
                new = dict.get(raw, key, MISSING)
                if name is not None and new is not old:
                    self.change(f"{path}/{pointer.escape(name)}", old, new)
        marks = self.marks.get(id(node))
        if marks is not None:
            for child in marks.values():
                for key in places(child, node):
                    name = key if names is None else names.get(key)
                    if name is not None and (record is None or record.get(key, raw[key]) is raw[key]):
                        self._write_child(child, f"{path}/{pointer.escape(name)}")
        if node._derives:
            self._write_derived(node._sent or {}, self.derived_now(node), path)
        if record is not None and path and (len(record) > SIMPLE or not raw):
            self._choose_shorter(start, node, path)

    def _write_derived(self, sent: dict[str, Any], now: dict[str, Any], path: str) -> None:
        if sent is not now:
            for name in {**sent, **now}:
                self.change_plain(f"{path}/{pointer.escape(name)}", sent.get(name, MISSING), now.get(name, MISSING))

    def _write_list(self, node: Any, path: str) -> None:
        record = node._old
        marks = self.marks.get(id(node))
        if type(record) is dict and marks is None and self._write_simple(record, node, path):
            return
        whole: set[int] = set()
        if record is not None and not self._write_script(hunks_of(record, len(node)), node, path, whole):
            return
        if marks is not None:
            for child in marks.values():
                for index in places(child, node):
                    if index not in whole:
                        self._write_child(child, f"{path}/{index}")

    def _write_simple(self, record: dict[int, Any], node: Any, path: str) -> bool:
        """The edits that are most frequent and need no script: items appended, one item popped or replaced."""
        size, length = len(node), record[LENGTH]
        if len(record) == 1 and length < size <= length + SIMPLE:
            for index in range(length, size):
                self.ops.append({"op": "add", "path": f"{path}/{index}", "value": self.plain(node[index])})
            return True
        if len(record) == 2 and length == size + 1 and size in record:
            self.ops.append({"op": "remove", "path": f"{path}/{size}"})
            return True
        if len(record) == 2 and length == size:
            for index, old in record.items():
                if index != LENGTH and old is not node[index]:
                    self.change(f"{path}/{index}", old, node[index])
            return True
        return False

    def _write_script(self, hunks: list[Hunk], node: Any, path: str, whole: set[int]) -> bool:
        """Writes what the hunks need. Returns whether anything more can be written: `False` after a replacement of all."""
        start = len(self.ops)
        steps = script(hunks, node, self.equal, self.text, whole)
        if len(steps) > MANY and self._is_longer(steps, node, path):
            self.ops.append({"op": "replace", "path": path, "value": self.plain(node)})
            return False
        for op, index, old in steps:
            if op == "replace":
                self.change(f"{path}/{index}", old, node[index])
            elif op == "remove":
                self.ops.append({"op": op, "path": f"{path}/{index}"})
            else:
                self.ops.append({"op": op, "path": f"{path}/{index}", "value": self.plain(node[index])})
        return len(steps) < 2 or not self._choose_shorter(start, node, path)

    def _is_longer(self, steps: list[Step], node: Any, path: str) -> bool:
        """Whether these operations are longer than the whole list, if each of them writes a whole item."""
        written = [index for op, index, _ in steps if op != "remove"]
        if len(written) >= len(node):
            return True
        overhead = len(steps) * (len(path) + OVERHEAD)
        if overhead < 2 * (len(node) - len(written)):
            # The items that are not written take two bytes at least, each.
            return False
        values = encode([self.plain(node[index]) for index in written])
        return overhead + len(values) >= len(encode(self.plain(node)))

    def _write_pair(self, old: Any, new: Any, path: str) -> None:
        """A container gave way to another one of its kind. A clean object that is in both is not looked into."""
        start = len(self.ops)
        if isinstance(new, list):
            whole: set[int] = set()
            if self._write_script([[0, len(new), old_items(old)]], new, path, whole):
                for index, item in enumerate(new):
                    if index not in whole and not self.unchanged(item):
                        self._write_item(item, f"{path}/{index}")
        else:
            names = new._names
            before, now = old_members(old), new._raw()
            for key in {**before, **now} if names is None else names:
                name = key if names is None else names[key]
                one, two = before.get(key, MISSING), dict.get(now, key, MISSING)
                if one is not two:
                    self.change(f"{path}/{pointer.escape(name)}", one, two)
                elif two is not MISSING and not self.unchanged(two):
                    self._write_item(two, f"{path}/{pointer.escape(name)}")
            if new._derives:
                self._write_derived(old._sent, self.derived_now(new), path)
        if len(self.ops) - start > 1:
            self._choose_shorter(start, new, path)

    def _write_item(self, item: Any, path: str) -> None:
        child = item if isinstance(item, Node) else self.tracker.opaque.get(id(item))
        if child is not None:
            self._write_child(child, path)

    def _write_child(self, child: Node | Opaque, path: str) -> None:
        if not isinstance(child, Opaque):
            self.write(child, path)
        elif child.sent is not None and child.sent != child.text:
            self.change_plain(path, child.plain_sent(), child.plain())

    def _choose_shorter(self, start: int, node: Any, path: str) -> bool:
        """Puts one `replace` of the whole node in the place of the operations since `start` if it is shorter than they are."""
        length = len(encode(self.ops[start:]))
        if weight(node, length) < length:
            whole = [{"op": "replace", "path": path, "value": self.plain(node)}]
            if len(encode(whole)) < length:
                self.ops[start:] = whole
                return True
        return False


def leaf_head(node: Node, path: str, key: str) -> bytes | None:
    """The text of a patch that replaces this member of the node, up to the value. `None`: no patch can say it."""
    name = key if node._names is None else node._names.get(key)
    if name is None:
        return None
    path = f"{path}/{pointer.escape(name)}"
    return None if pointer.refused(path) else b'[{"op":"replace","path":' + encode(path) + b',"value":'


def alike(old: Node, new: Node) -> bool:
    """Whether two nodes have the same kind of members."""
    if isinstance(old, list) or isinstance(new, list):
        return isinstance(old, list) and isinstance(new, list)
    return old._names is new._names


def diff(old: Any, new: Any, path: str = "") -> list[dict[str, Any]] | None:
    """The operations between two plain values, without moves; `None` if they are not compared: too large, or not containers."""
    if type(old) is not type(new) or type(new) not in (dict, list):
        return None
    if max(len(encode(old)), len(encode(new))) >= DIFFED:
        return None
    ops: list[dict[str, Any]] = JsonPatch.from_diff(old, new, optimization=False).patch
    for op in ops:
        op["path"] = path + op["path"]
    return ops


def only_path(node: Node, root: Any) -> str | None:
    """The pointer of a node that hangs at one place only, if nothing above it must be asked too; else `None`."""
    path = ""
    while node is not root:
        parents = node._parents
        if type(parents) is dict:
            simplify(node)
            parents = node._parents
            if type(parents) is dict:
                return None
        parent = None if parents is None else parents()
        if parent is None or parent._derives:
            return None
        key = node._key
        if isinstance(key, str):
            names = parent._names
            name = key if names is None else names.get(key)
            if name is None or parent._raw().get(key) is not node:
                return None
            if type(name) is not str or "~" in name or "/" in name:
                name = pointer.escape(name)
            path = f"/{name}{path}"
        else:
            key += parent._shift
            if not (0 <= key < len(parent) and parent[key] is node):
                return None
            path = f"/{key}{path}"
        node = parent
    return path


def places(child: Node | Opaque, parent: Node) -> list[Any]:
    """The keys or indices at which a child hangs in this parent."""
    value = child.value if isinstance(child, Opaque) else child
    for known, count, hint in living_parents(child):
        if known is parent:
            return parent._places(value, hint, count)
    return []
