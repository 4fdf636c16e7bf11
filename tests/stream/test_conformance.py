"""The public conformance corpus of the protocol: streams, and what a consumer must make of them.

It is found through STATECAST_CONFORMANCE (the folder that holds `streams/`), or as `shared/conformance` beside the project.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from statecast.replica import ProtocolViolation, Replica

NOT_APPLICABLE = {
    "era-0-0-39-flattens-content": "a request to a pre-1.0 peer",
    "era-0-0-45-thinking-translated": "translates events of a pre-1.0 peer",
    "era-0-0-47-upgrades-binary-content": "a request to a pre-1.0 peer",
    "era-0-0-57-subagent-dropped-with-warning": "translates events of a pre-1.0 peer",
    "era-pinned-peer-omits-protocol-version": "a request to a pre-1.0 peer",
    "unknown-enum-value-role-fatal": "pins a gap, as it says of itself: an unknown role is to be stripped",
    "truncated-run-reported-as-completed": "pins a gap, as it says of itself: a stream that just stops is truncated",
}

# The corpus speaks of 1.1 and of what is newer; we speak 1.0.
VERSIONS = {"1.1": "1.0", "1.2": "1.1"}


def corpus() -> Path | None:
    if given := os.environ.get("STATECAST_CONFORMANCE"):
        return Path(given) / "streams"
    candidates = (folder / "shared" / "conformance" / "streams" for folder in Path(__file__).resolve().parents)
    return next((candidate for candidate in candidates if candidate.is_dir()), None)


FOLDER = corpus()
FIXTURES = sorted(FOLDER.glob("*.json")) if FOLDER is not None and FOLDER.is_dir() else []
pytestmark = pytest.mark.skipif(not FIXTURES, reason="the conformance corpus is not here")


class Outcome:
    """What the replica made of a stream, in the corpus's words."""

    def __init__(self, stream: list[dict[str, Any]]) -> None:
        self.replica = Replica()
        self.events: list[dict[str, Any]] = []
        self.violation: ProtocolViolation | None = None
        try:
            for event in stream:
                if event["type"] == "RUN_STARTED" and "protocolVersion" in event:
                    event = {
                        **event,
                        "protocolVersion": VERSIONS.get(event["protocolVersion"], event["protocolVersion"]),
                    }
                self.events += [
                    one.model_dump(mode="json", by_alias=True) for one in self.replica.apply(json.dumps(event))
                ]
            self.replica.close()
        except ProtocolViolation as violation:
            self.violation = violation

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [message.model_dump(mode="json", by_alias=True) for message in self.replica.messages]


def at(events: list[dict[str, Any]], path: str) -> Any:
    value: Any = events
    for key in path.split("."):
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


def covers(actual: Any, expected: Any) -> bool:
    """Whether `actual` has everything that `expected` names: more members are allowed, other lengths are not."""
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(
            name in actual and covers(actual[name], inner) for name, inner in expected.items()
        )
    if isinstance(expected, list):
        return (
            isinstance(actual, list)
            and len(actual) == len(expected)
            and all(covers(one, other) for one, other in zip(actual, expected, strict=True))
        )
    return type(actual) is type(expected) and actual == expected


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_fixture(path: Path) -> None:
    if path.stem in NOT_APPLICABLE:
        pytest.skip(NOT_APPLICABLE[path.stem])
    fixture = json.loads(path.read_text())
    expect = {**fixture["expect"], **fixture.get("expectOverrides", {}).get("typescript", {})}
    outcome = Outcome(fixture["stream"])
    warnings, types = outcome.replica.warnings, [event["type"] for event in outcome.events]
    failed = outcome.violation is not None
    assert failed == (expect["outcome"] == "failed"), outcome.violation
    if "runError" in expect:
        assert outcome.replica.error is not None or "RUN_ERROR" in types
        if isinstance(expect["runError"], str):
            told = [event["message"] for event in outcome.events if event["type"] == "RUN_ERROR"]
            assert any(expect["runError"] in message for message in told)
    if "eventTypes" in expect:
        assert types == expect["eventTypes"]
    assert not set(types) & set(expect.get("eventTypesAbsent", ()))
    for place, value in expect.get("eventPaths", {}).items():
        assert covers(at(outcome.events, place), value), place
    for place in expect.get("eventAbsentPaths", ()):
        with pytest.raises(LookupError):
            at(outcome.events, place)
    if "messageCount" in expect:
        assert len(outcome.messages) == expect["messageCount"]
    if "messages" in expect:
        assert covers(outcome.messages, expect["messages"]), outcome.messages
    if "state" in expect:
        assert covers(outcome.replica.state, expect["state"]), outcome.replica.state
    if expect.get("noWarnings"):
        assert warnings == []
    if expect.get("warnings"):
        assert warnings


def test_every_exception_is_a_fixture() -> None:
    assert set(NOT_APPLICABLE) <= {path.stem for path in FIXTURES}
