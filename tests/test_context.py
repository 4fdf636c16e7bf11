"""What reaches an agent's code from around it, and what it tells around it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from contextvars import ContextVar
from itertools import pairwise
from typing import Any

import pytest
from ag_ui.core import RunAgentInput
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.requests import Request

from agents_support import agent_of
from statecast import Agent, AgentError, Run, SentEvent, current_run
from statecast.testing import run_agent

host = ContextVar("host", default="unset")


def play(agent: Any, **given: Any) -> Any:
    return asyncio.run(run_agent(agent, "hi", **given))


def test_current_run_works_in_tools_tasks_and_worker_threads() -> None:
    seen = []

    def tool() -> Run[Any]:
        return current_run()

    async def body(run: Run[Any]) -> None:
        seen.append(tool() is run)
        seen.append(await asyncio.to_thread(tool) is run)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(asyncio.to_thread(tool))
        seen.append(task.result() is run)

    play(agent_of(body))
    assert seen == [True, True, True]


def test_current_run_outside_a_run_says_what_to_do() -> None:
    with pytest.raises(LookupError, match="no run is active"):
        current_run()


def test_runs_side_by_side_each_see_their_own() -> None:
    async def body(run: Run[Any]) -> None:
        for _ in range(10):
            await asyncio.sleep(0)
            assert current_run() is run

    async def scenario() -> list[Any]:
        return await asyncio.gather(*(run_agent(agent_of(body), "hi") for _ in range(5)))

    for result in asyncio.run(scenario()):
        result.raise_error()


def test_the_context_of_the_request_reaches_the_agent() -> None:
    seen = []

    class Reading(Agent[dict[str, Any]]):
        async def authorize(self, request: Request) -> Any:
            host.set("from authorize")
            return {"user": request.headers["x-user"]}

        async def run(self, run: Run[dict[str, Any]]) -> None:
            assert run.request is not None
            seen.append((host.get(), run.principal, run.request.headers["x-user"]))

    play(Reading(), headers={"x-user": "ada"})
    assert seen == [("from authorize", {"user": "ada"}, "ada")]


def test_user_text_is_the_text_of_the_last_user_message() -> None:
    texts = []

    async def body(run: Run[Any]) -> None:
        texts.append(run.user_text)
        await run.say("an answer")
        texts.append(run.user_text)

    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    asyncio.run(run_agent(agent_of(body), messages=[{"id": "u", "role": "user", "content": parts}]))
    asyncio.run(run_agent(agent_of(body), messages=[]))
    assert texts == ["ab", "ab", "", ""]


def test_every_event_is_observed_in_order_and_outside_the_event_loop() -> None:
    seen: list[SentEvent] = []
    loops = []

    class Observed(Agent[dict[str, Any]]):
        async def run(self, run: Run[dict[str, Any]]) -> None:
            run.state["a"] = 1
            await run.say("hello")

        def on_event(self, run: Run[dict[str, Any]], event: SentEvent) -> None:
            seen.append(event)
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                loops.append(None)

    result = play(Observed())
    assert [event.type for event in seen] == result.types
    assert all(event.bytes > 0 for event in seen)
    assert [event.seconds for event in seen] == sorted(event.seconds for event in seen)
    assert len(loops) == len(seen)


def test_an_observer_that_fails_is_logged_once_and_breaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Agent[dict[str, Any]]):
        async def run(self, run: Run[dict[str, Any]]) -> None:
            await run.say("hello")

        def on_event(self, run: Run[dict[str, Any]], event: SentEvent) -> None:
            raise RuntimeError("broken")

    assert play(Broken()).outcome == "success"
    assert caplog.text.count("Agent.on_event failed") == 1


def test_an_observer_that_is_slow_does_not_slow_the_stream() -> None:
    seconds = []

    class Slow(Agent[dict[str, Any]]):
        async def run(self, run: Run[dict[str, Any]]) -> None:
            started = time.monotonic()
            for _ in range(20):
                await run.say("hello")
                await asyncio.sleep(0)
            seconds.append(time.monotonic() - started)

        def on_event(self, run: Run[dict[str, Any]], event: SentEvent) -> None:
            time.sleep(0.05)

    play(Slow(), options={"grace": 0.1})
    assert seconds[0] < 1.0


def test_an_agent_that_blocks_the_loop_is_noted_with_its_line(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("statecast.server.watchdog.BLOCKED_SECONDS", 0.2)

    async def body(run: Run[Any]) -> None:
        time.sleep(0.8)  # noqa: ASYNC251

    caplog.set_level(logging.WARNING)
    play(agent_of(body))
    (note,) = [record for record in caplog.records if record.name == "statecast.server"]
    assert "time.sleep(0.8)" in note.getMessage()


def test_an_agent_that_awaits_is_not_noted(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("statecast.server.watchdog.BLOCKED_SECONDS", 0.2)

    async def body(run: Run[Any]) -> None:
        await asyncio.sleep(0.8)

    play(agent_of(body))
    assert [record for record in caplog.records if record.name == "statecast.server"] == []


@pytest.fixture(scope="module")
def spans() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    yield exporter
    # It takes no further spans: else it would keep those of all later tests.
    exporter.shutdown()


def test_spans_for_run_step_tool_and_subagent_nest(spans: InMemorySpanExporter) -> None:
    spans.clear()

    async def body(run: Run[Any]) -> None:
        async with run.step("search"), run.subagent("helper", id="h") as sub, sub.tool_call("look", id="t"):
            with trace.get_tracer("author").start_as_current_span("author's own"):
                pass
        raise AgentError("private text")

    play(agent_of(body))
    finished = {span.name: span for span in spans.get_finished_spans()}
    chain = ["run", "step search", "subagent helper", "tool look", "author's own"]
    for outer, inner in pairwise(chain):
        assert finished[inner].parent is not None
        assert finished[inner].parent.span_id == finished[outer].context.span_id
    assert finished["tool look"].attributes == {"statecast.tool_call_id": "t", "statecast.subagent_run_id": "h"}
    assert set(finished["run"].attributes) == {"statecast.agent", "statecast.thread_id", "statecast.run_id"}
    assert not finished["run"].status.is_ok
    assert "private" not in str([span.to_json() for span in finished.values()])


def test_records_of_all_our_loggers_carry_the_ids_of_the_run(caplog: pytest.LogCaptureFixture) -> None:
    class Large(Agent[dict[str, Any]]):
        async def run(self, run: Run[dict[str, Any]]) -> None:
            run.state["n"] = 2**60
            await run.flush()

    async def scenario() -> None:
        await run_agent(Large(), "hi", thread_id="t1", run_id="r1")
        given = run_input(thread_id="t3", run_id="r3", state={"n": 2**60})
        async for _ in Large().stream(given):
            pass
        logging.getLogger("statecast.server").warning("outside")

    asyncio.run(scenario())
    found = {(record.name, record.__dict__["thread_id"], record.__dict__["run_id"]) for record in caplog.records}
    assert ("statecast.state", "t1", "r1") in found
    assert ("statecast.state", "t3", "r3") in found
    assert ("statecast.server", None, None) in found


def run_input(**more: Any) -> RunAgentInput:
    return RunAgentInput(messages=[], tools=[], context=[], forwarded_props=None, **more)
