"""`run_agent` and `open_run` against the real endpoint."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from ag_ui.core import ActivityMessage, AssistantMessage, TextPart, UserMessage

from kit_agents import Asker, Counter, Failing, Guarded, Planner, Pooled, Trip
from statecast import Abandoned, Agent, AgentError, Interrupted, Run
from statecast.testing import Refused, RunTimeout, open_run, run_agent, run_agent_sync


def test_a_run_from_request_to_result():
    result = run_agent_sync(Planner, "Porto")
    assert result.types[0] == "RUN_STARTED"
    assert result.types[-1] == "RUN_FINISHED"
    assert [event.type.value for event in result.events] == result.types
    assert result.state == {"city": "Porto", "stops": ["Belem", "Alfama"]}
    assert result.text == "Here is your plan."
    assert result.outcome == "success"
    assert result.result == {"stops": 2}
    assert result.error is None
    assert result.exception is None
    assert result.http_status == 200
    assert result.ending is not None
    assert result.ending.kind == "finished"
    assert [(one.provider, one.input_tokens, one.total_tokens) for one in result.usage] == [("acme", 3, 8)]
    assert [message.role for message in result.messages] == ["user", "assistant", "tool", "assistant"]
    assert result.run is not None
    assert result.run.state == Trip(city="Porto", stops=["Belem", "Alfama"])
    assert result.raise_error() is result


def test_the_input_is_what_the_arguments_say():
    seen: list[Run] = []

    class Looker(Agent):
        async def run(self, run: Run) -> None:
            seen.append(run)

    result = run_agent_sync(
        Looker(),
        "second",
        state={"a": None},
        messages=[UserMessage(id="1", content="first"), {"id": "2", "role": "assistant", "content": "so"}],
        tools=[{"name": "open", "description": "opens", "parameters": {}}],
        context=[{"description": "d", "value": "v"}],
        resume={"q": 1},
        forwarded_props={"x": 1},
        thread_id="t",
        run_id="r",
        headers={"X-Who": "me"},
    )
    (run,) = seen
    assert [message.content for message in run.messages] == ["first", "so", "second"]
    assert run.user_text == "second"
    assert run.state == {"a": None}
    assert [tool.name for tool in run.tools] == ["open"]
    assert [entry.value for entry in run.context] == ["v"]
    assert [(entry.interrupt_id, entry.status, entry.payload) for entry in run.input.resume or ()] == [
        ("q", "resolved", 1)
    ]
    assert run.forwarded_props == {"x": 1}
    assert (run.thread_id, run.run_id, run.input.protocol_version) == ("t", "r", "1.0")
    assert run.request is not None
    assert run.request.headers["x-who"] == "me"
    assert result.raise_error().types == ["RUN_STARTED", "RUN_FINISHED"]


def test_no_state_and_null_are_different_inputs():
    class Looker(Agent[Any]):
        async def run(self, run: Run[Any]) -> Any:
            return "state" in run.input.model_fields_set

    assert run_agent_sync(Looker).result is False
    null = run_agent_sync(Looker, state=None)
    assert null.result is True
    assert null.state is None


def test_an_exception_of_the_agent_does_not_raise_until_asked_for():
    result = run_agent_sync(Failing)
    assert result.outcome is None
    assert result.error is not None
    assert result.error.code == "internal"
    assert result.state == {"begun": True}
    assert isinstance(result.exception, KeyError)
    with pytest.raises(KeyError, match="lost"):
        result.raise_error()


def test_an_agent_error_carries_its_text():
    result = run_agent_sync(Failing, "told")
    assert result.error is not None
    assert (result.error.message, result.error.code) == ("No seats left.", "sold_out")
    with pytest.raises(AgentError, match="No seats left"):
        result.raise_error()


def test_a_refusal_is_a_status_and_a_problem():
    result = run_agent_sync(Guarded)
    assert result.http_status == 401
    assert result.headers["www-authenticate"] == "Bearer"
    assert result.problem["status"] == 401
    assert result.events == []
    with pytest.raises(Refused, match="401"):
        result.raise_error()
    assert run_agent_sync(Guarded, headers={"Authorization": "Bearer yes"}).text == "hello somebody"


def test_a_fault_in_authorize_is_the_answer_that_a_server_gives():
    class Careless(Agent):
        async def authorize(self, request: Any) -> Any:
            raise LookupError("secret")

    result = run_agent_sync(Careless)
    assert result.http_status == 500
    assert "secret" not in str(result.problem)
    assert "secret" in str(run_agent_sync(Careless, debug=True).problem)


def test_a_lifespan_that_fails_is_raised():
    class Closed(Agent):
        @asynccontextmanager
        async def lifespan(self) -> AsyncIterator[None]:
            raise ConnectionError("no pool")
            yield

    with pytest.raises(ConnectionError, match="no pool"):
        run_agent_sync(Closed)


def test_an_input_that_is_not_valid_is_sent_all_the_same():
    result = run_agent_sync(Planner, state={"city": 5}, thread_id="t")
    assert result.http_status == 422
    assert [one["pointer"] for one in result.problem["errors"]] == ["/state/city"]
    assert run_agent_sync(Planner, messages=[{"role": "user"}]).http_status == 422


def test_the_lifespan_is_open_while_the_agent_runs():
    agent = Pooled()
    assert run_agent_sync(agent).text == "open"
    assert agent.pool is None


def test_an_endless_agent_ends_with_the_time_that_it_has():
    agent = Counter()
    began = time.monotonic()
    with pytest.raises(RunTimeout, match=r"within 0.5 s[^$]*RUN_STARTED"):
        run_agent_sync(agent, timeout=0.5)
    assert time.monotonic() - began < 5
    assert agent.finished.kind == "disconnected"


def test_an_agent_that_does_nothing_ends_with_the_time_that_it_has():
    class Sleeper(Agent):
        async def run(self, run: Run) -> None:
            await asyncio.Event().wait()

    with pytest.raises(RunTimeout, match="sent nothing more"):
        run_agent_sync(Sleeper, timeout=0.2)


def test_an_agent_that_will_not_end_is_given_up():
    class Stubborn(Agent):
        async def run(self, run: Run) -> None:
            release = asyncio.Event()
            asyncio.get_running_loop().call_later(5, release.set)
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue

    began = time.monotonic()
    with pytest.raises(RunTimeout):
        asyncio.run(_bounded(run_agent(Stubborn, timeout=0.2, grace=0.1)))
    assert time.monotonic() - began < 9


async def _bounded(waiting: Any) -> Any:
    async with asyncio.timeout(8):
        return await waiting


def test_the_time_limit_of_the_app_is_an_option_of_its_own():
    result = run_agent_sync(Counter, options={"timeout": 0.1})
    assert result.outcome == "cancelled"
    assert result.ending is not None
    assert result.ending.reason == "timeout"


def test_what_no_client_can_be_sent_is_not_held_against_the_run():
    class Large(Agent):
        async def run(self, run: Run) -> None:
            run.state["text"] = "x" * (9 * 2**20)

    class FailedTool(Agent):
        async def run(self, run: Run) -> None:
            async with run.tool_call("look") as call:
                await call.result("nothing", error="lost")

    large = run_agent_sync(Large)
    assert large.error is not None
    assert large.error.code == "state_too_large"
    tool = run_agent_sync(FailedTool)
    assert tool.run is not None
    assert [getattr(message, "error", None) for message in tool.run.messages] == [None, "lost"]
    assert [getattr(message, "error", None) for message in tool.messages] == [None, None]


def test_what_is_sent_does_not_depend_on_the_clock():
    class Turner(Agent):
        async def run(self, run: Run) -> None:
            for n in range(5):
                run.state["n"] = n
                for _ in range(10):
                    await asyncio.sleep(0)

    def sent(**options: Any) -> list[str]:
        return run_agent_sync(Turner, **options).types

    assert sent() == ["RUN_STARTED", "STATE_SNAPSHOT", *["STATE_DELTA"] * 4, "RUN_FINISHED"]
    assert sent(state_interval=5) == ["RUN_STARTED", "STATE_SNAPSHOT", "STATE_DELTA", "RUN_FINISHED"]


def test_an_unknown_option_is_an_error():
    with pytest.raises(TypeError, match="colour"):
        run_agent_sync(Planner, colour="red")


def test_sync_within_a_loop_says_what_to_use():
    async def wrong() -> None:
        with pytest.raises(RuntimeError, match="await run_agent"):
            run_agent_sync(Planner)

    asyncio.run(wrong())


# The next run


def test_resume_answers_the_questions_in_the_next_run():
    async def story() -> None:
        agent = Asker()
        first = await run_agent(agent)
        assert first.outcome == "interrupt"
        assert [one.id for one in first.interrupts] == ["approve"]
        assert isinstance(first.exception, Interrupted)
        assert first.raise_error() is first
        second = await first.resume({"approve": True})
        assert second.outcome == "success"
        assert second.text == "yes"
        assert second.state == {"asked": 2}
        assert second.input is not None
        assert first.input is not None
        assert second.input.thread_id == first.input.thread_id
        assert second.input.run_id != first.input.run_id
        assert [entry.interrupt_id for entry in second.input.resume or ()] == ["approve"]

    asyncio.run(story())


def test_a_question_can_be_abandoned():
    async def story() -> None:
        first = await run_agent(Asker)
        second = await first.resume(cancel=["approve"])
        assert second.outcome == "cancelled"
        assert isinstance(second.exception, Abandoned)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("answers", "cancel", "said"),
    [
        ({"other": 1}, [], "open: approve"),
        ({}, [], "missing: approve"),
        ({"approve": True}, ["approve"], "both"),
        ({"approve": True}, ["other"], "no such question"),
    ],
)
def test_resume_covers_exactly_the_open_questions(answers, cancel, said):
    first = run_agent_sync(Asker)
    with pytest.raises(ValueError, match=said):
        asyncio.run(first.resume(answers, cancel=cancel))


def test_activities_stay_with_the_client_and_are_not_sent():
    async def story() -> None:
        first = await run_agent(Asker)
        assert [message.role for message in first.messages] == ["activity"]
        second = await first.resume({"approve": False})
        assert second.input is not None
        assert second.input.messages == []
        assert [message.role for message in second.messages] == ["activity", "activity", "assistant"]

    asyncio.run(story())


def test_say_is_the_next_run_with_a_further_message():
    async def story() -> None:
        first = await run_agent(Planner, "Porto", context=[{"description": "d", "value": "v"}])
        second = await first.say("Faro")
        assert second.state == {"city": "Faro", "stops": ["Belem", "Alfama"] * 2}
        assert second.input is not None
        assert second.input.context is not None
        assert [entry.value for entry in second.input.context] == ["v"]
        assert [message.content for message in second.messages if message.role == "user"] == ["Porto", "Faro"]

    asyncio.run(story())


class Opener(Agent):
    """Lets the client open a page, then says what came of it."""

    async def run(self, run: Run) -> None:
        last = run.messages[-1] if run.messages else None
        if last is not None and last.role == "tool":
            await run.say(f"it said {last.content}")
        else:
            await run.call_frontend("open", {"page": 1})


OPEN = {"name": "open", "description": "opens a page", "parameters": {}}


@pytest.mark.parametrize(("returned", "said"), [("done", "it said done"), ({"ok": True}, 'it said {"ok":true}')])
def test_T3_the_results_of_the_clients_tools_come_with_the_next_run(returned, said):
    async def story() -> None:
        first = await run_agent(Opener, tools=[OPEN])
        assert first.outcome == "success"
        (id,) = first.pending_tool_calls
        second = await first.answer({id: returned})
        assert second.text == said
        assert second.pending_tool_calls == []
        assert [message.role for message in second.messages] == ["assistant", "tool", "assistant"]

    asyncio.run(story())


def test_answer_covers_exactly_the_pending_calls():
    first = run_agent_sync(Opener, tools=[OPEN])
    with pytest.raises(ValueError, match="no such tool call"):
        asyncio.run(first.answer({"other": 1}))
    with pytest.raises(ValueError, match="missing"):
        asyncio.run(first.answer({}))


# A run in progress


def test_events_arrive_while_the_agent_runs():
    async def story() -> None:
        agent = Counter()
        async with open_run(agent) as live:
            assert live.http_status == 200
            states = []
            async for event in live:
                if event.type.value == "TEXT_MESSAGE_END":
                    states.append(dict(live.state))
                    assert live.run is not None
                    assert live.run.state["n"] >= live.state["n"]
                if len(states) == 3:
                    break
            with pytest.raises(RuntimeError, match="not ended"):
                live.result()
            await live.disconnect()
            assert agent.finished.kind == "disconnected"
        assert states == [{"n": 1}, {"n": 2}, {"n": 3}]
        result = live.result()
        assert result.outcome is None
        assert result.ending is not None
        assert result.ending.kind == "disconnected"
        assert result.text == "1\n2\n3"

    asyncio.run(story())


def test_the_events_of_a_long_run_can_be_let_go():
    async def story() -> None:
        async with open_run(Planner, "Faro") as live:
            async for _ in live:
                assert len(live.payloads) == len(live.applied) == 1
                live.forget()
        result = live.result()
        assert result.events == result.payloads == []
        assert (result.outcome, result.result, result.state["city"]) == ("success", {"stops": 2}, "Faro")
        assert [one.total_tokens for one in result.usage] == [8]

    asyncio.run(story())


def test_leaving_the_block_disconnects():
    async def story() -> None:
        agent = Counter()
        async with open_run(agent) as live:
            await anext(live)
        assert agent.finished.kind == "disconnected"
        assert live.result().types[0] == "RUN_STARTED"

    asyncio.run(story())


def test_an_exception_in_the_block_disconnects_and_passes():
    agent = Counter()

    async def story() -> None:
        async with open_run(agent) as live:
            async for _ in live:
                raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        asyncio.run(story())
    assert agent.finished.kind == "disconnected"


def test_leaving_after_the_last_event_is_a_complete_run():
    async def story() -> None:
        async with open_run(Planner) as live:
            async for event in live:
                if event.type.value == "RUN_FINISHED":
                    break
        result = live.result()
        assert result.outcome == "success"
        assert result.ending is not None
        assert result.ending.kind == "finished"

    asyncio.run(story())


def test_a_reader_that_does_not_read_holds_the_agent_back():
    async def story() -> None:
        produced = 0

        class Flood(Agent):
            async def run(self, run: Run) -> None:
                nonlocal produced
                for _ in range(1000):
                    await run.say("x" * 10_000)
                    produced += 1

        async with open_run(Flood) as live:
            await anext(live)
            for _ in range(200):
                await asyncio.sleep(0)
            held = produced
            assert 0 < held < 200
            async for _ in live:
                pass
        assert produced == 1000
        assert len(live.result().text) == 1000 * 10_001 - 1

    asyncio.run(story())


def test_a_client_that_takes_nothing_is_dropped_by_the_server():
    async def story() -> None:
        agent = Counter()
        async with open_run(agent, send_timeout=0.1) as live:
            await anext(live)
            async with asyncio.timeout(5):
                await agent.ended.wait()
            async for _ in live:
                pass
        result = live.result()
        assert result.ending is not None
        assert result.ending.kind == "disconnected"

    asyncio.run(story())


def test_a_reader_that_never_stops_runs_out_of_time():
    async def story() -> None:
        async with open_run(Counter, timeout=0.2) as live:
            async for _ in live:
                pass

    with pytest.raises(RunTimeout):
        asyncio.run(story())


def test_messages_of_the_client_are_models():
    history = [AssistantMessage(id="a", content="hello"), ActivityMessage(id="b", activity_type="x", content={})]

    async def story() -> None:
        async with open_run(Planner, "Faro", messages=history) as live:
            assert [message.id for message in live.messages[:2]] == ["a", "b"]
            async for _ in live:
                pass

    asyncio.run(story())


def test_clients_of_the_0_0_line_are_served_what_they_read():
    class Parts(Agent):
        async def run(self, run: Run) -> None:
            async with run.tool_call("look") as call:
                await call.result([TextPart(text="seen")])

    result = run_agent_sync(Parts, protocol_version=None)
    assert next(one for one in result.payloads if one["type"] == "TOOL_CALL_RESULT")["content"] == "seen"
    assert result.outcome == "success"
