"""A document beside a plain twin: the same edits on both, and the consumer's copy must be the twin's JSON after every take.

`Twin(pick)` chooses its edits with `pick(n)`, a number below `n`, so that hypothesis or a seeded generator can drive it.
"""

import copy
import json
from collections.abc import Callable
from typing import Any

from jsonpatch import JsonPatch

from statecast.state import Delta, Document, Snapshot, TrackedDict, TrackedList

KEYS = ("a", "b", "c", "x/y", "~", "", "0")
SCALARS = (None, True, False, 0, 1, 2, 1.0, 0.0, -0.0, "", "s", "\u00e4", "two")
FILL = "f" * 700


def text(value: Any) -> str:
    """JSON text that tells apart what JSON tells apart, whatever the order of keys."""
    return json.dumps(value, sort_keys=True, allow_nan=False)


class Undo(Exception):
    """Raised inside a batch, to have it undone."""


class Twin:
    """A document and its plain twin.

    Attributes:
        patches: every patch that was taken: `(before, operations, after)`, plain JSON.
    """

    def __init__(self, pick: Callable[[int], int], root: Any = None, **options: Any) -> None:
        self.pick = pick
        self.plain: Any = {"a": [], "b": {}} if root is None else root
        self.document: Document[Any] = Document(copy.deepcopy(self.plain), **options)
        self.consumer: Any = None
        self.patches: list[tuple[Any, Any, Any]] = []
        # Containers that were seen once, and may hang nowhere now: tracked, plain.
        self.kept: list[tuple[Any, Any]] = []

    # Choosing

    def pairs(self, *, kept: bool = False) -> list[tuple[Any, Any]]:
        """All containers in the state, each with its twin; with `kept`, also what hangs in those that are kept."""
        found: list[tuple[Any, Any]] = []
        seen: set[int] = set()

        def walk(tracked: Any, plain: Any) -> None:
            if not isinstance(plain, (dict, list)) or id(plain) in seen:
                return
            seen.add(id(plain))
            found.append((tracked, plain))
            for key in plain if isinstance(plain, dict) else range(len(plain)):
                walk(tracked[key], plain[key])

        walk(self.document.value, self.plain)
        for tracked, plain in self.kept if kept else ():
            walk(tracked, plain)
        return found

    def chosen(self, kind: type) -> tuple[Any, Any] | None:
        """One container of this kind, in the state or kept."""
        pairs = [pair for pair in self.pairs() + self.kept if isinstance(pair[1], kind)]
        return pairs[self.pick(len(pairs))] if pairs else None

    def value(self, depth: int = 0) -> tuple[Any, Any]:
        """A new value or one that exists, for the document and for the twin."""
        choice = self.pick(8 if depth < 2 else 4)
        if choice < 4:
            value = SCALARS[self.pick(len(SCALARS))]
            return value, value
        if choice == 4:
            pair = self.chosen((dict, list)[self.pick(2)])
            return pair if pair is not None else (None, None)
        if choice == 5:
            made = [self.value(depth + 1) for _ in range(self.pick(4))]
            return [one for one, _ in made], [two for _, two in made]
        if choice == 6:
            keyed = {self.key(): self.value(depth + 1) for _ in range(self.pick(4))}
            return {key: one for key, (one, _) in keyed.items()}, {key: two for key, (_, two) in keyed.items()}
        if self.pick(2):
            own, other = TrackedList(), []
            return own, other
        return TrackedDict(n=1), {"n": 1}

    def key(self) -> str:
        return KEYS[self.pick(len(KEYS))]

    # Editing

    def both(self, edit: Callable[..., Any], pair: tuple[Any, Any], *values: tuple[Any, Any]) -> None:
        """The same edit on both: the same outcome, or none on both. An edit that would make a cycle is not done on the twin."""
        tracked, plain = pair
        cyclic = any(self._holds(two, plain) for _, two in values)
        shallow = copy.copy(plain)
        try:
            two = edit(plain, *[two for _, two in values])
            error: Exception | None = None
        except (KeyError, IndexError, ValueError, TypeError) as raised:
            two, error = None, raised
        if cyclic and error is None and self._reaches(plain, plain):
            # Python would make it; a state refuses it and stays as it was.
            plain.clear()
            plain.update(shallow) if isinstance(plain, dict) else plain.extend(shallow)
            try:
                edit(tracked, *[one for one, _ in values])
            except ValueError:
                return
            raise AssertionError("a cycle was accepted")
        try:
            one = edit(tracked, *[one for one, _ in values])
            other: Exception | None = None
        except (KeyError, IndexError, ValueError, TypeError) as raised:
            one, other = None, raised
        assert repr(other) == repr(error)
        if error is not None:
            return
        if isinstance(two, (dict, list)) and two is not plain and len(self.kept) < 8:
            if not any(one is kept for kept, _ in self.kept) and hasattr(one, "_tracker"):
                self.kept.append((one, two))
        else:
            assert text(one) == text(two), (one, two)

    def _holds(self, value: Any, container: Any) -> bool:
        return value is container or self._reaches(value, container)

    def _reaches(self, value: Any, container: Any, depth: int = 0) -> bool:
        if not isinstance(value, (dict, list)) or depth > 60:
            return depth > 60
        members = value.values() if isinstance(value, dict) else value
        return any(member is container or self._reaches(member, container, depth + 1) for member in members)

    def step(self) -> None:
        """One random edit."""
        if self.pick(2):
            self.edit_dict()
        else:
            self.edit_list()

    def edit_dict(self) -> None:
        pair = self.chosen(dict)
        if pair is None:
            return
        key, value, choice = self.key(), self.value(), self.pick(12)
        if choice < 4:
            self.both(lambda d, v: d.__setitem__(key, v), pair, value)
        elif choice == 4:
            self.both(lambda d: d.__delitem__(key), pair)
        elif choice == 5:
            self.both(lambda d, v: d.setdefault(key, v) if isinstance(v, int) else d.setdefault(key), pair, value)
        elif choice == 6:
            self.both(lambda d: d.pop(key, None), pair)
        elif choice == 7:
            self.both(lambda d: d.popitem(), pair)
        elif choice == 8:
            other = self.key()
            self.both(lambda d, v: d.update({key: v, other: 1}), pair, value)
        elif choice == 9:
            self.both(lambda d, v: d.__ior__([(key, v)]), pair, value)
        elif choice == 10:
            self.both(lambda d: d.pop(key), pair)
        elif self.pick(3) == 0:
            self.both(lambda d: d.clear(), pair)

    def edit_list(self) -> None:
        pair = self.chosen(list)
        if pair is None:
            return
        size = len(pair[1])
        at, to, value, choice = self.pick(size + 3) - 1, self.pick(size + 3) - 1, self.value(), self.pick(22)
        if choice < 3:
            self.both(lambda x, v: x.append(v), pair, value)
        elif choice == 3:
            self.both(lambda x, v: x.insert(at, v), pair, value)
        elif choice == 4:
            self.both(lambda x, v: x.insert(0, v), pair, value)
        elif choice == 5:
            self.both(lambda x: x.pop(at), pair)
        elif choice == 6:
            self.both(lambda x: x.pop(), pair)
        elif choice == 7:
            self.both(lambda x: x.pop(0), pair)
        elif choice < 10:
            self.both(lambda x, v: x.__setitem__(at, v), pair, value)
        elif choice == 10:
            self.both(lambda x: x.__delitem__(at), pair)
        elif choice == 11:
            more = self.value()
            self.both(lambda x, v, w: x.extend(iter([v, w])), pair, value, more)
        elif choice == 12:
            self.both(lambda x, v: x.__setitem__(slice(at, to), [v]), pair, value)
        elif choice == 13:
            self.both(lambda x: x.__delitem__(slice(at, to)), pair)
        elif choice == 14:
            step = (-1, 2, -2, 3)[self.pick(4)]
            self.both(lambda x: x.__delitem__(slice(None, None, step)), pair)
        elif choice == 15:
            step = (-1, 2, -2, 3)[self.pick(4)]
            self.both(lambda x, v: x.__setitem__(slice(None, None, step), [v] * len(x[::step])), pair, value)
        elif choice == 16:
            self.both(lambda x: x.reverse(), pair)
        elif choice == 17:
            self.both(lambda x: x.sort(key=text, reverse=bool(at % 2)), pair)
        elif choice == 18:
            if size < 6:
                times = self.pick(4) - 1
                self.both(lambda x: x.__imul__(times), pair)
        elif choice == 19:
            self.both(lambda x, v: x.__iadd__([v]), pair, value)
        elif choice == 20 and size > 1:

            def swap(x: Any) -> None:
                x[0], x[-1] = x[-1], x[0]

            self.both(swap, pair)
        elif self.pick(3) == 0:
            self.both(lambda x: x.clear(), pair)

    def move(self) -> None:
        """Pops an item here and puts it there."""
        source, goal = self.chosen(list), self.chosen(list)
        if source is None or goal is None or not source[1]:
            return
        at = self.pick(len(source[1]))
        value = source[0][at], source[1][at]
        self.both(lambda x: x.__delitem__(at), source)
        self.both(lambda x, v: x.append(v), goal, value)

    def replace_root(self) -> None:
        """The whole state gives way to another one, or to a part of itself."""
        one, two = ({}, {}) if self.pick(2) else self.chosen(dict) or ({}, {})
        self.plain = two
        self.document.value = one

    # Taking

    def take(self, **options: Any) -> None:
        """The consumer applies what is taken, and must hold the twin's JSON."""
        taken = self.document.take(**options)
        before = self.consumer
        if isinstance(taken, Snapshot):
            self.consumer = json.loads(taken.json)
            assert text(taken.value) == text(self.consumer)
        elif isinstance(taken, Delta):
            assert taken.ops
            assert {op["op"] for op in taken.ops} <= {"add", "remove", "replace"}
            ops = json.loads(taken.json)
            assert text(taken.ops) == text(ops)
            self.consumer = JsonPatch(ops).apply(copy.deepcopy(before))
            self.patches.append((before, ops, copy.deepcopy(self.consumer)))
        else:
            assert taken is None
        self.check()
        if taken is not None and text(before) == text(self.consumer):
            assert before is None, f"nothing changed, but something was sent: {taken}"

    def check(self) -> None:
        assert text(self.consumer) == text(self.plain)
        assert text(self.document.value) == text(self.plain)
        for tracked, plain in self.pairs():
            assert isinstance(tracked, (TrackedDict, TrackedList))
            if isinstance(plain, dict):
                assert list(tracked) == list(plain)

    def failing_batch(self, steps: int, *, nested: bool = False) -> None:
        """A batch that is undone: values, identities and the order of keys are as before."""
        before = [(tracked, plain, copy.copy(plain), copy.copy(tracked)) for tracked, plain in self.pairs(kept=True)]
        root = self.document.value, self.plain
        kept = list(self.kept)
        try:
            with self.document.batch():
                for at in range(steps):
                    self.step()
                    if nested and at == steps // 2:
                        self.failing_batch(2)
                if self.pick(4) == 0:
                    self.replace_root()
                assert self.document.take() is None
                raise Undo
        except Undo:
            pass
        self.kept = kept
        self.plain = root[1]
        assert self.document.value is root[0]
        for tracked, plain, shallow, members in before:
            plain.clear()
            plain.update(shallow) if isinstance(plain, dict) else plain.extend(shallow)
            assert list(tracked) == list(members)
            items, others = (tracked.values(), members.values()) if isinstance(plain, dict) else (tracked, members)
            assert all(one is other for one, other in zip(items, others, strict=True))
