"""Everything that a run sends passes here, in this order: pending state, the rules, the conversation, encoding, the channel.

Nothing else writes to the channel. So the consumer never sees the words before the state that they speak of, a forbidden
event never reaches the wire, and a later change of an object never changes an event that was sent.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Protocol

from pydantic_core import PydanticSerializationError, to_json

from .conversation import Conversation
from .errors import AgentError, RunEnded, SequenceError, StateError
from .limits import MAX_EVENT, WARN_EVENT, largest
from .pieces import Pieces
from .state import Delta, Document, Snapshot
from .stream.channel import Channel
from .stream.chunks import Expander
from .stream.rules import Sequence
from .stream.sse import frame, json_frame

__all__ = ["COMPARE_SECONDS", "Outbox", "TrackedActivity"]

logger = logging.getLogger("statecast.run")

COMPARE_SECONDS = 0.25
"""How often values that Python cannot track are compared while nothing else happens."""


class TrackedActivity(Protocol):
    """An activity message whose content is a tracked document."""

    document: Document[Any]

    def event(self, taken: Delta | Snapshot) -> tuple[dict[str, Any], bytes]:
        """The ACTIVITY_* event that says what was taken, in wire form and as JSON text (A1, A2)."""


class Outbox:
    """The one way out of a run.

    Changes of the state are taken before every other event, and by the channel's reader through `pull`.

    Args:
        first_delta: the run's first state event may be a delta (D2 asks for a snapshot).
        state_interval: seconds between two state events that nobody asked for.
        downgrade: turns an event into what an older consumer reads; `None` from it drops the event.
        on_fatal: called when the run cannot go on, with the error that must end it.
        observe: called with the type and the bytes of each frame that was put in the channel.
    """

    def __init__(
        self,
        *,
        sequence: Sequence,
        messages: Conversation,
        channel: Channel,
        first_delta: bool = False,
        state_interval: float = 1 / 60,
        downgrade: Callable[[dict[str, Any]], dict[str, Any] | None] | None = None,
        on_fatal: Callable[[AgentError], None] = lambda error: None,
        observe: Callable[[str, int], None] | None = None,
        debug: bool = False,
        log: logging.LoggerAdapter[logging.Logger] | logging.Logger = logger,
    ) -> None:
        self.sequence = sequence
        self.messages = messages
        self.channel = channel
        self.state_events = 0
        self.debug = debug
        self.log = log
        self.fatal: AgentError | None = None
        self._deltas = first_delta
        self._interval = state_interval
        self._downgrade = downgrade
        self._on_fatal = on_fatal
        self._observe = observe
        self._expander = Expander()
        self._document: Document[Any] | None = None
        self._activities: dict[str, TrackedActivity] = {}
        # Activities about which the messages may say something else since.
        self._restated: set[TrackedActivity] = set()
        # What changed, in any thread; `None` is the state. A deque, as its ends are safe to use from all of them.
        self._changed: deque[TrackedActivity | None] = deque()
        self._stale = False
        self._restate = False
        self._asks = False
        # Short ways: nothing but more text can be due (`write`), or nothing but the state (`pull`).
        self._calm = self._plain = False
        self._epoch = 0
        self._holding = 0
        self._hold_lock = threading.Lock()
        self._sent_at = 0.0
        self._compared_at = monotonic()
        self._logged: set[str] = set()
        self._cancelled = False
        self._ended = False
        self._warned_size = False
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    # What the run and its scopes send

    def begin(self, event: dict[str, Any], sent: bytes) -> None:
        """Takes note of RUN_STARTED, whose frame the reader has written (L1)."""
        self.sequence.advance(event)
        self.messages.apply(event)
        self.channel.count(sent)
        if self._observe is not None:
            self._observe(event["type"], len(sent))

    async def send(self, event: dict[str, Any]) -> None:
        """Sends an event of the author, after the state that it may speak of.

        Raises `SequenceError` when a rule forbids it, `RunEnded` after the end, `StateError` when the state cannot be
        written; and `asyncio.CancelledError`, again, in a run that was cancelled and goes on.
        """
        self.check_open()
        self._flush_due()
        for one in self._expander.feed(event):
            self._put(one)
        self._settle()
        if self.channel.due:
            await self.channel.turn()

    def pieces(self, event: dict[str, Any], id: str) -> Pieces:
        """The stream of an item that was started, for `write`.

        Args:
            event: a content event of the item, without its `delta`.
            id: the item's id.
        """
        head, comma, tail = frame({**event, "delta": "\0"}).partition(b'"\\u0000"')
        assert comma
        return Pieces(id, self.sequence.open_ids(event["type"]), head, tail, event["type"])

    def write(self, pieces: Pieces, delta: str) -> bool:
        """Sends a piece of text by a short way: its rule is one look-up, its frame is made of bytes that are ready.

        Returns:
            False if more than this piece may be due. It was not sent then: `send` it.
        """
        if self._changed or not self._calm or pieces.id not in pieces.open:
            return False
        if pieces.epoch != self._epoch:
            # The messages were restated: the conversation may hold another message under this id.
            append = self.messages.collector(pieces.id)
            if append is None:
                return False
            pieces.append = append
            pieces.epoch = self._epoch
        try:
            encoded = pieces.head + to_json(delta) + pieces.tail
        except PydanticSerializationError:
            return False
        pieces.append(delta)
        self.channel.put(encoded)
        if self._observe is not None:
            self._observe(pieces.type, len(encoded))
        return True

    async def flush(self) -> None:
        """Sends what changed now; returns when it is in the channel."""
        self.check_open()
        if self._holding:
            raise SequenceError("flush() inside a batch: the state goes out when the block ends", "D2")
        self.flush_now()
        if self.channel.due:
            await self.channel.turn()

    def close(self, event: dict[str, Any]) -> None:
        """Sends the event that closes a scope. Never waits; says nothing when the run is over, whose end closed it (L5)."""
        if self._ended:
            return
        try:
            self._flush_due()
        except Exception as error:
            # The scope must be closed all the same; the error is raised at the author's next call.
            self._background_failure(error)
        for one in self._expander.feed(event):
            self._put(one)

    # State

    def watch(self, document: Document[Any]) -> None:
        """Makes this document the run's state. Its `on_change` is `touch`."""
        self._document = document

    @property
    def document(self) -> Document[Any] | None:
        """The run's state."""
        return self._document

    def touch(self, activity: TrackedActivity | None = None) -> None:
        """Marks the state, or an activity, as changed. Called in the thread that changed it."""
        self._changed.append(activity)
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

    def pull(self) -> float | None:
        """Takes the state for the reader if it is due. Returns the seconds until it will be, `None` if nothing waits."""
        if self._ended or self._holding:
            return None
        now = monotonic()
        if self._changed or self._restate:
            wait = self._sent_at + self._interval - now
            if wait > 0:
                return wait
            if self._plain:
                self._flush_state(now)
            else:
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
        self._changed.clear()
        try:
            taken = self._document.take(delta=self._deltas)  # type: ignore[union-attr]
            if taken is not None:
                self._put_state(taken)
                self._sent_at = now
        except Exception as error:
            self._stale = True
            self._calm = self._plain = False
            self._background_failure(error)
            return
        if self._document.compares:  # type: ignore[union-attr]
            self._asks = True
            self._settle()

    def flush_now(self, *, compare: bool = True) -> None:
        """Puts every pending change in the channel: the state, then the messages if they were edited, then activities.

        Args:
            compare: compare the values whose changes Python does not show.
        """
        now = monotonic()
        if compare:
            self._compared_at = now
        self._stale = True
        self._calm = self._plain = False
        activities: list[TrackedActivity] = []
        if self._activities:
            activities = self._take_changed(compare)
        else:
            self._changed.clear()
        if self._document is not None:
            taken = self._document.take(delta=self._deltas, compare=compare)
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

    def _take_changed(self, compare: bool) -> list[TrackedActivity]:
        changed = dict.fromkeys(self._changed.popleft() for _ in range(len(self._changed)))
        return list(self._activities.values()) if compare else [one for one in changed if one is not None]

    def close_lane(self, owner: str) -> None:
        """Closes what is open in a subagent's lane, before its own end."""
        if not self._ended:
            for one in self._expander.close(owner):
                self._put(one)
            for one in self.sequence.closing(owner):
                self._put(one)

    def add_activity(self, id: str, activity: TrackedActivity, announced: dict[str, Any]) -> None:
        """Lets an activity's document speak; what it holds goes out at the next flush.

        Args:
            announced: the snapshot that will come, without its content: its id is taken from now on.

        Raises:
            SequenceError: the id is in use (L8).
        """
        if id in self._activities:
            raise SequenceError(f"the activity {id!r} is known in this run: change its content", "L8")
        self.sequence.advance(announced)
        self._activities[id] = activity
        self._plain = False
        self.touch(activity)

    def activity(self, id: str) -> TrackedActivity | None:
        """The activity of this run with that message id."""
        return self._activities.get(id)

    # Endings

    @property
    def cancelled(self) -> bool:
        """The author's task was cancelled."""
        return self._cancelled

    def finish(self) -> None:
        """Sends what is pending at the end of the run. Raises `StateError` if the state still cannot be written."""
        for one in self._expander.close():
            self._put(one)
        if not self._holding:
            self.flush_now()

    def cancel(self) -> None:
        """From now on `send` raises `CancelledError`: the author was told once, and only closing events go out."""
        self._cancelled = True
        self._calm = False

    def end(self, *events: dict[str, Any]) -> None:
        """Sends the last events of the run, the terminal one last, and closes the channel."""
        for one in self._expander.close():
            self._put(one)
        for event in events:
            self._put(event)
        self.abandon()

    def abandon(self) -> None:
        """Ends without a word: the client has gone."""
        self._ended = True
        self._calm = False
        self._changed.clear()
        self.channel.close()

    # How it is done

    def check_open(self) -> None:
        """Raises what `send` raises in a run that can send nothing more."""
        if self._ended:
            raise RunEnded
        if self._cancelled:
            raise asyncio.CancelledError("the run was cancelled: it can send nothing more")
        if self.fatal is not None:
            raise self.fatal

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
        if threading.get_ident() == self._thread:
            self.channel.wake()
            return
        try:
            self._loop.call_soon_threadsafe(self.channel.wake)
        except RuntimeError:
            return  # the loop is closed, and the run with it

    def _settle(self) -> None:
        self._plain = not (self._stale or self._restate or self._asks or self._activities or self._document is None)
        self._calm = not (
            self._ended
            or self._cancelled
            or self.fatal is not None
            or self._stale
            or self._holding
            or self._restate
            or self._asks
            or self._expander.open
        )

    def _compares(self) -> bool:
        document = self._document
        if document is not None and document.compares:
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
            kind, head = "STATE_DELTA", b'data: {"type":"STATE_DELTA","delta":'
        else:
            kind, head = "STATE_SNAPSHOT", b'data: {"type":"STATE_SNAPSHOT","snapshot":'
        encoded = head + taken.json + b"}\n\n"
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
        self.sequence.advance(event)
        self.messages.apply(event)
        if event["type"] in ("MESSAGES_SNAPSHOT", "TEXT_MESSAGE_START"):
            self._epoch += 1
            if self._activities and "messages" in event and any(one["role"] == "activity" for one in event["messages"]):
                self._restated.update(self._activities.values())
        downgrade = self._downgrade
        if downgrade is not None:
            lowered = downgrade(event)
            if lowered is None:
                return
            event = lowered
        self._write(event["type"], frame(event))

    def _write(self, kind: str, encoded: bytes) -> None:
        self.channel.put(encoded)
        if self._observe is not None:
            self._observe(kind, len(encoded))

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
