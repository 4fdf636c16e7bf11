"""What a document says once, through logging."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

from . import pointer
from .opaque import Opaque
from .positions import locate
from .tracker import Node

__all__ = ["Notices"]

logger = logging.getLogger("statecast.state")


class Notices:
    """Each warning is logged once in the life of a document."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def large(self, node: Node | None, key: Any) -> None:
        """An integer entered that JavaScript cannot hold."""
        if self._first("large"):
            where = ("" if node is None else locate(node)) + pointer.join(key)
            logger.warning("an integer beyond 2**53 - 1 at %r: JavaScript rounds it, make it a string", where)

    def slow(self, entries: list[Opaque], seconds: float) -> None:
        """Comparing opaque values takes long."""
        if self._first("slow"):
            where = Counter(locate(entry).rpartition("/")[0] for entry in entries).most_common(1)[0][0]
            logger.warning(
                "comparing %d objects that are not tracked took %.1f ms, as it will each time: "
                "make those in %r State models, dicts or lists",
                len(entries),
                seconds * 1000,
                where,
            )

    def root(self) -> None:
        """The whole value is not an object."""
        if self._first("root"):
            logger.warning(
                "the state is not an object: AG-UI clients before 1.0 ignore null, false, 0 and an empty string"
            )

    def _first(self, kind: str) -> bool:
        if kind in self._given:
            return False
        self._given.add(kind)
        return True
