"""Random streams: one that keeps the rules never raises, and one with a single rule broken always does."""

from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statecast.errors import SequenceError
from statecast.replica import ProtocolViolation, Replica
from statecast.stream.chunks import Expander
from statecast.stream.rules import Sequence
from stream_breaks import FATAL, FORBIDDEN, UNCHECKED, broken, inside_run
from stream_support import FRONTEND, THREAD, legal_stream

RANDOMS = st.integers(0, 2**32).map(Random)


def produce(stream: list[dict[str, Any]]) -> Sequence:
    """Sends a stream as a producer."""
    sequence, expander = Sequence(THREAD, tools=[{"name": FRONTEND}]), Expander()
    for event in stream:
        for one in expander.feed(event):
            sequence.advance(one)
    return sequence


def consume(stream: list[dict[str, Any]]) -> Replica:
    replica = Replica()
    for event in stream:
        replica.apply(event)
    replica.close()
    return replica


@settings(max_examples=200, deadline=None)
@given(RANDOMS)
def test_a_legal_stream_never_raises(random: Random) -> None:
    stream = legal_stream(random)
    produce(stream)
    consume(stream)


@pytest.mark.parametrize("name", [*FATAL, *UNCHECKED, *FORBIDDEN])
@settings(max_examples=10, deadline=None)
@given(RANDOMS)
def test_a_broken_stream_always_raises(name: str, random: Random) -> None:
    how = {**FATAL, **UNCHECKED, **FORBIDDEN}[name]
    stream, rules = first(lambda: broken(legal_stream(random), how, random))
    if rules != {""}:
        with pytest.raises(SequenceError) as raised:
            produce(stream)
        assert raised.value.rule in rules
    if name not in FORBIDDEN:
        with pytest.raises(ProtocolViolation) as rejected:
            consume(stream)
        assert (rejected.value.rule or "") in rules


@settings(max_examples=100, deadline=None)
@given(RANDOMS)
def test_closing_gives_the_ends_that_a_run_needs(random: Random) -> None:
    """Stop anywhere inside a run, close what is open, and the run may finish."""
    stream = first(lambda: cut(legal_stream(random), random))
    sequence, expander = Sequence(THREAD, tools=[{"name": FRONTEND}]), Expander()
    for event in stream:
        for one in expander.feed(event):
            sequence.advance(one)
    started = next(event for event in reversed(stream) if event["type"] == "RUN_STARTED")
    for event in expander.close():
        sequence.advance(event)
    for event in sequence.closing():
        sequence.advance(event)
    assert sequence.closing() == []
    outcome = {"type": "success", "pendingToolCallIds": sequence.pending_tool_calls()}
    sequence.advance({"type": "RUN_FINISHED", "threadId": THREAD, "runId": started["runId"], "outcome": outcome})


@settings(max_examples=100, deadline=None)
@given(RANDOMS)
def test_closing_a_lane_closes_nothing_else(random: Random) -> None:
    """A subagent's lane and its descendants' lanes are closed, their owners' tags on everything, and no other lane."""
    stream, parents = first(lambda: with_subagents(cut(legal_stream(random, chunks=False), random)))
    sequence = produce(stream)
    owner = random.choice(sorted(parents))

    def inside(lane: str | None) -> bool:
        return lane == owner or (lane is not None and lane in parents and inside(parents[lane]))

    everything, closing = sequence.closing(), sequence.closing(owner)
    ended = [event["subagentRunId"] for event in everything if event["type"] == "SUBAGENT_ERROR"]
    assert all(ended.index(child) < ended.index(parent) for child, parent in parents.items() if parent in ended)
    own_end = {"type": "SUBAGENT_ERROR", "subagentRunId": owner, "message": "Cancelled.", "code": "cancelled"}
    assert [event for event in everything if inside(event.get("subagentRunId")) and event != own_end] == closing
    for event in closing:
        sequence.advance(event)
    sequence.advance({"type": "SUBAGENT_FINISHED", "subagentRunId": owner})
    assert [event for event in everything if not inside(event.get("subagentRunId"))] == sequence.closing()


T = TypeVar("T")


def first(make: Callable[[], T | None]) -> T:
    """The first of many attempts that gives something."""
    return next(made for made in (make() for _ in range(1000)) if made is not None)


def cut(stream: list[dict[str, Any]], random: Random) -> list[dict[str, Any]] | None:
    """The stream up to somewhere inside a run."""
    length = inside_run(stream, random)
    return None if length is None else stream[:length]


def with_subagents(stream: list[dict[str, Any]] | None) -> tuple[list[dict[str, Any]], dict[str, str | None]] | None:
    """The stream, and the parents of the subagents that are active at its end, if any is."""
    active: dict[str, str | None] = {}
    for event in stream or ():
        match event["type"]:
            case "RUN_STARTED":
                active = {}
            case "SUBAGENT_STARTED":
                active[event["subagentRunId"]] = event.get("parentSubagentRunId")
            case "SUBAGENT_FINISHED" | "SUBAGENT_ERROR":
                del active[event["subagentRunId"]]
    return (stream, active) if stream is not None and active else None
