"""What types cost: one edit of a typed state and its encoded delta, beside the same edit of untyped containers.

Run it with `python tests/benchmarks/typed_state.py`. Microseconds, the best and the median of interleaved rounds.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field, computed_field, model_validator

from statecast.state import Document, State, StateType

ROUNDS = 7
EDITS = 300
SIZES = (100, 10_000)


class Item(State):
    name: str = ""
    price: float = 0.0
    tags: list[str] = []


class Shop(State):
    title: str = Field(default="", alias="theTitle")
    items: list[Item] = []
    numbers: list[int] = []
    by_name: dict[str, int] = {}


class Counted(Shop):
    @computed_field
    @property
    def count(self) -> int:
        return len(self.items)


class Judged(State):
    low: int = 0
    high: int = 10**9
    numbers: Annotated[list[int], Field(max_length=10**6)] = []

    @model_validator(mode="after")
    def ordered(self) -> Judged:
        assert self.low <= self.high
        return self


def shop(kind: type[Shop], size: int) -> Shop:
    return kind(
        items=[Item(name=f"n{i}", tags=["a"]) for i in range(size)],
        numbers=list(range(size)),
        by_name={f"n{i}": i for i in range(size)},
    )


def plain(size: int) -> dict[str, Any]:
    return shop(Shop, size).model_dump(by_alias=True)


def title(value: Any, n: int) -> None:
    value.title = f"t{n}"


def item_field(value: Any, n: int) -> None:
    value.items[n % len(value.items)].price = float(n + 1)


def nested(value: Any, n: int) -> None:
    value.items[n % len(value.items)].tags.append("x")


def append_item(value: Any, n: int) -> None:
    value.items.append(Item(name="new"))


def append_dict(value: Any, n: int) -> None:
    value.items.append({"name": "new"})


def append_number(value: Any, n: int) -> None:
    value.numbers.append(n)


def set_key(value: Any, n: int) -> None:
    value.by_name[f"n{n % 50}"] = -n - 1


def low(value: Any, n: int) -> None:
    value.low = n + 1


def plain_title(value: Any, n: int) -> None:
    value["theTitle"] = f"t{n}"


def plain_item_field(value: Any, n: int) -> None:
    value["items"][n % len(value["items"])]["price"] = float(n + 1)


def plain_nested(value: Any, n: int) -> None:
    value["items"][n % len(value["items"])]["tags"].append("x")


def plain_append_dict(value: Any, n: int) -> None:
    value["items"].append({"name": "new", "price": 0.0, "tags": []})


def plain_append_number(value: Any, n: int) -> None:
    value["numbers"].append(n)


def plain_set_key(value: Any, n: int) -> None:
    value["by_name"][f"n{n % 50}"] = -n - 1


CASES: list[tuple[str, Callable[[int], Any], Callable[[Any, int], None]]] = [
    ("dict: a field", plain, plain_title),
    ("State: a field", lambda size: shop(Shop, size), title),
    ("State with a computed field: a field", lambda size: shop(Counted, size), title),
    ("State with a validator: a field", lambda size: Judged(numbers=list(range(size))), low),
    ("dict: a field of an item", plain, plain_item_field),
    ("State: a field of an item", lambda size: shop(Shop, size), item_field),
    ("State with a computed field: of an item", lambda size: shop(Counted, size), item_field),
    ("dict: append in an item", plain, plain_nested),
    ("State: append in an item", lambda size: shop(Shop, size), nested),
    ("dict: append a dict", plain, plain_append_dict),
    ("State: append a dict", lambda size: shop(Shop, size), append_dict),
    ("State: append a State", lambda size: shop(Shop, size), append_item),
    ("dict: append a number", plain, plain_append_number),
    ("State: append a number", lambda size: shop(Shop, size), append_number),
    ("State with a constraint: append a number", lambda size: Judged(numbers=list(range(size))), append_number),
    ("dict: a key", plain, plain_set_key),
    ("State: a key", lambda size: shop(Shop, size), set_key),
]


def measure(document: Document[Any], edit: Callable[[Any, int], None], start: int) -> float:
    begun = time.perf_counter()
    for n in range(start, start + EDITS):
        edit(document.value, n)
        taken = document.take()
        assert taken is not None
        assert taken.json
    return (time.perf_counter() - begun) / EDITS * 1e6


def main() -> None:
    found: dict[tuple[str, int], list[float]] = {}
    for size in SIZES:
        documents = [(name, Document(make(size), baseline=None), edit) for name, make, edit in CASES]
        for _, document, _ in documents:
            document.take()
        gc.collect()
        for turn in range(ROUNDS):
            for name, document, edit in documents:
                found.setdefault((name, size), []).append(measure(document, edit, turn * EDITS))
    print(f"{'edit + take + JSON, microseconds':44}" + "".join(f"{f'{size:,} items':>20}" for size in SIZES))
    for name, _, _ in CASES:
        cells = (found[name, size] for size in SIZES)
        print(f"{name:44}" + "".join(f"{f'{min(cell):.1f} ({statistics.median(cell):.1f})':>20}" for cell in cells))
    kind = StateType(Shop)
    data = plain(10_000)
    for name, work in (
        ("read 10,000 items", lambda: kind.read(data)),
        ("read them, and make a document", lambda: Document(kind.read(data))),
        ("a document of plain dicts", lambda: Document(data)),
        ("pydantic alone: model_dump_json", shop(Shop, 10_000).model_dump_json),
    ):
        times = []
        for _ in range(3):
            gc.collect()
            begun = time.perf_counter()
            work()
            times.append(time.perf_counter() - begun)
        print(f"{name:44}{min(times) * 1e3:17.1f} ms")


if __name__ == "__main__":
    main()
