"""The JSON of stored values: as they are now, and as the consumer has them, which is what their records undo.

Everything that is returned is built anew from exact built-in types.
"""

from __future__ import annotations

import json
from typing import Any

from .splices import hunks_of
from .tracker import MISSING, PLAIN, Node, Tracker
from .values import immutable, same

__all__ = ["Images", "old_items", "old_members", "weight"]

NONE: dict[Any, Any] = {}


class Images:
    """Reads under the lock of one tracker, at one take.

    Args:
        rewrite: id of a node -> a node that may have changed without a record: nothing is known of what the consumer has of it.

    Attributes:
        derived: id of a model -> what it derives now; of others what was sent is still right.
        marks: id of a node -> the children under which something changed, by their ids.
    """

    def __init__(self, tracker: Tracker, rewrite: dict[int, Any] | None = None) -> None:
        self.tracker = tracker
        self.rewrite = NONE if rewrite is None else rewrite
        self.derived: dict[int, dict[str, Any]] = NONE
        self.marks: dict[int, dict[int, Any]] = {}

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
            names = value._names or NONE
            found = {name: self.plain(raw[key]) for key, name in names.items() if key in raw}
            if value._derives:
                found.update(self.derived_now(value))
            return found
        entry = self.tracker.opaque.get(id(value))
        return immutable(value) if entry is None else entry.plain()

    def before(self, value: Any) -> Any:
        """The JSON of a stored value as it was at the last take; `MISSING` if that is not known any more."""
        if type(value) in PLAIN:
            return value
        if not isinstance(value, Node):
            entry = self.tracker.opaque.get(id(value))
            return immutable(value) if entry is None else entry.plain_sent()
        if not self.known(value):
            return MISSING
        if isinstance(value, list):
            return self._all(enumerate(old_items(value)), [])
        raw = old_members(value)
        if value._names is None:
            return self._all(raw.items(), {})
        found = self._all([(name, raw[key]) for key, name in value._names.items() if key in raw], {})
        if found is not MISSING and value._derives:
            found.update(value._sent or NONE)
        return found

    def _all(self, members: Any, found: Any) -> Any:
        for key, member in members:
            plain = member if type(member) in PLAIN else self.before(member)
            if plain is MISSING:
                return MISSING
            if isinstance(found, list):
                found.append(plain)
            else:
                found[key] = plain
        return found

    def known(self, node: Node) -> bool:
        """Whether the record of this node tells what the consumer had of it."""
        if node._tracker is not self.tracker or id(node) in self.rewrite:
            return False
        return not (node._derives and node._sent is None)

    def unchanged(self, value: Any) -> bool:
        """Whether nothing in this value changed, so far as it is in the state."""
        if isinstance(value, Node):
            return value._old is None and id(value) not in self.marks and id(value) not in self.rewrite
        entry = self.tracker.opaque.get(id(value))
        return entry is None or entry.text == entry.sent

    def derived_now(self, model: Node) -> dict[str, Any]:
        """What a model derives, as far as it was asked."""
        now = self.derived.get(id(model))
        return now if now is not None else model._sent or NONE

    def equal(self, old: Any, new: Any) -> bool:
        """Whether what the consumer had of `old` is the JSON of `new` now. Gives up at the first difference."""
        kind = type(old)
        if kind in PLAIN or type(new) in PLAIN:
            return kind is type(new) and same(old, new)
        if old is new and self.unchanged(new):
            return True
        if not (isinstance(old, Node) and isinstance(new, Node)):
            before = self.before(old)
            return before is not MISSING and same(before, self.plain(new))
        if not self.known(old):
            return False
        if isinstance(old, list) or isinstance(new, list):
            return isinstance(old, list) and isinstance(new, list) and self._equal_items(old, new)
        if old._names is new._names:
            return self._equal_members(old, new)
        return same(self.before(old), self.plain(new))

    def text(self, value: Any, *, before: bool) -> Any:
        """Something that is equal for two values of the same JSON: what the consumer has of one, and what the other is now."""
        plain = self.before(value) if before else self.plain(value)
        return id(value) if plain is MISSING else json.dumps(plain, sort_keys=True)

    def _equal_items(self, old: Any, new: list[Any]) -> bool:
        if old_length(old) != len(new):
            return False
        return all(map(self.equal, old_items(old), new))

    def _equal_members(self, old: Node, new: Node) -> bool:
        ones, twos = old_members(old), new._raw()
        if old._names is None and len(ones) != len(twos):
            return False
        for key in ones if old._names is None else old._names:
            one, two = ones.get(key, MISSING), dict.get(twos, key, MISSING)
            if one is MISSING or two is MISSING:
                if one is not two:
                    return False
            elif not self.equal(one, two):
                return False
        return not old._derives or same(old._sent or NONE, self.derived_now(new))


def old_length(node: list[Any]) -> int:
    """The length of a list at the last take."""
    record = node._old  # type: ignore[attr-defined]
    size = len(node)
    return size if record is None else size - sum(hi - lo - len(old) for lo, hi, old in hunks_of(record, size))


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
    items += node[at:]
    return items


def old_members(node: Node) -> dict[str, Any]:
    """The named members of a node at the last take."""
    if node._old is None:
        return node._raw()
    members = dict(node._raw())
    for key, old in node._old.items():
        if old is MISSING:
            members.pop(key, None)
        else:
            members[key] = old
    return members


def weight(value: Any, limit: int) -> int:
    """A length that the JSON text of a stored value has at least. Not looked for any further than to `limit`."""
    kind = type(value)
    if kind is str:
        return len(value) + 2
    if kind in PLAIN or limit <= 2:
        return 1
    members: Any
    if isinstance(value, list):
        members = enumerate(value)
    elif isinstance(value, Node):
        members = value._raw().items() if value._names is None else value._members()
    else:
        return 2
    found = 2
    for key, member in members:
        found += 1 + (0 if type(key) is int else len(key) + 2)
        found += weight(member, limit - found)
        if found >= limit:
            break
    return found
