"""Questions that end a run and answers that begin the next one: interrupts and resume (P1 to P3)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict

from ag_ui.core import RunAgentInput
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from .errors import Abandoned, AgentError, Interrupted, SequenceError
from .scopes import plain
from .state import MISSING

__all__ = ["Asked", "Question", "Questions"]


class Asked(TypedDict, total=False):
    """What may be said of a question besides its reason and its schema; see `Question`."""

    id: str | None
    message: str | None
    tool_call_id: str | None
    expires_at: datetime | str | None
    metadata: dict[str, Any] | None
    expires_in: float | None
    default: Any


@dataclass(frozen=True)
class Question:
    """Something that a run needs from outside.

    Attributes:
        reason: the application's word for why it asks; the default id.
        id: answers are matched by it across runs. Default: `reason`, or `reason:tool_call_id`; never a count.
        message: the text for the person who answers.
        schema: what the answer must be: a type or a `TypeAdapter` (validated), or a JSON Schema (passed on only).
        tool_call_id: the tool call that the question is about.
        expires_at: after this the client can only abandon it (P3). A `datetime` (naive: UTC) or an ISO 8601 text.
        expires_in: the same, as seconds from the moment of asking.
        default: the answer of a question that was abandoned, instead of `Abandoned`. It is not checked against `schema`.
        metadata: JSON, for the application.
    """

    reason: str
    id: str | None = None
    message: str | None = None
    schema: Any = None
    tool_call_id: str | None = None
    expires_at: datetime | str | None = None
    metadata: dict[str, Any] | None = None
    expires_in: float | None = None
    default: Any = MISSING

    def __post_init__(self) -> None:
        if self.expires_at is not None and self.expires_in is not None:
            raise TypeError("give expires_at or expires_in, not both")
        for name, allowed in _FIELDS.items():
            value = getattr(self, name)
            if value is not None and not isinstance(value, allowed):
                raise TypeError(f"{name} of a question is a {allowed[0].__name__}, not {type(value).__name__}")
        if self.reason is None:
            raise TypeError("a question has a reason")

    @property
    def key(self) -> str:
        """The id under which the question is asked."""
        if self.id is not None:
            return self.id
        return self.reason if self.tool_call_id is None else f"{self.reason}:{self.tool_call_id}"


_FIELDS: dict[str, tuple[type, ...]] = {
    "reason": (str,),
    "id": (str,),
    "message": (str,),
    "tool_call_id": (str,),
    "expires_at": (datetime, str),
    "metadata": (dict,),
}


class Questions:
    """The open questions of one run, and the answers that its input brought.

    Args:
        input: the run's input; its `resume` holds the answers to the interrupts of the run before.
        log: where ignored answers are noted.
    """

    def __init__(
        self, input: RunAgentInput, *, debug: bool, log: logging.LoggerAdapter[logging.Logger] | logging.Logger
    ) -> None:
        self._answers = {entry.interrupt_id: entry for entry in input.resume or ()}
        self._asked: set[str] = set()
        self._open: dict[str, dict[str, Any]] = {}
        self._log = log
        self._debug = debug

    @property
    def interrupts(self) -> list[dict[str, Any]]:
        """The open questions as interrupts in wire form, in the order of asking."""
        return list(self._open.values())

    def open_of(self, owner: str) -> list[str]:
        """The ids of the open questions that a subagent asked."""
        return [id for id, interrupt in self._open.items() if interrupt.get("subagentRunId") == owner]

    def ask(self, questions: list[Question], owner: str | None) -> list[Any]:
        """The payloads of the answers, in order.

        Raises:
            Interrupted: a question has no answer in this input; all of them are open now.
            Abandoned: the client dismissed one.
            AgentError: an answer does not fit its question's `schema` (code `invalid_answer`).
            SequenceError: an id was already asked in this run (P1).
        """
        self._claim([question.key for question in questions])
        missing = [question.key for question in questions if question.key not in self._answers]
        if missing:
            # All of them again: the next input answers this run's questions only, so an answer given now would be lost.
            for question in questions:
                self._open[question.key] = _interrupt(question, owner)
            raise Interrupted([question.key for question in questions])
        payloads: dict[str, Any] = {}
        abandoned = []
        for question in questions:
            entry = self._answers[question.key]
            if entry.status == "resolved":
                payloads[question.key] = self._check(question, entry.payload)
            elif question.default is not MISSING:
                payloads[question.key] = question.default
            else:
                abandoned.append(question.key)
        if abandoned:
            raise Abandoned(abandoned, payloads)
        return [payloads[question.key] for question in questions]

    def warn_ignored(self) -> None:
        """Notes the answers that no question asked for (P2)."""
        ignored = sorted(self._answers.keys() - self._asked)
        for id in ignored:
            self._log.warning("the input answers %r, which this run did not ask: ignored [P2]", id)
        if self._debug and ignored and self._open:
            self._log.warning(
                "asked %r, but the input answers %r: keep the first answer in the state before asking again",
                sorted(self._open),
                ignored,
            )

    def adopt(self, interrupt: dict[str, Any]) -> None:
        """Makes another producer's interrupt an open question of this run."""
        self._claim([interrupt["id"]])
        self._open[interrupt["id"]] = interrupt

    def _check(self, question: Question, payload: Any) -> Any:
        adapter = _adapter(question.schema)
        if adapter is None:
            return payload
        try:
            return _validated(adapter, payload)
        except ValidationError as error:
            faults = "; ".join(f"{fault['loc']}: {fault['msg']}" for fault in error.errors(include_input=False))
            self._log.warning("the answer to %r does not fit its schema: %s", question.key, faults)
            raise AgentError(f"The answer to {question.key!r} is not valid.", code="invalid_answer") from error

    def _claim(self, ids: list[str]) -> None:
        for id in ids:
            if id in self._asked or ids.count(id) > 1:
                raise SequenceError(f"the question {id!r} was already asked in this run: give it an id=", "P1")
        self._asked.update(ids)


def _validated(adapter: TypeAdapter[Any], payload: Any) -> Any:
    try:
        text = to_json(payload)
    except ValueError:
        # Half a surrogate pair, which JavaScript writes and the JSON parser refuses.
        return adapter.validate_python(payload)
    return adapter.validate_json(text)


def _adapter(schema: Any) -> TypeAdapter[Any] | None:
    if schema is None or isinstance(schema, dict):
        return None
    return schema if isinstance(schema, TypeAdapter) else TypeAdapter(schema)


def _interrupt(question: Question, owner: str | None) -> dict[str, Any]:
    adapter = _adapter(question.schema)
    fields = {
        "id": question.key,
        "reason": question.reason,
        "message": question.message,
        "toolCallId": question.tool_call_id,
        "responseSchema": adapter.json_schema() if adapter is not None else plain(question.schema),
        "expiresAt": _timestamp(question),
        "metadata": plain(question.metadata),
        "subagentRunId": owner,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _timestamp(question: Question) -> str | None:
    value = question.expires_at
    if question.expires_in is not None:
        value = datetime.now(UTC) + timedelta(seconds=question.expires_in)
    if not isinstance(value, datetime):
        return value
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return aware.isoformat().replace("+00:00", "Z")
