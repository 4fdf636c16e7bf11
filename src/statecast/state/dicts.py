"""`TrackedDict`: a real dict that remembers what changed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from math import isfinite
from typing import Any, SupportsIndex, TypeVar

from ..errors import StateError
from .intake import Intake
from .mutations import put
from .positions import located
from .tracker import LOOSE, MISSING, SLOTS, Node, Spec, acquire
from .values import ATOMS

__all__ = ["TrackedDict"]

D = TypeVar("D", bound="TrackedDict")


class TrackedDict(Node, dict[str, Any]):
    """A dict of JSON whose changes a document finds. Keys are strings.

    Made by the document from every dict that is put into it; one that you make yourself is adopted as it is when it is put in:
    the same object, so `row = TrackedDict()` can be kept and changed later.

    Every mutator raises `StateError`, and changes nothing, if a value cannot be part of a state.
    """

    __slots__ = (*SLOTS, "__weakref__")

    def __new__(cls: type[D], /, *args: Any, **kwargs: Any) -> D:
        self = dict.__new__(cls)
        self._tracker = LOOSE
        self._parents = self._key = self._old = self._spec = None
        return self

    def __init__(self, /, *args: Any, **kwargs: Any) -> None:
        if args or kwargs:
            self.update(*args, **kwargs)

    def __setitem__(self, key: str, value: Any, /) -> None:
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

    def __delitem__(self, key: str, /) -> None:
        own = self._own(key)
        self._judge(dict.pop, own, None)
        tracker = acquire(self)
        try:
            if dict.get(self, own, MISSING) is MISSING:
                raise KeyError(key)
            put(tracker, self, own, MISSING)
        finally:
            tracker.release()

    def __ior__(self: D, other: Any, /) -> D:  # type: ignore[override, misc]
        self.update(other)
        return self

    def update(self, /, *args: Any, **kwargs: Any) -> None:
        self._change(dict(*args, **kwargs))

    def setdefault(self, key: str, default: Any = None, /) -> Any:
        if key not in self:
            self._change({key: default}, only_missing=True)
        return self[key]

    def pop(self, key: str, /, *default: Any) -> Any:
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
        """The exact string that stands for a key, `None` if it is not there.

        Hashing and comparing another object is code of authors: not under the lock.
        """
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
                inner = spec.at(key)
                try:
                    value = spec.item(value, key)
                except StateError as error:
                    raise located(error, self, key) from error
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
