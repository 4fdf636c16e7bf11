"""What a run tracks (its state, its activities, edits of its messages): what of it changed, and when it goes out.

A change is due at once if the last state event is an interval old, else when the interval has passed. Whatever is sent
meanwhile takes it along first; else the channel's reader pulls it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import get_ident
from time import monotonic
from typing import Any, Protocol

from .conversation import Conversation
from .errors import AgentError, SequenceError, StateError
from .limits import MAX_EVENT, WARN_EVENT, largest
from .state import Delta, Document, Snapshot
from .stream.channel import Channel
from .stream.rules import Sequence
from .stream.sse import json_frame

__all__ = ["COMPARE_SECONDS", "Feed", "TrackedActivity"]

COMPARE_SECONDS = 0.25
"""How often values that Python cannot track are compared while nothing else happens."""
DELTA = b'data: {"type":"STATE_DELTA","delta":'
SNAPSHOT = b'data: {"type":"STATE_SNAPSHOT","snapshot":'
TAIL = b"}\n\n"


class TrackedActivity(Protocol):
    """An activity message whose content is a tracked document."""

    document: Document[Any]

    def event(self, taken: Delta | Snapshot) -> tuple[dict[str, Any], bytes]:
        """The ACTIVITY_* event that says what was taken, in wire form and as JSON text (A1, A2)."""


class Feed:
    """Takes what changed to the channel. The base of `Outbox`, which sends everything else.

    Args:
        document: the run's state. Its `on_change` is `touch`.
        first_delta: the run's first state event may be a delta (D2 asks for a snapshot).
        state_interval: seconds between two state events that nobody asked for.
        on_fatal: called when the run cannot go on, with the error that must end it.
        observe: called with the type and the bytes of each frame that was put in the channel.

    Attributes:
        rest: seconds until state will be due of which nothing was due at the last `read`; `None` if nothing waits.
    """

    def __init__(
        self,
        *,
        document: Document[Any],
        sequence: Sequence,
        messages: Conversation,
        channel: Channel,
        first_delta: bool,
        state_interval: float,
        on_fatal: Callable[[AgentError], None],
        observe: Callable[[str, int], None] | None,
        log: logging.LoggerAdapter[logging.Logger] | logging.Logger,
    ) -> None:
        self.document = document
        self.sequence = sequence
        self.messages = messages
        self.channel = channel
        self.state_events = 0
        self.log = log
        self.fatal: AgentError | None = None
        self.rest: float | None = None
        self._observe = observe
        self._deltas = first_delta
        self._interval = state_interval
        self._on_fatal = on_fatal
        self._activities: dict[str, TrackedActivity] = {}
        # Activities about which the messages may say something else since.
        self._restated: set[TrackedActivity] = set()
        # Something changed, in any thread; and which activities. Marked last there, and unmarked first here.
        self._changed = False
        self._changed_activities: deque[TrackedActivity] = deque()
        # A flush failed, or is going on; the messages were edited; something is found by comparing only.
        self._stale = self._restate = self._asks = False
        # Short ways: nothing but more text can be due (`Outbox.write`), or nothing but the state (`read`).
        self._calm = self._plain = False
        # Counts what may put another message behind a known id.
        self._epoch = 0
        self._holding = 0
        self._hold_lock = threading.Lock()
        self._sent_at = 0.0
        self._compared_at = monotonic()
        self._logged: set[str] = set()
        self._cancelled = self._ended = False
        self._warned_size = False
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()

    def touch(self, activity: TrackedActivity | None = None) -> None:
        """Marks the state, or an activity, as changed. Called in the thread that changed it."""
        if activity is not None:
            self._changed_activities.append(activity)
        self._changed = True
        self._wake()

    def edited(self) -> None:
        """The messages were edited: they are restated at the next flush."""
        self._restate = True
        self._calm = self._plain = False
        self._epoch += 1
        self._wake()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keeps the state from going out while the block runs; other events do. In any thread."""
        with self._hold_lock:
            self._holding += 1
        self._calm = False
        try:
            yield
        finally:
            with self._hold_lock:
                self._holding -= 1
            self._wake()

    def read(self) -> bytes:
        """All that is ready for the client, as one chunk: what was sent, then the state if it is due. `b""`: nothing is."""
        if self._plain and self._changed and not self._holding:
            now = monotonic()
            if now - self._sent_at >= self._interval:
                # Nothing else can be due: in most cases one value gave way to another.
                self._changed = False
                try:
                    text = self.document.take_leaf() if self._deltas else None
                    if text is not None:
                        frame = DELTA + text + TAIL
                        self._sent_at = now
                        self.state_events += 1
                        if self._observe is not None:
                            self._observe("STATE_DELTA", len(frame))
                        return self.channel.pass_on(frame, now)
                    self._flush_state(now)
                except Exception as error:
                    self._stale = True
                    self._calm = self._plain = False
                    self._background_failure(error)
        self.rest = self._pull()
        return self.channel.take()

    def _pull(self) -> float | None:
        """Takes the state if it is due. Returns the seconds until it will be, `None` if nothing waits."""
        if self._ended or self._holding or self.fatal is not None:
            return None
        now = monotonic()
        if self._changed or self._restate:
            wait = self._sent_at + self._interval - now
            if wait > 0:
                return wait
            self._flush_quietly()
        if self._stale or self._asks:
            wait = self._compared_at + COMPARE_SECONDS - now
            if wait > 0:
                return wait
            self._flush_quietly()
            return COMPARE_SECONDS
        return None

    def _flush_state(self, now: float) -> None:
        """What `flush_now` comes to when there is the state alone, and nothing in it needs to be compared."""
        taken = self.document.take(delta=self._deltas)
        if taken is not None:
            self._put_state(taken)
            self._sent_at = now
        if self.document.compares:
            self._asks = True
            self._settle()

    def flush_now(self, *, compare: bool = True) -> None:
        """Puts every pending change in the channel: the state, then the messages if they were edited, then activities.

        Args:
            compare: compare the values whose changes Python does not show.

        Raises:
            AgentError: the run cannot go on. The client lacks what was too large, and could apply nothing that came after it.
            StateError: something cannot be written.
        """
        if self.fatal is not None:
            raise self.fatal
        now = monotonic()
        if compare:
            self._compared_at = now
        self._stale = True
        self._calm = self._plain = False
        self._changed = False
        activities = self._take_changed(compare) if self._activities else ()
        taken = self.document.take(delta=self._deltas, compare=compare)
        if taken is not None:
            self._put_state(taken)
            self._sent_at = now
        # Before activities: the consumer appends both at the end, and a new activity joins the conversation when it is sent.
        if self._restate:
            self._put_messages()
        for activity in activities:
            if self._put_activity(activity, compare=compare):
                self._sent_at = now
        self._stale = False
        self._asks = self._compares()
        if self._logged:
            self._logged.clear()
        self._settle()

    def _take_changed(self, compare: bool) -> Iterable[TrackedActivity]:
        changed = self._changed_activities
        taken = dict.fromkeys(changed.popleft() for _ in range(len(changed)))
        return list(self._activities.values()) if compare else taken

    def add_activity(self, id: str, activity: TrackedActivity, announced: dict[str, Any]) -> None:
        """Takes an activity in; what it holds goes out at the next flush, and later what it says by `touch`.

        Args:
            announced: the snapshot that will come, without its content: its id is taken from now on.

        Raises:
            SequenceError: the id is in use (L8).
        """
        if id in self._activities:
            raise SequenceError(f"the activity {id!r} is known in this run: change its content", "L8")
        self.messages.check_activity(id)
        self.sequence.announce(announced)
        self.messages.reserve(id)
        self._activities[id] = activity
        self._plain = False
        self.touch(activity)

    def activity(self, id: str) -> TrackedActivity | None:
        """The activity of this run with that message id."""
        return self._activities.get(id)

    # For the outbox

    def _flush_due(self) -> None:
        if self._holding:
            # A batch holds the state only. A client appends what it does not know (M2): later messages would come first.
            self._put_messages()
            return
        if self._stale:
            self.flush_now()
        elif self._changed or self._restate:
            self.flush_now(compare=monotonic() - self._compared_at >= self._interval)
        elif self._asks and monotonic() - self._compared_at >= self._interval:
            self.flush_now()

    def _flush_quietly(self) -> None:
        try:
            self.flush_now()
        except Exception as error:
            self._background_failure(error)

    def _background_failure(self, error: Exception) -> None:
        """No line of the author is running: log it once per pointer, and raise it at the author's next call."""
        if error is self.fatal:
            return
        pointer = error.pointer if isinstance(error, StateError) else repr(error)
        if pointer not in self._logged:
            self._logged.add(pointer)
            self.log.error("the state cannot be written, the client keeps the last one: %s", error, exc_info=error)

    def _wake(self) -> None:
        if get_ident() == self._thread:
            self.channel.wake()
            return
        try:
            self._loop.call_soon_threadsafe(self.channel.wake)
        except RuntimeError:
            return  # the loop is closed, and the run with it

    def _settle(self) -> None:
        """Which short ways are open now."""
        self._plain = not (self._ended or self._stale or self._restate or self._asks or self._activities)
        self._calm = not (
            self._ended
            or self._cancelled
            or self.fatal is not None
            or self._stale
            or self._holding
            or self._restate
            or self._asks
        )

    def _compares(self) -> bool:
        if self.document.compares:
            return True
        if not self._activities:
            return False
        return any(activity.document.compares for activity in self._activities.values())

    def _put_messages(self) -> None:
        self._restate = False
        restated = self.messages.take() if self.messages.dirty else None
        if restated is not None:
            self._put({"type": "MESSAGES_SNAPSHOT", "messages": restated})

    def _put_state(self, taken: Delta | Snapshot) -> None:
        if isinstance(taken, Delta):
            kind, encoded = "STATE_DELTA", DELTA + taken.json + TAIL
        else:
            kind, encoded = "STATE_SNAPSHOT", SNAPSHOT + taken.json + TAIL
        # No rule to ask: state may be sent at any time while the run is active (D1), and flushes happen only then.
        if len(encoded) > WARN_EVENT:
            self._check_size(kind, encoded, taken)
        self._deltas = True
        self.state_events += 1
        self._write(kind, encoded)

    def _put_activity(self, activity: TrackedActivity, *, compare: bool) -> bool:
        taken = activity.document.take(compare=compare)
        if taken is None:
            return False
        if activity in self._restated:
            self._restated.discard(activity)
            if isinstance(taken, Delta):
                # The client holds what the messages were edited to, or nothing: a patch may not fit it.
                activity.document.resync()
                taken = activity.document.take(compare=compare)
                assert taken is not None
        event, payload = activity.event(taken)
        if len(payload) > WARN_EVENT:
            self._check_size(event["type"], payload, taken)
        self.sequence.advance(event)
        self.messages.apply(event)
        self._write(event["type"], json_frame(payload))
        return True

    def _put(self, event: dict[str, Any]) -> None:
        raise NotImplementedError

    def _write(self, kind: str, encoded: bytes) -> None:
        raise NotImplementedError

    def _check_size(self, kind: str, payload: bytes, taken: Delta | Snapshot) -> None:
        size = len(payload)
        if not self._warned_size:
            self._warned_size = True
            self.log.warning("a %s of %d bytes: clients copy the whole state for every event", kind, size)
        if size <= MAX_EVENT:
            return
        self.log.error("a %s of %d bytes is above the limit of %d: %s", kind, size, MAX_EVENT, largest(taken))
        self._calm = False
        self.fatal = AgentError("The agent's state has become too large to send.", code="state_too_large")
        self._on_fatal(self.fatal)
        raise self.fatal
