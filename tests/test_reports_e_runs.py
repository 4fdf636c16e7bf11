"""Reports from users of other implementations about threads and history: the trial of each that needs a running agent.

The id is the report's own; those that need only messages and events are in `test_reports_c`. `NOT_TRIED` says which parts of
a trial have nothing to try here, and why.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from ag_ui.core import RunAgentInput
from starlette.exceptions import HTTPException
from starlette.requests import Request

from agents_support import agent_of, only
from live_server import run_input, serve
from statecast import Agent, AgentError, Ending, Run
from statecast.testing import RunResult, open_run, run_agent, run_agent_sync

NOT_TRIED = {
    "E20": "reading another's thread from the server: nothing is stored there",
    "E27": "eviction from a map of threads: there is no such map",
}

TOOLS = [{"name": name, "description": "", "parameters": {}} for name in ("confirm", "locate")]


class Model(Agent):
    """Calls two tools of the client, and goes on when both have answered, as a provider's API wants it."""

    def __init__(self) -> None:
        self.model_calls = 0

    async def run(self, run: Run) -> str:
        calls = [
            call.id for message in run.messages if message.role == "assistant" for call in message.tool_calls or ()
        ]
        answered = {message.tool_call_id for message in run.messages if message.role == "tool"}
        if [id for id in calls if id not in answered]:
            return "waiting"
        self.model_calls += 1
        if not calls:
            for tool in run.tools:
                await run.call_frontend(tool.name, {"of": tool.name}, id=f"call-{tool.name}")
            return "called"
        await run.say(" ".join(message.content for message in run.messages if message.role == "tool"))
        return "answered"


def answer(name: str, id: str | None = None) -> dict[str, Any]:
    return {"id": id or f"result-{name}", "role": "tool", "toolCallId": f"call-{name}", "content": name}


@pytest.mark.parametrize(
    ("posts", "results"),
    [
        ([["confirm"], ["locate"]], ["waiting", "answered"]),
        ([["locate"], ["confirm"]], ["waiting", "answered"]),
        ([["confirm", "locate"]], ["answered"]),
        ([["confirm", "confirm"], ["locate"]], ["waiting", "answered"]),
        ([["unknown", "confirm"]], ["waiting"]),
    ],
    ids=["one after the other", "the other first", "both", "one twice", "of no known call"],
)
def test_E03_an_agent_sees_which_of_its_client_tools_have_answered(posts: list[list[str]], results: list[str]) -> None:
    async def main() -> list[Any]:
        agent = Model()
        first = (await run_agent(agent, "go", tools=TOOLS)).raise_error()
        assert first.payloads[-1]["outcome"] == {
            "type": "success",
            "pendingToolCallIds": ["call-confirm", "call-locate"],
        }
        assert only(first, "TOOL_CALL_RESULT") == []
        messages: list[Any] = list(first.messages)
        seen = []
        for post in posts:
            messages += [answer(name, f"{name}-{len(messages)}-{index}") for index, name in enumerate(post)]
            result = (await run_agent(agent, messages=messages, tools=TOOLS)).raise_error()
            assert agent.model_calls == (2 if result.result == "answered" else 1)
            messages = list(result.messages)
            seen.append(result.result)
        return seen

    assert asyncio.run(main()) == results


def test_E05_a_question_that_nobody_answers_blocks_nothing() -> None:
    """Who writes on is asked again, under the same id; who dismisses it is asked no more; and it can expire."""
    asked: list[str] = []

    class Careful(Agent):
        async def run(self, run: Run) -> str:
            asked.append(run.user_text)
            if run.user_text == "never mind":
                await run.say("As you like.")  # the application's own way out of a question
                return "dropped"
            return await run.ask("sure", schema=bool, expires_in=3600, default=False)

    async def main() -> None:
        first = await run_agent(Careful(), "delete it")
        before = datetime.now(UTC)
        [question] = first.interrupts
        assert question.expires_at is not None
        expires = datetime.fromisoformat(question.expires_at)
        assert timedelta(0) < expires - before <= timedelta(hours=1)
        again = (await first.say("what is it?")).raise_error()
        assert [interrupt.id for interrupt in again.interrupts] == ["sure"]
        dropped = (await again.say("never mind")).raise_error()
        assert (dropped.outcome, dropped.result) == ("success", "dropped")
        dismissed = (await again.resume(cancel=["sure"])).raise_error()
        assert (dismissed.outcome, dismissed.result) == ("success", False)

    asyncio.run(main())
    assert asked == ["delete it", "what is it?", "never mind", "what is it?"]


