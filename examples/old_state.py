"""Threads that outlive a deploy: read the state that an older version of the agent wrote.

State comes back from the client, so after a deploy it still has the old shape. `load_state` sees it before it is
validated. What comes out is checked as always, and the client gets the new shape with the run's first state event.

Try it:
    python examples/old_state.py
    curl -N -H 'Content-Type: application/json' http://127.0.0.1:8000/ \\
        -d '{"threadId":"t","runId":"r","messages":[],"state":{"todo":["buy milk","call Ada"],"done":["call Ada"]}}'
"""

import os
from typing import Any

import uvicorn

from statecast import Agent, Run, State


class Task(State):
    title: str
    done: bool = False


class Tasks(State):
    """Version 2. Version 1 was {"todo": [title, …], "done": [title, …]}."""

    version: int = 2
    tasks: list[Task] = []


class TaskList(Agent[Tasks]):
    """Ticks off the first open task."""

    def load_state(self, data: Any) -> Any:
        if isinstance(data, dict) and "todo" in data:
            done = set(data.get("done", []))
            return {"tasks": [{"title": title, "done": title in done} for title in data["todo"]]}
        return data

    async def run(self, run: Run[Tasks]) -> None:
        task = next((task for task in run.state.tasks if not task.done), None)
        if task is None:
            await run.say("Nothing is left to do.")
            return
        task.done = True
        await run.say(f"Done: {task.title}.")


app = TaskList().app()

if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ.get("PORT", "8000")))
