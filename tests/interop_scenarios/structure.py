"""Steps, activities and subagents."""

from __future__ import annotations

import asyncio

from interop_recording import Recorded
from statecast import AgentError, Run

from .scenario import Results, contents, scenario


@scenario()
class Steps(Recorded):
    """Steps nest and overlap; one name may be open once for each owner."""

    async def run(self, run: Run) -> None:
        async with run.step("outer", metadata={"n": 1}):
            async with run.step("inner"):
                run.state["at"] = "inner"
            async with run.subagent("helper") as sub, sub.step("outer"):
                run.state["at"] = "helper"
        async with run.step("outer"):
            run.state["at"] = "again"

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert results[0]["events"].count("STEP_STARTED") == results[0]["events"].count("STEP_FINISHED") == 4


@scenario(runs=[{"say": "a"}, {"say": "b"}], endings=["success"] * 2)
class Activities(Recorded):
    """Activities: a snapshot, deltas, a content that is replaced, two at a time, one in a subagent."""

    async def run(self, run: Run) -> None:
        plan = run.activity("plan", {"steps": [], "note": None}, metadata={"pinned": True})
        search = run.activity("search", {"hits": 0}, id=f"search-{run.run_id}")
        await run.say("working")
        for number in range(3):
            plan.content["steps"].append({"n": number, "done": False})
            search.content["hits"] += 10
            await run.flush()
        plan.content["steps"][1]["done"] = True
        del plan.content["note"]
        await run.custom("com.example.between", None)
        search.content = {"hits": 1, "whole": "new", "text": "x" * 700}
        async with run.subagent("helper") as sub:
            inside = sub.activity("progress", {"percent": 0})
            await sub.say("half")
            inside.content["percent"] = 50
        inside.content["percent"] = 100

    @staticmethod
    def check(results: Results, client: str) -> None:
        plans = [m["content"] for m in results[1]["messages"] if m.get("activityType") == "plan"]
        assert len(plans) == 2
        assert plans[0] == {"steps": [{"n": 0, "done": False}, {"n": 1, "done": True}, {"n": 2, "done": False}]}
        assert contents(results[0], "activity")[-1] == {"percent": 100}
        assert results[0]["events"].count("ACTIVITY_DELTA") >= 6


@scenario()
class Subagents(Recorded):
    """Subagents in parallel and nested; one fails, the run goes on."""

    async def run(self, run: Run) -> None:
        run.state["done"] = []

        async def work(name: str, count: int) -> None:
            async with run.subagent(name, description=f"counts to {count}", metadata={"n": count}) as sub:
                async with sub.text() as text, sub.step("count"):
                    for number in range(count):
                        await text.write(f"{number} ")
                        await asyncio.sleep(0)
                async with sub.tool_call("check", {"n": count}) as call:
                    await call.result("fine")
                async with sub.reasoning() as thought:
                    await thought.write("well")
                async with sub.subagent(f"{name}-nested") as nested:
                    await nested.say(f"below {name}")
                run.state["done"].append(name)
                sub.result = {"count": count}

        async with asyncio.TaskGroup() as group:
            for number, name in enumerate(("ada", "bob", "cem")):
                group.create_task(work(name, number + 2))
        try:
            async with run.subagent("unlucky") as unlucky:
                await unlucky.say("I try.")
                raise AgentError("Out of luck.", code="luck")
        except AgentError:
            await run.say("It failed.")
        try:
            async with run.subagent("secretive"):
                raise ValueError("postgres://user:secret@db")
        except ValueError:
            await run.say("It failed too.")

    @staticmethod
    def check(results: Results, client: str) -> None:
        events = results[0]["events"]
        assert events.count("SUBAGENT_STARTED") == 8
        assert events.count("SUBAGENT_FINISHED") == 6
        assert events.count("SUBAGENT_ERROR") == 2
        assert {"0 1 ", "0 1 2 ", "0 1 2 3 ", "I try."} <= set(contents(results[0], "assistant"))


@scenario(
    runs=[{"say": "go"}, {"answers": {"which": "left"}}],
    endings=["interrupt", "success"],
)
class SuspendedSubagent(Recorded):
    """A subagent asks: it is suspended, and goes on under its id in the next run."""

    async def run(self, run: Run) -> None:
        async with run.subagent("walker", id="walker-1") as sub:
            await sub.say("walking")
            run.state["way"] = await sub.ask("which", message="Left or right?")
            await sub.say("turned")
        await run.say("there")

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert results[0]["interrupts"][0]["subagentRunId"] == "walker-1"
        assert results[1]["state"] == {"way": "left"}
