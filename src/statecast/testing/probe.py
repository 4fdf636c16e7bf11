"""An agent with a witness: what its run was, how it ended, and what its state and messages were then."""

from __future__ import annotations

import json
from typing import Any

from ..agent import Agent
from ..ending import Ending
from ..run import Run
from ..state import MISSING, encode_json

__all__ = ["Probe"]


class Probe:
    """Stands in for an agent as the server's `Service`, for one run. Everything is the agent's own.

    Attributes:
        seen: the agent's `Run`, once it started.
        ending: how the run ended, once it has.
        state: the JSON value of `run.state` at the end; `MISSING` before it, or when it cannot be written.
        fault: why it cannot be written.
        messages: the messages of `run.messages` at the end, in wire form.
    """

    def __init__(self, agent: Agent[Any]) -> None:
        self._agent = agent
        self.seen: Run[Any] | None = None
        self.ending: Ending | None = None
        self.state: Any = MISSING
        self.fault: Exception | None = None
        self.messages: list[dict[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._agent, name)

    async def run(self, run: Run[Any]) -> Any:
        self.seen = run
        return await self._agent.run(run)

    async def on_finish(self, run: Run[Any], ending: Ending) -> None:
        self.seen = run
        self.ending = ending
        try:
            self.state = json.loads(encode_json(run.state))
        except Exception as error:
            self.fault = error
        self.messages = [message.model_dump(mode="json", by_alias=True, exclude_none=True) for message in run.messages]
        await self._agent.on_finish(run, ending)
