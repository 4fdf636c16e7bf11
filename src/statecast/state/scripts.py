"""The edit script of a list: the fewest additions, removals and replacements that its hunks need."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from itertools import chain
from typing import Any

from .splices import Hunk
from .tracker import PLAIN

__all__ = ["script"]

Step = tuple[str, int, Any]
Pair = tuple[int, int]
Equal = Callable[[Any, Any], bool]
LARGE = 20_000
"""Items up to which lists of other objects are compared by their JSON."""
SMALL = 4096
"""Pairs of items up to which the longest common subsequence is found exactly."""


def script(hunks: list[Hunk], items: list[Any], equal: Equal, text: Any, whole: set[int]) -> list[Step]:
    """The operations `(op, index, old)` in the order in which they are applied; values are `items[index]`.

    Args:
        equal: whether an old item is, in JSON, a new one that is another object.
        text: `text(item, before=True)` of an old item equals `text(item, before=False)` of a new one of the same JSON.
        whole: receives the indices at which nothing more is to be written: new there, or equal.
    """
    steps: list[Step] = []
    if len(hunks) > 1 and _same_places(hunks, items, equal, whole):
        return steps
    for lo, hi, old in hunks:
        new = list.__getitem__(items, slice(lo, hi))
        _hunk(old, new, lo, equal, text, whole, steps)
    return steps


def _same_places(hunks: list[Hunk], items: list[Any], equal: Equal, whole: set[int]) -> bool:
    """Whether all items have the JSON of the old ones at their places, as in `[1, 1]` turned round.

    Ends at the first that does not.
    """
    if sum(hi - lo - len(old) for lo, hi, old in hunks):
        return False
    found = set()
    place = at = hunks[0][0]
    for lo, hi, old in hunks:
        for before in chain(map(items.__getitem__, range(at, lo)), old):
            after = list.__getitem__(items, place)
            if before is not after:
                if identity(before) != identity(after) and not equal(before, after):
                    return False
                found.add(place)
            place += 1
        at = hi
    whole |= found
    return True


def _hunk(old: list[Any], new: list[Any], lo: int, equal: Equal, text: Any, whole: set[int], steps: list[Step]) -> None:
    if not old:
        whole.update(range(lo, lo + len(new)))
        steps += [("add", index, None) for index in range(lo, lo + len(new))]
        return
    if not new:
        steps += [("remove", lo, None)] * len(old)
        return

    def alike(before: int, after: int) -> bool:
        if old[before] is new[after]:
            return True
        if equal(old[before], new[after]):
            whole.add(lo + after)
            return True
        return False

    first, last_old, last_new = 0, len(old), len(new)
    while first < last_old and first < last_new and alike(first, first):
        first += 1
    while last_old > first and last_new > first and alike(last_old - 1, last_new - 1):
        last_old -= 1
        last_new -= 1
    anchors = _anchors(old[first:last_old], new[first:last_new], equal, text)
    anchors = [(first + before, first + after) for before, after in anchors]
    before = after = first
    for next_before, next_after in (*anchors, (last_old, last_new)):
        for at in range(min(next_before - before, next_after - after)):
            steps.append(("replace", lo + after + at, old[before + at]))
            whole.add(lo + after + at)
        removed, added = next_before - before, next_after - after
        for _ in range(added, removed):
            steps.append(("remove", lo + next_after, None))
        for at in range(removed, added):
            steps.append(("add", lo + after + at, None))
            whole.add(lo + after + at)
        if next_after < last_new and old[next_before] is not new[next_after]:
            whole.add(lo + next_after)
        before, after = next_before + 1, next_after + 1


def _anchors(old: list[Any], new: list[Any], equal: Equal, text: Any) -> list[Pair]:
    """Which old item stays as which new one: by place, by identity, or by JSON, whatever needs the fewest operations."""
    if not old or not new:
        return []
    sizes = len(old), len(new)
    best: list[Pair] = []
    if max(sizes) > 1:
        ones, twos = list(map(identity, old)), list(map(identity, new))
        best = common(ones, twos)
        if _count(best, *sizes) == abs(sizes[0] - sizes[1]):
            return best
    by_place = [(at, at) for at in range(min(sizes)) if old[at] is new[at] or equal(old[at], new[at])]
    best = min(by_place, best, key=lambda pairs: _count(pairs, *sizes))
    if 1 < max(sizes) <= LARGE and 2 * len(best) < min(sizes) and 2 * len(set(twos) - set(ones)) > sizes[1]:
        # Most are other objects, as in a table that was loaded again.
        ones = [text(item, before=True) for item in old]
        twos = [text(item, before=False) for item in new]
        best = min(best, common(ones, twos), key=lambda pairs: _count(pairs, *sizes))
    return best


def _count(anchors: list[Pair], old: int, new: int) -> int:
    """How many operations are needed between these anchors."""
    count = before = after = 0
    for next_before, next_after in (*anchors, (old, new)):
        count += max(next_before - before, next_after - after)
        before, after = next_before + 1, next_after + 1
    return count


def common(ones: list[Any], twos: list[Any]) -> list[Pair]:
    """A long common subsequence: pairs of places at which both lists have equal items."""
    if len(ones) * len(twos) <= SMALL:
        return _exact(ones, twos)
    if len(ones) >= len(twos):
        within = _within(twos, ones)
        return _unique(ones, twos) if within is None else list(zip(within, range(len(twos)), strict=True))
    within = _within(ones, twos)
    return _unique(ones, twos) if within is None else list(zip(range(len(ones)), within, strict=True))


def _within(few: list[Any], many: list[Any]) -> list[int] | None:
    """Where the items of `few` stand in `many` if they all do, in the same order, as after a filter; else `None`."""
    found = []
    at = iter(range(len(many)))
    for item in few:
        for place in at:
            if many[place] == item:
                found.append(place)
                break
        else:
            return None
    return found


def identity(item: Any) -> Any:
    """Equal for two items that are the same object, or the same JSON scalar."""
    kind = type(item)
    if kind not in PLAIN:
        return id(item)
    return kind, repr(item) if kind is float else item


def _exact(ones: list[Any], twos: list[Any]) -> list[Pair]:
    width = len(twos) + 1
    best = [[0] * width for _ in range(len(ones) + 1)]
    for before in range(len(ones) - 1, -1, -1):
        row, below = best[before], best[before + 1]
        for after in range(len(twos) - 1, -1, -1):
            row[after] = below[after + 1] + 1 if ones[before] == twos[after] else max(below[after], row[after + 1])
    pairs = []
    before = after = 0
    while before < len(ones) and after < len(twos):
        if ones[before] == twos[after]:
            pairs.append((before, after))
            before += 1
            after += 1
        elif best[before + 1][after] >= best[before][after + 1]:
            before += 1
        else:
            after += 1
    return pairs


def _unique(ones: list[Any], twos: list[Any]) -> list[Pair]:
    """Over the items that are in each list once: the longest increasing run of their places, in n log n."""
    in_ones, in_twos = Counter(ones), Counter(twos)
    places = {one: at for at, one in enumerate(ones) if in_ones[one] == 1 and in_twos.get(one) == 1}
    pairs = [(places[two], after) for after, two in enumerate(twos) if two in places]
    ends: list[int] = []
    end_pairs: list[int] = []
    previous: list[int] = []
    for index, (before, _) in enumerate(pairs):
        at = bisect_left(ends, before)
        previous.append(end_pairs[at - 1] if at else -1)
        ends[at : at + 1] = [before]
        end_pairs[at : at + 1] = [index]
    run = []
    index = end_pairs[-1] if end_pairs else -1
    while index >= 0:
        run.append(pairs[index])
        index = previous[index]
    return run[::-1]
