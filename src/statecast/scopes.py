"""What a run opens and closes: a text message, a reasoning span, a tool call, a step; and activities.

Each scope is an async context manager that sends its start on the way in and its end on the way out, also when the block
raises or is cancelled. A scope's events carry the owner it was opened with, however many subagents run beside it (G1).
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Literal, TypeVar
from uuid import uuid4

from pydantic import BaseModel

from .outbox import Outbox
from .pieces import Pieces
from .state import decode_json, encode_json
from .tracing import Span

__all__ = [
    "Reasoning",
    "Scope",
    "Step",
    "Text",
    "TextRole",
    "ToolCall",
    "event",
    "new_id",
    "plain",
    "write_all",
]

TextRole = Literal["developer", "system", "assistant", "user"]
S = TypeVar("S", bound="Scope")


def plain(value: Any) -> Any:
    """A copy of a value as plain JSON: later changes of the original change no event. Raises `StateError` if it is none."""
    return value if value is None or type(value) in (str, bool) else decode_json(encode_json(value))


def event(type: str, owner: str | None, **fields: Any) -> dict[str, Any]:
    """An event in wire form: fields that are `None` are left out (W6), the owner is tagged (G1).

    Raises:
        TypeError: a field that is a text for the client's schema is none, as an id that is a number.
    """
    if owner is not None:
        fields["subagentRunId"] = owner
    wire: dict[str, Any] = {"type": type}
    for name, value in fields.items():
        if value is not None:
            if name not in _NO_TEXTS and not isinstance(value, str):
                raise TypeError(f"{type}: {name} is a str, not {value.__class__.__name__}")
            wire[name] = value
    if "metadata" in wire and not isinstance(wire["metadata"], dict):
        raise TypeError(f"{type}: metadata is a dict, not {wire['metadata'].__class__.__name__}")
    return wire


_NO_TEXTS = frozenset({"metadata", "content", "result", "outcome"})


def new_id() -> str:
    """An id for a message, a call or an activity: a random UUID."""
    return str(uuid4())


class Scope:
    """Something open in a run, with an `id`."""

    id: str
    _span: Span | None = None

    def __init__(self, outbox: Outbox, owner: str | None) -> None:
        self._outbox = outbox
        self._owner = owner

    async def __aenter__(self: S) -> S:
        if self._span is not None:
            self._span.enter()
        try:
            await self._open()
        except BaseException as exc:
            if self._span is not None:
                self._span.leave(exc)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._close(exc)
        finally:
            if self._span is not None:
                self._span.leave(exc)

    async def _open(self) -> None:
        raise NotImplementedError

    def _close(self, exc: BaseException | None) -> None:
        raise NotImplementedError

    def _event(self, type: str, **fields: Any) -> dict[str, Any]:
        return event(type, self._owner, **fields)


class Streamed(Scope):
    """Something whose text is written piece by piece."""

    _content: str
    _noun: str
    _pieces: Pieces | None = None

    async def write(self, delta: str) -> None:
        """Appends text. An empty string sends nothing.

        Raises:
            TypeError: `delta` is not a `str`.
            SequenceError: this is not open (S1).
        """
        outbox = self._outbox
        if delta.__class__ is str and delta and self._pieces is not None and outbox.write(self._pieces, delta):
            if outbox.channel.due:
                await outbox.channel.turn()
            return
        if not isinstance(delta, str):
            raise TypeError(f"{self._noun} is written as str, not {type(delta).__name__}")
        if delta:
            await outbox.send(self._event(self._content, messageId=self.id, delta=str.__str__(delta)))

    def _opened(self) -> None:
        self._pieces = self._outbox.pieces(self._event(self._content, messageId=self.id), self.id)


class Text(Streamed):
    """A text message that is being streamed (S1 to S4)."""

    _content = "TEXT_MESSAGE_CONTENT"
    _noun = "text"

    def __init__(
        self,
        outbox: Outbox,
        owner: str | None,
        *,
        role: TextRole = "assistant",
        name: str | None = None,
        id: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(outbox, owner)
        self.id = new_id() if id is None else id
        self._start = self._event(
            "TEXT_MESSAGE_START", messageId=self.id, role=role, name=name, metadata=plain(metadata)
        )

    async def _open(self) -> None:
        await self._outbox.send(self._start)
        self._opened()

    def _close(self, exc: BaseException | None) -> None:
        self._outbox.close(self._event("TEXT_MESSAGE_END", messageId=self.id))


@asynccontextmanager
async def closing(source: AsyncIterable[Any]) -> AsyncIterator[None]:
    """Closes an async generator at the end of the block, whatever happens; other iterables have nothing to close."""
    try:
        yield
    finally:
        aclose = getattr(source, "aclose", None)
        if aclose is not None:
            await aclose()


async def write_all(write: Callable[[str], Any], text: str | Iterable[str] | AsyncIterable[str]) -> None:
    """Writes a text, or the pieces of an iterable, closing an async generator whatever happens."""
    if isinstance(text, str):
        await write(text)
    elif isinstance(text, AsyncIterable):
        async with closing(text):
            async for piece in text:
                await write(piece)
    else:
        for piece in text:
            await write(piece)


class Reasoning(Streamed):
    """A reasoning span with one reasoning message in it; `id` is the message's (R1)."""

    _content = "REASONING_MESSAGE_CONTENT"
    _noun = "reasoning"

    def __init__(
        self, outbox: Outbox, owner: str | None, *, id: str | None = None, metadata: dict[str, Any] | None = None
    ) -> None:
        super().__init__(outbox, owner)
        self.id = new_id() if id is None else id
        self._metadata = plain(metadata)

    async def encrypted(self, value: str) -> None:
        """Attaches the provider's opaque form of this reasoning; it comes back unchanged in the next input (R2)."""
        await self._outbox.send(
            self._event("REASONING_ENCRYPTED_VALUE", subtype="message", entityId=self.id, encryptedValue=value)
        )

    async def _open(self) -> None:
        await self._outbox.send(self._event("REASONING_START", messageId=self.id))
        try:
            await self._outbox.send(
                self._event("REASONING_MESSAGE_START", messageId=self.id, role="reasoning", metadata=self._metadata)
            )
        except BaseException:
            self._outbox.close(self._event("REASONING_END", messageId=self.id))
            raise
        self._opened()

    def _close(self, exc: BaseException | None) -> None:
        self._outbox.close(self._event("REASONING_MESSAGE_END", messageId=self.id))
        self._outbox.close(self._event("REASONING_END", messageId=self.id))


