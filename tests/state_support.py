"""A consumer of a document: it applies everything that is taken, and must hold the JSON of the value after each take."""

import copy
import json
from typing import Any

from jsonpatch import JsonPatch

from statecast.state import Delta, Document, Snapshot, encode_json

PATCHES: list[tuple[Any, list[dict[str, Any]], Any]] = []
"""Every patch that a consumer has applied: the JSON before, the operations, and the JSON after."""


def text(value: Any) -> str:
    """JSON text that tells apart what JSON tells apart, whatever the order of keys."""
    return json.dumps(value, sort_keys=True, allow_nan=False)


def plain(value: Any) -> Any:
    """The JSON of any value of a state."""
    return json.loads(encode_json(value))


class Consumer:
    """Holds what a correct consumer would hold.

    Args:
        value: the value of the document.
        options: of the document.

    Attributes:
        state: its copy.
        changes: how often `on_change` was called.
    """

    def __init__(self, value: Any, **options: Any) -> None:
        self.changes = 0
        self.state: Any = options.get("baseline")
        self.document: Document[Any] = Document(value, on_change=self._changed, **options)
        if "baseline" not in options:
            self.take()

    @property
    def value(self) -> Any:
        return self.document.value

    @value.setter
    def value(self, value: Any) -> None:
        self.document.value = value

    def take(self, **options: Any) -> Delta | Snapshot | None:
        """Takes, applies, and compares with the value."""
        taken = self.document.take(**options)
        if isinstance(taken, Snapshot):
            assert text(taken.value) == text(json.loads(taken.json))
            self.state = json.loads(taken.json)
        elif isinstance(taken, Delta):
            ops = json.loads(taken.json)
            assert ops
            assert text(taken.ops) == text(ops)
            assert {op["op"] for op in ops} <= {"add", "remove", "replace"}
            before = copy.deepcopy(self.state)
            self.state = JsonPatch(ops).apply(self.state)
            PATCHES.append((before, ops, copy.deepcopy(self.state)))
        if options.get("compare", True):
            assert text(self.state) == text(plain(self.value))
        return taken

    def ops(self, **options: Any) -> list[dict[str, Any]]:
        """The operations that are taken: none if nothing is."""
        taken = self.take(**options)
        assert not isinstance(taken, Snapshot), taken
        return [] if taken is None else taken.ops

    def paths(self, **options: Any) -> list[tuple[str, str]]:
        """Operation and path of what is taken."""
        return [(op["op"], op["path"]) for op in self.ops(**options)]

    def _changed(self) -> None:
        self.changes += 1
