"""Two agents in a FastAPI service, one of them only for those who sign in.

`routes()` gives POST and GET at exactly the path, without the redirects of a mount. The host opens what the agents share
(`running()`) in its own lifespan. `authorize` sees the request before its body is read.

Try it:
    python examples/fastapi_mount.py
    curl -N -H 'Content-Type: application/json' -d '{"threadId":"t","runId":"r","messages":[]}' http://127.0.0.1:8000/public
    curl -N -H 'Authorization: Bearer ada' -H 'Content-Type: application/json' \\
        -d '{"threadId":"t","runId":"r","messages":[]}' http://127.0.0.1:8000/private
"""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request

from statecast import Agent, Run

USERS = {"ada": "Ada", "grace": "Grace"}


class Public(Agent):
    """Answers everybody."""

    async def run(self, run: Run) -> None:
        run.state["visits"] = run.state.get("visits", 0) + 1
        await run.say(f"Visit number {run.state['visits']}.")


class Private(Agent):
    """Answers those whom the service knows, from a table that is opened once."""

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        self.balances = {"Ada": 120, "Grace": 80}
        yield
        self.balances.clear()

    async def authorize(self, request: Request) -> str:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or token not in USERS:
            raise HTTPException(401, headers={"WWW-Authenticate": "Bearer"})
        return USERS[token]

    async def run(self, run: Run) -> None:
        run.state["owner"] = run.principal
        run.state["balance"] = self.balances[run.principal]
        await run.say(f"{run.principal} has {run.state['balance']}.")


public, private = Public(), Private()


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for agent in (public, private):
            await stack.enter_async_context(agent.running())
        yield


app = FastAPI(lifespan=lifespan)
app.router.routes.extend([*public.routes("/public"), *private.routes("/private")])


@app.get("/health")
async def health() -> dict[str, Any]:
    return {"status": "ok", "agents": [public.name, private.name]}


if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ.get("PORT", "8000")))
