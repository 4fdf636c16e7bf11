"""How a run ends: exactly one terminal event, with a text that is safe to show (L3, L9)."""

from __future__ import annotations

import asyncio
import logging
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from ag_ui.core import TokenUsage

from agents_support import agent_of, last, wire
from statecast import Agent, AgentError, Ending, Run
from statecast.testing import open_run, run_agent

SECRET = "postgres://user:secret@db"


def play(body: Any, **given: Any) -> Any:
    return asyncio.run(run_agent(agent_of(body), "hi", **given))


@pytest.mark.parametrize("value", [0, "", False, [], {"a": None}, "done"])
def test_L3_what_run_returns_is_the_result(value: Any) -> None:
    async def body(run: Run[Any]) -> Any:
        return value

    result = play(body)
    assert last(result)["result"] == value
    assert type(last(result)["result"]) is type(value)
    assert "outcome" not in last(result) or last(result)["outcome"] == {"type": "success"}


def test_W6_a_result_of_none_is_left_out() -> None:
    async def body(run: Run[Any]) -> None: ...

    assert "result" not in last(play(body))


def test_a_result_that_is_not_json_ends_the_run_and_the_log_names_its_type(caplog: pytest.LogCaptureFixture) -> None:
    async def body(run: Run[Any]) -> Any:
        return object()

    result = play(body)
    assert result.error.code == "internal"
    assert "object" in caplog.text


@dataclass
class Unset:
    given: int
    never: int = field(init=False)


class Hidden(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("not shown")


@pytest.mark.parametrize("value", [Unset(1), [Unset(1)], Hidden(a=1)])
def test_W4_a_result_that_cannot_be_read_ends_the_run(value: Any) -> None:
    async def body(run: Run[Any]) -> Any:
        return value

    result = play(body)
    assert result.types == ["RUN_STARTED", "RUN_ERROR"]
    assert result.error.code == "internal"


def test_half_a_surrogate_pair_may_stand_in_whatever_a_run_says() -> None:
    half = "\ud83d"

    async def body(run: Run[Any]) -> Any:
        await run.custom("com.example.half", {"half": half})
        await run.raw([half])
        await run.emit({"type": "CUSTOM", "name": "com.example.half", "value": [half]})
        await run.emit({"type": "STATE_SNAPSHOT", "snapshot": {"half": half}})
        await run.emit({"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/other", "value": half}]})
        async with run.subagent("other", metadata={"half": half}) as other:
            other.result = [half]
        return {"half": half}

    result = play(body)
    assert last(result)["result"] == {"half": half}
    assert result.state == {"half": half, "other": half}


def test_half_a_surrogate_pair_in_a_question() -> None:
    async def body(run: Run[Any]) -> None:
        await run.ask("half", metadata={"half": "\ud83d"}, schema={"title": "\ud83d"})

    assert last(play(body))["outcome"]["interrupts"][0]["metadata"] == {"half": "\ud83d"}


def test_L9_an_unexpected_exception_gives_a_fixed_text_and_a_log(caplog: pytest.LogCaptureFixture) -> None:
    async def body(run: Run[Any]) -> None:
        raise ValueError(SECRET)

    result = play(body)
    assert result.types == ["RUN_STARTED", "RUN_ERROR"]
    assert result.error.code == "internal"
    assert SECRET not in str(wire(result))
    assert SECRET in caplog.text
    record = next(record for record in caplog.records if record.levelno == logging.ERROR)
    assert (record.name, record.run_id, record.thread_id) == (
        "statecast.run",
        wire(result)[0]["runId"],
        wire(result)[0]["threadId"],
    )
    with pytest.raises(ValueError, match="postgres"):
        result.raise_error()


def test_debug_mode_tells_the_text() -> None:
    async def body(run: Run[Any]) -> None:
        raise ValueError(SECRET)

    assert SECRET in play(body, debug=True).error.message


def test_an_agent_error_is_told_as_it_is() -> None:
    async def body(run: Run[Any]) -> None:
        raise AgentError("No more seats.", code="sold_out")

    result = play(body)
    assert (result.error.message, result.error.code) == ("No more seats.", "sold_out")


def test_L9_an_agent_maps_its_exceptions() -> None:
    class Mapping(Agent[dict[str, Any]]):
        async def run(self, run: Run[dict[str, Any]]) -> None:
            raise TimeoutError if run.user_text == "slow" else KeyError("x")

        def error(self, exc: Exception, run: Run[dict[str, Any]]) -> AgentError | None:
            return AgentError("Too slow.", "slow") if isinstance(exc, TimeoutError) else None

    async def scenario() -> list[str | None]:
        return [(await run_agent(Mapping(), text)).error.code for text in ("slow", "other")]

    assert asyncio.run(scenario()) == ["slow", "internal"]


