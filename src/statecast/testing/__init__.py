"""What an author needs to test an agent: run it for real, in process, and have its stream judged.

    from statecast.testing import run_agent_sync

    def test_plans_a_day():
        result = run_agent_sync(Planner, "Plan a day", state={"city": "Lisbon"})
        assert result.raise_error().text == "Here is your plan."
        assert result.state["stops"]

A run that breaks the protocol, or whose client ends up with another state or other messages than the agent, fails the test by
itself. `RunResult.normalized` gives events to compare with a stored snapshot: ids are renamed, and with `state_interval=0`,
the default here, what is sent does not depend on the clock.
"""

from .failures import BrokenStream, Refused, RunTimeout
from .live import RemoteRun, open_url, run_url
from .recorder import record, replay
from .result import RunResult
from .runs import LiveRun, open_run, run_agent, run_agent_sync

__all__ = [
    "BrokenStream",
    "LiveRun",
    "Refused",
    "RemoteRun",
    "RunResult",
    "RunTimeout",
    "open_run",
    "open_url",
    "record",
    "replay",
    "run_agent",
    "run_agent_sync",
    "run_url",
]
