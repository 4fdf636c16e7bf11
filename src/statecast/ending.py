"""How a run ended, and which ending an exception of the author's code means."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from .errors import Abandoned, AgentError, Interrupted

__all__ = ["CancelReason", "Ending", "SentEvent", "decisive"]

CancelReason = Literal["stopped", "timeout", "shutdown", "abandoned"]


@dataclass(frozen=True)
class Ending:
    """What `Agent.on_finish` is told about a run that is over.

    Attributes:
        kind: `finished`, `interrupted` (questions are open), `cancelled` (see `reason`), `failed` (see `error`), or
            `disconnected` (the client went away; no terminal event was sent).
        result: what `Agent.run` returned, when `finished`.
        reason: why the run was cancelled.
        error: the text and code that the client received, when `failed`.
        exception: the exception that ended the run, if one did.
        seconds: how long the run took.
        events, bytes, state_events: what was written to the channel.
    """

    kind: Literal["finished", "interrupted", "cancelled", "failed", "disconnected"]
    result: Any = None
    reason: CancelReason | None = None
    error: AgentError | None = None
    exception: BaseException | None = None
    seconds: float = 0.0
    events: int = 0
    bytes: int = 0
    state_events: int = 0


@dataclass(frozen=True)
class SentEvent:
    """What `Agent.on_event` is told about one event, after it was encoded.

    Attributes:
        type: the event's type, such as `"STATE_DELTA"`.
        bytes: the length of its frame.
        seconds: since the run began.
    """

    type: str
    bytes: int
    seconds: float


# The first of these that an exception group holds decides; anything else is unexpected and wins over all of them.
_EXPECTED: tuple[type[BaseException], ...] = (AgentError, Abandoned, Interrupted, asyncio.CancelledError)


def decisive(exc: BaseException) -> BaseException:
    """The exception that decides how a run ends, out of an exception or an exception group (as a TaskGroup raises).

    An unexpected exception wins over `AgentError`, that over `Abandoned`, over `Interrupted`, over a cancellation.
    """
    return min(_leaves(exc), key=_rank)


def _rank(exc: BaseException) -> int:
    return next((rank for rank, kind in enumerate(_EXPECTED) if isinstance(exc, kind)), -1)


def _leaves(exc: BaseException) -> Iterator[BaseException]:
    if isinstance(exc, BaseExceptionGroup):
        for one in exc.exceptions:
            yield from _leaves(one)
    else:
        yield exc