class ToolCall(Scope):
    """A tool call: its arguments as they are written, then its result (S1, T1, T2).

    Attributes:
        id: the call's id, for `ask(tool_call_id=…)` or a provider's own bookkeeping.
    """

    def __init__(
        self,
        outbox: Outbox,
        owner: str | None,
        name: str,
        args: Any = None,
        *,
        id: str | None = None,
        parent: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(outbox, owner)
        self.id = new_id() if id is None else id
        self._args = None if args is None else encode_json(args).decode()
        self._start = self._event(
            "TOOL_CALL_START", toolCallId=self.id, toolCallName=name, parentMessageId=parent, metadata=plain(metadata)
        )
        self._written = False
        self._open_call = False
        self._span = Span(f"tool {name}", {"tool_call_id": self.id, "subagent_run_id": owner})

    async def write(self, delta: str) -> None:
        """Appends a piece of the arguments' JSON text. It is not checked: models stream half-finished JSON (S4)."""
        if not isinstance(delta, str):
            raise TypeError(f"arguments are written as pieces of JSON text, not {type(delta).__name__}")
        if delta:
            self._written = True
            await self._outbox.send(self._event("TOOL_CALL_ARGS", toolCallId=self.id, delta=str.__str__(delta)))

    async def encrypted(self, value: str) -> None:
        """Attaches the provider's opaque artefact of this call (R2)."""
        await self._outbox.send(
            self._event("REASONING_ENCRYPTED_VALUE", subtype="tool-call", entityId=self.id, encryptedValue=value)
        )

    async def result(
        self,
        content: Any,
        *,
        id: str | None = None,
        error: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> str:
        """Sends what the tool returned, as a message of its own; ends the call first if it is still open (T2).

        Args:
            content: a `str` as it is; a list of `ag_ui` content parts (`TextPart`, `ImagePart`, …) as parts; any other
                JSON value as its JSON text.
            id: the id of the tool message; a new one if `None`.
            error: why the tool failed. It is put in the message's metadata as `error`, and in `run.messages`.

        Returns:
            The id of the tool message.

        Raises:
            SequenceError: the call is a frontend tool's, which only the client answers (T3).
        """
        message_id = new_id() if id is None else id
        extra = plain(metadata)
        if error is not None:
            if not isinstance(error, str):
                raise TypeError(f"error is a str, not {type(error).__name__}")
            extra = {**(extra or {}), "error": error}
        event = self._event(
            "TOOL_CALL_RESULT",
            messageId=message_id,
            toolCallId=self.id,
            role="tool",
            content=_result_content(content),
            metadata=extra,
        )
        self._outbox.sequence.check(event)
        await self._end_arguments()
        await self._outbox.send(event)
        if error is not None:
            self._outbox.messages.mark_failed(message_id, error)
        return message_id

    async def _open(self) -> None:
        await self._outbox.send(self._start)
        self._open_call = True
        if self._args is not None:
            try:
                await self.write(self._args)
            except BaseException as exc:
                self._close(exc)
                raise

    async def _end_arguments(self) -> None:
        if self._open_call:
            if not self._written:
                await self.write("{}")
            await self._outbox.send(self._event("TOOL_CALL_END", toolCallId=self.id))
            self._open_call = False

    def _close(self, exc: BaseException | None) -> None:
        if self._open_call:
            if not self._written:
                self._outbox.close(self._event("TOOL_CALL_ARGS", toolCallId=self.id, delta="{}"))
            self._outbox.close(self._event("TOOL_CALL_END", toolCallId=self.id))
            self._open_call = False


def _result_content(content: Any) -> str | list[Any]:
    if isinstance(content, str):
        return str.__str__(content)
    if isinstance(content, list) and content and all(_is_part(part) for part in content):
        return [part.model_dump(mode="json", by_alias=True) for part in content]
    return encode_json(content).decode()


def _is_part(value: Any) -> bool:
    return isinstance(value, BaseModel) and type(value).__module__.startswith("ag_ui.") and hasattr(value, "type")


class Step(Scope):
    """A named step of the run; steps may overlap, but not two of one name and owner (L6). `id` is the name."""

    def __init__(self, outbox: Outbox, owner: str | None, name: str, *, metadata: dict[str, Any] | None = None) -> None:
        super().__init__(outbox, owner)
        self.id = self.name = name
        self._span = Span(f"step {name}", {"subagent_run_id": owner})
        self._metadata = plain(metadata)

    async def _open(self) -> None:
        await self._outbox.send(self._event("STEP_STARTED", stepName=self.name, metadata=self._metadata))

    def _close(self, exc: BaseException | None) -> None:
        self._outbox.close(self._event("STEP_FINISHED", stepName=self.name))
