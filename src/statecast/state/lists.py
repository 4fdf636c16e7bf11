"""`TrackedList`: a real list that remembers what changed."""

from __future__ import annotations

import copy
import operator
import weakref
from collections.abc import Callable, Iterable
from math import isfinite
from typing import Any, SupportsIndex, TypeVar

from ..errors import StateError
from .intake import Intake
from .positions import located
from .splices import LENGTH, note_slot, note_splice
from .tracker import LOOSE, PLAIN, SLOTS, Node, Tracker, acquire
from .values import ATOMS, SAFE

__all__ = ["TrackedList"]

L = TypeVar("L", bound="TrackedList")

NEAR = 32
"""How far around its hint a child is looked for before all are told where they are."""

TRIES = 8
"""How often a sort starts again because the list was changed meanwhile, before it keeps other threads out."""


class TrackedList(Node, list[Any]):
    """A list of JSON whose changes a document finds.

    Made by the document from every list that is put into it; one that you make yourself is adopted as it is when it is put in.

    Every mutator raises `StateError`, and changes nothing, if a value cannot be part of a state.
    """

    __slots__ = (*SLOTS, "__weakref__", "_shift")

    def __new__(cls: type[L], /, *args: Any) -> L:
        self = list.__new__(cls)
        self._tracker = LOOSE
        self._parents = self._key = self._old = self._spec = None
        self._shift = 0
        return self

    def __init__(self, iterable: Iterable[Any] = (), /) -> None:
        if self or iterable != ():
            self[:] = iterable

    def append(self, value: Any, /) -> None:
        intake = None
        cls = type(value)
        if self._spec is not None or not (cls in ATOMS or (cls is float and isfinite(value))):
            intake = Intake(self, self._tracker)
            value = self._take(intake, value, len(self))
            self._judge(list.append, value)
        tracker = acquire(self)
        try:
            if intake is not None:
                intake.admit(tracker)
            size = len(self)
            record = self._old
            if record is None:
                tracker.begin(self, {LENGTH: size})
            elif type(record) is list:
                note_splice(record, self, size, size, 1)
            if tracker.log is not None:
                tracker.log.append((TrackedList._splice_back, self, tracker, size, size + 1, []))
            list.append(self, value)
            self._entered(tracker, value, size)
        finally:
            tracker.release()

    def extend(self, iterable: Iterable[Any], /) -> None:
        self._insert(None, list(iterable))

    def insert(self, index: SupportsIndex, value: Any, /) -> None:
        self._insert(operator.index(index), [value])

    def __iadd__(self: L, iterable: Iterable[Any], /) -> L:  # type: ignore[misc]
        self._insert(None, list(iterable))
        return self

    def __imul__(self: L, times: SupportsIndex, /) -> L:
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

    def __setitem__(self, index: Any, value: Any, /) -> None:
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

    def __delitem__(self, index: Any, /) -> None:
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

    def pop(self, index: SupportsIndex = -1, /) -> Any:
        if not self:
            raise IndexError("pop from empty list")
        return self._pop(operator.index(index), "pop index out of range")

    def remove(self, value: Any, /) -> None:
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
        for _ in range(TRIES):
            if self._try_to_sort(key, reverse):
                return
        tracker = acquire(self)
        try:
            # Nobody else can change it now.
            if not self._try_to_sort(key, reverse):
                raise ValueError("list modified during sort")
        finally:
            tracker.release()

    def _try_to_sort(self, key: Callable[[Any], Any] | None, reverse: bool) -> bool:
        """Sorts, unless the list was changed while that was prepared. Returns whether it did."""
        before = list(self)
        after = sorted(before, key=key, reverse=reverse)
        if self._spec is not None and self._spec.whole is not None:
            self._spec.whole(self, list(after))
        tracker = acquire(self)
        try:
            if len(self) != len(before) or not all(map(operator.is_, self, before)):
                return False
            self._splice(tracker, 0, len(before), after)
            return True
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
        try:
            read = self._spec.item(value)
        except StateError as error:
            raise located(error, self, index) from error
        return intake.member(read, index, self._spec.inner)

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
        note_slot(record, index, old)
        if log and tracker.log is not None:
            tracker.log.append((TrackedList._set_back, self, tracker, index, old))
        list.__setitem__(self, index, value)
        if type(old) not in PLAIN:
            tracker.unlink(old, self)
        self._entered(tracker, value, index)

    def _entered(self, tracker: Tracker, value: Any, index: int) -> None:
        kind = type(value)
        if kind not in PLAIN:
            if isinstance(value, Node) and value._parents is None:
                value._parents = weakref.ref(self)
                value._key = index - self._shift
            else:
                tracker.link(value, self, index - self._shift)
        elif kind is int and not -SAFE <= value <= SAFE:
            tracker.large = self, index

    def _splice(self, tracker: Tracker, lo: int, hi: int, values: list[Any], *, log: bool = True) -> None:
        if lo == hi and not values:
            return
        size = len(self)
        record = self._old
        if record is None:
            record = tracker.begin(self, {LENGTH: size} if hi == size else [])
        noted = note_splice(record, self, lo, hi, len(values))
        if noted is not record and tracker.active:
            self._old = noted
        old = self[lo:hi]
        if log and tracker.log is not None:
            tracker.log.append((TrackedList._splice_back, self, tracker, lo, lo + len(values), old))
        list.__setitem__(self, slice(lo, hi), values)
        moved = len(values) - len(old)
        if moved and lo < size // 2:
            # Fewer children stand before the edit than behind it: those behind keep their hints, to which this is added.
            self._shift += moved
        for value in old:
            if type(value) not in PLAIN:
                tracker.unlink(value, self)
        for index, value in enumerate(values, lo):
            self._entered(tracker, value, index)

    def _set_back(self, tracker: Tracker, index: int, old: Any) -> None:
        self._set(tracker, index, old, log=False)

    def _splice_back(self, tracker: Tracker, lo: int, hi: int, old: list[Any]) -> None:
        self._splice(tracker, lo, hi, old, log=False)


def _exact_slice(index: slice) -> slice:
    # `__index__` of the parts is code of authors: it runs now, not under the lock.
    return slice(*[None if part is None else operator.index(part) for part in (index.start, index.stop, index.step)])
