"""Debug mode: a copy of what the consumer holds, and the plain originals of what was put in, checked at every take."""

from __future__ import annotations

import logging
import weakref
from collections import deque
from typing import Any

from jsonpatch import JsonPatch, JsonPatchException
from jsonpointer import JsonPointerException

from . import pointer
from .positions import locate
from .taken import Delta, Snapshot
from .tracker import PLAIN, Node
from .values import check, decode_json, same

__all__ = ["Shadow", "difference"]

logger = logging.getLogger("statecast.state")

ORIGINALS = 1000
"""How many plain originals are watched: the last ones."""


class Shadow:
    """What the consumer holds, if it applies everything it was told.

    Args:
        value: JSON that it holds at the beginning.
    """

    def __init__(self, value: Any) -> None:
        self.value = value
        self._originals: deque[tuple[Any, Any, weakref.ref[Node]]] = deque(maxlen=ORIGINALS)

    def keep(self, original: Any, node: Node) -> None:
        """Watches a plain dict or list that was taken over as `node`: it is not the state."""
        copied = dict(original) if isinstance(original, dict) else list(original)
        self._originals.append((original, copied, weakref.ref(node)))

    def check_originals(self) -> None:
        """Logs an error for every original that was changed since it was taken over, once, and watches it no more."""
        changed = [entry for entry in self._originals if not _unchanged(entry[0], entry[1])]
        for entry in changed:
            self._originals.remove(entry)
            node = entry[2]()
            if node is not None:
                logger.error(
                    "a plain %s that was put into the state was changed afterwards; the state has its own copy: change %r",
                    type(entry[0]).__name__,
                    locate(node),
                )

    def wrong(self, taken: Delta | Snapshot | None, value: Any) -> str | None:
        """The consumer is told what was taken, when the value is `value`. Returns what would be wrong with its copy.

        Raises:
            StateError: the value is not JSON, as something was written past the methods of the state.
        """
        check(value, [])
        if isinstance(taken, Snapshot):
            self.value = decode_json(taken.json)
            return None
        if taken is not None:
            try:
                self.value = JsonPatch(decode_json(taken.json)).apply(self.value)
            except (JsonPatchException, JsonPointerException, LookupError, TypeError, ValueError) as error:
                return f"the patch cannot be applied: {error!r}"
        place = difference(self.value, value)
        return None if place is None else f"changed past the methods of the state, or a wrong patch, at {place!r}"


def _unchanged(original: Any, copy: Any) -> bool:
    if len(original) != len(copy):
        return False
    if isinstance(original, dict):
        return all(key in original and _is(original[key], member) for key, member in copy.items())
    return all(map(_is, original, copy))


def _is(one: Any, two: Any) -> bool:
    return one is two or (type(one) in PLAIN and same(one, two))


def difference(one: Any, two: Any, path: str = "") -> str | None:
    """The pointer of a place at which two plain values differ, `None` if they are the same."""
    if same(one, two):
        return None
    if type(one) is type(two) is dict and one.keys() == two.keys():
        for key, member in one.items():
            found = difference(member, two[key], f"{path}/{pointer.escape(key)}")
            if found is not None:
                return found
    if type(one) is type(two) is list and len(one) == len(two):
        for index, member in enumerate(one):
            found = difference(member, two[index], f"{path}/{index}")
            if found is not None:
                return found
    return path
