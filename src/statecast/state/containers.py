"""A real dict and a real list that remember what changed.

Reading is the built-in's own: only what changes them is overridden, and what would copy them as tracked. Where they differ
from what a reader may expect:

* `copy()`, slices, `+` and `|` give plain containers with the tracked children; `copy.deepcopy` and pickle give plain values
  all the way down, as two documents cannot share a container.
* What is assigned is taken over: a plain dict or list becomes a tracked one, and the original is not the state.
* `sort` and `remove` call keys and comparisons before they change anything, on a copy, and start again if another thread
  changed the list meanwhile.
* What C code or a call on the class writes past the methods cannot be noticed: `heapq` on a tracked list,
  `dict.__setitem__(state, ...)`, `list.append(state.rows, ...)`. Debug mode finds it, and `Document.touch` tells of it.
"""

from __future__ import annotations

from .dicts import TrackedDict
from .intake import CONTAINERS
from .lists import TrackedList

__all__ = ["TrackedDict", "TrackedList"]

CONTAINERS[dict] = TrackedDict
CONTAINERS[list] = TrackedList
