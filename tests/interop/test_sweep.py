"""Every event of every stream that the scenarios sent, against the protocol's models, the clients' schemas and a validator."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import ag_ui.core
import pytest
from ag_ui.core import EventType
from ag_ui_validate import create_validator
from pydantic import BaseModel, TypeAdapter

from interop_events import every_event
from interop_support import schema_faults

Event = dict[str, Any]

_model: TypeAdapter[Any] = TypeAdapter(ag_ui.core.Event)


def _opened_again(event: Event, events: list[Event]) -> bool:
    starts = [one["messageId"] for one in events if one["type"] == "TEXT_MESSAGE_START"]
    return starts.count(event["messageId"]) > 1


def _of_an_earlier_run(event: Event, events: list[Event]) -> bool:
    return any(one["type"] == "TOOL_CALL_START" and one["toolCallId"] == event["toolCallId"] for one in events)


# What ag-ui-validate 0.4 reports as an error although AG-UI 1.0 allows it: the rule that does, and in which case.
CONTRADICTS: dict[str, tuple[str, Callable[[Event, list[Event]], bool]]] = {
    "AGUI001": ("L1: a stream may begin with RUN_ERROR", lambda event, events: event["type"] == "RUN_ERROR"),
    "AGUI005": ("L4: RUN_ERROR may follow RUN_FINISHED", lambda event, events: event["type"] == "RUN_ERROR"),
    "AGUI101": ("S2: content of a closed message that was opened again", _opened_again),
    "AGUI102": ("S2: its end", _opened_again),
    "AGUI104": ("S2: its second start", _opened_again),
    "AGUI204": ("S4: arguments are text, and not checked to be JSON", lambda event, events: True),
    "AGUI207": ("P2: a call of an interrupted run gets its result in the run that resumes it", _of_an_earlier_run),
    "AGUI504": ("T2: a result may be a list of parts", lambda event, events: isinstance(event["content"], list)),
}


def unknown_members(value: Any, pointer: str = "") -> Iterator[str]:
    """Pointers to the members that the protocol's models keep but do not know."""
    if isinstance(value, BaseModel):
        for name in value.model_extra or ():
            yield f"{pointer}/{name}"
        for name in type(value).model_fields:
            yield from unknown_members(getattr(value, name), f"{pointer}/{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from unknown_members(item, f"{pointer}/{index}")


def events_of(all_played: list[Any]) -> list[Event]:
    return [event for played in all_played for stream in played.streams for event in stream.events]


def test_unknown_members_are_found_at_every_depth() -> None:
    message = {"id": "m", "role": "assistant", "toolCalls": [], "x": 1}
    event = {"type": "MESSAGES_SNAPSHOT", "messages": [message], "y": 1}
    assert list(unknown_members(_model.validate_python(event))) == ["/y", "/messages/0/x"]


def test_every_event_is_one_of_the_protocols_models_with_no_unknown_member(all_played: list[Any]) -> None:
    for event in [*events_of(all_played), *every_event()]:
        assert (event, list(unknown_members(_model.validate_python(event, by_name=False, by_alias=True)))) == (
            event,
            [],
        )


def test_no_optional_member_is_sent_as_null(all_played: list[Any]) -> None:
    """W6: null is data in open places only."""
    for event in events_of(all_played):
        for name in event.keys() - {"snapshot", "value", "event"}:
            assert event[name] is not None, event


def test_every_event_fits_the_schema_of_the_client_that_asked(all_played: list[Any], client: str) -> None:
    events = events_of(all_played)
    found = schema_faults(events, schema=client)
    assert [(event, one["faults"]) for event, one in zip(events, found, strict=True) if one["faults"]] == []


@pytest.mark.last
def test_every_event_that_any_test_sent_fits(sent_frames: BinaryIO) -> None:
    """Not only those of the scenarios: all that runs have sent in this process so far."""
    sent_frames.seek(0)
    frames = [frame for frame in sent_frames.read().split(b"\n\n") if frame.startswith(b"data: ")]
    if not frames:
        pytest.skip("no other test was run")
    events = [json.loads(frame[6:]) for frame in frames]
    for event in events:
        assert (event, list(unknown_members(_model.validate_python(event, by_name=False, by_alias=True)))) == (
            event,
            [],
        )
    found = schema_faults(events)
    assert [(event, one["faults"]) for event, one in zip(events, found, strict=True) if one["faults"]] == []


def test_the_scenarios_reach_every_type_that_may_go_out(all_played: list[Any]) -> None:
    """All types of the protocol but the chunks, which go out as start, content and end (S5)."""
    sent = {event["type"] for event in events_of(all_played)}
    assert sent == {kind.value for kind in EventType if not kind.value.endswith("_CHUNK")}
    assert len(sent) == 28


def test_the_validator_finds_nothing_that_1_0_forbids(all_played: list[Any]) -> None:
    for played in all_played:
        assert (played.scenario.name, objections(events_of([played]))) == (played.scenario.name, [])


def test_the_validator_sees_what_is_forbidden() -> None:
    run = {"threadId": "t", "runId": "r"}
    start = {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}
    end = {"type": "TEXT_MESSAGE_END", "messageId": "m"}
    begin, finish = {"type": "RUN_STARTED", **run}, {"type": "RUN_FINISHED", **run}
    assert objections([begin, start, end, start, end, finish]) == []
    assert [rule for rule, _ in objections([begin, end, finish])] == ["AGUI102"]
    assert objections([begin, start, finish]) != []


def objections(events: list[Event]) -> list[tuple[str, str]]:
    """The errors of the validator that do not contradict the protocol."""
    validator = create_validator()
    for event in events:
        validator.feed(event)
    validator.finalize()
    return [
        (one.rule, one.message)
        for one in validator.report().diagnostics
        if one.severity == "error"
        and not (one.rule in CONTRADICTS and CONTRADICTS[one.rule][1](events[one.event_index], events))
    ]
