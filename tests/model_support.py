"""A document and its consumer, for tests of typed state."""

from __future__ import annotations

import json
from typing import Any, Generic, TypeVar

from jsonpatch import JsonPatch

from statecast.state import Delta, Document, Snapshot, State, StateType

M = TypeVar("M", bound=State)


def text(value: Any) -> str:
    """JSON text that tells `1`, `1.0` and `True` apart and does not depend on the order of keys."""
    return json.dumps(value, sort_keys=True)


class Consumer(Generic[M]):
    """Holds a model in a document and follows it by its events alone."""

    def __init__(self, value: M, **options: Any) -> None:
        self.document: Document[M] = Document(value, **options)
        self.copy: Any = None
        self.sync()

    @property
    def value(self) -> M:
        return self.document.value

    def sync(self) -> list[tuple[str, str, Any]]:
        """Takes what changed, checks the copy against pydantic's own JSON of the model, and gives the operations."""
        taken = self.document.take()
        ops: list[tuple[str, str, Any]] = []
        if isinstance(taken, Snapshot):
            self.copy = json.loads(taken.json)
            assert text(self.copy) == text(taken.value)
            ops = [("snapshot", "", None)]
        elif isinstance(taken, Delta):
            assert text(json.loads(taken.json)) == text(taken.ops)
            self.copy = JsonPatch(json.loads(taken.json)).apply(self.copy)
            ops = [(op["op"], op["path"], op.get("value")) for op in taken.ops]
        assert text(self.copy) == text(json.loads(self.value.model_dump_json(by_alias=True)))
        assert self.document.take() is None
        return ops

    def sent(self) -> Any:
        """What the consumer must hold by pydantic's own JSON, after a sync."""
        self.sync()
        return self.copy

    def reread(self) -> M:
        """The model that the next run reads from what the consumer holds."""
        value = StateType(type(self.value)).read(json.loads(text(self.copy)))
        assert isinstance(value, type(self.value))
        assert text(json.loads(value.model_dump_json(by_alias=True))) == text(self.copy)
        return value