def test_a_mapping_that_fails_itself_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Mapping(Agent[dict[str, Any]]):
        async def run(self, run: Run[dict[str, Any]]) -> None:
            raise KeyError("x")

        def error(self, exc: Exception, run: Run[dict[str, Any]]) -> AgentError | None:
            raise RuntimeError("mapping")

    assert asyncio.run(run_agent(Mapping(), "hi")).error.code == "internal"
    assert "Agent.error failed" in caplog.text


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("gives", ["text", 0, None, SystemExit, asyncio.CancelledError])
def test_L9_a_mapping_that_gives_something_else_changes_nothing(gives: Any, debug: bool) -> None:
    class Mapping(Agent[dict[str, Any]]):
        async def run(self, run: Run[dict[str, Any]]) -> None:
            raise KeyError("x")

        def error(self, exc: Exception, run: Run[dict[str, Any]]) -> AgentError | None:
            if isinstance(gives, type):
                raise gives
            return gives

    result = asyncio.run(run_agent(Mapping(), "hi", options={"debug": debug}))
    assert result.error.code == "internal"
    assert result.error.message.endswith("KeyError: 'x'" if debug else "unexpectedly.")


class Unwritable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("an error that cannot be written")


@pytest.mark.parametrize("debug", [False, True])
def test_L9_an_exception_that_cannot_be_written_ends_the_run(debug: bool) -> None:
    async def body(run: Run[Any]) -> None:
        raise Unwritable

    result = play(body, options={"debug": debug})
    assert result.types == ["RUN_STARTED", "RUN_ERROR"]
    assert ("Unwritable" in result.error.message) == debug


@pytest.mark.parametrize("given", [(5,), (None,), (KeyError("x"),), ("text", 5), ("text", None)])
def test_the_message_and_the_code_of_an_agent_error_are_texts(given: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match="are str"):
        AgentError(*given)


def test_a_tool_that_exits_ends_its_run_and_not_the_server() -> None:
    async def body(run: Run[Any]) -> None:
        sys.exit(3)

    assert play(body).error.code == "internal"


