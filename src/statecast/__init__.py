"""statecast: write AG-UI agents whose state streams itself.

Subclass `Agent`, change `run.state` as ordinary Python, and serve `Agent.app()`: the framework sends the smallest correct
event. `statecast.state` is usable alone; `statecast.testing` tests agents; `statecast.replica` is a consumer.
"""

from .agent import Agent
from .ending import Ending, SentEvent
from .errors import Abandoned, AgentError, Interrupted, RunEnded, SequenceError, StateError
from .questions import Question
from .run import Run, current_run
from .state import ReadOnly, State

__all__ = [
    "Abandoned",
    "Agent",
    "AgentError",
    "Ending",
    "Interrupted",
    "Question",
    "ReadOnly",
    "Run",
    "RunEnded",
    "SentEvent",
    "SequenceError",
    "State",
    "StateError",
    "current_run",
]
