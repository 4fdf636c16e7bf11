"""What an author can say: the methods that a run and its subagents share."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, TypeVar, overload

from pydantic import TypeAdapter
from typing_extensions import Unpack

from .activity import Activity
from .ending import decisive
from .errors import AgentError, Interrupted
from .outbox import Outbox
from .questions import Asked, Question, Questions
from .relay import emit, relay
from .scopes import Reasoning, Step, Text, TextRole, ToolCall, event, new_id, plain, write_all
from .tracing import Span
from .usage import Usage

__all__ = ["Author", "Subagent"]

A = TypeVar("A")
C = TypeVar("C", bound=dict[str, Any])


class Author:
    """The authoring methods. What a subagent says carries its id (G1); what the run says carries none.

    Attributes:
        usage: token counts of the run's model calls, its subagents' among them, sent with the run's end (U1, U2).
    """

    usage: Usage
    _outbox: Outbox
    _questions: Questions
    _owner: str | None
    # What a client may be told of an exception: the run's map of exceptions to errors.
    _describe: Callable[[BaseException], AgentError]

    async def say(
        self,
        text: str | Iterable[str] | AsyncIterable[str],
        *,
        role: TextRole = "assistant",
        name: str | None = None,
        id: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> str:
        """Sends a whole text message, or streams the pieces of an iterable.

        Returns:
            The message's id.

        Raises:
            TypeError: `text` is no `str` and no (async) iterable of `str`.
            SequenceError: `id` names a message that is open, or is another's (S1, S2).
        """
        if not isinstance(text, (str, Iterable, AsyncIterable)) or isinstance(text, (bytes, bytearray)):
            raise TypeError(f"say() takes a str, or an iterable or async iterable of str, not {type(text).__name__}")
        async with self.text(role=role, name=name, id=id, metadata=metadata) as message:
            await write_all(message.write, text)
        return message.id

    def text(
        self,
        *,
        role: TextRole = "assistant",
        name: str | None = None,
        id: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Text:
        """A text message to stream: `async with run.text() as text: await text.write("…")`.

        The `id` of a closed message with the same role, name and owner opens it again, and text is appended (S2).
        """
        return Text(self._outbox, self._owner, role=role, name=name, id=id, metadata=metadata)

    def reasoning(self, *, id: str | None = None, metadata: dict[str, Any] | None = None) -> Reasoning:
        """A span of reasoning to stream: `async with run.reasoning() as thought: await thought.write("…")` (R1)."""
        return Reasoning(self._outbox, self._owner, id=id, metadata=metadata)

    def tool_call(
        self,
        name: str,
        args: Any = None,
        *,
        id: str | None = None,
        parent: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> ToolCall:
        """A tool call: `async with run.tool_call("search", {"q": "…"}) as call: await call.result(…)`.

        Args:
            args: the arguments as a JSON value; `None` to write pieces of JSON text with `call.write`. When nothing is
                written the arguments are `{}`.
            parent: the id of the assistant message that the call belongs to (T1); without it the call makes one (S6).
        """
        return ToolCall(self._outbox, self._owner, name, args, id=id, parent=parent, metadata=metadata)

    async def call_frontend(
        self,
        name: str,
        args: Any = None,
        *,
        id: str | None = None,
        parent: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> str:
        """Calls a tool of the client. It is left pending: the answer arrives as a tool message in the next input (T3).

        Returns:
            The id of the call. Return from `run` afterwards; the run finishes as success and names it.

        Raises:
            ValueError: the input lists no such tool.
        """
        listed = self._frontend_tools()
        if name not in listed:
            raise ValueError(f"the client has no tool {name!r}; it offers {sorted(listed)}")
        async with self.tool_call(name, args, id=id, parent=parent, metadata=metadata) as call:
            pass
        return call.id

    def step(self, name: str, *, metadata: dict[str, Any] | None = None) -> Step:
        """A named step: `async with run.step("search"): …` (L6)."""
        return Step(self._outbox, self._owner, name, metadata=metadata)

    def activity(
        self, type: str, content: C, *, id: str | None = None, metadata: dict[str, Any] | None = None
    ) -> Activity[C]:
        """An activity message whose `content`, an object, is tracked like state: change it, and it is sent (A1, A2).

        Raises:
            StateError: the content is not an object, or not JSON.
            SequenceError: the id is in use (L8).
        """
        return Activity(self._outbox, self._owner, type, content, id=id, metadata=metadata, debug=self._outbox.debug)

    def subagent(
        self,
        name: str,
        *,
        id: str | None = None,
        description: str | None = None,
        tool_call_id: str | None = None,
        message_id: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Subagent:
        """A delegate: `async with run.subagent("researcher") as sub: await sub.say("…")` (G1 to G4).

        Args:
            id: names this one invocation; give a suspended invocation's id to continue it in a later run.
            tool_call_id, message_id: the tool call or message that started it, if one did.
        """
        return Subagent(
            self,
            name,
            id=id,
            description=description,
            tool_call_id=tool_call_id,
            message_id=message_id,
            metadata=metadata,
        )

    async def custom(self, name: str, value: Any, *, metadata: dict[str, Any] | None = None) -> None:
        """Sends an application's own event. `name` carries a prefix of the application: `com.example.cart` (W7)."""
        await self._outbox.send(self._event("CUSTOM", name=name, metadata=plain(metadata)) | {"value": plain(value)})

    async def raw(self, event: Any, source: str | None = None, *, metadata: dict[str, Any] | None = None) -> None:
        """Passes on an event of another system as it is (W7).

        Args:
            event: any JSON value.
            source: which system it came from.
        """
        await self._outbox.send(self._event("RAW", source=source, metadata=plain(metadata)) | {"event": plain(event)})

    async def emit(self, event: Any) -> None:
        """Sends any event of the protocol under the same rules.

        STATE_* and MESSAGES_SNAPSHOT are applied to `run.state` and `run.messages`, ACTIVITY_* to the activity of that id,
        which then speak. Chunk events are sent as start, content and end.

        Args:
            event: an `ag_ui.core` event, or its wire form as a dict.

        Raises:
            SequenceError: RUN_* events, which the run itself sends; and what a rule forbids.
            StateError: a state that does not fit the type, or a patch that does not apply.
            statecast.stream.wire.WireError: (a `ValueError`) not an event; `.faults` says where.
        """
        await emit(self, event)

    async def relay(self, events: AsyncIterable[Any]) -> Any:
        """Sends another producer's stream as part of this run: its lifecycle is absorbed, its ids are kept.

        Args:
            events: `ag_ui.core` events, or their wire forms.

        Returns:
            The `result` of the relayed RUN_FINISHED.

        Raises:
            AgentError: it ended with RUN_ERROR, or was cancelled (code `cancelled`).
            Interrupted: it asked questions, which are this run's open questions now.
            SequenceError: it ended without a terminal event, or an event is forbidden here.
            StateError: its state does not fit this agent's type.
        """
        return await relay(self, events)

    @overload
    async def ask(self, reason: str, *, schema: type[A], **more: Unpack[Asked]) -> A: ...
    @overload
    async def ask(self, reason: str, *, schema: TypeAdapter[A], **more: Unpack[Asked]) -> A: ...
    @overload
    async def ask(self, reason: str, *, schema: dict[str, Any] | None = None, **more: Unpack[Asked]) -> Any: ...
    async def ask(self, reason: str, *, schema: Any = None, **more: Unpack[Asked]) -> Any:
        """Asks the user. Returns the answer if this input brings it, else ends the run with the question (P1, P2).

        The answer arrives in the *next* run, which starts `Agent.run` from the top, and brings only the answers to the
        questions of the run before. So keep the first answer in the state before you ask again, or use `ask_all`:

            if run.state.approved is None:
                run.state.approved = await run.ask("approve", schema=bool)

        Args:
            reason: the application's word for why it asks; the default id, with `tool_call_id` as `reason:tool_call_id`.
            schema: a type or a `TypeAdapter` that the answer must fit; or a JSON Schema, which is only passed on.
            expires_at: after this the client can only abandon the question (P3); the server does not enforce it.
            expires_in: the same, in seconds from now.
            default: returned instead of raising `Abandoned`.

        A user who writes on instead of answering starts a run without an answer: it asks again, under the same id.

        Raises:
            Interrupted: there is no answer yet. A `BaseException`: let it leave your code.
            Abandoned: the user dismissed the question.
            AgentError: the answer does not fit `schema` (code `invalid_answer`).
            SequenceError: the id was already asked in this run.
        """
        return (await self.ask_all([Question(reason, schema=schema, **more)]))[0]

    async def ask_all(self, questions: Sequence[Question]) -> list[Any]:
        """Asks several questions at once; the payloads of the answers, in order. See `ask`.

        Raises:
            Abandoned: the user dismissed one; `.answers` has the payloads of the others.
        """
        self._outbox.check_open()
        return self._questions.ask(list(questions), self._owner)

    def _event(self, type: str, **fields: Any) -> dict[str, Any]:
        return event(type, self._owner, **fields)

    def _frontend_tools(self) -> set[str]:
        raise NotImplementedError


