import re
import uuid

from kit_agents import Planner
from statecast import Agent, Run
from statecast.testing import run_agent_sync


def test_two_runs_of_an_agent_are_equal_when_normalized():
    one, other = run_agent_sync(Planner, "Faro"), run_agent_sync(Planner, "Faro")
    assert one.payloads != other.payloads
    assert one.normalized() == other.normalized()
    assert one.normalized()[0] == {
        "type": "RUN_STARTED",
        "threadId": "thread-1",
        "runId": "run-1",
        "protocolVersion": "1.0",
    }
    assert one.normalized()[-1]["runId"] == "run-1"


def test_ids_are_renamed_wherever_they_stand_and_only_random_ones():
    class Linker(Agent):
        async def run(self, run: Run) -> None:
            id = await run.say("one")
            run.state[id] = {"of": id}
            await run.flush()
            run.state[id]["more"] = str(uuid.uuid4())
            async with run.text(id="chosen") as text:
                await text.write(f"see {id}")

    events = run_agent_sync(Linker, first_state="delta").normalized()
    assert not re.search(r"[0-9a-f]{8}-[0-9a-f]{4}", str(events))
    deltas = [op for event in events if event["type"] == "STATE_DELTA" for op in event["delta"]]
    assert deltas == [
        {"op": "add", "path": "/message-1", "value": {"of": "message-1"}},
        {"op": "add", "path": "/message-1/more", "value": "uuid-1"},
    ]
    assert {"type": "TEXT_MESSAGE_CONTENT", "messageId": "chosen", "delta": "see message-1"} in events


def test_the_text_is_that_of_this_run_and_of_the_assistant():
    class Speaker(Agent):
        async def run(self, run: Run) -> None:
            await run.say("aside", role="developer")
            async with run.text() as one, run.text() as two:
                await two.write("b")
                await one.write("a")
                await one.write("a")
            async with run.text(id="old") as text:
                await text.write(" more")

    result = run_agent_sync(Speaker, messages=[{"id": "old", "role": "assistant", "content": "before"}])
    assert result.text == "aa\nb\n more"
    assert result.messages[0].content == "before more"


def test_what_a_result_shows_of_itself():
    assert "TEXT_MESSAGE_CONTENT" in repr(run_agent_sync(Planner))
    assert "finished (success)" in repr(run_agent_sync(Planner))
    assert "422" in repr(run_agent_sync(Planner, state=[]))
