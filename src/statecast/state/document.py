"""Document: a tracked value and what its consumer holds; `take()` says what the consumer must be told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from .intake import Intake
from .mutations import readopt
from .pointer import split
from .positions import find
from .schema import StateType
from .taking import Taking
from .tracker import MISSING, PLAIN, Node

__all__ = ["Document"]

T = TypeVar("T")


class Document(Taking, Generic[T]):
    """A value whose changes are found, and what its consumer holds of it.

    Args:
        value: JSON, or what is written as JSON. Plain dicts and lists are taken over as tracked ones: change `document.value`.
        type: the type of the value, an annotation or a `StateType`, to which what is assigned to `value` is held; `None`: any
            JSON.
        baseline: what the consumer holds now (`None` is JSON null). It is copied. `MISSING`: unknown, the first `take()` gives
            a `Snapshot`.
        debug: check every patch against a copy of the consumer's state. Costs the size of the state at each take, and keeps it
            twice.
        on_change: called once when the document goes from clean to dirty, in the thread that changed it, outside the lock.

    Raises:
        StateError: the value is not of the type, cannot be part of a state, or belongs to another document.
    """

    def __init__(
        self,
        value: T,
        *,
        type: Any = None,
        baseline: Any = MISSING,
        debug: bool = False,
        on_change: Callable[[], None] | None = None,
    ) -> None:
        self.type = type if type is None or isinstance(type, StateType) else StateType(type)
        super().__init__(baseline=baseline, debug=debug, on_change=on_change)
        self._replace(value)
        self._old_root = MISSING

    @property
    def value(self) -> T:
        """The value: edit it, or assign a new one."""
        return self._root  # type: ignore[no-any-return]

    @value.setter
    def value(self, value: T) -> None:
        if value is not self._root:
            self._replace(value)

    @property
    def on_change(self) -> Callable[[], None] | None:
        """What is called when the document goes from clean to dirty; it can be given later than the value."""
        return self._tracker.on_change

    @on_change.setter
    def on_change(self, on_change: Callable[[], None] | None) -> None:
        self._tracker.on_change = on_change

    def touch(self, pointer: str = "") -> None:
        """Something at this JSON pointer changed that Python could not show: the next `take()` looks at it.

        What is no container and no object of its own is sent with the container or the model that holds it.

        Raises:
            ValueError: not a pointer.
            LookupError: there is nothing at it.
        """
        value: Any = self._root
        followed = value
        for token in split(pointer):
            if id(value) in self._tracker.opaque:
                break  # What an object of somebody else's holds is compared with the whole of it.
            try:
                value = find(value, token)
            except LookupError:
                if not isinstance(value, Node) or not value._derives:
                    raise LookupError(f"there is nothing at {pointer!r} in the state") from None
                break  # What only a model's own serializer knows is written with the model.
            if isinstance(value, Node) or id(value) in self._tracker.opaque:
                followed = value
        if isinstance(followed, Node):
            readopt(followed)
        with self._tracker.lock:
            self._touched[id(followed)] = followed
            self._usual = False
            self._tracker.signal()
            self._tracker.edits += 1
        self._tracker.notify()

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Changes of the block go out together, or not at all: if it raises, whatever was changed since it began is undone.

        A batch in a batch is a savepoint. `take()` gives nothing while one is open. Values inside opaque objects are not
        undone.
        """
        tracker = self._tracker
        with tracker.lock:
            start = tracker.savepoint()
        try:
            yield
        except BaseException:
            with tracker.lock:
                tracker.undo(start)
            raise
        finally:
            with tracker.lock:
                tracker.end_savepoint()
                if tracker.log is None:
                    tracker.signal_again()
            tracker.notify()

    def _replace(self, value: Any) -> None:
        tracker = self._tracker
        spec = None
        if self.type is not None:
            value, spec = self.type.accept(value)
        intake = Intake(None, tracker)
        value = intake.root(value, spec)
        tracker.lock.acquire()
        try:
            intake.admit(tracker)
            if tracker.log is not None:
                tracker.log.append((self._set_root, self._root))
            if self._root is not MISSING:
                tracker.signal()
            self._set_root(value)
        finally:
            tracker.release()

    def _set_root(self, value: Any) -> None:
        tracker = self._tracker
        self._usual = False
        if self._old_root is MISSING:
            self._old_root = self._root
        self._root = value
        tracker.set_root(value)
        self._root_entry = None if isinstance(value, Node) or type(value) in PLAIN else tracker.opaque.get(id(value))