class Subagent(Author):
    """One invocation of a delegate. It closes itself: as finished, suspended by an open question, or failed (G2).

    Attributes:
        id: the invocation's id, on everything that it says.
        result: set it to a JSON value before the block ends to send it with the end.
    """

    def __init__(
        self,
        parent: Author,
        name: str,
        *,
        id: str | None = None,
        description: str | None = None,
        tool_call_id: str | None = None,
        message_id: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        self.id = new_id() if id is None else id
        self.result: Any = None
        self._parent = parent
        self._owner = self.id
        self._outbox = parent._outbox
        self._questions = parent._questions
        self._describe = parent._describe
        self.usage = parent.usage
        self._span = Span(f"subagent {name}", {"subagent_run_id": self.id})
        self._start = self._event(
            "SUBAGENT_STARTED",
            name=name,
            description=description,
            parentSubagentRunId=parent._owner,
            parentToolCallId=tool_call_id,
            parentMessageId=message_id,
            metadata=plain(metadata),
        )

    async def __aenter__(self) -> Subagent:
        await self._outbox.send(self._start)
        self._span.enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._outbox.close_lane(self.id)
            self._outbox.close(self._end(exc))
        finally:
            self._span.leave(exc)

    def _end(self, exc: BaseException | None) -> dict[str, Any]:
        if exc is None:
            return self._event("SUBAGENT_FINISHED", result=plain(self.result))
        cause = decisive(exc)
        if isinstance(cause, Interrupted):
            outcome: dict[str, Any] = {"type": "suspended"}
            if asked := self._questions.open_of(self.id):
                outcome["interruptIds"] = asked
            return self._event("SUBAGENT_FINISHED", outcome=outcome)
        error = self._describe(cause)
        return self._event("SUBAGENT_ERROR", message=error.message, code=error.code)

    def _frontend_tools(self) -> set[str]:
        return self._parent._frontend_tools()
