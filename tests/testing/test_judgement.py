"""A stream that is corrupted on purpose fails the run, and says where."""

import asyncio
import json
from typing import Any

import pytest

from kit_agents import Counter, Planner
from statecast import Agent, Run
from statecast.server.response import RunResponse
from statecast.stream.channel import Channel
from statecast.testing import BrokenStream, open_run, run_agent_sync


class Corruption:
    """Changes the frames of the runs of one test, on their way into the channel."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._put = Channel.put
        self._patch = monkeypatch.setattr

    def bytes(self, change: Any) -> None:
        put = self._put
        self._patch(Channel, "put", lambda channel, frame: put(channel, change(frame)))

    def events(self, change: Any) -> None:
        """`change` takes an event in wire form, and returns what goes out in its place: events."""

        def changed(frame: bytes) -> bytes:
            events = change(json.loads(frame[6:]))
            return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)

        self.bytes(changed)


@pytest.fixture
def corrupt(monkeypatch):
    return Corruption(monkeypatch)


def broken(agent: Any = Planner, text: str = "Faro", **arguments: Any) -> BrokenStream:
    with pytest.raises(BrokenStream) as caught:
        run_agent_sync(agent, text, **arguments)
    return caught.value


def of(kind: str, change: Any) -> Any:
    """Replaces events of one type."""
    return lambda event: change(event) if event["type"] == kind else [event]


def test_W2_line_ends(corrupt):
    corrupt.bytes(lambda frame: frame.replace(b"\n", b"\r\n"))
    error = broken()
    assert error.rule == "W2"
    assert "LF only" in str(error)


def test_W2_the_events_before_the_fault_are_listed(corrupt):
    corrupt.bytes(lambda frame: b"event: x\n" + frame if b"TOOL_CALL_START" in frame else frame)
    error = broken()
    assert error.rule == "W2"
    assert [payload["type"] for payload in error.payloads][:2] == ["RUN_STARTED", "STATE_SNAPSHOT"]
    assert "STATE_SNAPSHOT snapshot=" in str(error)


def test_W4_truncation(corrupt):
    corrupt.events(of("RUN_FINISHED", lambda event: []))
    error = broken()
    assert error.rule == "W4"
    assert "TEXT_MESSAGE_END" in str(error).splitlines()[-1]


def test_W4_a_frame_that_is_cut(corrupt):
    corrupt.bytes(lambda frame: frame[:-1] if b"RUN_FINISHED" in frame else frame)
    assert broken().rule == "W4"


@pytest.mark.parametrize("name", ["name", "rawEvent", "metadata"])
def test_W6_nulls(corrupt, name):
    corrupt.events(of("TEXT_MESSAGE_START", lambda event: [event | {name: None}]))
    error = broken()
    assert error.rule == "W6"
    assert f"/{name}" in error.reason


def test_W4_a_body_that_does_not_end(monkeypatch):
    stream = RunResponse._stream_response

    async def endless(response: RunResponse, send: Any) -> None:
        async def most(message: Any) -> None:
            if message.get("more_body", True):
                await send(message)

        await stream(response, most)

    monkeypatch.setattr(RunResponse, "_stream_response", endless)
    error = broken()
    assert error.rule == "W4"
    assert "body" in error.reason


def test_leaving_after_the_last_event_does_not_escape_judgement(corrupt):
    corrupt.events(of("STATE_SNAPSHOT", lambda event: []))

    async def story() -> None:
        async with open_run(Agreeing) as live:
            async for event in live:
                if event.type.value == "RUN_FINISHED":
                    break

    with pytest.raises(BrokenStream, match=r"run\.state"):
        asyncio.run(story())


def test_W6_null_is_data_in_some_places():
    class Null(Agent[Any]):
        async def run(self, run: Run[Any]) -> None:
            run.state = {"a": 1}
            await run.flush()
            run.state = None
            await run.custom("com.example.x", None)

    result = run_agent_sync(Null)
    assert {"type": "CUSTOM", "name": "com.example.x", "value": None} in result.payloads
    assert result.state is None


def test_W7_unknown_members(corrupt):
    corrupt.events(of("STEP_STARTED", lambda event: [event | {"colour": "red"}]))
    error = broken()
    assert error.rule == "W7"
    assert "/colour" in error.reason


def test_W7_unknown_events(corrupt):
    corrupt.events(of("STEP_STARTED", lambda event: [{"type": "STEP_PAUSED"}, event]))
    error = broken()
    assert error.rule == "W7"
    assert "STEP_PAUSED" in error.reason


def test_W7_malformed_events(corrupt):
    corrupt.events(of("STEP_STARTED", lambda event: [event | {"stepName": 5}]))
    error = broken()
    assert error.rule == "W7"
    assert "/stepName" in error.reason


def test_L2_the_ids_are_those_of_the_input(corrupt):
    corrupt.events(lambda event: [event | {"runId": "other"}] if "runId" in event else [event])
    assert broken().rule == "L2"


def test_L2_the_thread_is_that_of_the_input(corrupt):
    corrupt.events(lambda event: [event | {"threadId": "other"}] if "threadId" in event else [event])
    assert broken().rule == "L2"


def test_S1_content_without_a_start(corrupt):
    corrupt.events(of("TEXT_MESSAGE_START", lambda event: []))
    error = broken()
    assert error.rule == "S1"
    assert error.payloads[-1]["type"] == "TEXT_MESSAGE_CONTENT"


def test_T3_a_result_for_a_frontend_tool(corrupt):
    class Caller(Agent):
        async def run(self, run: Run) -> None:
            id = await run.call_frontend("open", {})
            await run.custom("com.example.done", id)

    result = {"type": "TOOL_CALL_RESULT", "messageId": "m", "content": "x"}
    corrupt.events(of("CUSTOM", lambda event: [result | {"toolCallId": event["value"]}]))
    assert broken(Caller, tools=[{"name": "open", "description": "", "parameters": {}}]).rule == "T3"


def test_D4_a_patch_that_does_not_fit(corrupt):
    corrupt.events(of("STATE_DELTA", lambda event: [event | {"delta": [{"op": "remove", "path": "/nowhere"}]}]))
    error = broken(Counter, options={"timeout": 0.2})
    assert "does not fit" in error.reason


def test_the_states_are_compared(corrupt):
    corrupt.events(of("STATE_SNAPSHOT", lambda event: [event | {"snapshot": event["snapshot"] | {"city": "Lisboa"}}]))
    error = broken()
    assert "run.state" in error.reason
    assert "'/city'" in error.reason
    assert 'client: "Lisboa"' in error.reason
    assert 'agent:  "Faro"' in error.reason
    assert "STATE_SNAPSHOT" in str(error)


def test_the_types_of_numbers_are_compared(corrupt):
    class Number(Agent):
        async def run(self, run: Run) -> None:
            run.state["n"] = 1

    corrupt.bytes(lambda frame: frame.replace(b'"n":1', b'"n":1.0'))
    assert "client: 1.0" in broken(Number).reason


def test_a_change_that_is_not_sent_is_found(corrupt):
    corrupt.events(of("STATE_SNAPSHOT", lambda event: []))
    assert "run.state" in broken(Agreeing).reason


class Agreeing(Agent):
    async def run(self, run: Run) -> None:
        run.state["agreed"] = True


def test_the_messages_are_compared(corrupt):
    corrupt.events(of("TEXT_MESSAGE_CONTENT", lambda event: [event | {"delta": event["delta"].upper()}]))
    error = broken()
    assert "run.messages" in error.reason
    assert "/content" in error.reason
    assert "YOUR PLAN" in error.reason


def test_a_message_that_is_changed_in_place_is_found():
    class Editor(Agent):
        async def run(self, run: Run) -> None:
            run.messages[0].content = "changed"

    error = broken(Editor)
    assert "'/0/content'" in error.reason


def test_a_run_that_the_client_left_is_not_compared(corrupt):
    corrupt.events(of("STATE_SNAPSHOT", lambda event: []))

    async def story() -> None:
        async with open_run(Counter) as live:
            await anext(live)
        assert live.result().ending.kind == "disconnected"

    asyncio.run(story())
