"""Events that were made elsewhere: `run.emit` for single ones, `run.relay` for another producer's stream.

What another producer says about state, messages and activities is applied to this run's own, which then speak for
themselves: a patch of its state is not a patch of what our client holds.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable
from typing import TYPE_CHECKING, Any

from ag_ui.core import TokenUsage
from jsonpatch import JsonPatch, JsonPatchException
from jsonpointer import JsonPointerException
from pydantic import BaseModel, ValidationError

from .activity import Activity, check_object
from .errors import AgentError, Interrupted, SequenceError, StateError
from .scopes import closing
from .state import Document, State, StateType, decode_json, encode_json, update
from .stream.chunks import Expander
from .stream.rules import Sequence
from .stream.wire import faults_of, read_event

if TYPE_CHECKING:
    from .author import Author

__all__ = ["emit", "relay"]


async def emit(author: Author, event: Any) -> None:
    """Sends one event of the protocol; see `Author.emit`."""
    wire = _wire(author, event)
    if wire is None:
        raise SequenceError("this is no event of the protocol: what it does not model travels as CUSTOM or RAW", "W7")
    if wire["type"].startswith("RUN_"):
        raise SequenceError(
            f"{wire['type']}: the run sends its own lifecycle; return from run() or raise to end it", "L1"
        )
    await _pass_on(author, wire)


async def relay(author: Author, events: AsyncIterable[Any]) -> Any:
    """Sends another producer's stream; see `Author.relay`."""
    outbox = author._outbox
    expander = Expander()
    # Knows what this stream opened, so that exactly this is closed however it ends.
    opened = Sequence(None, messages=list(outbox.messages), side="consumer")
    opened.advance({"type": "RUN_STARTED", "threadId": "", "runId": ""})
    last: dict[str, Any] | None = None
    try:
        async with closing(events):
            async for event in events:
                wire = _wire(author, event)
                if wire is None:
                    continue
                if wire["type"].startswith("RUN_"):
                    if wire["type"] != "RUN_STARTED":
                        last = wire
                        for usage in wire.get("usage") or ():
                            author.usage.add(TokenUsage.model_validate(usage))
                    continue
                for one in expander.feed(wire):
                    opened.advance(one)
                    await _pass_on(author, one)
    finally:
        for one in expander.close():
            opened.advance(one)
            outbox.close(one)
        for one in opened.closing():
            outbox.close(one)
    return _outcome(author, last)


def _outcome(author: Author, last: dict[str, Any] | None) -> Any:
    if last is None:
        raise SequenceError("the relayed stream ended without RUN_FINISHED or RUN_ERROR", "C4")
    if last["type"] == "RUN_ERROR":
        raise AgentError(last["message"], code=last.get("code") or "agent_error")
    outcome = last.get("outcome") or {"type": "success"}
    if outcome["type"] == "cancelled":
        raise AgentError("The relayed agent was stopped.", code="cancelled")
    if outcome["type"] == "interrupt":
        for interrupt in outcome["interrupts"]:
            author._questions.adopt(interrupt)
        raise Interrupted([interrupt["id"] for interrupt in outcome["interrupts"]])
    return last.get("result")


def _wire(author: Author, event: Any) -> dict[str, Any] | None:
    """The event in wire form, without what the protocol does not know (W7), tagged with a subagent's id."""
    if isinstance(event, BaseModel):
        event = event.model_dump(by_alias=True)
    elif not isinstance(event, dict):
        raise TypeError(f"an event is an ag_ui.core event or a dict in wire form, not {type(event).__name__}")
    wire, warnings = read_event(decode_json(encode_json(event)))
    for warning in warnings:
        author._outbox.log.warning("emitted event: %s", warning)
    if wire is None:
        return None
    if author._owner is not None and "subagentRunId" not in wire and not wire["type"].startswith(_UNTAGGED):
        wire["subagentRunId"] = author._owner
    return wire


_UNTAGGED = ("RUN_", "MESSAGES_", "STATE_")


async def _pass_on(author: Author, wire: dict[str, Any]) -> None:
    apply = _APPLIED.get(wire["type"])
    if wire["type"] == "MESSAGES_SNAPSHOT":
        author._outbox.messages.check_snapshot(wire["messages"])
    if apply is None:
        await author._outbox.send(wire)
    else:
        author._outbox.check_open()
        apply(author, wire)


def _state_snapshot(author: Author, wire: dict[str, Any]) -> None:
    document = author._outbox.document
    value = _read(document, wire["snapshot"])
    if isinstance(value, State):
        # The excluded fields and private attributes of ours are none of the other producer's business.
        update(document, value)
    else:
        document.value = value


def _state_delta(author: Author, wire: dict[str, Any]) -> None:
    _patch(author._outbox.document, wire["delta"])


def _read(document: Document[Any], data: Any) -> Any:
    """A value of the document's type out of JSON."""
    if not isinstance(document.type, StateType):
        return data
    try:
        return document.type.validate(data)
    except ValidationError as error:
        fault = faults_of(error, data)[0]
        raise StateError(
            f"the emitted state does not fit {document.type.annotation}: {fault.message}", fault.pointer
        ) from None


_INAPPLICABLE = (JsonPatchException, JsonPointerException, TypeError, AttributeError)


def _patch(document: Document[Any], ops: list[dict[str, Any]]) -> None:
    """Applies a patch to a tracked value, all of it or nothing (D4), at the cost of the patch where it is plain JSON."""
    patch = JsonPatch(ops)
    try:
        with document.batch():
            changed = patch.apply(document.value, in_place=True)
            if changed is not document.value:
                document.value = changed
    except (*_INAPPLICABLE, StateError, ValidationError):
        # A model is no container to the library, and a type may refuse what is between the operations: patch its JSON.
        try:
            update(document, _read(document, patch.apply(decode_json(encode_json(document.value)))))
        except _INAPPLICABLE as error:
            raise StateError(f"the emitted patch does not apply: {type(error).__name__} [D4]") from error


def _activity_snapshot(author: Author, wire: dict[str, Any]) -> None:
    id = wire["messageId"]
    known = author._outbox.activity(id)
    if known is None:
        owner = wire.get("subagentRunId")
        debug = author._outbox.debug
        Activity(
            author._outbox,
            owner,
            wire["activityType"],
            wire["content"],
            id=id,
            metadata=wire.get("metadata"),
            debug=debug,
        )
    elif wire.get("replace", True):
        assert isinstance(known, Activity)
        known.restate(type=wire["activityType"], metadata=wire.get("metadata"), owner=wire.get("subagentRunId"))
        known.content = wire["content"]


def _activity_delta(author: Author, wire: dict[str, Any]) -> None:
    known = author._outbox.activity(wire["messageId"])
    if known is None:
        raise SequenceError(f"ACTIVITY_DELTA for {wire['messageId']!r} before its first ACTIVITY_SNAPSHOT", "A2")
    assert isinstance(known, Activity)
    with known.document.batch():
        _patch(known.document, wire["patch"])
        check_object(known.content, "A2")
    known.restate(type=wire["activityType"], metadata=wire.get("metadata"))


_APPLIED: dict[str, Callable[[Author, dict[str, Any]], None]] = {
    "STATE_SNAPSHOT": _state_snapshot,
    "STATE_DELTA": _state_delta,
    "ACTIVITY_SNAPSHOT": _activity_snapshot,
    "ACTIVITY_DELTA": _activity_delta,
}
