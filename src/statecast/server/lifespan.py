"""One lifespan that several apps share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from weakref import WeakKeyDictionary

__all__ = ["SharedLifespan"]


class SharedLifespan:
    """Opens a context manager for its first user and closes it after its last; once in each event loop.

    A task of its own enters and leaves it: the last user is often another task than the first, and what a lifespan holds
    (a task group, a client) must be left where it was entered.
    """

    def __init__(self, factory: Callable[[], AbstractAsyncContextManager[None]]) -> None:
        self._factory = factory
        # What a lifespan opens belongs to a loop; a test suite, or a server in each thread, has several.
        self._opened: WeakKeyDictionary[asyncio.AbstractEventLoop, _Opened] = WeakKeyDictionary()

    @property
    def is_open(self) -> bool:
        """True between the end of its start and the beginning of its end, in the running event loop."""
        opened = self._opened.get(asyncio.get_running_loop())
        return opened is not None and opened.is_open

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Keeps it open for the block. Raises what its start raises, and, for the last user, what its end raises."""
        loop = asyncio.get_running_loop()
        opened = self._opened.get(loop)
        while opened is not None and opened.users == 0:
            # The last user is closing it: the next one opens it anew.
            await asyncio.wait({opened.owner})
            if self._opened.get(loop) is opened:
                del self._opened[loop]
            opened = self._opened.get(loop)
        if opened is None:
            opened = self._opened[loop] = _Opened(self._factory)
        opened.users += 1
        try:
            await opened.wait()
            yield
        finally:
            opened.users -= 1
            if opened.users == 0:
                await opened.close()
                if self._opened.get(loop) is opened:
                    del self._opened[loop]


class _Opened:
    """The lifespan in one event loop, from its start to its end."""

    def __init__(self, factory: Callable[[], AbstractAsyncContextManager[None]]) -> None:
        self.users = 0
        self._started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self.owner = asyncio.create_task(self._own(factory), name="statecast lifespan")

    @property
    def is_open(self) -> bool:
        return self._started.done() and self.users > 0 and not self.owner.done()

    async def wait(self) -> None:
        """Waits for its start."""
        await asyncio.wait({self.owner, self._started}, return_when=asyncio.FIRST_COMPLETED)
        if not self._started.done():
            await self.owner
            raise RuntimeError("the lifespan ended before it yielded")

    async def close(self) -> None:
        """Ends it, and raises what its end raises."""
        self._closing.set()
        await self.owner

    async def _own(self, factory: Callable[[], AbstractAsyncContextManager[None]]) -> None:
        async with factory():
            self._started.set_result(None)
            await self._closing.wait()
