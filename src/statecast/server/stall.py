"""A deadline for each of many waits in one task, at nearly no cost for those that are short."""

from __future__ import annotations

import asyncio
from time import monotonic

__all__ = ["Stall"]


class Stall:
    """Cancels the current task when one wait takes longer than `seconds`. Marking a wait costs nearly nothing.

    `asyncio.timeout` for each wait costs more than a small write. Here one timer looks at the wait that is going on:

        with Stall(30.0, TooSlow) as stall:
            stall.since = monotonic()
            await send(chunk)
            stall.since = None

    Args:
        seconds: that one wait may take.
        error: raised by the block instead of the cancellation.

    Attributes:
        since: when the wait began that is going on, by `time.monotonic`; `None` between two. Set by the block.
    """

    def __init__(self, seconds: float, error: type[Exception]) -> None:
        self._seconds = seconds
        self._error = error
        self.since: float | None = None
        self._stalled = False

    def __enter__(self) -> Stall:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._timer = self._loop.call_later(self._seconds, self._look)
        return self

    def __exit__(self, kind: object, exc: BaseException | None, traceback: object) -> None:
        self._timer.cancel()
        if self._stalled and self._task is not None:
            self._task.uncancel()
            if isinstance(exc, asyncio.CancelledError):
                raise self._error from None

    def _look(self) -> None:
        left = self._seconds if self.since is None else self.since + self._seconds - monotonic()
        if left > 0:
            self._timer = self._loop.call_later(left, self._look)
        elif self._task is not None:
            self._stalled = True
            self._task.cancel()
