"""A real dict and a real list that remember what changed.

Reading is the built-in's own: only what changes them is overridden, and what would copy them as tracked. Where they differ from
what a reader may expect:

* `copy()`, slices, `+` and `|` give plain containers with the tracked children; `copy.deepcopy` and pickle give plain values all
  the way down, as two documents cannot share a container.
* What is assigned is taken over: a plain dict or list becomes a tracked one, and the original is not the state.
* `sort` and `remove` call keys and comparisons before they change anything, on a copy, and start again if another thread
  changed the list meanwhile.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterable
from math import isfinite
from typing import Any, SupportsIndex, TypeVar

from .intake import CONTAINERS, Intake, put
from .splices import LENGTH, note_slot, note_splice
from .tracker import LOOSE, MISSING, PLAIN, SLOTS, Node, Spec, Tracker, acquire
from .values import ATOMS, SAFE

__all__ = ["TrackedDict", "TrackedList"]

D = TypeVar("D", bound="TrackedDict")
L = TypeVar("L", bound="TrackedList")


class TrackedDict(Node, dict[str, Any]):
    """A dict of JSON whose changes a document finds. Keys are strings.

    Made by the document from every dict that is put into it; one that you make yourself is adopted as it is when it is put in:
    the same object, so `row = TrackedDict()` can be kept and changed later.

    Every mutator raises `StateError`, and changes nothing, if a value cannot be part of a state.
    """

    __slots__ = (*SLOTS, "__weakref__")

    def __new__(cls: type[D], *args: Any, **kwargs: Any) -> D:
        self = dict.__new__(cls)
        self._tracker = LOOSE
        self._parents = self._key = self._old = self._spec = None
        return self

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args or kwargs:
            self.update(*args, **kwargs)

    def __setitem__(self, key: str, value: Any) -> None:
        if type(key) is not str:
            key = self._exact(key)
        spec = self._spec
        cls = type(value)
        if spec is None and (cls in ATOMS or (cls is float and isfinite(value))):
            tracker = acquire(self)
            try:
                put(tracker, self, key, value)
            finally:
                tracker.release()
        else:
            self._change({key: value})

    def __delitem__(self, key: str) -> None:
        own = self._own(key)
        self._judge(dict.pop, own, None)
        tracker = acquire(self)
        try:
            if dict.get(self, own, MISSING) is MISSING:
                raise KeyError(key)
            put(tracker, self, own, MISSING)
        finally:
            tracker.release()

    def __ior__(self: D, other: Any) -> D:  # type: ignore[override, misc]
        self.update(other)
        return self

    def update(self, *args: Any, **kwargs: Any) -> None:
        self._change(dict(*args, **kwargs))

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key not in self:
            self._change({key: default}, only_missing=True)
        return self[key]

    def pop(self, key: str, *default: Any) -> Any:
        if len(default) > 1:
            raise TypeError(f"pop expected at most 2 arguments, got {len(default) + 1}")
        own = self._own(key)
        self._judge(dict.pop, own, None)
        tracker = acquire(self)
        try:
            value = dict.get(self, own, MISSING)
            if value is not MISSING:
                put(tracker, self, own, MISSING)
                return value
        finally:
            tracker.release()
        if default:
            return default[0]
        raise KeyError(key)

    def popitem(self) -> tuple[str, Any]:
        if self:
            self._judge(dict.popitem)
        tracker = acquire(self)
        try:
            if not self:
                raise KeyError("popitem(): dictionary is empty")
            key = next(reversed(self))
            value = dict.__getitem__(self, key)
            put(tracker, self, key, MISSING)
            return key, value
        finally:
            tracker.release()

    def clear(self) -> None:
        self._judge(dict.clear)
        tracker = acquire(self)
        try:
            for key in list(self):
                put(tracker, self, key, MISSING)
        finally:
            tracker.release()

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return copy.deepcopy(dict(self), memo)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return dict, (dict(self),)

    def _raw(self) -> dict[str, Any]:
        return self

    def _exact(self, key: Any) -> str:
        if isinstance(key, str):
            return str.__str__(key)
        raise Intake(self, self._tracker)._error(f"a key must be a string, not {type(key).__qualname__}")

    def _own(self, key: Any) -> Any:
        """The exact string that stands for a key, `None` if it is not there. Hashing and comparing another object is code of authors: not under the lock."""
        if type(key) is str:
            return key
        if isinstance(key, str):
            return str.__str__(key)
        return next((own for own in self if own == key), None) if key in self else None

    def _judge(self, method: Callable[..., Any], *args: Any) -> None:
        if self._spec is not None and self._spec.whole is not None:
            candidate = dict(self)
            method(candidate, *args)
            self._spec.whole(self, candidate)

    def _change(self, changes: dict[Any, Any], *, only_missing: bool = False) -> None:
        spec = self._spec
        inner: Spec | None = None
        intake = Intake(self, self._tracker)
        taken = {}
        for key, value in changes.items():
            if type(key) is not str:
                key = self._exact(key)
            if dict.get(self, key, MISSING) is value:
                continue
            if spec is not None:
                value, inner = spec.item(value, key), spec.at(key)
            taken[key] = intake.member(value, key, inner)
        self._judge(dict.update, taken)
        tracker = acquire(self)
        try:
            intake.admit(tracker)
            for key, value in taken.items():
                if not (only_missing and key in self):
                    put(tracker, self, key, value)
        finally:
            tracker.release()


class TrackedList(Node, list[Any]):
    """A list of JSON whose changes a document finds.

    Made by the document from every list that is put into it; one that you make yourself is adopted as it is when it is put in.

    Every mutator raises `StateError`, and changes nothing, if a value cannot be part of a state.
    """

    __slots__ = (*SLOTS, "__weakref__", "_shift")

    def __new__(cls: type[L], *args: Any) -> L:
        self = list.__new__(cls)
        self._tracker = LOOSE
        self._parents = self._key = self._old = self._spec = None
        self._shift = 0
        return self

    def __init__(self, iterable: Iterable[Any] = ()) -> None:
        self[:] = iterable

    def append(self, value: Any) -> None:
        cls = type(value)
        if self._spec is None and (cls in ATOMS or (cls is float and isfinite(value))):
            tracker = acquire(self)
            try:
                size = len(self)
                self._splice(tracker, size, size, [value])
            finally:
                tracker.release()
        else:
            self._insert(None, [value])

    def extend(self, iterable: Iterable[Any]) -> None:
        self._insert(None, list(iterable))

    def insert(self, index: SupportsIndex, value: Any) -> None:
        self._insert(operator.index(index), [value])

    def __iadd__(self: L, iterable: Iterable[Any]) -> L:  # type: ignore[override, misc]
        self._insert(None, list(iterable))
        return self

    def __imul__(self: L, times: SupportsIndex) -> L:
        count = operator.index(times)
        self._judge(list.__imul__, count)
        tracker = acquire(self)
        try:
            size = len(self)
            if count <= 0:
                self._splice(tracker, 0, size, [])
            elif count > 1 and size:
                self._splice(tracker, size, size, list(self) * (count - 1))
        finally:
            tracker.release()
        return self

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            self._set_slice(_exact_slice(index), list(value))
            return
        index = operator.index(index)
        cls = type(value)
        intake = None
        if self._spec is not None or not (cls in ATOMS or (cls is float and isfinite(value))):
            if -len(self) <= index < len(self) and self[index] is value:
                return
            intake = Intake(self, self._tracker)
            value = self._take(intake, value, index + len(self) if index < 0 else index)
            if -len(self) <= index < len(self):
                self._judge(list.__setitem__, index, value)
        tracker = acquire(self)
        try:
            size = len(self)
            if index < 0:
                index += size
            if not 0 <= index < size:
                raise IndexError("list assignment index out of range")
            if intake is not None:
                intake.admit(tracker)
            self._set(tracker, index, value)
        finally:
            tracker.release()

    def __delitem__(self, index: Any) -> None:
        if isinstance(index, slice):
            index = _exact_slice(index)
            self._judge(list.__delitem__, index)
            tracker = acquire(self)
            try:
                places = range(*index.indices(len(self)))
                if places:
                    lo, hi = sorted((places[0], places[-1]))
                    gone = set(places) if len(places) != hi + 1 - lo else None
                    keep = [] if gone is None else [self[at] for at in range(lo, hi + 1) if at not in gone]
                    self._splice(tracker, lo, hi + 1, keep)
            finally:
                tracker.release()
        else:
            self._pop(operator.index(index), "list assignment index out of range")

    def pop(self, index: SupportsIndex = -1) -> Any:
        if not self:
            raise IndexError("pop from empty list")
        return self._pop(operator.index(index), "pop index out of range")

    def remove(self, value: Any) -> None:
        while True:
            try:
                index = self.index(value)
            except ValueError:
                raise ValueError("list.remove(x): x not in list") from None
            found = self[index : index + 1]
            self._judge(list.__delitem__, index)
            tracker = acquire(self)
            try:
                if found and index < len(self) and self[index] is found[0]:
                    self._splice(tracker, index, index + 1, [])
                    return
            finally:
                tracker.release()

    def clear(self) -> None:
        self._judge(list.clear)
        tracker = acquire(self)
        try:
            self._splice(tracker, 0, len(self), [])
        finally:
            tracker.release()

    def reverse(self) -> None:
        self._judge(list.reverse)
        tracker = acquire(self)
        try:
            self._splice(tracker, 0, len(self), self[::-1])
        finally:
            tracker.release()

    def sort(self, *, key: Callable[[Any], Any] | None = None, reverse: bool = False) -> None:
        while True:
            before = list(self)
            after = sorted(before, key=key, reverse=reverse)  # type: ignore[type-var, arg-type]
            if self._spec is not None and self._spec.whole is not None:
                self._spec.whole(self, list(after))
            tracker = acquire(self)
            try:
                if len(self) == len(before) and all(map(operator.is_, self, before)):
                    self._splice(tracker, 0, len(before), after)
                    return
            finally:
                tracker.release()

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return copy.deepcopy(list(self), memo)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return list, (list(self),)

    def _members(self) -> Iterable[tuple[int, Any]]:
        return enumerate(self)

    def _places(self, value: Any, hint: Any, count: int) -> list[Any]:
        if count == 1:
            index = hint + self._shift
            size = len(self)
            if 0 <= index < size and self[index] is value:
                return [index]
            for near in range(max(index - NEAR, 0), min(index + NEAR, size)):
                if self[near] is value:
                    return [near]
            self._hint()
        return [index for index, member in enumerate(self) if member is value]

    def _hint(self) -> None:
        """Tells all children where they are. The edit that moved so many was O(length) already."""
        self._shift = 0
        opaque = self._tracker.opaque
        for index, member in enumerate(self):
            if type(member) not in PLAIN:
                child = member if isinstance(member, Node) else opaque.get(id(member))
                if child is not None:
                    if type(child._parents) is dict:
                        link = child._parents.get(id(self))
                        if link is not None and link[0]() is self:
                            link[2] = index
                    else:
                        child._key = index

    def _judge(self, method: Callable[..., Any], *args: Any) -> None:
        if self._spec is not None and self._spec.whole is not None:
            candidate = list(self)
            method(candidate, *args)
            self._spec.whole(self, candidate)

    def _take(self, intake: Intake, value: Any, index: int) -> Any:
        if self._spec is None:
            return intake.member(value, index)
        return intake.member(self._spec.item(value), index, self._spec.inner)

    def _insert(self, index: int | None, values: list[Any]) -> None:
        if not values:
            return
        intake = Intake(self, self._tracker)
        size = len(self)
        at = size if index is None else min(max(index + size if index < 0 else index, 0), size)
        values = [self._take(intake, value, at + offset) for offset, value in enumerate(values)]
        self._judge(list.__setitem__, slice(at, at), values)
        tracker = acquire(self)
        try:
            intake.admit(tracker)
            size = len(self)
            at = size if index is None else min(max(index + size if index < 0 else index, 0), size)
            self._splice(tracker, at, at, values)
        finally:
            tracker.release()

    def _set_slice(self, index: slice, values: list[Any]) -> None:
        intake = Intake(self, self._tracker)
        places = range(*index.indices(len(self)))
        start = places.start
        values = [self._take(intake, value, start + offset * places.step) for offset, value in enumerate(values)]
        self._judge(list.__setitem__, index, values)
        tracker = acquire(self)
        try:
            lo, hi, step = index.indices(len(self))
            if step == 1:
                intake.admit(tracker)
                self._splice(tracker, lo, max(lo, hi), values)
                return
            places = range(lo, hi, step)
            if len(places) != len(values):
                raise ValueError(
                    f"attempt to assign sequence of size {len(values)} to extended slice of size {len(places)}"
                )
            intake.admit(tracker)
            for at, value in zip(places, values, strict=True):
                self._set(tracker, at, value)
        finally:
            tracker.release()

    def _pop(self, index: int, message: str) -> Any:
        if -len(self) <= index < len(self):
            self._judge(list.pop, index)
        tracker = acquire(self)
        try:
            size = len(self)
            if index < 0:
                index += size
            if not 0 <= index < size:
                raise IndexError(message)
            value = self[index]
            self._splice(tracker, index, index + 1, [])
            return value
        finally:
            tracker.release()

    # The two edits of which all others are made, under the lock

    def _set(self, tracker: Tracker, index: int, value: Any, *, log: bool = True) -> None:
        old = self[index]
        if old is value:
            return
        record = self._old
        if record is None:
            record = tracker.begin(self, {LENGTH: len(self)})
        if type(value) is int and not -SAFE <= value <= SAFE:
            tracker.large = self, index
        note_slot(record, index, old)
        if log and tracker.log is not None:
            tracker.log.append((TrackedList._set_back, self, tracker, index, old))
        list.__setitem__(self, index, value)
        if type(old) not in PLAIN:
            tracker.unlink(old, self)
        if type(value) not in PLAIN:
            tracker.link(value, self, index - self._shift)

    def _splice(self, tracker: Tracker, lo: int, hi: int, values: list[Any], *, log: bool = True) -> None:
        if lo == hi and not values:
            return
        size = len(self)
        record = self._old
        if record is None:
            record = tracker.begin(self, {LENGTH: size})
        noted = note_splice(record, self, lo, hi, len(values))
        if noted is not record and tracker.active:
            self._old = noted
        old = self[lo:hi]
        if log and tracker.log is not None:
            tracker.log.append((TrackedList._splice_back, self, tracker, lo, lo + len(values), old))
        list.__setitem__(self, slice(lo, hi), values)
        moved = len(values) - len(old)
        if moved and lo < size // 2:
            # Fewer children stand before the edit than behind it: those behind keep their hints, as all are read with this added.
            self._shift += moved
        for value in old:
            if type(value) not in PLAIN:
                tracker.unlink(value, self)
        base = lo - self._shift
        for offset, value in enumerate(values):
            kind = type(value)
            if kind not in PLAIN:
                tracker.link(value, self, base + offset)
            elif kind is int and not -SAFE <= value <= SAFE:
                tracker.large = self, lo + offset

    def _set_back(self, tracker: Tracker, index: int, old: Any) -> None:
        self._set(tracker, index, old, log=False)

    def _splice_back(self, tracker: Tracker, lo: int, hi: int, old: list[Any]) -> None:
        self._splice(tracker, lo, hi, old, log=False)


NEAR = 32
"""How far around its hint a child is looked for before all are told where they are."""

CONTAINERS[dict] = TrackedDict
CONTAINERS[list] = TrackedList


def _exact_slice(index: slice) -> slice:
    # `__index__` of the parts is code of authors: it runs now, not under the lock.
    return slice(*[None if part is None else operator.index(part) for part in (index.start, index.stop, index.step)])
