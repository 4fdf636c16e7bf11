"""Which exception of an author's code decides how a run ends."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from statecast.ending import decisive
from statecast.errors import Abandoned, AgentError, Interrupted

BUG = ValueError("bug")
AGENT = AgentError("for the user")
ABANDONED = Abandoned(["q"])
INTERRUPTED = Interrupted(["q"])
CANCELLED = asyncio.CancelledError()
RANKED: list[BaseException] = [BUG, AGENT, ABANDONED, INTERRUPTED, CANCELLED]


@pytest.mark.parametrize("exc", RANKED, ids=lambda exc: type(exc).__name__)
def test_a_single_exception_decides_for_itself(exc: BaseException) -> None:
    assert decisive(exc) is exc


@pytest.mark.parametrize(
    ("first", "second"), list(itertools.permutations(RANKED, 2)), ids=lambda exc: type(exc).__name__
)
def test_in_a_group_the_graver_one_decides_wherever_it_stands(first: BaseException, second: BaseException) -> None:
    winner = min(first, second, key=RANKED.index)
    assert decisive(BaseExceptionGroup("tasks", [first, second])) is winner
    assert decisive(BaseExceptionGroup("tasks", [BaseExceptionGroup("inner", [first]), second])) is winner
