"""Notes when the event loop stands still, with the line that blocks it: every other run waits meanwhile."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from weakref import WeakKeyDictionary

__all__ = ["BLOCKED_SECONDS", "watched"]

logger = logging.getLogger("statecast.server")

BLOCKED_SECONDS = 1.0
BEAT_SECONDS = 0.25
IDLE_SECONDS = 10.0


@contextmanager
def watched() -> Iterator[None]:
    """Watches the running event loop while the block lasts; called from the loop."""
    loop = asyncio.get_running_loop()
    watchdog = _watchdogs.get(loop)
    if watchdog is None:
        watchdog = _watchdogs[loop] = _Watchdog(loop)
    watchdog.enter()
    try:
        yield
    finally:
        watchdog.leave()


class _Watchdog:
    """A thread that looks whether the loop still beats. It outlives a run by some seconds, so that few are started."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._loop_thread = threading.get_ident()
        self._users = 0
        self._beaten_at = monotonic()
        self._timer: asyncio.TimerHandle | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def enter(self) -> None:
        self._users += 1
        if self._users > 1:
            return
        self._beat()
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="statecast watchdog", daemon=True)
                self._thread.start()

    def leave(self) -> None:
        self._users -= 1
        if self._users == 0 and self._timer is not None:
            self._timer.cancel()

    def _beat(self) -> None:
        self._beaten_at = monotonic()
        self._timer = self._loop.call_later(BEAT_SECONDS, self._beat)

    def _watch(self) -> None:
        pause = threading.Event()
        noted_at = used_at = monotonic()
        while True:
            pause.wait(BEAT_SECONDS)
            now = monotonic()
            if self._users:
                used_at = now
            elif now - used_at > IDLE_SECONDS:
                with self._lock:
                    if not self._users:
                        self._thread = None
                        return
            beaten_at = self._beaten_at
            if self._users and now - beaten_at > BLOCKED_SECONDS + BEAT_SECONDS and noted_at != beaten_at:
                noted_at = beaten_at
                self._note(now - beaten_at)

    def _note(self, seconds: float) -> None:
        frame = sys._current_frames().get(self._loop_thread)
        task = asyncio.current_task(self._loop)
        logger.warning(
            "the event loop has stood still for %.1f s in %s: await there, or use asyncio.to_thread\n%s",
            seconds,
            "no task" if task is None else task.get_name(),
            "" if frame is None else "".join(traceback.format_stack(frame)),
        )


_watchdogs: WeakKeyDictionary[asyncio.AbstractEventLoop, _Watchdog] = WeakKeyDictionary()
