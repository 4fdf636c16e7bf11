"""Agents that the tests of the kit run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from statecast import Agent, AgentError, Run, State


class Trip(State):
    city: str = ""
    stops: list[str] = []


class Planner(Agent[Trip]):
    """Plans a day."""

    async def run(self, run: Run[Trip]) -> Any:
        run.state.city = run.user_text or "Lisbon"
        async with run.step("search"):
            for stop in ("Belem", "Alfama"):
                run.state.stops.append(stop)
                await run.flush()
        async with run.tool_call("book", {"city": run.state.city}) as call:
            await call.result({"ok": True})
        await run.say(["Here ", "is ", "your plan."])
        run.usage.add(provider="acme", model="m1", input_tokens=3, output_tokens=5)
        return {"stops": len(run.state.stops)}


class Asker(Agent):
    """Asks two questions together, then says what it heard."""

    async def run(self, run: Run) -> None:
        run.state["asked"] = run.state.get("asked", 0) + 1
        run.activity("thinking", {"about": "it"})
        answer = await run.ask("approve", message="Go on?", schema=bool)
        await run.say("yes" if answer else "no")


class Counter(Agent):
    """Counts for ever."""

    finished: Any = None

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    async def run(self, run: Run) -> None:
        run.state["n"] = 0
        while True:
            run.state["n"] += 1
            await run.say(f"{run.state['n']}")
            await asyncio.sleep(0)

    async def on_finish(self, run: Run, ending: Any) -> None:
        self.finished = ending
        self.ended.set()


class Failing(Agent):
    async def run(self, run: Run) -> None:
        run.state["begun"] = True
        if run.user_text == "told":
            raise AgentError("No seats left.", "sold_out")
        raise KeyError("lost")


class Guarded(Agent):
    async def authorize(self, request: Request) -> Any:
        if request.headers.get("authorization") != "Bearer yes":
            raise HTTPException(401, headers={"WWW-Authenticate": "Bearer"})
        return "somebody"

    async def run(self, run: Run) -> None:
        await run.say(f"hello {run.principal}")


class Pooled(Agent):
    pool: list[str] | None = None

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        self.pool = ["open"]
        yield
        self.pool = None

    async def run(self, run: Run) -> None:
        assert self.pool is not None
        await run.say(self.pool[0])
