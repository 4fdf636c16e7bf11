"""Edits in any thread, while another one takes."""

import dataclasses
import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from jsonpatch import JsonPatch
from pydantic import computed_field

from state_support import Consumer, plain, text
from statecast import StateError
from statecast.state import Delta, Document, State, TrackedList

SECONDS = 30.0


@contextmanager
def quick_switching() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def run_all(*works: Callable[[], Any]) -> None:
    """Runs each in a thread of its own, and raises the first error."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], Any]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    with quick_switching():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
            assert not thread.is_alive(), "a thread did not come to its end"
    for error in errors:
        raise error


def hammer(document: Document[Any], edit: Callable[[Any, random.Random, str], None], steps: int) -> None:
    """Three threads edit while a fourth takes; all that was taken, applied in order, gives the value."""
    takes: list[Any] = [document.take()]
    running = [True] * 3

    def work(number: int) -> None:
        generator = random.Random(number)
        try:
            for step in range(steps):
                # Another thread may have been there first, as with plain containers.
                with suppress(IndexError, KeyError):
                    edit(document.value, generator, f"{number}-{step}")
        finally:
            running[number] = False

    def take() -> None:
        while any(running):
            takes.append(document.take())

    run_all(*[lambda number=number: work(number) for number in range(3)], take)
    takes.append(document.take())
    assert document.take() is None
    state: Any = None
    for taken in takes:
        if taken is not None:
            state = JsonPatch(taken.ops).apply(state) if isinstance(taken, Delta) else taken.value
    assert text(state) == text(plain(document.value))
    assert sum(taken is not None for taken in takes) > 1


def test_edits_of_three_threads_are_all_taken_and_all_right() -> None:
    def edit(state: Any, generator: random.Random, name: str) -> None:
        rows, boards, choice = state["rows"], state["boards"], generator.randrange(11)
        if choice == 0:
            rows.append({"n": name})
        elif choice == 1:
            rows.insert(0, {"n": name, "by": [name]})
        elif choice == 2:
            if len(rows) > 20:
                rows.pop(generator.randrange(3))
        elif choice == 3:
            state["counts"][name] = name
        elif choice == 4:
            rows[0]["n"] = name
        elif choice == 5:
            rows.sort(key=lambda row: row["n"])
        elif choice == 6:
            boards[1].append(boards[0].pop())
        elif choice == 7:
            boards[0].extend([{"x": name}, name])
        elif choice == 8:
            state["counts"].popitem()
        elif choice == 9:
            boards[1] = [*boards[1][-10:], name]
        else:
            state["selected"] = rows[0]

    hammer(Document({"rows": [{"n": ""}], "counts": {}, "boards": [[], []]}), edit, 800)


def test_ten_thousand_keys_from_two_threads_while_another_takes() -> None:
    document: Document[Any] = Document({"d": {}})
    consumer: list[Any] = [None]
    done = [0]

    def add(name: str) -> None:
        for number in range(10_000):
            document.value["d"][f"{name}{number}"] = number
        done[0] += 1

    def take() -> None:
        last = False
        while not last:
            last = done[0] == 2
            taken = document.take()
            if taken is not None:
                consumer[0] = JsonPatch(taken.ops).apply(consumer[0]) if isinstance(taken, Delta) else taken.value

    run_all(lambda: add("a"), lambda: add("b"), take)
    assert len(document.value["d"]) == 20_000
    assert text(consumer[0]) == text(document.value)


class Row(State):
    name: str = ""
    items: list[str] = []


class Board(State):
    rows: list[Row] = [Row()]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def total(self) -> int:
        return sum(len(row.items) for row in self.rows)


def test_models_with_computed_fields_are_right_too() -> None:
    def edit(state: Any, generator: random.Random, name: str) -> None:
        choice = generator.randrange(5)
        if choice == 0:
            state.rows.append(Row(name=name))
        elif choice == 1:
            state.rows[-1].items.append(name)
        elif choice == 2:
            state.rows[0].name = name
        elif choice == 3 and len(state.rows) > 5:
            state.rows.pop(1)
        else:
            state.rows[0].items = [name]

    hammer(Document(Board()), edit, 300)


def test_batches_in_a_thread_hold_the_takes_of_others() -> None:
    document: Document[Any] = Document({"a": 0, "b": 0})
    document.take()
    wrong: list[Any] = []
    state = {"a": 0, "b": 0}
    running = [True]

    def work() -> None:
        for number in range(1, 500):
            with document.batch():
                document.value["a"] = number
                document.value["b"] = number
        running[0] = False

    def take() -> None:
        while running[0]:
            taken = document.take()
            if isinstance(taken, Delta):
                state.update(JsonPatch(taken.ops).apply(state))
                if state["a"] != state["b"]:
                    wrong.append(dict(state))

    run_all(work, take)
    assert not wrong


# No code of authors runs under the lock


@pytest.fixture
def unlocked() -> Iterator[tuple[Document[Any], Callable[[], None]]]:
    """A document, and a function that fails if the lock of the document is held when it is called."""
    document: Document[Any] = Document({"d": {"a": 1}, "l": [3, 1, 2]})
    document.take()
    calls: list[bool] = []

    def check() -> None:
        got: list[bool] = []

        def attempt() -> None:
            got.append(document._tracker.lock.acquire(timeout=0.5))
            if got[0]:
                document._tracker.lock.release()

        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()
        calls.append(got[0])

    yield document, check
    assert calls
    assert all(calls), "code of the author ran under the lock"


def test_iterators_keys_and_comparisons_run_without_the_lock(unlocked: Any) -> None:
    document, check = unlocked
    state = document.value

    def values() -> Iterator[Any]:
        check()
        yield {"x": 1}

    class Key:
        def __hash__(self) -> int:
            check()
            return hash("a")

        def __eq__(self, other: object) -> bool:
            check()
            return other == "a"

    class Index:
        def __index__(self) -> int:
            check()
            return 0

    class Own(dict[str, Any]):
        def __iter__(self) -> Iterator[str]:
            check()
            return super().__iter__()

        def keys(self) -> Any:
            check()
            return super().keys()

    state["l"].extend(values())
    state["l"] += values()
    state["l"][1:2] = values()
    state["l"][::-1] = [check() for _ in state["l"]]
    state["l"].sort(key=lambda one: check() or 0)
    state["l"].insert(Index(), 1)
    state["l"].pop(Index())
    state["l"][Index()] = 1
    state["l"][Index() : Index()] = [2]
    del state["l"][Index()]
    state["l"] *= Index()
    state["d"].update((str(number), value) for number, value in enumerate(values()))
    state["d"].update(Own(b=1))
    state["d"]["own"] = Own(b=1)
    assert state["d"].pop(Key()) == 1
    document.take()


def test_what_an_opaque_value_or_a_model_runs_is_run_without_the_lock(unlocked: Any) -> None:
    document, check = unlocked

    @dataclasses.dataclass
    class Point:
        x: int = 1

        def __getattribute__(self, name: str) -> Any:
            if name == "x":
                check()
            return object.__getattribute__(self, name)

    class Made(State):
        n: int = 1

        @computed_field  # type: ignore[prop-decorator]
        @property
        def twice(self) -> int:
            check()
            return self.n * 2

    document.value["point"] = Point()
    document.value["made"] = Made()
    document.value["l"].append(Point())
    document.take()
    document.value["point"].x = 2
    document.value["made"].n = 2
    document.take()
    document.resync()
    document.take()


def test_on_change_is_called_without_the_lock(unlocked: Any) -> None:
    _, check = unlocked
    document: Document[Any] = Document({"a": 1}, baseline={"a": 1})

    def changed() -> None:
        thread = threading.Thread(target=document.take)
        thread.start()
        thread.join(5)
        assert not thread.is_alive()
        check()

    document._tracker.on_change = changed
    document.value["a"] = 2
    document.value.update(b=1)
    document.value = {}


# A change while code of authors runs


def test_a_change_during_a_comparison_is_not_lost() -> None:
    consumer = Consumer({"l": [], "n": 0})

    @dataclasses.dataclass
    class Point:
        x: int = 0

        def __getattribute__(self, name: str) -> Any:
            if name == "x" and consumer.value["n"] < 3:
                consumer.value["n"] += 1
                consumer.value["l"].insert(0, consumer.value["n"])
            return object.__getattribute__(self, name)

    consumer.value["point"] = Point()
    consumer.take()
    consumer.value["point"].x = 5
    consumer.value["n"] = 0
    consumer.take()
    consumer.take()
    assert consumer.take() is None


def test_a_change_while_a_computed_field_is_computed_is_not_lost() -> None:
    late: list[Callable[[], None]] = []

    class Counted(State):
        items: list[int] = []

        @computed_field  # type: ignore[prop-decorator]
        @property
        def total(self) -> int:
            found = len(self.items)
            if late:
                late.pop()()
            return found

    consumer = Consumer(Counted())
    consumer.value.items.append(1)
    late.append(lambda: consumer.value.items.append(2))
    consumer.take()
    assert consumer.take() is None
    assert consumer.state == {"items": [1, 2], "total": 2}


def test_a_container_that_enters_another_document_while_it_is_prepared_is_refused_here() -> None:
    one, two = Consumer({"l": []}), Consumer({})
    row = TrackedList([{"n": 1}])

    @dataclasses.dataclass
    class Thief:
        x: int = 0

        def __getattribute__(self, name: str) -> Any:
            if name == "x" and not two.value:
                two.value["row"] = row
            return object.__getattribute__(self, name)

    with pytest.raises(StateError, match="another document"):
        one.value["l"].extend([row, Thief()])
    assert one.value == {"l": []}
    two.take()
    row[0]["n"] = 2
    assert two.paths() == [("replace", "/row/0/n")]
    assert one.take() is None


def test_two_threads_that_adopt_one_container_agree_on_its_document() -> None:
    for _ in range(30):
        documents: list[Document[Any]] = [Document({}), Document({})]
        row = TrackedList([{"n": 1}])
        refused: list[int] = []
        ready = threading.Barrier(3)

        def adopt(
            number: int,
            documents: list[Document[Any]] = documents,
            row: Any = row,
            refused: list[int] = refused,
            ready: threading.Barrier = ready,
        ) -> None:
            ready.wait(SECONDS)
            try:
                documents[number].value["row"] = row
            except StateError:
                refused.append(number)

        def change(row: Any = row, ready: threading.Barrier = ready) -> None:
            ready.wait(SECONDS)
            for number in range(20):
                row[0]["n"] = number
                row.append({"m": number})

        run_all(lambda: adopt(0), lambda: adopt(1), change)
        held = [document for document in documents if "row" in document.value]
        assert len(held) + len(refused) == 2
        for document in held:
            document.take()
        row[0]["n"] = -1
        assert sum(document.take() is not None for document in held) == 1
        assert len(held) == 1
