"""Small agents for tests, and short forms of what a run sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from statecast import Agent, Run

Body = Callable[[Run[dict[str, Any]]], Awaitable[Any]]


def agent_of(body: Body) -> Agent[dict[str, Any]]:
    """An agent whose `run` is `body`."""

    class Given(Agent[dict[str, Any]]):
        async def run(self, run: Run[dict[str, Any]]) -> Any:
            return await body(run)

    return Given()


def wire(result: Any) -> list[dict[str, Any]]:
    """The events of a result in wire form."""
    return [event.model_dump(mode="json", by_alias=True, exclude_unset=True) for event in result.events]


def only(result: Any, *types: str) -> list[dict[str, Any]]:
    """Those of one of these types."""
    return [event for event in wire(result) if event["type"] in types]


def last(result: Any) -> dict[str, Any]:
    return wire(result)[-1]
