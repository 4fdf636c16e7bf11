"""The response as an ASGI server sees it: when it calls what, and what becomes of a run whose first bytes go nowhere."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from agents_support import agent_of
from asgi_support import Exchange
from statecast import Agent, Ending, Run


class Noted(Agent[Any]):
    def __init__(self) -> None:
        self.begun = 0
        self.endings: list[Ending] = []

    async def run(self, run: Run[Any]) -> None:
        self.begun += 1
        await asyncio.sleep(60)

    async def on_finish(self, run: Run[Any], ending: Ending) -> None:
        self.endings.append(ending)


def within(scenario: Coroutine[Any, Any, Any], seconds: float = 10) -> Any:
    """What it returns, which it must do in time."""
    return asyncio.run(asyncio.wait_for(scenario, seconds))


def left() -> set[str]:
    """The names of our tasks that go on. sse-starlette keeps one of its own for each loop."""
    return {name for task in asyncio.all_tasks() if (name := task.get_name()).startswith("statecast")}


def test_the_first_frame_leaves_before_anything_else_is_done() -> None:
    async def body(run: Run[Any]) -> None:
        seen.calls.append("agent")

    seen = Exchange()
    within(seen.play(agent_of(body).endpoint()))
    assert seen.calls[:4] == ["receive", "start", "body", "agent"]
    assert seen.body.count(b"RUN_STARTED") == 1
    assert seen.body.endswith(b"\n\n")
    assert b"RUN_FINISHED" in seen.body


def test_an_agent_whose_client_leaves_after_the_first_frame_begins_and_is_cancelled() -> None:
    async def scenario() -> set[str]:
        await Exchange(leave=True).play(agent.endpoint())
        return left()

    agent = Noted()
    assert within(scenario()) == set()
    assert agent.begun == 1
    assert [ending.kind for ending in agent.endings] == ["disconnected"]


@pytest.mark.parametrize("block", ["start", "body"])
def test_a_client_that_does_not_take_the_first_bytes_is_dropped(block: str) -> None:
    async def scenario() -> set[str]:
        await Exchange(block=block).play(agent.endpoint(send_timeout=0.05))
        return left()

    agent = Noted()
    assert within(scenario()) == set()
    assert agent.begun == 0
    # Who was told that it began has an ending.
    assert [ending.kind for ending in agent.endings] == (["disconnected"] if block == "body" else [])


@pytest.mark.parametrize("block", ["start", "body"])
def test_a_request_that_is_cancelled_at_its_first_bytes_leaves_nothing(block: str) -> None:
    async def scenario() -> set[str]:
        seen = Exchange(block=block)
        request = asyncio.create_task(seen.play(agent.endpoint(grace=0.1, send_timeout=0.2)))
        await seen.blocked.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        return left()

    agent = Noted()
    assert within(scenario()) == set()
    assert agent.begun == 0
