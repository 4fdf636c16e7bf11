"""Which runs an app has, so that it can refuse more of them and end them at shutdown."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sse_starlette.sse import AppStatus

from .problem import Problem

if TYPE_CHECKING:
    from .execution import Execution

__all__ = ["Runs"]

logger = logging.getLogger("statecast.server")


class Runs:
    """The runs of one app or endpoint in this process.

    Args:
        limit: how many may run at a time; `None`: any number.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self._closed = False
        self._running: set[Execution] = set()
        self._admitted: set[object] = set()

    def __len__(self) -> int:
        """How many run, or were admitted and are about to."""
        return len(self._running) + len(self._admitted)

    @property
    def shutting_down(self) -> bool:
        """No run may start any more: the app's life is over, or the server was told to stop.

        A server ends an app's lifespan only after its last connection, so the second is known from the signal, which
        sse-starlette notes.
        """
        return self._closed or AppStatus.should_exit

    def check_open(self) -> None:
        """Raises the 503 that a server which shuts down answers with."""
        if self.shutting_down:
            raise Problem(503, "The server is shutting down.", headers={"Retry-After": "5"})

    @contextmanager
    def admit(self) -> Iterator[None]:
        """Keeps a place for a run while its request is read, so that two requests never get the last one.

        Start the run without awaiting after the block.

        Raises:
            Problem: 503, shutting down, or as many run as may.
        """
        self.check_open()
        if self.limit is not None and len(self) >= self.limit:
            raise Problem(503, "Too many runs are active.", headers={"Retry-After": "1"})
        place = object()
        self._admitted.add(place)
        try:
            yield
        finally:
            self._admitted.discard(place)

    def add(self, execution: Execution) -> None:
        """A run starts."""
        self._running.add(execution)

    def remove(self, execution: Execution) -> None:
        """A run is over."""
        self._running.discard(execution)

    def open(self) -> None:
        """The app's life begins, perhaps not for the first time."""
        self._closed = False
        # The note of a server that was stopped in this process before, as in a notebook: nobody takes it back.
        AppStatus.should_exit = False

    async def shutdown(self) -> None:
        """Admits no more runs, ends those that run as cancelled (L3), and waits for them for their grace."""
        self._closed = True
        running = list(self._running)
        for execution in running:
            execution.cancel("shutdown")
        if running:
            # Each supervisor gives the agent its grace, then `on_finish` as long again.
            limit = max(2 * execution.options.grace for execution in running) + 1
            _, late = await asyncio.wait({execution.done for execution in running}, timeout=limit)
            if late:
                logger.error("%d runs did not end in %g s", len(late), limit)
