"""What a list remembers of its edits since the last take: its record, in one of two forms.

While only slots and the tail change it is `{LENGTH: old length, index: old item}`: an append, a pop or an assignment is O(1).
An edit in the middle turns it into *hunks*, sorted and apart: `[lo, hi, old items]` says that the items now at `lo:hi` stand in
the place of the old ones, and outside the hunks nothing changed. So a record is already the edit script of the list, and
neither a copy of the list nor a comparison of all of it is ever needed.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

__all__ = ["LENGTH", "Hunk", "hunks_of", "note_slot", "note_splice"]

LENGTH = -1
HUNKS = 256
"""More are merged into one."""

Hunk = list[Any]
Slots = dict[int, Any]
Record = Slots | list[Hunk]


def note_slot(record: Record, index: int, old: Any) -> None:
    """The item at `index` is about to be replaced."""
    if isinstance(record, list):
        splice(record, index, index + 1, 1, [old])
    elif index < record[LENGTH] and index not in record:
        record[index] = old


def note_splice(record: Record, items: list[Any], lo: int, hi: int, count: int) -> Record:
    """`items[lo:hi]` are about to be replaced by `count` others. Returns the record to keep."""
    size = len(items)
    if isinstance(record, dict):
        if hi == size and (lo == hi or not count):
            length = record[LENGTH]
            for index in range(lo, min(hi, length)):
                if index not in record:
                    record[index] = items[index]
            return record
        record = [] if len(record) == 1 and record[LENGTH] == size else hunks_of(record, size)
    if len(record) >= HUNKS:
        merge(record, items)
    splice(record, lo, hi, count, items[lo:hi])
    return record


def hunks_of(record: Record, size: int) -> list[Hunk]:
    """The hunks that a record describes, of a list that has now `size` items."""
    if isinstance(record, list):
        return record
    length = record[LENGTH]
    common = min(length, size)
    hunks: list[Hunk] = []
    for index in sorted(record):
        if index == LENGTH or index >= common:
            continue
        if hunks and hunks[-1][1] == index:
            hunks[-1][1] += 1
            hunks[-1][2].append(record[index])
        else:
            hunks.append([index, index + 1, [record[index]]])
    if length != size:
        tail = [record[index] for index in range(common, length)]
        if hunks and hunks[-1][1] == common:
            hunks[-1][1] = size
            hunks[-1][2] += tail
        else:
            hunks.append([common, size, tail])
    return hunks


def splice(hunks: list[Hunk], lo: int, hi: int, count: int, removed: list[Any]) -> None:
    """Notes that `removed`, the items at `lo:hi`, give way to `count` others."""
    if not hunks:
        hunks.append([lo, lo + count, removed])
        return
    first = bisect_left(hunks, lo, key=_end)
    last = first
    start, end, at = lo, hi, lo
    old: list[Any] = []
    while last < len(hunks) and hunks[last][0] <= hi:
        begins, ends, before = hunks[last]
        if begins > at:
            old += removed[at - lo : begins - lo]
        old += before
        start = min(start, begins)
        end = max(end, ends)
        at = ends
        last += 1
    if at < hi:
        old += removed[at - lo : hi - lo]
    moved = count - (hi - lo)
    hunks[first:last] = [[start, end + moved, old]] if old or end + moved > start else []
    if moved:
        for hunk in hunks[first + 1 if old or end + moved > start else first :]:
            hunk[0] += moved
            hunk[1] += moved


def merge(hunks: list[Hunk], items: list[Any]) -> None:
    """Makes one hunk of all."""
    first = at = hunks[0][0]
    old: list[Any] = []
    for begins, ends, before in hunks:
        old += items[at:begins]
        old += before
        at = ends
    hunks[:] = [[first, at, old]]


def _end(hunk: Hunk) -> int:
    return hunk[1]  # type: ignore[no-any-return]
