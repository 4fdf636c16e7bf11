"""How an agent is served: the keyword arguments of `Agent.app`, checked where they are given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Options"]


@dataclass(frozen=True)
class Options:
    """The keyword arguments of `Agent.app`, which documents them. Times are seconds, sizes bytes.

    Raises:
        TypeError: an option has the wrong type.
        ValueError: an option is out of its range.
    """

    debug: bool = False
    state_interval: float = 1 / 60
    keepalive: float = 15.0
    send_timeout: float = 30.0
    timeout: float | None = None
    grace: float = 5.0
    max_body: int = 16 * 2**20
    max_runs: int | None = None
    cors: Sequence[str] = ()
    first_state: Literal["snapshot", "delta"] = "snapshot"

    def __post_init__(self) -> None:
        if not isinstance(self.debug, bool):
            raise TypeError(f"debug must be a bool, not {type(self.debug).__name__}")
        _check_seconds("state_interval", self.state_interval, zero=True)
        _check_seconds("keepalive", self.keepalive)
        _check_seconds("send_timeout", self.send_timeout)
        _check_seconds("grace", self.grace, zero=True)
        if self.timeout is not None:
            _check_seconds("timeout", self.timeout)
        _check_count("max_body", self.max_body)
        if self.max_runs is not None:
            _check_count("max_runs", self.max_runs)
        if self.first_state not in ("snapshot", "delta"):
            raise ValueError(f"first_state must be 'snapshot' or 'delta', not {self.first_state!r}")
        if isinstance(self.cors, str):
            raise TypeError(f"cors must be a list of origins: cors=[{self.cors!r}]")
        object.__setattr__(self, "cors", tuple(self.cors))
        for origin in self.cors:
            _check_origin(origin)


def _check_seconds(name: str, value: Any, *, zero: bool = False) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number of seconds, not {type(value).__name__}")
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise ValueError(f"{name} must be {'at least' if zero else 'more than'} 0 seconds and finite, not {value!r}")


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, not {value}")


def _check_origin(origin: Any) -> None:
    if not isinstance(origin, str):
        raise TypeError(f"cors must be a list of origins, each a str, not {type(origin).__name__}")
    if origin == "*":
        return
    scheme, _, host = origin.partition("://")
    # Browsers send an origin without a path, so one that has a path, or only a slash, never matches.
    if not scheme or not host or "/" in host:
        raise ValueError(
            f"cors: {origin!r} is not an origin such as 'https://app.example.com' (no path, no slash), or '*'"
        )
