"""A bounded buffer of encoded frames between the run that writes and the response that reads.

The reader takes *all* frames that are ready and writes them at once. A writer waits only when more than `HIGH_WATER` bytes
are buffered, and now and then gives the event loop a turn, so that an agent that never really awaits still streams.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from time import monotonic
from types import coroutine

__all__ = ["HIGH_WATER", "Channel", "turn"]

HIGH_WATER = 256 * 1024
"""Bytes of encoded frames above which a sender waits."""

TURN_FRAMES = 64
TURN_SECONDS = 0.003


@coroutine
def turn() -> Generator[None, None, None]:
    """Lets the event loop run once: `asyncio.sleep(0)` for a tenth of a microsecond less."""
    yield


class Channel:
    """Frames from one run to one reader, in order. Not thread-safe: only `wake` may be scheduled from other threads.

    Attributes:
        event_count, byte_count: how many frames, and bytes of them, have been put so far.
        closed: no frame follows those that are buffered.
    """

    def __init__(self) -> None:
        self.closed = False
        self._frames: list[bytes] = []
        self._size = 0
        self._taken = 0
        self._taken_bytes = 0
        self._reader: asyncio.Future[None] | None = None
        self._writers: list[asyncio.Future[None]] = []
        # The first frame is due at once: a client should see within milliseconds that its run has begun.
        self._turn_at = 1
        self._turned_at = 0.0

    @property
    def event_count(self) -> int:
        return self._taken + len(self._frames)

    @property
    def byte_count(self) -> int:
        return self._taken_bytes + self._size

    def put(self, frame: bytes) -> None:
        """Buffers a frame and wakes the reader. Never waits: pair it with `due` and `turn`."""
        self._frames.append(frame)
        self._size += len(frame)
        if self._reader is not None:
            self.wake()

    def count(self, frame: bytes) -> None:
        """Counts a frame that the reader wrote by itself."""
        self._taken += 1
        self._taken_bytes += len(frame)

    @property
    def due(self) -> bool:
        """True when the writer should `await turn()` before it goes on.

        A count alone would starve the reader of an agent that computes for milliseconds between two events.
        """
        return (
            len(self._frames) >= self._turn_at
            or self._size > HIGH_WATER
            or monotonic() - self._turned_at > TURN_SECONDS
        )

    async def turn(self) -> None:
        """Lets the event loop run once, and waits while more than `HIGH_WATER` bytes are buffered."""
        self._turned()
        await turn()
        while self._size > HIGH_WATER and not self.closed:
            writer = asyncio.get_running_loop().create_future()
            self._writers.append(writer)
            try:
                await writer
            finally:
                if writer in self._writers:
                    self._writers.remove(writer)

    def take(self) -> bytes:
        """All frames that are ready, as one chunk; `b""` when there are none. Lets waiting writers go on."""
        if not self._frames:
            return b""
        chunk = self._frames[0] if len(self._frames) == 1 else b"".join(self._frames)
        self._taken += len(self._frames)
        self._taken_bytes += self._size
        self._frames.clear()
        self._size = 0
        self._turn_at = TURN_FRAMES
        self._turned_at = monotonic()
        if self._writers:
            self._release()
        return chunk

    def pass_on(self, frame: bytes, now: float) -> bytes:
        """`put`, by the reader itself, and `take`, at the time `now` (`time.monotonic`)."""
        if self._frames or self._writers:
            self.put(frame)
            return self.take()
        self.count(frame)
        self._turn_at = TURN_FRAMES
        self._turned_at = now
        return frame

    def close(self) -> None:
        """Says that no frame follows."""
        self.closed = True
        self._release()
        self.wake()

    def wake(self) -> None:
        """Ends the reader's `wait`."""
        reader = self._reader
        if reader is not None and not reader.done():
            reader.set_result(None)

    async def wait(self, timeout: float | None) -> None:
        """Returns when a frame is put, the channel is closed or woken, or after `timeout` seconds (`None`: no limit)."""
        if self._frames or self.closed:
            return
        loop = asyncio.get_running_loop()
        self._reader = reader = loop.create_future()
        timer = None if timeout is None else loop.call_later(timeout, self.wake)
        try:
            await reader
        finally:
            self._reader = None
            if timer is not None:
                timer.cancel()

    def _turned(self) -> None:
        self._turn_at = len(self._frames) + TURN_FRAMES
        self._turned_at = monotonic()

    def _release(self) -> None:
        writers, self._writers = self._writers, []
        for writer in writers:
            if not writer.done():
                writer.set_result(None)
