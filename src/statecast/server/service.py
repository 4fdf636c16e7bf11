"""What the server needs of an agent. `Agent` is one; the server does not import it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from ag_ui.core import AgentCapabilities
from starlette.requests import Request

from ..ending import Ending, SentEvent
from ..errors import AgentError
from ..run import Run
from ..state import StateType

__all__ = ["Service"]


class Service(Protocol):
    """An agent as the server sees it. `Agent` documents the members."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str | None: ...

    @property
    def version(self) -> str | None: ...

    @property
    def state_type(self) -> StateType: ...

    @property
    def is_running(self) -> bool:
        """Its lifespan is open."""

    @property
    def needs_lifespan(self) -> bool:
        """No run may start before its lifespan is open."""

    @property
    def loads_state(self) -> bool:
        """Its `load_state` does something."""

    @property
    def observes(self) -> bool:
        """It wants to be told of every event."""

    def on_event(self, run: Run[Any], event: SentEvent) -> None: ...

    def running(self) -> AbstractAsyncContextManager[None]:
        """Opens its lifespan, once however many users it has."""

    def capabilities(self) -> AgentCapabilities: ...

    def initial_state(self) -> Any: ...

    def load_state(self, data: Any) -> Any: ...

    async def authorize(self, request: Request) -> Any: ...

    async def run(self, run: Run[Any]) -> Any: ...

    def error(self, exc: Exception, run: Run[Any]) -> AgentError | None: ...

    async def on_finish(self, run: Run[Any], ending: Ending) -> None: ...
