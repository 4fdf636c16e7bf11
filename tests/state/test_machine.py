"""Random edits of a document and of a plain twin: after every take the consumer holds the twin's JSON."""

import json
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import strict_patch
from interop_support import apply_patches
from state_machine_support import FILL, Twin, text

COUNTS = st.integers(min_value=1, max_value=5)


class Edits(RuleBasedStateMachine):
    """Every mutator, aliases, moves, nesting, replacement of the whole, batches that fail, takes of all kinds."""

    debug = False

    @initialize(data=st.data(), fill=st.booleans())
    def begin(self, data: st.DataObject, fill: bool) -> None:
        self.data = data
        # The first half of a state that is long enough is written as deltas, not as snapshots.
        root = {"a": [], "b": {}, **({"fill": FILL} if fill else {})}
        self.twin = Twin(lambda count: self.data.draw(st.integers(0, count - 1)), root, debug=self.debug)
        self.twin.take()

    @rule(data=st.data(), count=COUNTS)
    def edit(self, data: st.DataObject, count: int) -> None:
        self.data = data
        for _ in range(count):
            self.twin.step()

    @rule(data=st.data())
    def move(self, data: st.DataObject) -> None:
        self.data = data
        self.twin.move()

    @rule(data=st.data())
    def replace_root(self, data: st.DataObject) -> None:
        self.data = data
        self.twin.replace_root()

    @rule(data=st.data(), count=COUNTS, nested=st.booleans())
    def failing_batch(self, data: st.DataObject, count: int, nested: bool) -> None:
        self.data = data
        self.twin.failing_batch(count, nested=nested)

    @rule(data=st.data(), count=COUNTS)
    def batch(self, data: st.DataObject, count: int) -> None:
        self.data = data
        with self.twin.document.batch():
            for _ in range(count):
                self.twin.step()

    @rule(delta=st.sampled_from([True, True, True, False]), compare=st.booleans())
    def take(self, delta: bool, compare: bool) -> None:
        self.twin.take(delta=delta, compare=compare)

    @rule()
    def resync(self) -> None:
        self.twin.document.resync()
        self.twin.consumer = None
        self.twin.take()

    @precondition(lambda self: hasattr(self, "twin"))
    @invariant()
    def same_value(self) -> None:
        assert text(self.twin.document.value) == text(self.twin.plain)

    def teardown(self) -> None:
        if hasattr(self, "twin"):
            self.twin.take()
            for before, ops, after in self.twin.patches:
                assert text(strict_patch.apply(before, ops)) == text(after)


class EditsInDebugMode(Edits):
    debug = True


RUN = settings(
    max_examples=60,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
Edits.TestCase.settings = RUN
EditsInDebugMode.TestCase.settings = settings(RUN, max_examples=20)
TestEdits = Edits.TestCase
TestEditsInDebugMode = EditsInDebugMode.TestCase


def sample(seeds: range) -> list[tuple[Any, Any, Any]]:
    """Patches of seeded runs: the same ones each time."""
    patches: list[tuple[Any, Any, Any]] = []
    for seed in seeds:
        generator = random.Random(seed)
        twin = Twin(generator.randrange, {"a": [], "b": {}, "fill": FILL})
        twin.take()
        for _ in range(40):
            choice = generator.randrange(20)
            if choice < 12:
                twin.step()
            elif choice < 14:
                twin.move()
            elif choice == 14:
                twin.failing_batch(generator.randrange(4), nested=True)
            elif choice == 15 and generator.randrange(3) == 0:
                twin.replace_root()
            else:
                twin.take()
        patches += twin.patches
    return patches


def test_a_strict_applier_comes_to_the_same_state() -> None:
    patches = sample(range(150))
    assert len(patches) > 700
    for before, ops, after in patches:
        assert text(strict_patch.apply(before, ops)) == text(after)


def test_the_library_that_the_clients_use_comes_to_the_same_state() -> None:
    patches = sample(range(150, 300))
    assert {op["op"] for _, ops, _ in patches for op in ops} == {"add", "remove", "replace"}
    answers = apply_patches([(before, ops) for before, ops, _ in patches])
    for answer, (_, ops, after) in zip(answers, patches, strict=True):
        assert "error" not in answer, (answer, ops)
        # JavaScript has one kind of number: 1 and 1.0 are the same there, and so are 0.0 and -0.0.
        assert answer["result"] == json.loads(json.dumps(after), parse_float=lambda number: float(number) or 0), ops


@pytest.mark.parametrize("seed", range(3))
def test_long_lists_with_many_edits_between_two_takes(seed: int) -> None:
    generator = random.Random(seed)
    twin = Twin(generator.randrange, {"a": [{"n": number} for number in range(150)], "fill": FILL * 20})
    twin.take()
    for _ in range(60):
        for _ in range(generator.randrange(90)):
            twin.edit_list()
            if len(twin.plain.get("a", [])) > 400:
                del twin.document.value["a"][200:]
                del twin.plain["a"][200:]
        twin.take()
