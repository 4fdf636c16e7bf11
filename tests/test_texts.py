"""What is a text for a client's schema is a text here: an id that is a number would end its run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest

from agents_support import agent_of
from statecast import Question, Run
from statecast.testing import run_agent

ID = UUID(int=1)


async def entered(scope: Any) -> None:
    async with scope:
        pass


async def called(run: Run[Any], **result: Any) -> None:
    async with run.tool_call("search", {}) as call:
        await call.result("found", **result)


CASES: dict[str, Callable[[Run[Any]], Awaitable[Any]]] = {
    "message id": lambda run: run.say("text", id=ID),  # type: ignore[arg-type]
    "message name": lambda run: run.say("text", name=5),  # type: ignore[arg-type]
    "message metadata": lambda run: run.say("text", metadata=[1]),  # type: ignore[arg-type]
    "reasoning id": lambda run: entered(run.reasoning(id=ID)),  # type: ignore[arg-type]
    "call id": lambda run: entered(run.tool_call("search", {}, id=5)),  # type: ignore[arg-type]
    "call name": lambda run: entered(run.tool_call(5, {})),  # type: ignore[arg-type]
    "call parent": lambda run: entered(run.tool_call("search", {}, parent=5)),  # type: ignore[arg-type]
    "result id": lambda run: called(run, id=5),
    "result error": lambda run: called(run, error=KeyError("x")),
    "step": lambda run: entered(run.step(1)),  # type: ignore[arg-type]
    "subagent": lambda run: entered(run.subagent(5)),  # type: ignore[arg-type]
    "subagent id": lambda run: entered(run.subagent("other", id=ID)),  # type: ignore[arg-type]
    "subagent description": lambda run: entered(run.subagent("other", description=5)),  # type: ignore[arg-type]
    "activity": lambda run: entered(run.activity(5, {})),  # type: ignore[arg-type]
    "activity id": lambda run: entered(run.activity("plan", {}, id=ID)),  # type: ignore[arg-type]
    "custom": lambda run: run.custom(5, None),  # type: ignore[arg-type]
    "raw": lambda run: run.raw({}, source=5),  # type: ignore[arg-type]
    "reason": lambda run: run.ask(5),  # type: ignore[arg-type]
    "question id": lambda run: run.ask("why", id=ID),  # type: ignore[call-overload]
    "question message": lambda run: run.ask("why", message=5),  # type: ignore[call-overload]
    "question metadata": lambda run: run.ask("why", metadata=[1]),  # type: ignore[call-overload]
    "expiry": lambda run: run.ask("why", expires_at=5),  # type: ignore[call-overload]
}


@pytest.mark.parametrize("name", CASES)
def test_W7_another_type_is_an_error_where_it_is_given(name: str) -> None:
    async def body(run: Run[Any]) -> None:
        with pytest.raises(TypeError):
            await CASES[name](run)
        await run.say("and the run goes on")

    result = asyncio.run(run_agent(agent_of(body), "hi"))
    assert (result.outcome, result.text) == ("success", "and the run goes on")


def test_a_question_has_a_reason() -> None:
    with pytest.raises(TypeError, match="reason"):
        Question(None)  # type: ignore[arg-type]
