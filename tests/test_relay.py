"""Events that were made elsewhere: `emit` and `relay`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from ag_ui.core import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    AssistantMessage,
    CustomEvent,
    MessagesSnapshotEvent,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallChunkEvent,
)
from pydantic import Field

from agents_support import agent_of, last, only, wire
from statecast import Agent, AgentError, Run, SequenceError, State, StateError
from statecast.testing import run_agent


def play(body: Any, **given: Any) -> Any:
    return asyncio.run(run_agent(agent_of(body), "hi", **given))


async def stream(*events: Any) -> AsyncIterator[Any]:
    for event in events:
        yield event


STARTED = {"type": "RUN_STARTED", "threadId": "other", "runId": "other"}
FINISHED: dict[str, Any] = {"type": "RUN_FINISHED", "threadId": "other", "runId": "other"}


def test_emit_sends_an_event_as_it_is() -> None:
    async def body(run: Run[Any]) -> None:
        await run.emit(TextMessageStartEvent(message_id="m"))
        await run.emit(TextMessageContentEvent(message_id="m", delta="a"))
        await run.emit(TextMessageEndEvent(message_id="m"))
        await run.emit(CustomEvent(name="com.example.x", value=None))
        await run.emit({"type": "RAW", "event": {"k": 1}})

    result = play(body)
    assert result.text == "a"
    assert only(result, "CUSTOM", "RAW") == [
        {"type": "CUSTOM", "name": "com.example.x", "value": None},
        {"type": "RAW", "event": {"k": 1}},
    ]


def test_emit_obeys_the_rules() -> None:
    async def body(run: Run[Any]) -> None:
        with pytest.raises(SequenceError) as raised:
            await run.emit(TextMessageContentEvent(message_id="m", delta="a"))
        assert raised.value.rule == "S1"
        with pytest.raises(SequenceError) as raised:
            await run.emit(RunStartedEvent(thread_id="t", run_id="r"))
        assert raised.value.rule == "L1"
        with pytest.raises(TypeError):
            await run.emit("text")
        with pytest.raises(SequenceError) as raised:
            await run.emit({"type": "NOPE"})
        assert raised.value.rule == "W7"

    assert play(body).types == ["RUN_STARTED", "RUN_FINISHED"]


def test_S5_chunks_go_out_as_start_content_and_end() -> None:
    async def body(run: Run[Any]) -> None:
        await run.emit(TextMessageChunkEvent(message_id="m", delta="a"))
        await run.emit(TextMessageChunkEvent(delta="b"))
        run.state["x"] = 1
        await run.emit(ToolCallChunkEvent(tool_call_id="t", tool_call_name="f", delta="{}"))

    result = play(body)
    assert not any(type.endswith("CHUNK") for type in result.types)
    assert result.text == "ab"
    assert result.types.index("TEXT_MESSAGE_END") < result.types.index("TOOL_CALL_START")
    assert result.types[-2:] == ["TOOL_CALL_END", "RUN_FINISHED"]


def test_emitted_state_becomes_the_runs_state_which_speaks_for_itself() -> None:
    async def body(run: Run[Any]) -> None:
        await run.emit(StateSnapshotEvent(snapshot={"items": [1], "pad": "x" * 600}))
        await run.flush()
        items = run.state["items"]
        await run.emit(StateDeltaEvent(delta=[{"op": "add", "path": "/items/-", "value": 2}]))
        assert items == [1, 2]
        assert run.state["items"] is items

    result = play(body)
    assert [event["type"] for event in only(result, "STATE_SNAPSHOT", "STATE_DELTA")] == [
        "STATE_SNAPSHOT",
        "STATE_DELTA",
    ]
    assert only(result, "STATE_DELTA")[0]["delta"] == [{"op": "add", "path": "/items/1", "value": 2}]


def test_D4_an_emitted_patch_applies_as_a_whole_or_not_at_all() -> None:
    async def body(run: Run[Any]) -> None:
        run.state["a"] = 1
        with pytest.raises(StateError):
            await run.emit(
                StateDeltaEvent(
                    delta=[{"op": "replace", "path": "/a", "value": 2}, {"op": "remove", "path": "/missing"}]
                )
            )
        assert run.state == {"a": 1}

    assert play(body).state == {"a": 1}


class Trip(State):
    city: str = ""
    stops: list[str] = []


class Held(Trip):
    key: str = Field("", exclude=True)


@pytest.mark.parametrize(
    "event",
    [
        StateDeltaEvent(delta=[{"op": "replace", "path": "/city", "value": "Rome"}]),
        StateSnapshotEvent(snapshot={"city": "Rome", "stops": ["museum"]}),
    ],
)
def test_emitted_state_leaves_the_state_itself_and_what_of_it_is_not_sent(event: Any) -> None:
    class Typed(Agent[Held]):
        async def run(self, run: Run[Held]) -> None:
            state = run.state
            state.key = "of the server"
            state.stops = ["museum"]
            stops = state.stops
            await run.emit(event)
            assert run.state is state
            assert (state.city, state.key) == ("Rome", "of the server")
            stops.append("park")

    result = asyncio.run(run_agent(Typed(), "hi"))
    assert result.raise_error().state == {"city": "Rome", "stops": ["museum", "park"]}


@pytest.mark.parametrize(
    "patch", [{"op": "add", "path": "/-", "value": "x"}, {"op": "replace", "path": "", "value": {}}]
)
def test_an_emitted_patch_that_does_not_fit_a_list(patch: dict[str, Any]) -> None:
    class Typed(Agent[list[int]]):
        async def run(self, run: Run[list[int]]) -> None:
            run.state.append(1)
            with pytest.raises(StateError):
                await run.emit(StateDeltaEvent(delta=[patch]))

    assert asyncio.run(run_agent(Typed(), "hi")).raise_error().state == [1]


def test_emitted_state_is_held_to_the_type() -> None:
    class Typed(Agent[Trip]):
        async def run(self, run: Run[Trip]) -> None:
            await run.emit(StateDeltaEvent(delta=[{"op": "add", "path": "/stops/-", "value": "museum"}]))
            with pytest.raises(StateError):
                await run.emit(StateSnapshotEvent(snapshot={"city": 1}))
            with pytest.raises(StateError):
                await run.emit(StateDeltaEvent(delta=[{"op": "replace", "path": "/city", "value": 5}]))

    assert asyncio.run(run_agent(Typed(), "hi")).state == {"city": "", "stops": ["museum"]}


def test_A2_an_emitted_patch_leaves_an_activity_an_object() -> None:
    async def body(run: Run[Any]) -> None:
        await run.emit(ActivitySnapshotEvent(message_id="a", activity_type="PLAN", content={"n": 1}))
        with pytest.raises(StateError, match="A2"):
            await run.emit(
                ActivityDeltaEvent(
                    message_id="a", activity_type="OTHER", patch=[{"op": "replace", "path": "", "value": [1]}]
                )
            )

    (event,) = only(play(body), "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA")
    assert (event["content"], event["activityType"]) == ({"n": 1}, "PLAN")


def test_emitted_activities_are_tracked_ones() -> None:
    async def body(run: Run[Any]) -> None:
        with pytest.raises(SequenceError) as raised:
            await run.emit(ActivityDeltaEvent(message_id="a", activity_type="PLAN", patch=[]))
        assert raised.value.rule == "A2"
        await run.emit(ActivitySnapshotEvent(message_id="a", activity_type="PLAN", content={"n": 1}))
        await run.flush()
        await run.emit(
            ActivityDeltaEvent(
                message_id="a", activity_type="PLAN", patch=[{"op": "replace", "path": "/n", "value": 2}]
            )
        )

    result = play(body)
    assert only(result, "ACTIVITY_DELTA")[0]["patch"] == [{"op": "replace", "path": "/n", "value": 2}]
    assert result.messages[-1].content == {"n": 2}


def test_an_emitted_messages_snapshot_is_the_runs_conversation() -> None:
    async def body(run: Run[Any]) -> None:
        kept = list(run.messages)
        await run.emit(MessagesSnapshotEvent(messages=[*kept, AssistantMessage(id="m", content="hello")]))
        assert run.messages[-1].content == "hello"

    assert play(body).messages[-1].content == "hello"


def test_relay_absorbs_the_lifecycle_and_returns_the_result() -> None:
    async def body(run: Run[Any]) -> Any:
        return await run.relay(
            stream(
                STARTED,
                {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "a"},
                {"type": "STATE_SNAPSHOT", "snapshot": {"n": 1}},
                {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m2", "delta": "b"},
                FINISHED | {"result": {"r": 1}, "usage": [{"model": "x", "inputTokens": 3}]},
            )
        )

    result = play(body)
    assert result.types.count("RUN_STARTED") == result.types.count("RUN_FINISHED") == 1
    assert last(result)["result"] == {"r": 1}
    assert last(result)["usage"] == [{"model": "x", "inputTokens": 3}]
    assert [message.id for message in result.messages[-2:]] == ["m", "m2"]
    assert result.state == {"n": 1}


def test_a_relayed_error_is_raised_and_what_it_left_open_is_closed() -> None:
    async def body(run: Run[Any]) -> None:
        async with run.step("mine"):
            with pytest.raises(AgentError) as raised:
                await run.relay(
                    stream(
                        STARTED,
                        {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"},
                        {"type": "STEP_STARTED", "stepName": "theirs"},
                        {"type": "RUN_ERROR", "message": "no", "code": "theirs"},
                    )
                )
            assert (raised.value.message, raised.value.code) == ("no", "theirs")
            await run.say("went on")

    result = play(body)
    assert result.outcome == "success"
    assert result.types.index("TEXT_MESSAGE_END") < result.types.index("TEXT_MESSAGE_CONTENT")
    assert [event["stepName"] for event in only(result, "STEP_FINISHED")] == ["theirs", "mine"]


def test_relayed_questions_become_this_runs_open_questions() -> None:
    outcome = {"type": "interrupt", "interrupts": [{"id": "q", "reason": "approve"}]}

    async def body(run: Run[Any]) -> None:
        await run.relay(stream(STARTED, FINISHED | {"outcome": outcome}))

    assert last(play(body))["outcome"] == outcome


def test_a_relayed_cancellation_is_an_agent_error() -> None:
    async def body(run: Run[Any]) -> None:
        await run.relay(stream(STARTED, FINISHED | {"outcome": {"type": "cancelled"}}))

    assert play(body).error.code == "cancelled"


def test_relayed_frontend_calls_are_pending_here() -> None:
    tool = {"name": "confirm", "description": "", "parameters": {}}

    async def body(run: Run[Any]) -> None:
        await run.relay(
            stream(
                STARTED,
                {"type": "TOOL_CALL_CHUNK", "toolCallId": "t", "toolCallName": "confirm", "delta": "{}"},
                FINISHED | {"outcome": {"type": "success", "pendingToolCallIds": ["t"]}},
            )
        )

    assert last(play(body, tools=[tool]))["outcome"] == {"type": "success", "pendingToolCallIds": ["t"]}


def test_a_relayed_stream_that_is_cut_off_is_not_a_success() -> None:
    async def body(run: Run[Any]) -> None:
        with pytest.raises(SequenceError) as raised:
            await run.relay(stream(STARTED))
        assert raised.value.rule == "C4"

    assert play(body).outcome == "success"


def test_a_relayed_state_that_does_not_fit_raises() -> None:
    class Typed(Agent[Trip]):
        async def run(self, run: Run[Trip]) -> None:
            await run.relay(stream(STARTED, {"type": "STATE_SNAPSHOT", "snapshot": {"city": []}}, FINISHED))

    result = asyncio.run(run_agent(Typed(), "hi"))
    assert isinstance(result.exception, StateError)


def test_a_subagent_relays_under_its_own_name_and_the_source_is_closed() -> None:
    closed = []

    async def source() -> AsyncIterator[Any]:
        try:
            yield STARTED
            yield {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "a"}
            yield FINISHED
        finally:
            closed.append(True)

    async def body(run: Run[Any]) -> None:
        async with run.subagent("x", id="x") as sub:
            await sub.relay(source())

    result = play(body)
    assert closed == [True]
    assert {event.get("subagentRunId") for event in wire(result) if event["type"].startswith("TEXT")} == {"x"}
