"""`run_url` against a real server, and against servers that do not speak the protocol."""

import asyncio
import json
import time
from typing import Any

import pytest
from ag_ui.core import RunAgentInput, UserMessage

from canned_server import FINISHED, HEAD, STARTED, canned, chunked, frame
from kit_agents import Asker, Counter, Failing, Guarded, Planner
from live_server import serve
from statecast.testing import BrokenStream, RunResult, RunTimeout, open_url, run_url

httpx = pytest.importorskip("httpx")


def run(url: str, *args: Any, **more: Any) -> RunResult:
    return asyncio.run(run_url(url, *args, **more))


def test_a_real_agent_on_a_real_server():
    with serve(Planner().app()) as server:
        result = run(server.url, "Faro", strict=True)
    assert result.state == {"city": "Faro", "stops": ["Belem", "Alfama"]}
    assert result.text == "Here is your plan."
    assert result.outcome == "success"
    assert result.result == {"stops": 2}
    assert result.warnings == []
    assert result.http_status == 200
    assert result.headers["content-type"].startswith("text/event-stream")
    assert [message.role for message in result.messages] == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize(
    "input",
    [
        {"threadId": "t", "runId": "r", "protocolVersion": "1.0", "messages": [], "state": {"city": "Rome"}},
        RunAgentInput(
            thread_id="t",
            run_id="r",
            protocol_version="1.0",
            state={"city": "Rome"},
            messages=[UserMessage(id="1", content="Rome")],
            tools=[],
            context=[],
            forwarded_props={},
        ),
    ],
)
def test_an_input_is_sent_as_it_is(input):
    with serve(Planner().app()) as server:
        result = run(server.url, input)
    assert result.raise_error().payloads[0]["runId"] == "r"
    assert result.state["stops"] == ["Belem", "Alfama"]


def test_a_null_state_of_a_model_is_sent():
    given = RunAgentInput(thread_id="t", run_id="r", state=None, messages=[], tools=[], context=[], forwarded_props={})
    with canned(chunked(STARTED + FINISHED)) as server:
        assert run(server.url, given).state is None
    assert json.loads(server.requests[0][1])["state"] is None


def test_the_next_runs_go_to_the_same_url():
    async def story(url: str) -> None:
        first = await run_url(url)
        assert first.outcome == "interrupt"
        second = await first.resume({"approve": True})
        assert (second.outcome, second.text, second.state) == ("success", "yes", {"asked": 2})
        # The activities of both runs are the client's; no input carries them.
        assert [message.role for message in second.messages] == ["activity", "activity", "assistant"]
        assert second.sent["messages"] == []
        third = await second.say("again")
        assert [message["role"] for message in third.sent["messages"]] == ["assistant", "user"]

    with serve(Asker().app()) as server:
        asyncio.run(story(server.url))


def test_headers_reach_the_agent_and_refusals_are_results():
    with serve(Guarded().app()) as server:
        assert run(server.url, headers={"Authorization": "Bearer yes"}).text == "hello somebody"
        refused = run(server.url)
    assert refused.http_status == 401
    assert refused.problem["title"] == "Unauthorized"
    assert refused.headers["www-authenticate"] == "Bearer"


def test_a_failed_run_is_a_result():
    with serve(Failing().app()) as server:
        result = run(server.url, "told")
    assert result.error is not None
    assert result.error.code == "sold_out"


def test_an_endless_run_ends_with_the_time_that_it_has():
    agent = Counter()
    with serve(agent.app()) as server:
        with pytest.raises(RunTimeout, match=r"within 1.5 s"):
            run(server.url, timeout=1.5)
        deadline = time.monotonic() + 5
        while agent.finished is None and time.monotonic() < deadline:
            time.sleep(0.01)
    assert agent.finished.kind == "disconnected"


def test_a_silent_server_ends_with_the_time_that_it_has():
    with canned(HEAD + b"\r\n" + STARTED, hold=True) as server, pytest.raises(RunTimeout, match="RUN_STARTED"):
        run(server.url, timeout=1.5)


def test_events_are_read_as_they_come_and_leaving_disconnects():
    agent = Counter()

    async def story(url: str) -> None:
        async with open_url(url) as live:
            async for _ in live:
                if live.state == {"n": 3}:
                    break
        assert live.result().outcome is None

    with serve(agent.app()) as server:
        asyncio.run(story(server.url))
        deadline = time.monotonic() + 5
        while agent.finished is None and time.monotonic() < deadline:
            time.sleep(0.01)
    assert agent.finished.kind == "disconnected"


