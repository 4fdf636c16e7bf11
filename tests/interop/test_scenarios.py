"""What the real clients hold after each run is what the agent holds, and neither of them rejects a stream."""

from __future__ import annotations

import json
import logging
from typing import Any

from interop_scenarios import SECRET
from statecast.stream.downgrade import Downgrade


def canonical(value: Any) -> Any:
    """As JavaScript sees it: 1.0 is 1; but true is not 1."""
    return json.dumps(_numbers(value), sort_keys=True, indent=1)


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _numbers(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def ending(run: dict[str, Any]) -> str:
    if run["terminal"] == "RUN_ERROR":
        return f"error {run['runError']['code']}"
    return run["outcome"] if run["terminal"] == "RUN_FINISHED" else "truncated"


def test_the_client_accepts_the_stream_without_a_warning(played: Any) -> None:
    assert [(run["error"], run["warnings"]) for run in played.results] == [(None, [])] * len(played.scenario.runs)


def test_each_run_ends_as_it_must(played: Any) -> None:
    older = played.client == "0.0.59" and played.scenario.older
    assert [ending(run) for run in played.results] == (older or played.scenario.endings)
    assert all(stream.ended and stream.status == 200 for stream in played.streams)


def test_the_state_of_client_and_agent_is_equal_after_each_run(played: Any) -> None:
    if played.client not in played.scenario.same_state:
        return
    for run, final in zip(played.results, played.finals, strict=True):
        assert canonical(run["state"]) == canonical(final.state)


def test_the_messages_of_client_and_agent_are_equal_after_each_run(played: Any) -> None:
    if played.client not in played.scenario.same_messages:
        return
    for run, final in zip(played.results, played.finals, strict=True):
        known = {message["id"] for message in final.messages}
        # Activities of earlier runs stay with the client, which does not send them back (I6).
        held = [message for message in run["messages"] if message["role"] != "activity" or message["id"] in known]
        assert canonical(held) == canonical(as_sent(final.messages, played.client))


def as_sent(messages: list[dict[str, Any]], client: str) -> list[dict[str, Any]]:
    """The agent's messages as far as events can say them, and this client can read them."""
    # A result event has no member for the error: it travels in the metadata (T2).
    said = [
        {name: value for name, value in message.items() if not (name == "error" and message["role"] == "tool")}
        for message in messages
    ]
    if client == "0.0.59":
        said = Downgrade(logging.getLogger(__name__))({"type": "MESSAGES_SNAPSHOT", "messages": said})["messages"]
    return said


def test_the_client_holds_what_the_scenario_expects(played: Any) -> None:
    played.scenario.check(played.results, played.client)


def test_each_stream_has_one_terminal_event_and_it_is_the_last(all_played: list[Any]) -> None:
    for played in all_played:
        for stream in played.streams:
            kinds = [event["type"] for event in stream.events]
            assert kinds[0] == "RUN_STARTED"
            assert kinds[-1] in ("RUN_FINISHED", "RUN_ERROR")
            assert sum(kind in ("RUN_FINISHED", "RUN_ERROR") for kind in kinds) == 1


def test_the_text_of_an_exception_never_goes_out(all_played: list[Any]) -> None:
    for played in all_played:
        for stream in played.streams:
            assert SECRET.encode() not in stream.body


def test_only_an_unexpected_failure_is_logged_as_an_error_and_that_whole(all_played: list[Any]) -> None:
    for played in all_played:
        errors = [record for record in played.log if record.levelno >= logging.ERROR]
        assert len(errors) == sum(end == "error internal" for end in played.scenario.endings), played.scenario.name
        for record in errors:
            assert record.exc_info is not None
            assert SECRET in str(record.exc_info[1])
            assert record.run_id in {final.run_id for final in played.finals}  # type: ignore[attr-defined]
