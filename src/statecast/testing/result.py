"""What a test knows of a run that is over."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ag_ui.core import (
    Event,
    Interrupt,
    Message,
    RunAgentInput,
    RunErrorEvent,
    TextMessageContentEvent,
    TextMessageStartEvent,
    TokenUsage,
)

from ..ending import Ending
from ..errors import AgentError
from ..run import Run
from .failures import Refused
from .inputs import resume_entries, tool_message, user_message
from .show import describe
from .transcript import Transcript

__all__ = ["Continue", "RunResult", "make_result"]

Continue = Callable[..., Awaitable["RunResult"]]
"""Starts the next run of the thread, with these changes of the input."""

_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")

_ID_NAMES = {
    "threadId": "thread",
    "runId": "run",
    "parentRunId": "run",
    "messageId": "message",
    "parentMessageId": "message",
    "toolCallId": "tool-call",
    "subagentRunId": "subagent",
    "parentSubagentRunId": "subagent",
}


@dataclass(frozen=True, repr=False)
class RunResult:
    """A run as its client saw it, and, where the agent ran in this process, as the agent saw it.

    Attributes:
        input: the input, `None` when it was not valid.
        events: the `ag_ui` events, in order.
        payloads: the same in wire form: plain JSON values.
        state: the client's state at the end, plain JSON.
        messages: the client's messages at the end.
        text: the texts of this run's assistant messages, one a line.
        outcome: `"success"`, `"interrupt"`, `"cancelled"`; `None` when the run failed, was refused or disconnected.
        error: the RUN_ERROR that ended it.
        result: what `Agent.run` returned, as the client received it.
        interrupts: the questions that are open.
        pending_tool_calls: ids of the tool calls that were left to the client.
        usage: the token counts on the terminal event.
        warnings: what a consumer warns of; empty for a run that was judged strictly.
        http_status: 200 for a run, an error status when the request was refused.
        headers: of the response, names in lower case.
        problem: the parsed body of a refusal.
        exception: the exception that ended the agent's `run`, `Interrupted` and `CancelledError` included.
        ending: what `Agent.on_finish` was told.
        run: the agent's `Run`, for a look inside.
        sent: the input in wire form, as it was sent.
    """

    input: RunAgentInput | None
    events: list[Event] = field(default_factory=list)
    payloads: list[dict[str, Any]] = field(default_factory=list)
    state: Any = None
    messages: list[Message] = field(default_factory=list)
    text: str = ""
    outcome: Literal["success", "interrupt", "cancelled"] | None = None
    error: RunErrorEvent | None = None
    result: Any = None
    interrupts: list[Interrupt] = field(default_factory=list)
    pending_tool_calls: list[str] = field(default_factory=list)
    usage: list[TokenUsage] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    http_status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    problem: Any = None
    exception: BaseException | None = None
    ending: Ending | None = None
    run: Run[Any] | None = None
    sent: dict[str, Any] = field(default_factory=dict)
    continue_: Continue | None = None

    @property
    def types(self) -> list[str]:
        """The types of the events, in order."""
        return [str(payload["type"]) for payload in self.payloads]

    def raise_error(self) -> RunResult:
        """Raises what made the run fail, in the author's own traceback where there is one; else returns the result.

        Raises:
            Refused: the request was answered with an HTTP error.
            AgentError: the run ended with RUN_ERROR, and no exception of this process is known.
        """
        if self.http_status != 200:
            raise Refused(self.http_status, self.problem)
        if self.ending is not None and self.ending.kind in ("failed", "disconnected"):
            if isinstance(self.exception, Exception):
                raise self.exception
            if self.ending.error is not None:
                raise self.ending.error
        if self.error is not None:
            raise AgentError(self.error.message, self.error.code or "")
        return self

    async def resume(self, answers: Mapping[str, Any] | None = None, *, cancel: Iterable[str] = ()) -> RunResult:
        """The next run, which answers this one's questions: same thread, state and messages, a new run id (P2).

        Args:
            answers: interrupt id -> payload.
            cancel: ids of the questions that the user abandons.

        Raises:
            ValueError: a question is not open, or one is neither answered nor abandoned: a client must cover all of them.
        """
        given = [*(answers or {}), *(cancel := list(cancel))]
        open_ids = [interrupt.id for interrupt in self.interrupts]
        if unknown := [id for id in given if id not in open_ids]:
            raise ValueError(f"no such question is open: {', '.join(unknown)}; open: {', '.join(open_ids) or 'none'}")
        if twice := [id for id in set(given) if given.count(id) > 1]:
            raise ValueError(f"both answered and abandoned: {', '.join(twice)}")
        if missing := [id for id in open_ids if id not in given]:
            raise ValueError(f"answer or cancel every open question; missing: {', '.join(missing)}")
        return await self._next(messages=self.messages, resume=resume_entries(answers or {}, cancel))

    async def answer(self, results: Mapping[str, Any]) -> RunResult:
        """The next run, with the results of the client's own tools, as a client sends them after it ran the tools.

        Args:
            results: tool call id -> what the tool returned: a text, or a JSON value, which is sent as its text.

        Raises:
            ValueError: a call is not pending, or one is left without a result.
        """
        if unknown := [id for id in results if id not in self.pending_tool_calls]:
            pending = ", ".join(self.pending_tool_calls) or "none"
            raise ValueError(f"no such tool call is pending: {', '.join(unknown)}; pending: {pending}")
        if missing := [id for id in self.pending_tool_calls if id not in results]:
            raise ValueError(f"every pending tool call needs a result; missing: {', '.join(missing)}")
        told = [tool_message(id, result) for id, result in results.items()]
        return await self._next(messages=[*self.messages, *told], resume=None)

    async def say(self, text: str) -> RunResult:
        """The next run on the thread, with a further message of the user. Open questions stay unanswered."""
        return await self._next(messages=[*self.messages, user_message(text)], resume=None)

    def normalized(self) -> list[dict[str, Any]]:
        """The events in wire form, each UUID in them renamed by order of appearance: `message-1`, `run-1`, ….

        Every UUID, wherever it stands (also in a pointer, a key or a text), so that two runs which say the same are equal;
        ids that the author chose stay. With `state_interval=0`, the default here, an agent that waits for nothing outside
        gives the same events each time.
        """
        names: dict[str, str] = {}
        counts: dict[str, int] = {}

        def rename(text: str, kind: str) -> str:
            def name(found: re.Match[str]) -> str:
                uuid = found.group()
                if uuid not in names:
                    counts[kind] = counts.get(kind, 0) + 1
                    names[uuid] = f"{kind}-{counts[kind]}"
                return names[uuid]

            return _UUID.sub(name, text)

        def walk(value: Any, kind: str = "uuid") -> Any:
            if isinstance(value, str):
                return rename(value, kind)
            if isinstance(value, list):
                return [walk(item, kind) for item in value]
            if isinstance(value, dict):
                return {rename(key, "uuid"): walk(item, _ID_NAMES.get(key, "uuid")) for key, item in value.items()}
            return value

        return [walk(payload) for payload in self.payloads]

    def __repr__(self) -> str:
        if self.http_status != 200:
            return f"<RunResult HTTP {self.http_status} {self.problem}>"
        how = self.error.code if self.error is not None else self.outcome
        if self.ending is not None:
            how = f"{self.ending.kind} ({how})" if how else self.ending.kind
        return f"<RunResult {how}\n{describe(self.payloads)}>"

    async def _next(self, **changes: Any) -> RunResult:
        if self.continue_ is None:
            raise RuntimeError("a replayed run has no agent to go on with")
        return await self.continue_(
            state=self.state,
            tools=self.sent.get("tools"),
            context=self.sent.get("context"),
            forwarded_props=self.sent.get("forwardedProps"),
            thread_id=self.sent.get("threadId"),
            protocol_version=self.sent.get("protocolVersion"),
            **changes,
        )


def make_result(transcript: Transcript, **more: Any) -> RunResult:
    """The result that a transcript amounts to."""
    replica = transcript.replica
    last = transcript.terminal
    outcome = getattr(last, "outcome", None)
    return RunResult(
        input=transcript.input,
        sent=transcript.sent,
        events=transcript.events,
        payloads=transcript.payloads,
        state=replica.state,
        messages=list(replica.messages),
        text=_text(transcript.applied),
        outcome=replica.outcome,
        error=replica.error,
        result=getattr(last, "result", None),
        interrupts=list(replica.interrupts),
        pending_tool_calls=list(getattr(outcome, "pending_tool_call_ids", None) or ()),
        usage=list(getattr(last, "usage", None) or ()),
        warnings=list(replica.warnings),
        **more,
    )


def _text(events: list[Event]) -> str:
    texts: dict[str, list[str]] = {}
    for event in events:
        if isinstance(event, TextMessageStartEvent):
            if (event.role or "assistant") == "assistant":
                texts.setdefault(event.message_id, [])
        elif isinstance(event, TextMessageContentEvent) and event.message_id in texts:
            texts[event.message_id].append(event.delta)
    return "\n".join("".join(pieces) for pieces in texts.values())
