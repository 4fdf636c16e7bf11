"""What a document's consumer holds, and what it must be told to hold the value as it is now."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any

from ..errors import StateError
from .edits import Changes, diff, leaf_head, only_path
from .mutations import readopt
from .notices import Notices
from .opaque import Opaque, text_of
from .pointer import refused
from .positions import ancestors, locate
from .shadow import Shadow
from .taken import Delta, Snapshot
from .tracker import MISSING, Node, Tracker
from .values import LEAVES, decode_json, encode, jsonable, same

__all__ = ["Taking"]

logger = logging.getLogger("statecast.state")

FLOOR = 512
"""A delta shorter than this many bytes is always sent as a delta; nothing is measured."""
SLOW = 0.001
"""Seconds that a comparison of opaque values may take before a warning says so."""
TRIES = 100


class Taking:
    """The base of `Document`, which says how its value is edited: what of it changed since the last take.

    Args:
        baseline: JSON that the consumer holds now. `MISSING`: unknown.
        debug: check every patch against a copy of what the consumer holds.
        on_change: called once when the document goes from clean to dirty.
    """

    def __init__(self, *, baseline: Any, debug: bool, on_change: Callable[[], None] | None) -> None:
        self.debug = debug
        self._tracker = Tracker(self, on_change)
        self._baseline = baseline if baseline is MISSING else jsonable(baseline)
        self._fresh = baseline is MISSING
        self._root: Any = MISSING
        self._old_root: Any = MISSING
        self._root_entry: Opaque | None = None
        self._size: int | None = None
        self._notices = Notices()
        # The last one of `take_leaf`, and the beginning of its text.
        self._leaf_key: str | None = None
        self._leaf_path = ""
        self._leaf_names: Any = None
        self._leaf_head = b""
        # Whether nothing but edits of containers can have happened since the last take.
        self._usual = False
        self._touched: dict[int, Any] = {}
        self._shadow = Shadow(self._baseline) if debug else None
        self._written_past = False
        if self._shadow is not None:
            self._tracker.original = self._shadow.keep

    @property
    def compares(self) -> bool:
        """Whether there is anything whose changes only a comparison finds."""
        return self.debug or bool(self._tracker.opaque or self._tracker.volatile)

    def resync(self) -> None:
        """The next `take()` is a `Snapshot`, even if nothing changed: what the consumer holds is in doubt."""
        self._fresh = True
        self._usual = False

    def take(self, *, delta: bool = True, compare: bool = True) -> Delta | Snapshot | None:
        """What the consumer must be told to hold the value as it is now: `None` if it does.

        Args:
            delta: `False`: a change comes out as a `Snapshot`.
            compare: `False`: do not compare, this time, the values whose changes Python does not show.

        Raises:
            StateError: something cannot be written. What the consumer is taken to hold does not move.
        """
        if delta:
            text = self.take_leaf()
            if text is not None:
                return Delta(None, text)
        tracker = self._tracker
        if self._shadow is not None:
            self._shadow.check_originals()
            if self._written_past:
                self._written_past = False  # Not under the lock: code of authors may run.
                readopt(self._root)
        if tracker.large is not None:
            self._notices.large(*tracker.large)
            tracker.large = None
        with tracker.lock:
            if tracker.log is not None:
                return None
            if tracker.left:
                self._look_at_returned()
            dirty = tracker.dirty
            asks = compare and (tracker.opaque or tracker.volatile)
            if self._usual and not asks and len(dirty) < 2:
                if not dirty:
                    tracker.settle()
                    return None
                node = dirty[0]
                path = None if node._derives or tracker.opaque else only_path(node, self._root)
                if path is not None:
                    # One container was edited, at one place: nothing has to be walked through.
                    changes = Changes(tracker)
                    changes.write(node, path)
                    taken = self._choose(changes, delta) if changes.ops else None
                    node._old = None
                    dirty.clear()
                    tracker.settle()
                    return taken
            changes = Changes(tracker)
            changes.collect()
            if not asks and not changes.models and not self._touched:
                return self._settle(changes, delta)
        # Code of authors must be asked, without the lock. If another thread changes the state meanwhile, once more.
        for _ in range(TRIES):
            done, taken = self._ask_and_settle(delta, compare)
            if done:
                return taken
        with tracker.lock:
            return self._ask_and_settle(delta, compare)[1]

    def take_leaf(self) -> bytes | None:
        """The most frequent take of all, by a short way: one plain value gave way to another.

        Returns:
            The JSON text of the delta. `None`: something else happened, or nothing; nothing was taken then.
        """
        tracker = self._tracker
        with tracker.lock:
            if (
                len(tracker.dirty) != 1
                or not self._usual
                or tracker.log is not None
                or tracker.left
                or tracker.opaque
                or tracker.volatile
                or tracker.large is not None
            ):
                return None
            (node,) = tracker.dirty
            record = node._old
            if len(record) != 1 or node._derives:
                return None
            (key,) = record
            if type(key) is not str:
                return None  # of a list
            old, new = record[key], node._raw().get(key)
            kind = type(new)
            if kind is not type(old) or kind not in LEAVES or new == old:
                return None
            path = "" if node is self._root else only_path(node, self._root)
            names = node._names
            if key != self._leaf_key or path != self._leaf_path or names is not self._leaf_names:
                if path is None or (head := leaf_head(node, path, key)) is None:
                    return None
                self._leaf_key, self._leaf_path, self._leaf_names, self._leaf_head = key, path, names, head
            text = self._leaf_head + encode(new) + b"}]"
            if len(text) >= FLOOR:
                return None
            if self._size is not None:
                self._size += len(text)
            tracker.settle_leaf(node)
            return text

    def _look_at_returned(self) -> None:
        """What was in another document meanwhile may have changed there, without a record of what our consumer has."""
        back = self._tracker.returned()
        if back:
            self._touched.update(back)
            self._usual = False

    def _ask_and_settle(self, delta: bool, compare: bool) -> tuple[bool, Delta | Snapshot | None]:
        tracker = self._tracker
        edits = tracker.edits
        entries = list(tracker.opaque.values())
        if not compare:
            entries = [entry for entry in entries if id(entry.value) in self._touched]
        start = perf_counter()
        texts = []
        for entry in entries:
            try:
                texts.append((entry, self._text(entry)))
            except Exception:
                if self._is_shown(entry):
                    raise
        if entries and perf_counter() - start > SLOW:
            self._notices.slow(entries, perf_counter() - start)
        with tracker.lock:
            changes = Changes(tracker, rewrite=self._touched)
            changes.collect()
            for entry, text in texts:
                entry.text = text
                if text != entry.sent:
                    changes.mark(entry)
            for node in self._touched.values():
                if isinstance(node, Node):
                    changes.mark(node)
            if compare:
                changes.collect_volatile()
        changes.derived = {}
        failed = []
        for model in changes.models:
            try:
                changes.derived[id(model)] = self._derive(model)
            except Exception:
                if self._is_shown(model):
                    raise
                failed.append(model)
        with tracker.lock:
            if tracker.edits != edits:
                return False, None
            if tracker.log is not None:
                return True, None
            taken = self._settle(changes, delta, [entry for entry, _ in texts])
            for model in failed:
                # It hangs nowhere; where it comes back, it must be asked again.
                model._old = {}
                tracker.dirty.append(model)
            return True, taken

    def _is_shown(self, child: Node | Opaque) -> bool:
        """Whether this is part of the value: what was taken out of it may be what could not be written."""
        with self._tracker.lock:
            return child is self._root_entry or id(self._root) in ancestors(child)

    def _settle(self, changes: Changes, delta: bool, looked_at: Iterable[Opaque] = ()) -> Delta | Snapshot | None:
        tracker = self._tracker
        taken = self._choose(changes, delta)
        if self._shadow is not None:
            taken = self._check(self._shadow, changes, taken)
        for node in tracker.dirty:
            if node._tracker is tracker:
                node._old = None
        tracker.dirty = []
        for model in changes.models:
            if id(model) in changes.derived:
                model._sent = changes.derived[id(model)]
        if looked_at or tracker.entered:
            for entry in (*looked_at, *tracker.entered):
                entry.sent = entry.text
            tracker.entered = []
            tracker.drop_unused(self._root_entry)
        self._fresh = False
        self._usual = self._shadow is None
        self._baseline = self._old_root = MISSING
        self._touched = {}
        tracker.settle()
        return taken

    def _choose(self, changes: Changes, delta: bool) -> Delta | Snapshot | None:
        """Delta, snapshot or nothing: all reasons are here, in the order in which they count."""
        if self._fresh:
            return self._snapshot(changes, "the consumer's copy is unknown")
        ops = changes.ops
        reason = None
        if not ops:
            reason = self._write(changes, delta)
            ops = changes.ops
        if reason is None and not ops:
            return None
        if reason is None and not delta:
            reason = "a delta was not asked for"
        if reason is None:
            for op in ops:
                if not op["path"]:
                    reason = "the delta is the whole value"
                elif refused(op["path"]):
                    reason = "known consumers refuse a path of the delta"
        if reason is not None:
            return self._snapshot(changes, reason)
        text = encode(ops)
        if len(text) >= FLOOR:
            if self._size is None:
                before = self._before(changes)
                self._size = len(encode(changes.plain(self._root) if before is MISSING else before))
            if len(text) >= self._size:
                return self._snapshot(changes, "the delta is not shorter than the state")
        if self._size is not None:
            self._size += len(text)
        return Delta(ops, text)

    def _write(self, changes: Changes, delta: bool) -> str | None:
        """Writes the operations. Returns the reason why they cannot say it."""
        if self._baseline is not MISSING or self._old_root is not MISSING:
            old = self._before(changes)
            if self._old_root is MISSING and same(old, self._begin(changes)):
                self._write_root(changes)
                return None
            return self._diff(changes, old, changes.plain(self._root), delta)
        if self._root_entry is not None:
            entry = self._root_entry
            return None if entry.text == entry.sent else self._diff(changes, entry.plain_sent(), entry.plain(), delta)
        self._write_root(changes)
        return None

    def _write_root(self, changes: Changes) -> None:
        if isinstance(self._root, Node):
            changes.write(self._root, "")

    def _diff(self, changes: Changes, old: Any, new: Any, delta: bool) -> str | None:
        if old is MISSING:
            return "the consumer's copy is unknown"
        if same(old, new):
            return None
        if not delta:
            return "a delta was not asked for"
        ops = diff(old, new)
        if ops is None:
            return "the whole value was replaced, and is not a container or too large to be compared"
        changes.ops = ops
        return None

    def _begin(self, changes: Changes) -> Any:
        return changes.before(self._root) if self._root_entry is None else self._root_entry.plain_sent()

    def _before(self, changes: Changes) -> Any:
        """What the consumer holds."""
        if self._baseline is not MISSING:
            return self._baseline
        return changes.before(self._root if self._old_root is MISSING else self._old_root)

    def _snapshot(self, changes: Changes, reason: str) -> Snapshot:
        value = changes.plain(self._root)
        text = encode(value)
        self._size = len(text)
        if type(value) is not dict:
            self._notices.root()
        logger.debug("snapshot of %d bytes: %s", len(text), reason)
        return Snapshot(value, text)

    def _check(self, shadow: Shadow, changes: Changes, taken: Delta | Snapshot | None) -> Delta | Snapshot | None:
        """Debug mode: what the consumer will hold is compared with the value."""
        wrong = shadow.wrong(taken, changes.plain(self._root))
        if wrong is not None:
            logger.error("the consumer's copy of the state would differ, a snapshot is sent: %s", wrong)
            self._written_past = isinstance(self._root, Node)
            taken = self._snapshot(changes, wrong)
            shadow.value = decode_json(taken.json)
        return taken

    def _derive(self, model: Node) -> dict[str, Any]:
        try:
            return model._derive()
        except StateError as error:
            raise StateError(error.reason, locate(model) + error.pointer) from error

    def _text(self, entry: Opaque) -> bytes:
        try:
            return text_of(entry.value, entry.text)
        except StateError as error:
            raise StateError(error.reason, locate(entry) + error.pointer) from error.__cause__
