"""Random programs of everything that an agent can do, failing and cancelled at random: the rules never break.

`run_agent` judges: every event by the rules and by a consumer, and at the end the client's state and messages against the
agent's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from random_runs_support import HISTORY, PROGRAMS, Playing, Program
from statecast.ending import decisive
from statecast.testing import RunResult, open_run, run_agent

TOOLS = [{"name": "confirm", "description": "", "parameters": {}}]
STATES = st.sampled_from([{}, None, {"a": 1, "list": [[1], {"x/y": 2}], "": None}])
OPTIONS = st.fixed_dictionaries(
    {
        "state_interval": st.sampled_from([0, 0, 0.002, 60]),
        "first_state": st.sampled_from(["snapshot", "snapshot", "delta"]),
        "debug": st.booleans(),
        "grace": st.just(1.0),
    }
)
INPUTS = st.fixed_dictionaries(
    {
        "state": STATES,
        "messages": st.sampled_from([[], HISTORY[:1], HISTORY]),
        "protocol_version": st.sampled_from(["1.0", "1.0", None]),
    }
)

bounded = settings(deadline=None, suppress_health_check=list(HealthCheck))

UNEXPECTED = ("could not be closed in order", "could not be sent at the end", "could not be written")
"""What the log says when the framework, not the agent, is at fault."""


class _Faults(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if any(part in text for part in UNEXPECTED):
            self.texts.append(text if record.exc_info is None else f"{text}: {record.exc_info[1]!r}")


@contextmanager
def no_fault_of_ours() -> Iterator[None]:
    """Fails when the framework met an exception of its own, which a client is told as the agent's failure."""
    handler = _Faults()
    loggers = [logging.getLogger(name) for name in ("statecast", "asyncio")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
    assert handler.texts == []


def judge(agent: Playing, result: RunResult) -> None:
    """The ending that the client was told is the one that the program had."""
    assert result.http_status == 200
    ending = agent.endings[-1]
    terminal = [type for type in result.types if type in ("RUN_FINISHED", "RUN_ERROR")]
    assert terminal == result.types[-1:]
    # Clients before 1.0 know no cancelled outcome.
    stopped = result.sent.get("protocolVersion") is None and ending.kind == "cancelled" and ending.reason != "abandoned"
    assert terminal == ["RUN_ERROR" if ending.kind == "failed" or stopped else "RUN_FINISHED"]
    cause = decisive(agent.raised[-1]) if agent.raised else None
    if ending.kind == "finished":
        assert result.outcome == "success"
        assert cause is None
        assert result.result == {"played": len(agent.program)}
    elif ending.kind == "failed":
        assert result.error is not None
        assert ending.exception is not None
        assert decisive(ending.exception) is cause, "nothing but the program itself fails the run"


def going_on() -> list[str]:
    """The tasks of this loop but for this one, and for the one that `sse_starlette` keeps in every loop."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    return [repr(task) for task in others if "_shutdown_watcher" not in repr(task.get_coro())]


@settings(bounded, max_examples=120)
@given(PROGRAMS, INPUTS, OPTIONS, st.booleans())
def test_whatever_an_agent_does_keeps_the_rules(
    program: Program, input: dict[str, Any], options: dict[str, Any], abandons: bool
) -> None:
    async def main() -> None:
        agent = Playing(program)
        result = await run_agent(agent, "go", **input, tools=TOOLS, options=options)
        judge(agent, result)
        for _ in range(2):
            agent.raised.clear()
            if result.interrupts:
                ids = [interrupt.id for interrupt in result.interrupts]
                answered = ids[:-1] if abandons else ids
                result = await result.resume(dict.fromkeys(answered, "yes"), cancel=ids[len(answered) :])
                judge(agent, result)
            elif result.outcome == "success":
                result = await result.say("again")
                judge(agent, result)
                break
        assert len(agent.endings) >= 1

    with no_fault_of_ours():
        asyncio.run(main())


@settings(bounded, max_examples=40)
@given(PROGRAMS, INPUTS, OPTIONS)
def test_a_time_limit_at_any_place_keeps_the_rules(
    program: Program, input: dict[str, Any], options: dict[str, Any]
) -> None:
    agent = Playing([*program, ("wait",)], patient=True)
    with no_fault_of_ours():
        result = asyncio.run(run_agent(agent, "go", **input, tools=TOOLS, options={**options, "timeout": 0.005}))
    judge(agent, result)
    assert len(agent.endings) == 1


@settings(bounded, max_examples=40)
@given(PROGRAMS, INPUTS, OPTIONS, st.integers(0, 40))
def test_a_client_that_leaves_at_any_event_ends_the_run(
    program: Program, input: dict[str, Any], options: dict[str, Any], count: int
) -> None:
    agent = Playing([*program, ("wait",)], patient=True)

    async def main() -> RunResult:
        async with open_run(agent, "go", **input, tools=TOOLS, options=options) as live:
            for _ in range(count + 1):
                try:
                    await asyncio.wait_for(anext(live), 0.02)
                except (TimeoutError, StopAsyncIteration):
                    break
            await live.disconnect()
        assert going_on() == [], "nothing of the run goes on"
        return live.result()

    with no_fault_of_ours():
        result = asyncio.run(main())
    if result.types == ["RUN_STARTED"] and not agent.endings:
        return  # it was gone before there was anything to end
    assert len(agent.endings) == 1
    ended = result.types[-1] in ("RUN_FINISHED", "RUN_ERROR")
    assert (agent.endings[0].kind == "disconnected") != ended or not ended
