"""Hands events to an agent's `on_event`, in a worker thread: it can neither slow nor break the stream."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from time import monotonic

from ..ending import SentEvent

__all__ = ["Observer"]

LIMIT = 10_000


class Observer:
    """Collects what was sent and delivers it in batches. Past `LIMIT` undelivered events the oldest are dropped, with a note.

    Args:
        deliver: called with one event at a time, in order, in a worker thread.
        log: where its failures are noted, once.
    """

    def __init__(
        self, deliver: Callable[[SentEvent], None], log: logging.LoggerAdapter[logging.Logger] | logging.Logger
    ) -> None:
        self._deliver = deliver
        self._log = log
        self._started_at = monotonic()
        self._pending: deque[SentEvent] = deque(maxlen=LIMIT)
        self._ready = asyncio.Event()
        self._dropped = 0
        self._failed = False
        self._closed = False

    def note(self, type: str, size: int) -> None:
        """An event of this type and so many bytes was put in the channel."""
        if len(self._pending) == LIMIT:
            self._dropped += 1
        self._pending.append(SentEvent(type, size, monotonic() - self._started_at))
        self._ready.set()

    def close(self) -> None:
        """No event follows: `run` returns when all are delivered."""
        self._closed = True
        self._ready.set()

    async def run(self) -> None:
        """Delivers until `close`."""
        while not (self._closed and not self._pending):
            await self._ready.wait()
            self._ready.clear()
            batch = list(self._pending)
            self._pending.clear()
            if batch:
                await asyncio.to_thread(self._deliver_all, batch)
        if self._dropped:
            self._log.warning("on_event is slower than the run: %d events were not observed", self._dropped)

    def _deliver_all(self, batch: list[SentEvent]) -> None:
        for event in batch:
            try:
                self._deliver(event)
            except Exception:
                if not self._failed:
                    self._log.exception("Agent.on_event failed")
                self._failed = True
