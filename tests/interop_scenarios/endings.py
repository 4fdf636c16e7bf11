"""How a run ends, and what it says of itself then."""

from __future__ import annotations

import asyncio
from typing import Any

from interop_recording import Recorded
from statecast import AgentError, Run

from .scenario import Results, scenario


@scenario(
    runs=[{"say": str(number)} for number in range(7)],
    endings=["success"] * 7,
)
class ResultsAndUsage(Recorded):
    """Results of all kinds, and usage."""

    values: tuple[Any, ...] = (None, 0, "", False, [], {"a": None}, "é")

    async def run(self, run: Run) -> Any:
        run.usage.add(provider="acme", model="m-1", input_tokens=10, output_tokens=5, cached_input_tokens=0)
        run.usage.add(provider="acme", model="m-1", input_tokens=1, output_tokens=1, reasoning_tokens=1)
        run.usage.add(provider="other", input_tokens=2)
        return self.values[int(run.user_text)]

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert "result" not in results[0]
        assert [run["result"] for run in results[1:]] == list(ResultsAndUsage.values[1:])
        acme, other = results[0]["usage"]
        assert (acme["inputTokens"], acme["outputTokens"], acme["totalTokens"]) == (11, 6, 17)
        assert other == {"provider": "other", "inputTokens": 2}


@scenario(
    options={"timeout": 0.3},
    endings=["cancelled"],
    older=["error STOPPED"],
)
class TimeLimit(Recorded):
    """A run that takes too long is cancelled, with all that was open closed."""

    async def run(self, run: Run) -> None:
        run.state["phase"] = "working"
        async with run.step("long"), run.text() as text, run.subagent("sub") as sub, sub.step("inner"):
            await text.write("this takes")
            try:
                await asyncio.sleep(60)
            finally:
                run.state["phase"] = "cleaned up"

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert results[0]["state"] == {"phase": "cleaned up"}
        if client == "1.0.0":
            assert results[0]["metadata"] == {"statecast": {"reason": "timeout"}}


@scenario(endings=["error over_budget"])
class FailsOnPurpose(Recorded):
    """An `AgentError` in the middle of everything."""

    async def run(self, run: Run) -> None:
        run.state["n"] = 1
        run.usage.add(input_tokens=3)
        async with run.step("s"), run.text() as text, run.tool_call("t"), run.subagent("sub") as sub:
            await text.write("half")
            await sub.say("also")
            run.state["n"] = 2
            raise AgentError("That is over your budget.", code="over_budget")

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert results[0]["runError"] == {
            "message": "That is over your budget.",
            "code": "over_budget",
            "usage": [{"inputTokens": 3}],
        }
        assert results[0]["state"] == {"n": 2}


SECRET = "postgres://user:secret@db"


@scenario(endings=["error internal"])
class FailsUnexpectedly(Recorded):
    """An exception whose text is for nobody's eyes but the log's."""

    async def run(self, run: Run) -> None:
        run.state["n"] = 1
        await run.say("so far")
        raise ValueError(SECRET)

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert SECRET not in repr(results)
        assert results[0]["events"].count("RUN_ERROR") == 1


@scenario(
    runs=[{"say": "fail"}, {"say": "go on"}],
    endings=["error agent_error", "success"],
)
class GoesOnAfterAnError(Recorded):
    """The thread of a failed run can be continued: state and messages are equal again."""

    async def run(self, run: Run) -> None:
        run.state.setdefault("log", []).append(run.user_text)
        await run.say("started")
        if run.user_text == "fail":
            run.state["log"].append("failed")
            raise AgentError("No.")

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert results[1]["state"] == {"log": ["fail", "failed", "go on"]}


@scenario(
    runs=[{"say": "go", "context": [{"description": "page", "value": "home"}], "forwardedProps": {"a": [None]}}],
)
class WhatComesIn(Recorded):
    """Context and forwarded props arrive as they were sent."""

    async def run(self, run: Run) -> None:
        run.state["context"] = [context.value for context in run.context]
        run.state["props"] = run.forwarded_props

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert results[0]["state"] == {"context": ["home"], "props": {"a": [None]}}


@scenario()
class SaysNothing(Recorded):
    """The shortest run."""

    async def run(self, run: Run) -> None:
        return None

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert results[0]["events"] == ["RUN_STARTED", "RUN_FINISHED"]
        assert results[0]["state"] == {}
