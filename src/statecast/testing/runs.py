"""Running an agent in a test: the real endpoint in this process, every event judged as it arrives."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any, cast

from ..agent import Agent
from ..run import Run
from ..server.endpoint import Endpoint
from ..server.options import Options
from ..server.service import Service
from ..state import MISSING
from .compare import difference
from .exchange import Exchange
from .failures import BrokenStream, RunTimeout
from .inputs import is_activity, next_input, wire
from .probe import Probe
from .result import Continue, RunResult
from .show import short
from .stream import LiveStream
from .transcript import Transcript

__all__ = ["LiveRun", "open_run", "run_agent", "run_agent_sync"]

_UNWRITABLE = ("state_too_large", "state_invalid")
"""Codes of runs whose last state could not be sent."""


async def run_agent(
    agent: Agent[Any] | type[Agent[Any]],
    text: str | None = None,
    *,
    state: Any = MISSING,
    messages: Iterable[Any] | None = None,
    tools: Iterable[Any] | None = None,
    context: Iterable[Any] | None = None,
    resume: Mapping[str, Any] | Iterable[Any] | None = None,
    forwarded_props: Any = None,
    thread_id: str | None = None,
    run_id: str | None = None,
    protocol_version: str | None = "1.0",
    headers: Mapping[str, str] | None = None,
    timeout: float = 10.0,
    options: Mapping[str, Any] | None = None,
    **more: Any,
) -> RunResult:
    """Runs an agent once, from the request to the last event, and gives what its client has then.

        result = await run_agent(Planner, "Plan a day", state={"city": "Lisbon"})
        assert result.raise_error().state["stops"]

    The request goes through the real endpoint, inside `agent.running()`. Each event is judged: the stream must keep the
    protocol's rules, and at the end the client's state and messages must be equal to the agent's `run.state` and
    `run.messages`. An HTTP refusal raises nothing: look at `http_status` and `problem`. Nor does a run that fails: look at
    `error` and `exception`, or call `raise_error()`.

    Args:
        agent: an instance, or a class, which is made without arguments.
        text: a user message, after `messages`.
        state: any JSON value, `State` or model. Left out, the input carries none; `None` is JSON null.
        messages, tools, context: `ag_ui` models or dicts in wire form. Activity messages are kept by the client and not
            sent, as clients do (I6).
        resume: interrupt id -> payload, or resume entries.
        protocol_version: `None` leaves it out, as clients of the 0.0.x line do; messages are not compared then, as those
            clients are sent less.
        headers: of the request.
        timeout: seconds that the whole run may take in this test.
        options, more: the keyword arguments of `Agent.app`; its `timeout`, after which the run is cancelled, only fits in
            `options`. `state_interval` is 0 unless given, so that what is sent does not depend on the clock.

    Raises:
        BrokenStream: (an `AssertionError`) the stream is not what it must be; the text lists the events.
        RunTimeout: (an `AssertionError`) the run took longer than `timeout`.
    """
    __tracebackhide__ = True  # pytest: the test's own line, not ours
    async with open_run(
        agent,
        text,
        state=state,
        messages=messages,
        tools=tools,
        context=context,
        resume=resume,
        forwarded_props=forwarded_props,
        thread_id=thread_id,
        run_id=run_id,
        protocol_version=protocol_version,
        headers=headers,
        timeout=timeout,
        options=options,
        **more,
    ) as live:
        async for _ in live:
            pass
    return live.result()


def run_agent_sync(agent: Agent[Any] | type[Agent[Any]], text: str | None = None, **arguments: Any) -> RunResult:
    """`run_agent` for tests that are not `async`. The next run of its result is `asyncio.run(result.resume(…))`."""
    __tracebackhide__ = True
    if _loop_runs():
        raise RuntimeError("an event loop runs here already: use `await run_agent(…)`")
    try:
        return asyncio.run(run_agent(agent, text, **arguments))
    except (BrokenStream, RunTimeout) as error:
        # The event loop's frames tell nothing.
        raise error.with_traceback(None) from error.__cause__


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def open_run(
    agent: Agent[Any] | type[Agent[Any]],
    text: str | None = None,
    *,
    messages: Iterable[Any] | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = 10.0,
    options: Mapping[str, Any] | None = None,
    state: Any = MISSING,
    tools: Iterable[Any] | None = None,
    context: Iterable[Any] | None = None,
    resume: Mapping[str, Any] | Iterable[Any] | None = None,
    forwarded_props: Any = None,
    thread_id: str | None = None,
    run_id: str | None = None,
    protocol_version: str | None = "1.0",
    **more: Any,
) -> AbstractAsyncContextManager[LiveRun]:
    """A run that a test watches as it goes. The arguments are those of `run_agent`.

        async with open_run(Planner, "Plan a day") as live:
            async for event in live:
                if event.type == "STATE_DELTA":
                    await live.disconnect()
        assert live.result().ending.kind == "disconnected"

    The agent is held back as by a slow client while nobody iterates: a chunk is sent when the one before was read. Leaving
    the block before the run's end disconnects and waits for the run.
    """
    made = agent() if isinstance(agent, type) else agent
    held, sent = next_input(
        text=text,
        state=state,
        messages=messages or (),
        tools=tools,
        context=context,
        resume=resume,
        forwarded_props=forwarded_props,
        thread_id=thread_id,
        run_id=run_id,
        protocol_version=protocol_version,
    )
    if text is not None:
        held.append(sent["messages"][-1])
    settings = {"state_interval": 0, **(options or {}), **more}

    async def go_on(**changes: Any) -> RunResult:
        return await run_agent(made, headers=headers, timeout=timeout, options=settings, **changes)

    checked = Options(**settings)

    @asynccontextmanager
    async def opened() -> AsyncIterator[LiveRun]:
        async with made.running():
            live = LiveRun(made, Transcript(sent, held=held), checked, timeout, go_on)
            try:
                await live.start(headers or {})
                yield live
            except BaseException:
                await live.leave(judge=False)
                raise
            await live.leave()

    return opened()


class LiveRun(LiveStream):
    """A run of an agent in this process. Iterate it for its events; each was judged before you get it."""

    def __init__(
        self, agent: Agent[Any], transcript: Transcript, options: Options, timeout: float, go_on: Continue
    ) -> None:
        super().__init__(transcript, timeout, go_on)
        self._options = options
        self._probe = Probe(agent)
        self._exchange: Exchange | None = None

    @property
    def run(self) -> Run[Any] | None:
        """The agent's own `Run`, once it started."""
        return self._probe.seen

    def result(self) -> RunResult:
        ending = self._probe.ending
        exception = None if ending is None else ending.exception
        return replace(super().result(), exception=exception, ending=ending, run=self._probe.seen)

    async def start(self, headers: Mapping[str, str]) -> None:
        """Sends the request and waits for the beginning of the response."""
        self._begin()
        told = {"content-type": "application/json", "accept": "text/event-stream"}
        told |= {name.lower(): value for name, value in headers.items()}
        self._exchange = exchange = Exchange(
            Endpoint(cast(Service, self._probe), self._options),
            json.dumps(self._transcript.sent).encode(),
            headers=told.items(),
        )
        status = await self._bounded(exchange.start(), "the request was not answered")
        await self._answered(status, exchange.headers)

    async def _read(self) -> bytes | None:
        assert self._exchange is not None
        return await self._exchange.read()

    async def _close(self) -> None:
        if self._exchange is not None:
            self._exchange.disconnect()
            await self._settle(self._exchange)

    async def _finish(self) -> None:
        __tracebackhide__ = True
        assert self._exchange is not None
        await self._settle(self._exchange)
        ending = self._probe.ending
        if ending is not None and ending.kind == "disconnected":
            return  # dropped by the server, as a client that takes nothing is
        self._transcript.close()
        if not self._exchange.complete:
            raise BrokenStream("the response's body did not end in order", "W4", self.payloads)
        self._compare()

    async def _settle(self, exchange: Exchange) -> None:
        # The agent, `on_finish` and the observers have `grace` seconds each.
        limit = 3 * self._options.grace + 2
        if not await exchange.wait(limit):
            raise RunTimeout(f"the run went on {limit:g} s after its stream had ended", self.payloads)

    def _compare(self) -> None:
        __tracebackhide__ = True
        probe, replica = self._probe, self._transcript.replica
        error = None if probe.ending is None else probe.ending.error
        if probe.ending is None or (error is not None and error.code in _UNWRITABLE):
            return
        if probe.fault is not None:
            raise BrokenStream(f"run.state cannot be written: {probe.fault}", None, self.payloads) from probe.fault
        if (found := difference(replica.state, probe.state)) is not None:
            raise self._differs("run.state", *found)
        if self._transcript.sent.get("protocolVersion") is None:
            return
        kept = {one["id"] for one in self._transcript.held if is_activity(one)}
        client = [one for one in map(wire, replica.messages) if one["id"] not in kept]
        agent = [_as_sent(one, client) for one in probe.messages if one["id"] not in kept]
        if (found := difference(client, agent)) is not None:
            raise self._differs("run.messages", *found)

    def _differs(self, what: str, pointer: str, client: Any, agent: Any) -> BrokenStream:
        reason = (
            f"the client does not have the agent's {what}, they differ at {pointer!r}\n"
            f"  client: {_shown(client)}\n"
            f"  agent:  {_shown(agent)}"
        )
        if what == "run.messages":
            reason += "\n  (a message changed in place is not sent: run.messages[i] = message.model_copy(update=…) is)"
        return BrokenStream(reason, None, self.payloads)


def _as_sent(message: dict[str, Any], client: list[dict[str, Any]]) -> dict[str, Any]:
    """A tool message without its `error`, unless the client has it: TOOL_CALL_RESULT has no place for it (T2)."""
    if "error" in message and any(one["id"] == message["id"] and "error" not in one for one in client):
        return {name: value for name, value in message.items() if name != "error"}
    return message


def _shown(value: Any) -> str:
    return short(value, 100) if isinstance(value, (dict, list, str, int, float, type(None))) else repr(value)
