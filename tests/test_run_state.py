"""When a run sends its state, and as what (D1 to D9)."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

import pytest

from agents_support import agent_of, only, wire
from statecast import Agent, AgentError, Run, SequenceError, State, StateError
from statecast.testing import BrokenStream, open_run, run_agent

BIG = "x" * 600
STATE = ("STATE_SNAPSHOT", "STATE_DELTA")


def play(body: Any, **given: Any) -> Any:
    return asyncio.run(run_agent(agent_of(body), "hi", **given))


def test_D2_the_first_state_event_of_a_run_is_a_snapshot_and_the_next_a_delta() -> None:
    async def body(run: Run[Any]) -> None:
        run.state["a"] = 1
        await run.flush()
        run.state["b"] = 2

    events = only(play(body, state={"old": BIG}), *STATE)
    assert events == [
        {"type": "STATE_SNAPSHOT", "snapshot": {"old": BIG, "a": 1}},
        {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/b", "value": 2}]},
    ]


def test_the_first_state_event_may_be_a_delta_when_the_app_says_so() -> None:
    async def body(run: Run[Any]) -> None:
        run.state["a"] = 1

    (event,) = only(play(body, state={"old": BIG}, options={"first_state": "delta"}), *STATE)
    assert event == {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/a", "value": 1}]}


def test_a_run_that_changes_nothing_sends_no_state() -> None:
    async def body(run: Run[Any]) -> None:
        run.state["a"] = run.state["a"]
        run.state["b"] = 1
        del run.state["b"]
        await run.say("nothing")

    assert only(play(body, state={"a": 1}), *STATE) == []


def test_state_goes_out_before_the_words_that_speak_of_it() -> None:
    async def body(run: Run[Any]) -> None:
        run.state["n"] = 1
        await run.say("one")
        run.state["n"] = 2
        async with run.step("s"):
            run.state["n"] = 3

    result = play(body)
    assert result.types == [
        "RUN_STARTED",
        "STATE_SNAPSHOT",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "STATE_DELTA",
        "STEP_STARTED",
        "STATE_DELTA",
        "STEP_FINISHED",
        "RUN_FINISHED",
    ]


def test_a_burst_is_one_event_and_a_lone_change_waits_for_nothing() -> None:
    async def body(run: Run[Any]) -> None:
        for index in range(1000):
            run.state["n"] = index
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    assert len(only(play(body, options={"state_interval": 5.0}), *STATE)) == 1


def test_changes_between_events_go_out_by_themselves() -> None:
    async def scenario() -> list[Any]:
        async def body(run: Run[Any]) -> None:
            run.state["n"] = 1
            await asyncio.sleep(60)

        async with open_run(agent_of(body), "hi") as live:
            async for event in live:
                if event.type == "STATE_SNAPSHOT":
                    return [event.snapshot]
        return []

    assert asyncio.run(asyncio.wait_for(scenario(), 5)) == [{"n": 1}]


def test_a_change_from_a_worker_thread_wakes_the_run() -> None:
    async def scenario() -> list[Any]:
        async def body(run: Run[Any]) -> None:
            await asyncio.to_thread(run.state.update, {"n": 1})
            await asyncio.sleep(60)

        async with open_run(agent_of(body), "hi") as live:
            async for event in live:
                if event.type == "STATE_SNAPSHOT":
                    return [event.snapshot]
        return []

    assert asyncio.run(asyncio.wait_for(scenario(), 5)) == [{"n": 1}]


@dataclass
class Opaque:
    n: float


def test_a_change_that_python_does_not_show_goes_out_by_itself_too() -> None:
    async def scenario() -> list[Any]:
        async def body(run: Run[Any]) -> None:
            run.state["o"] = value = Opaque(1)
            await run.flush()
            value.n = 2
            await asyncio.sleep(60)

        seen = []
        async with open_run(agent_of(body), "hi") as live:
            async for event in live:
                if event.type in STATE:
                    seen.append(live.state["o"])
                if len(seen) == 2:
                    break
        return seen

    assert asyncio.run(asyncio.wait_for(scenario(), 5)) == [{"n": 1}, {"n": 2}]


def test_a_value_that_stops_being_json_raises_at_the_next_call_and_never_loses_the_rest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def body(run: Run[Any]) -> None:
        run.state["o"] = value = Opaque(1)
        await run.flush()
        value.n = float("nan")
        run.state["other"] = 1
        with pytest.raises(StateError) as raised:
            await run.flush()
        assert raised.value.pointer.startswith("/o")
        value.n = 2
        await run.say("fine again")

    result = play(body)
    assert result.state == {"o": {"n": 2}, "other": 1}


def test_a_state_that_still_cannot_be_written_at_the_end_is_an_error_of_its_own() -> None:
    async def body(run: Run[Any]) -> None:
        run.state["o"] = value = Opaque(1)
        await run.flush()
        value.n = float("nan")

    result = play(body)
    assert result.error.code == "state_invalid"
    assert result.types[-1] == "RUN_ERROR"


def test_what_is_not_json_raises_on_the_line_that_assigned_it_and_the_stream_lives() -> None:
    async def body(run: Run[Any]) -> None:
        with pytest.raises(StateError) as raised:
            run.state["a"] = {"b": [1, object()]}
        assert raised.value.pointer == "/a/b/1"
        await run.say("alive")

    result = play(body)
    assert result.text == "alive"
    assert only(result, *STATE) == []


def test_a_batch_is_one_state_event_and_other_events_go_out_meanwhile_without_it() -> None:
    async def body(run: Run[Any]) -> None:
        with run.batch():
            run.state["a"] = 1
            await run.say("words")
            with pytest.raises(SequenceError):
                await run.flush()
            run.state["b"] = 2

    result = play(body)
    assert result.types.index("TEXT_MESSAGE_END") < result.types.index("STATE_SNAPSHOT")
    assert [event["snapshot"] for event in only(result, *STATE)] == [{"a": 1, "b": 2}]


async def spoil(run: Run[Any], kind: str) -> None:
    if kind == "with":
        with run.batch():
            run.state["items"].append(2)
            raise KeyError
    async with run.batch():
        run.state["items"].append(2)
        raise KeyError


@pytest.mark.parametrize("kind", ["with", "async with"])
def test_a_batch_that_raises_leaves_the_state_as_it_was(kind: str) -> None:
    async def body(run: Run[Any]) -> None:
        before = run.state["items"]
        with pytest.raises(KeyError):
            await spoil(run, kind)
        assert run.state == {"items": [1]}
        assert run.state["items"] is before

    assert only(play(body, state={"items": [1]}), *STATE) == []


def test_resync_makes_the_next_state_event_a_snapshot() -> None:
    async def body(run: Run[Any]) -> None:
        run.state["a"] = 1
        await run.flush()
        run.resync()
        await run.say("x")

    result = play(body, state={"old": BIG})
    assert [event["type"] for event in only(result, *STATE)] == ["STATE_SNAPSHOT", "STATE_SNAPSHOT"]


def test_the_whole_state_can_be_replaced() -> None:
    async def body(run: Run[Any]) -> None:
        run.state = {"a": 1}
        await run.flush()
        run.state = {"a": 1, "b": BIG}
        await run.flush()
        run.state = {"a": 2, "b": BIG}

    events = only(play(body), *STATE)
    assert events[0]["snapshot"] == {"a": 1}
    assert events[2]["delta"] == [{"op": "replace", "path": "/a", "value": 2}]


class Trip(State):
    city: str
    stops: list[str] = []


class Planner(Agent[Trip]):
    def initial_state(self) -> Trip:
        return Trip(city="Lisbon")

    async def run(self, run: Run[Trip]) -> None:
        run.state.stops.append("museum")


def test_a_typed_state_starts_from_initial_state_when_the_input_carries_none() -> None:
    async def scenario() -> list[Any]:
        first = await run_agent(Planner(), "hi", state={})
        second = await run_agent(Planner(), "hi", state=first.state)
        return [first.state, second.state]

    assert asyncio.run(scenario()) == [
        {"city": "Lisbon", "stops": ["museum"]},
        {"city": "Lisbon", "stops": ["museum", "museum"]},
    ]


def test_what_validation_filled_in_is_part_of_the_first_state_event() -> None:
    class Idle(Agent[Trip]):
        def initial_state(self) -> Trip:
            return Trip(city="")

        async def run(self, run: Run[Trip]) -> None: ...

    result = asyncio.run(run_agent(Idle(), "hi", state={"city": "Porto", "unknown": 1}))
    assert result.state == {"city": "Porto", "stops": []}


def test_a_module_level_initial_state_is_not_shared_between_runs() -> None:
    shared: dict[str, Any] = {"items": []}

    class Sharing(Agent[dict[str, Any]]):
        def initial_state(self) -> dict[str, Any]:
            return shared

        async def run(self, run: Run[dict[str, Any]]) -> None:
            run.state["items"].append(run.run_id)

    async def scenario() -> None:
        for _ in range(2):
            result = await run_agent(Sharing(), "hi")
            assert len(result.state["items"]) == 1

    asyncio.run(scenario())
    assert shared == {"items": []}


def test_a_state_that_is_too_large_ends_the_run_and_the_log_names_its_members(caplog: pytest.LogCaptureFixture) -> None:
    async def body(run: Run[Any]) -> None:
        run.state["small"] = 1
        run.state["huge"] = "x" * (9 * 2**20)
        await run.say("never")

    result = play(body)
    assert result.error.code == "state_too_large"
    assert result.types == ["RUN_STARTED", "RUN_ERROR"]
    assert "huge" in caplog.text


@pytest.mark.parametrize("where", ["state", "activity"])
def test_nothing_is_sent_on_top_of_what_was_too_large(where: str) -> None:
    async def body(run: Run[Any]) -> None:
        told = run.state if where == "state" else run.activity("PLAN", {}).content
        told["n"] = 0
        await run.flush()
        try:
            told["huge"] = "x" * (9 * 2**20)
            await asyncio.sleep(60)
        finally:
            # The time that an agent has to clean up, in which the client could apply no delta of what it never got.
            for n in range(1, 4):
                told["n"] = n
                await asyncio.sleep(0.02)
            told["huge"] = ""
            await asyncio.sleep(0.02)

    result = play(body, options={"state_interval": 0})
    assert result.error.code == "state_too_large"
    assert result.types == ["RUN_STARTED", "STATE_SNAPSHOT" if where == "state" else "ACTIVITY_SNAPSHOT", "RUN_ERROR"]


def test_a_large_state_is_noted_once(caplog: pytest.LogCaptureFixture) -> None:
    async def body(run: Run[Any]) -> None:
        run.state["large"] = "x" * 2**21
        await run.flush()
        run.resync()
        await run.flush()

    caplog.set_level(logging.WARNING)
    play(body)
    assert sum("bytes" in record.getMessage() for record in caplog.records) == 1


def test_a_lone_surrogate_in_state_and_text_does_not_kill_the_stream() -> None:
    async def body(run: Run[Any]) -> None:
        run.state["s"] = "\ud83d"
        await run.say(["\ud83d", "\ude00"])

    result = play(body)
    assert result.state == {"s": "\ud83d"}


def test_an_author_can_end_a_run_after_a_state_change_and_the_change_is_sent() -> None:
    async def body(run: Run[Any]) -> None:
        run.state["done"] = "half"
        raise AgentError("no")

    result = play(body)
    assert result.types == ["RUN_STARTED", "STATE_SNAPSHOT", "RUN_ERROR"]


def test_state_events_carry_no_owner() -> None:
    async def body(run: Run[Any]) -> None:
        async with run.subagent("x") as sub:
            run.state["a"] = 1
            await sub.say("hi")

    for event in wire(play(body)):
        if event["type"] in STATE:
            assert "subagentRunId" not in event


def test_what_an_agents_first_lines_change_is_in_the_first_state_event() -> None:
    async def body(run: Run[Any]) -> None:
        run.state["first"] = 1

    filled = play(body, state={"n": 1})
    assert only(filled, *STATE) == [{"type": "STATE_SNAPSHOT", "snapshot": {"n": 1, "first": 1}}]

    class Eager(Agent[Trip]):
        def initial_state(self) -> Trip:
            return Trip(city="")

        async def run(self, run: Run[Trip]) -> None:
            run.state.city = "Faro"

    typed = asyncio.run(run_agent(Eager(), "hi", state={}))
    assert only(typed, *STATE) == [{"type": "STATE_SNAPSHOT", "snapshot": {"city": "Faro", "stops": []}}]


def test_a_batch_that_is_never_left_is_an_error_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    held = []

    async def body(run: Run[Any]) -> None:
        held.append(run.batch())
        held[0].__enter__()
        run.state["a"] = 1

    with pytest.raises(BrokenStream, match="differ at '/a'"):
        play(body)
    assert "a batch is open at the end of the run" in caplog.text
