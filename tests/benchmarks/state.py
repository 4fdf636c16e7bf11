"""What one edit of a state costs, with its encoded patch, for states of 100 to 100,000 items.

`python tests/benchmarks/state.py` prints microseconds, growth with the size, patch bytes beside jsonpatch's and (with Node)
beside those of fast-json-patch's `compare`, the ratio to `deepcopy` and `make_patch`, and memory. Sizes are interleaved, as
machines change their speed while they run; the numbers are the best and the median of all rounds.
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from jsonpatch import JsonPatch, make_patch
from pydantic_core import to_json

from statecast.state import Delta, Document, Snapshot, TrackedDict, TrackedList

Edit = Callable[[Any, int], None]
SIZES = (100, 1_000, 10_000, 100_000)
SCRIPT = Path(__file__).parents[1] / "interop" / "patches.mjs"


def card(number: int) -> dict[str, Any]:
    return {"id": number, "title": f"card {number}", "tags": [number % 7]}


def board(size: int) -> dict[str, Any]:
    half = size // 2
    return {
        "todo": [card(number) for number in range(half)],
        "done": [card(number) for number in range(half, size)],
        "settings": {"theme": {"dark": 0}},
        "order": [(number * 7919) % 1009 for number in range(20)],
    }


def leaf(state: Any, step: int) -> None:
    state["settings"]["theme"]["dark"] = step


def append(state: Any, step: int) -> None:
    state["todo"].append(card(step))


def middle(state: Any, step: int) -> None:
    cards = state["todo"]
    cards[len(cards) // 2]["title"] = f"middle {step}"


def last(state: Any, step: int) -> None:
    state["todo"][-1]["title"] = f"last {step}"


def prepend(state: Any, step: int) -> None:
    state["todo"].insert(0, card(step))


def pop_first(state: Any, step: int) -> None:
    state["todo"].pop(0)


def move(state: Any, step: int) -> None:
    one, two = ("todo", "done") if step % 2 else ("done", "todo")
    cards = state[one]
    state[two].append(cards.pop(len(cards) // 3))


def sort(state: Any, step: int) -> None:
    state["order"].sort(reverse=bool(step % 2))


EDITS: dict[str, Edit] = {edit.__name__: edit for edit in (leaf, append, middle, last, prepend, pop_first, move, sort)}


def bare(step: int, store: dict[str, Any]) -> None:
    store["dark"] = step
    to_json([{"op": "replace", "path": "/settings/theme/dark", "value": step}])


def timed(function: Callable[..., Any], *arguments: Any) -> float:
    start = perf_counter()
    function(*arguments)
    return (perf_counter() - start) * 1e6


def measure(rounds: int) -> tuple[dict[str, dict[int, list[float]]], list[float]]:
    """Microseconds of each edit with its encoded delta, by size; and of the bare assignment with one encoded operation."""
    documents = {size: Document(board(size)) for size in SIZES}
    for document in documents.values():
        document.take()
    times: dict[str, dict[int, list[float]]] = {name: {size: [] for size in SIZES} for name in EDITS}
    floor: list[float] = []
    store: dict[str, Any] = {}
    gc.collect()
    gc.freeze()
    gc.disable()
    for step in range(1, rounds + 1):
        for name, edit in EDITS.items():
            for size, document in documents.items():
                state = document.value

                def once(
                    edit: Edit = edit, document: Document[Any] = document, state: Any = state, step: int = step
                ) -> None:
                    edit(state, step)
                    taken = document.take()
                    assert isinstance(taken, Delta)

                times[name][size].append(timed(once))
            floor.append(timed(bare, step, store))
    gc.enable()
    gc.unfreeze()
    return times, floor


def patch_sizes(size: int) -> dict[str, tuple[int, int, int, int | None]]:
    """Operations and bytes of each edit's patch; bytes of jsonpatch's and fast-json-patch's."""
    found: dict[str, tuple[int, int, int]] = {}
    pairs: list[tuple[Any, Any]] = []
    for name, edit in EDITS.items():
        document = Document(board(size))
        document.take()
        before = copy.deepcopy(document.value)
        edit(document.value, 1)
        taken = document.take()
        assert isinstance(taken, (Delta, Snapshot))
        after = copy.deepcopy(document.value)
        other = JsonPatch.from_diff(before, after, optimization=False).patch
        found[name] = (len(taken.ops) if isinstance(taken, Delta) else 0, len(taken.json), len(to_json(other)))
        pairs.append((before, after))
    theirs = compared(pairs)
    return {name: (*row, theirs[at] if theirs else None) for at, (name, row) in enumerate(found.items())}


def compared(pairs: list[tuple[Any, Any]]) -> list[int] | None:
    """Bytes of fast-json-patch's patches, `None` where Node or the library is missing."""
    lines = "\n".join(json.dumps({"before": before, "after": after}) for before, after in pairs)
    try:
        answer = subprocess.run(["node", str(SCRIPT)], input=lines, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if answer.returncode:
        return None
    return [json.loads(line)["bytes"] for line in answer.stdout.splitlines()]


def whole_compare(size: int) -> float:
    state = board(size)

    def once() -> None:
        before = copy.deepcopy(state)
        leaf(state, 1)
        to_json(make_patch(before, state).patch)

    return timed(once)


def memory(size: int) -> tuple[float, float]:
    """Bytes per item of a plain state, and of the same one tracked."""
    tracemalloc.start()
    plain = board(size)
    used = tracemalloc.get_traced_memory()[0]
    document = Document(plain)
    both = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert document.value is not plain
    return used / size, (both - used) / size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()

    times, floor = measure(options.rounds)
    base, base_median = min(floor), median(floor)
    print(
        f"Python {sys.version.split()[0]}; bare assignment and one encoded operation: "
        f"best {base:.2f} us, median {base_median:.2f}"
    )
    print(
        f"\n{'edit':<10}"
        + "".join(f"{size:>18,}" for size in SIZES)
        + f"{'growth':>9}{'of bare':>9}   best / median us"
    )
    for name, by_size in times.items():
        row = "".join(f"{min(found):>10.1f} /{median(found):>6.1f}" for found in by_size.values())
        growth = median(by_size[SIZES[-1]]) / median(by_size[SIZES[0]])
        print(f"{name:<10}{row}{growth:>8.1f}x{median(by_size[SIZES[-1]]) / base_median:>8.1f}x")

    print(f"\n{'patch of':<10}{'ops':>6}{'bytes':>8}{'jsonpatch':>12}{'fast-json-patch':>18}   at {1_000:,} items")
    for name, (ops, size, other, third) in patch_sizes(1_000).items():
        print(f"{name:<10}{ops:>6}{size:>8}{other:>12}{'-' if third is None else third:>18}")

    theirs = whole_compare(10_000)
    ours = median(times["leaf"][10_000])
    print(f"\ndeepcopy + make_patch at 10,000 items: {theirs / 1000:.0f} ms, {theirs / ours:,.0f} times one leaf edit")
    plain, tracked = memory(10_000)
    print(f"memory per item (a dict and a list): plain {plain:.0f} bytes, tracked {tracked:.0f}")
    sizes = [sys.getsizeof(made) for made in ({}, TrackedDict(), [], TrackedList())]
    print("empty containers: dict {} -> {}, list {} -> {}".format(*sizes))


if __name__ == "__main__":
    main()
