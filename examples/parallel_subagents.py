"""Subagents in parallel, each with an activity that shows its progress.

Everything that a subagent says carries its id, so a user interface can tell the two apart while they interleave. An
activity is a message whose content is tracked like state. One subagent fails here: that ends its work, not the run.

Try it:
    python examples/parallel_subagents.py
    statecast watch http://127.0.0.1:8000/ "electric bicycles"
"""

import asyncio
import os
from typing import Any

import uvicorn

from statecast import Agent, AgentError, Run, State

SOURCES = {"news": 3, "patents": 2, "rumours": 0}


class Report(State):
    topic: str = ""
    findings: dict[str, list[str]] = {}


class Researcher(Agent[Report]):
    """Searches several sources at once."""

    async def run(self, run: Run[Report]) -> None:
        run.state.topic = run.user_text or "bicycles"
        run.state.findings = {}
        results = await asyncio.gather(
            *(self.search(run, source, count) for source, count in SOURCES.items()), return_exceptions=True
        )
        failed = [str(result) for result in results if isinstance(result, AgentError)]
        found = sum(len(texts) for texts in run.state.findings.values())
        await run.say(f"{found} findings. {' '.join(failed)}".strip())

    async def search(self, run: Run[Report], source: str, count: int) -> None:
        async with run.subagent(source, description=f"searches {source}") as sub:
            progress: dict[str, Any] = {"source": source, "done": 0, "of": count}
            activity = sub.activity("search", progress)
            if not count:
                raise AgentError(f"There are no {source} today.", code="empty")
            async with sub.tool_call("search", {"source": source, "topic": run.state.topic}) as call:
                texts = run.state.findings.setdefault(source, [])
                for number in range(1, count + 1):
                    await asyncio.sleep(0.01)
                    texts.append(f"{source} {number} on {run.state.topic}")
                    activity.content["done"] = number
                await call.result(list(texts))
            await sub.say(f"{count} {source} read.")
            sub.result = count


app = Researcher().app()

if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ.get("PORT", "8000")))
