"""Activities: structured progress that is not conversation, as messages whose content is tracked like state (A1 to A3)."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from .errors import StateError
from .outbox import Outbox
from .scopes import event, new_id, plain
from .state import Delta, Document, Snapshot, encode_json

__all__ = ["Activity", "check_object"]

T = TypeVar("T", bound=dict[str, Any])


class Activity(Generic[T]):
    """Structured progress that is not conversation: a message whose `content` is tracked like state (A1 to A3).

    Change `content` as ordinary Python; the next flush sends an ACTIVITY_SNAPSHOT, later ones ACTIVITY_DELTAs.

    Attributes:
        id: the id of the activity message.
        type: the application's word for its kind.
    """

    def __init__(
        self,
        outbox: Outbox,
        owner: str | None,
        type: str,
        content: T,
        *,
        id: str | None = None,
        metadata: dict[str, Any] | None = None,
        debug: bool = False,
    ) -> None:
        check_object(content, "A1")
        self.id = new_id() if id is None else id
        self.type = type
        self._owner = owner
        self._metadata = plain(metadata)
        self.document: Document[Any] = Document(content, debug=debug)
        announced = event("ACTIVITY_SNAPSHOT", owner, messageId=self.id, activityType=type, metadata=self._metadata)
        outbox.add_activity(self.id, self, announced)
        # Not before: one that is refused says nothing.
        self.document.on_change = lambda: outbox.touch(self)

    @property
    def content(self) -> T:
        """The tracked content, always an object. Assign to replace the whole."""
        value: T = self.document.value
        return value

    @content.setter
    def content(self, value: T) -> None:
        check_object(value, "A2")
        self.document.value = value

    def restate(self, *, type: str, metadata: dict[str, Any] | None = None, owner: str | None = None) -> None:
        """Lets the next event carry another type, more metadata or another owner (A1, A2)."""
        self.type = type
        self._metadata = metadata
        self._owner = owner or self._owner

    def event(self, taken: Delta | Snapshot) -> tuple[dict[str, Any], bytes]:
        """The event that says what changed, in wire form and as JSON text. Metadata is sent once: a consumer keeps it (X1)."""
        delta = isinstance(taken, Delta)
        wire = event(
            "ACTIVITY_DELTA" if delta else "ACTIVITY_SNAPSHOT",
            self._owner,
            messageId=self.id,
            activityType=self.type,
            metadata=self._metadata,
        )
        self._metadata = None
        member = "patch" if delta else "content"
        payload = encode_json(wire)[:-1] + f',"{member}":'.encode() + taken.json + b"}"
        return {**wire, member: taken.ops if isinstance(taken, Delta) else taken.value}, payload


def check_object(content: Any, rule: str) -> None:
    """Raises `StateError` if this is not written as a JSON object, as some pydantic models are not."""
    if isinstance(content, dict) or (isinstance(content, BaseModel) and isinstance(plain(content), dict)):
        return
    raise StateError(f"the content of an activity is an object, not {type(content).__name__} [{rule}]")
