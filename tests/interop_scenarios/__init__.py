"""Agents that say everything a producer can say, each with the runs that a client makes of it."""

from . import endings, interrupts, messages, passed_on, random_programs, state, streamed, structure
from .endings import SECRET
from .scenario import SCENARIOS, Scenario

__all__ = [
    "SCENARIOS",
    "SECRET",
    "Scenario",
    "endings",
    "interrupts",
    "messages",
    "passed_on",
    "random_programs",
    "state",
    "streamed",
    "structure",
]
