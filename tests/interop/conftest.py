"""All scenarios, played once with each real client against one real server."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from starlette.applications import Starlette

from interop_recording import Final, Recorder, Stream
from interop_scenarios import SCENARIOS, Scenario
from interop_support import CLIENTS, require_node, run_threads, serving


@dataclass(frozen=True)
class Played:
    """A scenario after a client has played it: what the client held, what the agent held, what went over the wire."""

    scenario: Scenario
    client: str
    results: list[dict[str, Any]]
    finals: list[Final]
    streams: list[Stream]
    log: list[logging.LogRecord]


class _Log(logging.Handler):
    """Keeps the records of a run's thread."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@cache
def _played(client: str) -> dict[str, Played] | Exception:
    """Played once, also when that fails."""
    try:
        return _play(client)
    except Exception as failure:
        return failure


def _results(client: str) -> dict[str, Played]:
    require_node()
    played = _played(client)
    if isinstance(played, Exception):
        raise played
    return played


def _play(client: str) -> dict[str, Played]:
    agents = {name: scenario.agent() for name, scenario in SCENARIOS.items()}
    routes = [route for name, agent in agents.items() for route in agent.routes(f"/{name}", **SCENARIOS[name].options)]
    recorder = Recorder(Starlette(routes=routes))
    log = _Log()
    logging.getLogger("statecast").addHandler(log)
    with serving(recorder) as url:
        threads = [
            {"url": url + name, "threadId": f"thread-{name}", "runs": scenario.runs, **scenario.thread}
            for name, scenario in SCENARIOS.items()
        ]
        results = run_threads(threads, client=client)
        streams = {name: [one for one in recorder.streams if one.path == f"/{name}"] for name in agents}
        finals = {name: agent.finals(len(streams[name])) for name, agent in agents.items()}
    logging.getLogger("statecast").removeHandler(log)
    logs = {
        name: [record for record in log.records if getattr(record, "thread_id", None) == f"thread-{name}"]
        for name in agents
    }
    return {
        name: Played(SCENARIOS[name], client, result, finals[name], streams[name], logs[name])
        for name, result in zip(SCENARIOS, results, strict=True)
    }


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    """The version of the client."""
    version: str = request.param
    return version


@pytest.fixture(params=SCENARIOS)
def played(request: pytest.FixtureRequest, client: str) -> Played:
    """One scenario after one client has played it."""
    return _results(client)[request.param]


@pytest.fixture
def all_played(client: str) -> list[Played]:
    """All scenarios after one client has played them."""
    return list(_results(client).values())
