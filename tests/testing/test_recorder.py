import json

import pytest

from kit_agents import Guarded, Planner
from statecast import Agent, Run
from statecast.testing import BrokenStream, record, replay, run_agent_sync


def test_a_recorded_run_is_replayed(tmp_path):
    path = tmp_path / "run.jsonl"
    result = run_agent_sync(Planner, "Faro")
    record(result, path)
    lines = path.read_text().splitlines()
    assert json.loads(lines[0]) == result.sent
    assert [json.loads(line)["type"] for line in lines[1:]] == result.types
    again = replay(path)
    assert again.state == result.state
    assert again.messages == result.messages
    assert (again.text, again.outcome, again.result) == (result.text, result.outcome, result.result)
    assert again.normalized() == result.normalized()


def test_a_replayed_run_has_no_next_one(tmp_path):
    path = tmp_path / "run.jsonl"
    record(run_agent_sync(Planner), path)
    import asyncio

    with pytest.raises(RuntimeError, match="replayed"):
        asyncio.run(replay(path).say("more"))


def test_text_of_every_kind_survives(tmp_path):
    class Speaker(Agent):
        async def run(self, run: Run) -> None:
            run.state["odd"] = "\u2028 \x00 \ud800 é \r\n"
            await run.say("\u2028\r\n é \U0001f600")

    path = tmp_path / "run.jsonl"
    result = run_agent_sync(Speaker)
    record(result, path)
    assert replay(path).state == {"odd": "\u2028 \x00 \ud800 é \r\n"}
    assert replay(path).text == result.text


def test_a_changed_recording_is_judged_again(tmp_path):
    path = tmp_path / "run.jsonl"
    record(run_agent_sync(Planner), path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if '"TEXT_MESSAGE_START"' not in line))
    with pytest.raises(BrokenStream) as caught:
        replay(path)
    assert caught.value.rule == "S1"
    assert "line " in caught.value.__notes__[0]


def test_a_recording_without_its_end_is_partial(tmp_path):
    path = tmp_path / "run.jsonl"
    record(run_agent_sync(Planner, "Faro"), path)
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(BrokenStream) as caught:
        replay(path)
    assert caught.value.rule == "W4"
    assert replay(path, partial=True).state["city"] == "Faro"


def test_a_refused_request_is_no_run(tmp_path):
    with pytest.raises(ValueError, match="401"):
        record(run_agent_sync(Guarded), tmp_path / "run.jsonl")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a run's input"),
        ("{}\n", "not a run's input"),
        ('{"threadId":"t"}\n', "not a valid input"),
        ('{"threadId":"t","runId":"r","messages":[]}\nnope\n', "line 2: not JSON"),
        ('{"threadId":"t","runId":"r","messages":[]}\n[]\n', "line 2: not a JSON object"),
    ],
)
def test_a_file_that_is_no_recording_says_so(tmp_path, text, said):
    path = tmp_path / "run.jsonl"
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        replay(path)
