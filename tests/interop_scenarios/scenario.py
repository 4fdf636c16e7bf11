"""A scenario: an agent, what a client's application does with it, and what must come of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from interop_recording import Recorded
from statecast.agent import RunOptions

__all__ = ["SCENARIOS", "Results", "Scenario", "contents", "scenario"]

Results = list[dict[str, Any]]
R = TypeVar("R", bound=Recorded[Any])


@dataclass
class Scenario:
    """An agent and the runs that a client makes of it.

    Attributes:
        runs: inputs for `client.mjs`.
        thread: what the client's thread begins with: `state`, `messages`, `headers`.
        endings: how each run ends for a 1.0 client.
        older: where a 0.0.59 client sees another ending.
        same_state: the versions of the client whose state equals the agent's at the end of each run.
        same_messages: the same for messages.
        check: looks closer at what the client holds after each run; `client` is its version.
    """

    name: str
    agent: type[Recorded[Any]]
    runs: list[dict[str, Any]] = field(default_factory=lambda: [{"say": "go"}])
    thread: dict[str, Any] = field(default_factory=dict)
    options: RunOptions = field(default_factory=RunOptions)
    endings: list[str] = field(default_factory=lambda: ["success"])
    older: list[str] | None = None
    same_state: tuple[str, ...] = ("1.0.0", "0.0.59")
    same_messages: tuple[str, ...] = ("1.0.0", "0.0.59")
    check: Callable[[Results, str], None] = lambda results, client: None


SCENARIOS: dict[str, Scenario] = {}


def scenario(**fields: Any) -> Callable[[type[R]], type[R]]:
    """Makes a scenario of an agent class; its `check` static method, if it has one, is the scenario's."""

    def register(cls: type[R]) -> type[R]:
        if hasattr(cls, "check"):
            fields["check"] = cls.check
        SCENARIOS[cls.__name__] = Scenario(cls.__name__, cls, **fields)
        return cls

    return register


def contents(run: dict[str, Any], role: str) -> list[Any]:
    """The contents of the client's messages of one role."""
    return [message.get("content") for message in run["messages"] if message["role"] == role]
