"""Everything that a run sends passes here, in this order: pending state, the rules, the conversation, encoding, the channel.

Nothing else writes to the channel. So the consumer never sees the words before the state that they speak of, a forbidden
event never reaches the wire, and a later change of an object never changes an event that was sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from .conversation import Conversation
from .errors import AgentError, RunEnded, SequenceError
from .feed import Feed
from .pieces import Pieces
from .state import Document
from .stream.channel import Channel
from .stream.chunks import Expander
from .stream.rules import Sequence
from .stream.sse import frame

__all__ = ["Outbox"]

logger = logging.getLogger("statecast.run")


class Outbox(Feed):
    """The one way out of a run.

    Changes of the state are taken before every other event, and by the channel's reader through `read`.

    Args:
        document: the run's state. Its `on_change` is `touch`.
        first_delta: the run's first state event may be a delta (D2 asks for a snapshot).
        state_interval: seconds between two state events that nobody asked for.
        downgrade: turns an event into what an older consumer reads; `None` from it drops the event.
        on_fatal: called when the run cannot go on, with the error that must end it.
        observe: called with the type and the bytes of each frame that was put in the channel.
    """

    def __init__(
        self,
        *,
        document: Document[Any],
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
        super().__init__(
            document=document,
            sequence=sequence,
            messages=messages,
            channel=channel,
            first_delta=first_delta,
            state_interval=state_interval,
            on_fatal=on_fatal,
            observe=observe,
            log=log,
        )
        self.debug = debug
        self._downgrade = downgrade
        self._expander = Expander()

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

    def close_lane(self, owner: str) -> None:
        """Closes what is open in a subagent's lane, before its own end."""
        if not self._ended:
            for one in self._expander.close(owner):
                self._put(one)
            for one in self.sequence.closing(owner):
                self._put(one)

    # Endings

    @property
    def cancelled(self) -> bool:
        """The author's task was cancelled."""
        return self._cancelled

    def finish(self) -> None:
        """Sends what is pending at the end of the run. Raises `StateError` if the state still cannot be written."""
        for one in self._expander.close():
            self._put(one)
        if self._holding:
            self.log.error("a batch is open at the end of the run: the client does not get what changed since it began")
        else:
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
        self._calm = self._plain = False
        self._changed = False
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

    def _settle(self) -> None:
        super()._settle()
        if self._expander.open:
            self._calm = False

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