@pytest.mark.parametrize("ends", ["finished", "interrupted", "cancelled", "failed", "disconnected"])
def test_E19_what_is_stored_at_the_end_begins_with_what_the_user_said(ends: str) -> None:
    stored: list[tuple[str, list[str]]] = []

    class Storing(Agent):
        async def run(self, run: Run) -> None:
            async with run.tool_call("search", id="call") as call:
                await call.result("found", id="result")
            async with run.text(id="text") as text:
                await text.write("Half an ans")
                if ends == "failed":
                    raise AgentError("no")
                if ends == "cancelled":
                    raise asyncio.CancelledError
                if ends == "interrupted":
                    await run.ask("more")
                if ends == "disconnected":
                    await asyncio.sleep(60)
                await text.write("wer.")

        async def on_finish(self, run: Run, ending: Ending) -> None:
            stored.append((ending.kind, [f"{message.role} {message.content}" for message in run.messages]))

    async def disconnect() -> None:
        async with open_run(Storing(), "Where is it?") as live:
            async for event in live:
                if event.type == "TEXT_MESSAGE_CONTENT":
                    await live.disconnect()

    if ends == "disconnected":
        asyncio.run(disconnect())
    else:
        result = run_agent_sync(Storing, "Where is it?")
        assert [f"{message.role} {message.content}" for message in result.messages] == stored[0][1]
    text = "Half an answer." if ends == "finished" else "Half an ans"
    assert stored == [(ends, ["user Where is it?", "assistant None", "tool found", f"assistant {text}"])]


def test_E20_who_asks_is_what_the_server_says_and_threads_are_not_shared() -> None:
    class Private(Agent):
        async def authorize(self, request: Request) -> Any:
            user = request.headers.get("x-user")
            if user is None:
                raise HTTPException(401, headers={"WWW-Authenticate": "Bearer"})
            return user

        async def run(self, run: Run) -> dict[str, Any]:
            first = "seen" not in run.state
            run.state["seen"] = run.principal
            return {"user": run.principal, "first": first, "messages": len(run.messages)}

    forged = {"headers": {"user_id": "admin", "x-user": "admin"}, "principal": "admin", "user": "admin"}
    with serve(Private().app()) as server:
        assert server.post(run_input(state=forged)).status == 401
        ada = run_input(
            threadId="shared", messages=[{"id": "1", "role": "user", "content": "a secret"}], state={"n": 1}
        )
        bob = run_input(threadId="shared", runId="r2", state=forged, forwardedProps=forged)
        assert server.events(ada, headers={"X-User": "ada"})[-1]["result"] == {
            "user": "ada",
            "first": True,
            "messages": 1,
        }
        events = server.events(bob, headers={"X-User": "bob"})
        assert events[-1]["result"]["user"] == "bob"
        assert events[-1]["result"]["first"], "nothing of the first user's thread"
        assert "a secret" not in str(events)


@pytest.mark.parametrize("resume", [{"unknown": True}, {"sure:1": True}, {"": True}, {"unknown": True, "other": False}])
def test_E26_an_answer_to_no_open_question_runs_no_tool_and_is_logged(
    resume: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """The question is asked again, so the user sees that nothing was done (P2: an entry that is not known is ignored)."""
    done: list[str] = []

    async def body(run: Run) -> None:
        if await run.ask("sure", schema=bool):
            done.append("deleted")

    async def main() -> RunResult:
        agent = agent_of(body)
        first = await run_agent(agent, "delete it")
        return await run_agent(agent, messages=first.messages, resume=resume)

    with caplog.at_level(logging.WARNING):
        result = asyncio.run(main())
    assert result.outcome == "interrupt"
    assert [interrupt.id for interrupt in result.interrupts] == ["sure"]
    assert done == []
    for id in resume:
        assert f"the input answers {id!r}, which this run did not ask" in caplog.text


def test_E26_an_answer_that_was_given_before_is_not_given_again(caplog: pytest.LogCaptureFixture) -> None:
    done: list[str] = []

    async def body(run: Run) -> None:
        if run.state.get("sure") is None:
            run.state["sure"] = await run.ask("sure", schema=bool)
            done.append("deleted")
        await run.say("Deleted.")

    async def main() -> RunResult:
        agent = agent_of(body)
        first = await run_agent(agent, "delete it")
        second = (await first.resume({"sure": True})).raise_error()
        return await run_agent(agent, messages=second.messages, state=second.state, resume={"sure": True})

    with caplog.at_level(logging.WARNING):
        result = asyncio.run(main())
    assert result.raise_error().text == "Deleted."
    assert done == ["deleted"]
    assert "the input answers 'sure', which this run did not ask" in caplog.text


def test_E27_hundreds_of_threads_leave_nothing_behind(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "statecast")  # else the records of the test's own log are counted
    runs: weakref.WeakSet[Run] = weakref.WeakSet()

    async def body(run: Run) -> None:
        runs.add(run)
        run.state["rows"] = [{"n": run.thread_id}]
        run.activity("work", {"done": 1})
        await run.say("Hello.")

    async def main() -> None:
        agent = agent_of(body)

        async def talk(first: int, count: int) -> None:
            for number in range(first, first + count):
                given = RunAgentInput(thread_id=f"t{number}", run_id=f"r{number}", messages=[])
                async for _ in agent.stream(given):
                    pass

        async def held(first: int, count: int) -> int:
            await talk(first, count)
            gc.collect()
            return len(gc.get_objects())

        counts = [await held(0, 100), await held(100, 100)]
        counts += [await held(200 + 300 * number, 300) for number in range(3)]
        assert len(runs) == 0
        # What else goes on in the process may grow once; what threads leave behind grows each time.
        growth = [after - before for before, after in pairwise(counts[1:])]
        assert min(growth) < 150, f"objects more after 300 threads each: {growth}"

    asyncio.run(main())
