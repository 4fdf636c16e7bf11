"""One lifespan that several apps share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

__all__ = ["SharedLifespan"]


class SharedLifespan:
    """Opens a context manager for its first user and closes it after its last.

    A task of its own enters and leaves it: the last user is often another task than the first, and what a lifespan holds
    (a task group, a client) must be left where it was entered.
    """

    def __init__(self, factory: Callable[[], AbstractAsyncContextManager[None]]) -> None:
        self._factory = factory
        self._users = 0
        self._opened: asyncio.Future[None] | None = None
        self._closing: asyncio.Event | None = None
        self._owner: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """True between the end of its start and the beginning of its end."""
        return self._opened is not None and self._opened.done() and self._users > 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Keeps it open for the block. Raises what its start raises, and, for the last user, what its end raises."""
        if self._users == 0 and self._owner is not None:
            await asyncio.wait({self._owner})
        self._users += 1
        if self._owner is None or self._owner.done():
            self._opened = asyncio.get_running_loop().create_future()
            self._closing = asyncio.Event()
            self._owner = asyncio.create_task(self._own(self._opened, self._closing))
        owner, opened, closing = self._owner, self._opened, self._closing
        assert opened is not None
        assert closing is not None
        try:
            await asyncio.wait({owner, opened}, return_when=asyncio.FIRST_COMPLETED)
            if not opened.done():
                await owner
                raise RuntimeError("the lifespan ended before it yielded")
            yield
        finally:
            self._users -= 1
            if self._users == 0:
                closing.set()
                await owner

    async def _own(self, opened: asyncio.Future[None], closing: asyncio.Event) -> None:
        async with self._factory():
            opened.set_result(None)
            await closing.wait()