@pytest.mark.parametrize(
    ("answer", "rule", "said"),
    [
        (chunked((STARTED + FINISHED).replace(b"\n", b"\r\n")), "W2", "LF only"),
        (chunked(STARTED + FINISHED + b"data: [DONE]\n\n"), "W2", "not JSON"),
        (chunked(b"event: message\n" + STARTED + FINISHED), "W2", "neither data nor a comment"),
        (chunked(STARTED + FINISHED, head=b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"), "W2", "json"),
        (chunked(STARTED), "W4", "without RUN_FINISHED"),
        (chunked(b""), "W4", "without RUN_FINISHED"),
        (chunked(STARTED + FINISHED[:-1]), "W4", "within frame 2"),
        (chunked(STARTED + FINISHED, complete=False), "W4", "cut"),
        (HEAD + b"Content-Length: 9999\r\n\r\n" + STARTED, "W4", "cut"),
        (chunked(FINISHED), "L1", "RUN_FINISHED"),
        (chunked(STARTED + frame(type="STEP_STARTED", stepName="s") + FINISHED), "L5", "s"),
    ],
)
def test_what_is_not_the_protocol_is_a_broken_stream(answer, rule, said):
    with canned(answer) as server, pytest.raises(BrokenStream) as caught:
        run(server.url, {"threadId": "t", "runId": "r", "messages": []}, timeout=10)
    assert caught.value.rule == rule
    assert said in caught.value.reason


def test_the_events_before_a_fault_in_one_chunk_are_listed():
    with canned(chunked(STARTED + b"oops\n")) as server, pytest.raises(BrokenStream) as caught:
        run(server.url, {"threadId": "t", "runId": "r", "messages": []})
    assert [payload["type"] for payload in caught.value.payloads] == ["RUN_STARTED"]


def test_no_event_comes_after_the_client_has_left():
    async def story(url: str) -> None:
        async with open_url(url, {"threadId": "t", "runId": "r", "messages": []}) as live:
            await anext(live)
            await live.disconnect()
            assert [event async for event in live] == []
        assert live.result().types == ["RUN_STARTED"]

    with canned(chunked(STARTED + FINISHED)) as server:
        asyncio.run(story(server.url))


def test_unknown_material_is_a_warning_or_strictly_a_fault():
    answer = chunked(STARTED + frame(type="NEWS", a=1) + frame(type="CUSTOM", name="n", value=1, b=2) + FINISHED)
    given = {"threadId": "t", "runId": "r", "messages": []}
    with canned(answer, answer) as server:
        result = run(server.url, given)
        assert result.types == ["RUN_STARTED", "NEWS", "CUSTOM", "RUN_FINISHED"]
        assert [event.type.value for event in result.events] == ["RUN_STARTED", "CUSTOM", "RUN_FINISHED"]
        assert len(result.warnings) == 2
        with pytest.raises(BrokenStream, match="NEWS"):
            run(server.url, given, strict=True)


def test_chunk_events_of_other_producers_are_read():
    answer = chunked(
        STARTED
        + frame(type="TEXT_MESSAGE_CHUNK", messageId="m", delta="he")
        + frame(type="TEXT_MESSAGE_CHUNK", delta="llo")
        + FINISHED
    )
    with canned(answer) as server:
        result = run(server.url, {"threadId": "t", "runId": "r", "messages": []})
    assert result.text == "hello"
    assert result.messages[0].content == "hello"


def test_the_request_is_what_clients_send():
    with canned(chunked(STARTED + FINISHED)) as server:
        run(server.url, {"threadId": "t", "runId": "r", "messages": [], "state": None}, headers={"X-Key": "1"})
    ((head, body),) = server.requests
    assert head.startswith("POST / HTTP/1.1")
    assert "accept: text/event-stream" in head.lower()
    assert "content-type: application/json" in head.lower()
    assert "x-key: 1" in head.lower()
    assert json.loads(body) == {"threadId": "t", "runId": "r", "messages": [], "state": None}


def test_an_answer_that_is_no_stream_is_a_refusal():
    moved = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /x\r\nContent-Length: 5\r\n\r\nmoved"
    with canned(moved) as server:
        result = run(server.url)
    assert (result.http_status, result.problem) == (307, "moved")


def test_an_unreachable_server_is_the_error_of_httpx():
    with pytest.raises(httpx.ConnectError):
        run("http://127.0.0.1:9/")