def test_a_group_of_exceptions_is_searched_for_the_one_that_matters() -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise AgentError("from a task", "task")

    async def body(run: Run[Any]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            group.create_task(asyncio.sleep(60))

    assert play(body).error.code == "task"


def test_L3_a_time_limit_ends_in_the_cancelled_outcome_and_in_order() -> None:
    seen = []

    async def body(run: Run[Any]) -> None:
        async with run.step("s"):
            try:
                await asyncio.sleep(60)
            finally:
                seen.append("finally")

    result = asyncio.run(_limited(body))
    assert seen == ["finally"]
    assert result.outcome == "cancelled"
    assert last(result)["metadata"] == {"statecast": {"reason": "timeout"}}
    assert result.types == ["RUN_STARTED", "STEP_STARTED", "STEP_FINISHED", "RUN_FINISHED"]
    assert "result" not in last(result)


async def _limited(body: Any) -> Any:
    return await run_agent(agent_of(body), "hi", options={"timeout": 0.05})


def test_an_authors_own_timeout_is_an_exception_like_any_other() -> None:
    async def body(run: Run[Any]) -> None:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(60)

    assert play(body).error.code == "internal"


def test_a_swallowed_cancellation_does_not_keep_the_run_alive() -> None:
    raised = []

    async def body(run: Run[Any]) -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        try:
            await run.say("still here")
        except asyncio.CancelledError:
            raised.append(True)
            raise

    result = asyncio.run(_limited(body))
    assert raised == [True]
    assert result.outcome == "cancelled"
    assert "TEXT_MESSAGE_START" not in result.types


def test_an_agent_that_never_ends_after_its_cancellation_is_left_with_its_stack(
    caplog: pytest.LogCaptureFixture,
) -> None:
    released = []

    async def body(run: Run[Any]) -> None:
        event = asyncio.Event()
        released.append(event)
        try:
            await asyncio.sleep(60)
        finally:
            await event.wait()

    async def scenario() -> Any:
        result = await run_agent(agent_of(body), "hi", options={"timeout": 0.02, "grace": 0.05})
        released[0].set()
        await asyncio.sleep(0.01)
        return result

    result = asyncio.run(scenario())
    assert result.outcome == "cancelled"
    assert "event.wait()" in caplog.text


def test_cleanup_may_await_within_its_grace() -> None:
    steps = []

    async def body(run: Run[Any]) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            for index in range(3):
                await asyncio.sleep(0.005)
                steps.append(index)

    asyncio.run(_limited(body))
    assert steps == [0, 1, 2]


def test_a_client_that_goes_away_cancels_the_agent_once() -> None:
    seen: list[Any] = []

    class Watched(Agent[dict[str, Any]]):
        async def run(self, run: Run[dict[str, Any]]) -> None:
            try:
                while True:
                    run.state["n"] = run.state.get("n", 0) + 1
                    await run.say("tick")
                    await asyncio.sleep(0.001)
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise
            finally:
                await asyncio.sleep(0.01)
                seen.append("cleaned")

        async def on_finish(self, run: Run[dict[str, Any]], ending: Ending) -> None:
            seen.append((ending.kind, len(run.messages) > 1, run.state["n"] > 0))

    async def scenario() -> None:
        async with open_run(Watched(), "hi") as live:
            async for event in live:
                if event.type == "TEXT_MESSAGE_END":
                    break
            await live.disconnect()

    asyncio.run(scenario())
    assert seen == ["cancelled", "cleaned", ("disconnected", True, True)]


ENDINGS: dict[str, tuple[Any, str]] = {}


def _ending(kind: str) -> Any:
    def keep(body: Any) -> Any:
        ENDINGS[body.__name__] = (body, kind)
        return body

    return keep


@_ending("finished")
async def _returns(run: Run[Any]) -> str:
    return "done"


@_ending("failed")
async def _raises(run: Run[Any]) -> None:
    raise ValueError("x")


@_ending("failed")
async def _agent_error(run: Run[Any]) -> None:
    raise AgentError("x")


@_ending("interrupted")
async def _asks(run: Run[Any]) -> None:
    await run.ask("approve")


@_ending("cancelled")
async def _sleeps(run: Run[Any]) -> None:
    await asyncio.sleep(60)


@pytest.mark.parametrize("name", list(ENDINGS))
def test_on_finish_is_called_exactly_once_on_every_way_out(name: str) -> None:
    body, kind = ENDINGS[name]
    endings: list[Ending] = []

    class Audited(Agent[dict[str, Any]]):
        async def run(self, run: Run[dict[str, Any]]) -> Any:
            run.state["x"] = 1
            return await body(run)

        async def on_finish(self, run: Run[dict[str, Any]], ending: Ending) -> None:
            await asyncio.sleep(0.01)
            endings.append(ending)
            assert run.state == {"x": 1}
            assert run.user_text == "hi"

    result = asyncio.run(run_agent(Audited(), "hi", options={"timeout": 0.1}))
    (ending,) = endings
    assert ending.kind == kind
    assert ending.events == len(result.events)
    assert ending.bytes > 0
    assert ending.seconds > 0
    assert (ending.reason == "timeout") == (kind == "cancelled")
    assert (ending.error is not None) == (kind == "failed")
    assert (ending.exception is not None) == (kind != "finished")


def test_an_on_finish_that_fails_or_hangs_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Agent[dict[str, Any]]):
        async def run(self, run: Run[dict[str, Any]]) -> None:
            await run.say("hello")

        async def on_finish(self, run: Run[dict[str, Any]], ending: Ending) -> None:
            if run.user_text == "hang":
                await asyncio.sleep(60)
            if run.user_text == "exit":
                sys.exit(3)
            if run.user_text == "cancel":
                raise asyncio.CancelledError
            raise RuntimeError("broken")

    async def scenario() -> list[Any]:
        ways = ("fail", "hang", "exit", "cancel")
        return [(await run_agent(Broken(), text, options={"grace": 0.05})).outcome for text in ways]

    assert asyncio.run(scenario()) == ["success"] * 4
    assert caplog.text.count("Agent.on_finish failed") == 4


def test_U1_usage_goes_out_on_the_terminal_event_whatever_it_is() -> None:
    async def fine(run: Run[Any]) -> None:
        run.usage.add(provider="p", model="m", input_tokens=1, output_tokens=2)
        async with run.subagent("x") as sub:
            sub.usage.add(TokenUsage(provider="p", model="m", input_tokens=4))

    async def failing(run: Run[Any]) -> None:
        await fine(run)
        raise AgentError("x")

    for body in (fine, failing):
        (entry,) = last(play(body))["usage"]
        assert entry == {"provider": "p", "model": "m", "inputTokens": 5, "outputTokens": 2, "totalTokens": 7}


def test_one_info_line_a_run_and_no_content_above_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def body(run: Run[Any]) -> None:
        run.state["private"] = "needle"
        await run.say("needle")

    play(body)
    lines = [record for record in caplog.records if record.name == "statecast.run" and record.levelno == logging.INFO]
    assert len(lines) == 1
    assert "finished" in lines[0].getMessage()
    above_debug = [record.getMessage() for record in caplog.records if record.levelno > logging.DEBUG]
    assert not any("needle" in line for line in above_debug)
