"""Notes when an agent blocks the event loop, with the line that does it: every other run stands still meanwhile."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback
from time import monotonic

__all__ = ["BLOCKED_SECONDS", "Watchdog"]

logger = logging.getLogger("statecast.server")

BLOCKED_SECONDS = 1.0
BEAT_SECONDS = 0.25


class Watchdog:
    """Watches one event loop from a thread of its own while runs are active."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._users = 0
        self._beaten_at = monotonic()
        self._beat_timer: asyncio.TimerHandle | None = None
        self._stop = threading.Event()

    def enter(self) -> None:
        """A run begins."""
        self._users += 1
        if self._users == 1:
            self._stop = threading.Event()
            self._beat()
            threading.Thread(target=self._watch, args=(self._stop,), name="statecast watchdog", daemon=True).start()

    def leave(self) -> None:
        """A run is over; with the last one the thread ends."""
        self._users -= 1
        if self._users == 0:
            self._stop.set()
            if self._beat_timer is not None:
                self._beat_timer.cancel()

    def _beat(self) -> None:
        self._beaten_at = monotonic()
        self._beat_timer = self._loop.call_later(BEAT_SECONDS, self._beat)

    def _watch(self, stop: threading.Event) -> None:
        noted_at = 0.0
        while not stop.wait(BEAT_SECONDS):
            beaten_at = self._beaten_at
            still = monotonic() - beaten_at
            if still < BLOCKED_SECONDS + BEAT_SECONDS or noted_at == beaten_at:
                continue
            frame = sys._current_frames().get(self._loop_thread)
            stack = "" if frame is None else "".join(traceback.format_stack(frame))
            if "_author" not in stack and "statecast" not in stack:
                continue
            noted_at = beaten_at
            task = _current_task(self._loop)
            logger.warning(
                "the event loop has stood still for %.1f s in %s: await, or use asyncio.to_thread, at\n%s",
                still,
                "a task" if task is None else task.get_name(),
                stack,
            )


def _current_task(loop: asyncio.AbstractEventLoop) -> asyncio.Task[object] | None:
    try:
        return asyncio.current_task(loop)
    except RuntimeError:
        return None
