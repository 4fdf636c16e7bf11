"""What a client of the 0.0.x line gets, checked against the closed schemas of 0.0.59 itself."""

from __future__ import annotations

import copy
import logging
from typing import Any

import pytest

from interop_events import every_event
from interop_support import schema_faults
from statecast.stream.downgrade import Downgrade

Event = dict[str, Any]

RUN = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
TEXT = {"type": "text", "text": "Lis", "id": "p1", "metadata": {"lang": "en"}}
URL = {"type": "image", "source": {"type": "url", "value": "https://example.org/a.png"}}
FILE = {"type": "document", "source": {"type": "file", "value": "file-1", "provider": "acme", "mimeType": "text/plain"}}
RESULT = {"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "role": "tool"}
TOOL = {"id": "m", "role": "tool", "toolCallId": "c", "error": "no"}
USER = {"id": "u", "role": "user"}
ASKED = {"id": "i", "reason": "approve", "metadata": {"a": 1}}
EXPIRING = {**ASKED, "expiresAt": "2026-01-01T00:00:00Z"}

# (what it is, the 1.0 event, what 0.0.59 gets, whether 0.0.59 would reject it, whether something is lost)
LOWERED: list[tuple[str, Event, Event, bool, bool]] = [
    (
        "cancelled outcome",
        {
            **RUN,
            "outcome": {"type": "cancelled"},
            "usage": [{"inputTokens": 1}],
            "metadata": {"statecast": {"reason": "timeout"}},
        },
        {
            "type": "RUN_ERROR",
            "message": "The run was stopped.",
            "code": "STOPPED",
            "usage": [{"inputTokens": 1}],
            "metadata": {"statecast": {"reason": "timeout"}},
        },
        True,
        True,
    ),
    (
        "dismissed question",
        {**RUN, "outcome": {"type": "cancelled"}, "metadata": {"statecast": {"reason": "abandoned"}}},
        {**RUN, "metadata": {"statecast": {"reason": "abandoned"}}},
        True,
        True,
    ),
    (
        "pendingToolCallIds",
        {**RUN, "result": 1, "outcome": {"type": "success", "pendingToolCallIds": ["c"]}},
        {**RUN, "result": 1, "outcome": {"type": "success"}},
        True,
        False,
    ),
    (
        "expiresAt",
        {
            **RUN,
            "outcome": {"type": "interrupt", "interrupts": [ASKED, EXPIRING]},
        },
        {**RUN, "outcome": {"type": "interrupt", "interrupts": [ASKED, ASKED]}},
        False,
        True,
    ),
    (
        "result of parts",
        {**RESULT, "content": [TEXT, URL, {**TEXT, "text": "bon"}], "subagentRunId": "s"},
        {**RESULT, "content": "Lisbon", "subagentRunId": "s"},
        True,
        True,
    ),
    ("result of no parts", {**RESULT, "content": []}, {**RESULT, "content": ""}, True, True),
    (
        "tool message of parts",
        {"type": "MESSAGES_SNAPSHOT", "messages": [{**TOOL, "content": [TEXT, FILE]}]},
        {"type": "MESSAGES_SNAPSHOT", "messages": [{**TOOL, "content": "Lis"}]},
        True,
        True,
    ),
    (
        "file source",
        {"type": "MESSAGES_SNAPSHOT", "messages": [{**USER, "content": [TEXT, FILE, URL]}, {**USER, "content": "x"}]},
        {"type": "MESSAGES_SNAPSHOT", "messages": [{**USER, "content": [TEXT, URL]}, {**USER, "content": "x"}]},
        True,
        True,
    ),
    (
        "only file sources",
        {"type": "MESSAGES_SNAPSHOT", "messages": [{**USER, "content": [FILE]}]},
        {"type": "MESSAGES_SNAPSHOT", "messages": [{**USER, "content": []}]},
        True,
        True,
    ),
    (
        "reasoning without role",
        {"type": "REASONING_MESSAGE_START", "messageId": "m", "metadata": {"a": 1}},
        {"type": "REASONING_MESSAGE_START", "messageId": "m", "metadata": {"a": 1}, "role": "reasoning"},
        True,
        False,
    ),
]
UNCHANGED: list[Event] = [
    RUN,
    {**RUN, "outcome": {"type": "success"}, "usage": [{"provider": "p", "cachedInputTokens": 1}]},
    {**RUN, "outcome": {"type": "interrupt", "interrupts": [ASKED]}},
    {"type": "RUN_ERROR", "message": "no", "code": "internal", "usage": [{"inputTokens": 1}]},
    {**RESULT, "content": ""},
    {"type": "MESSAGES_SNAPSHOT", "messages": [{**USER, "content": [TEXT, URL]}, {**TOOL, "content": "x"}]},
    {"type": "SUBAGENT_FINISHED", "subagentRunId": "s", "outcome": {"type": "suspended", "interruptIds": ["i"]}},
]


@pytest.fixture
def downgrade() -> Downgrade:
    return Downgrade(logging.getLogger("statecast.run"))


def lowered(downgrade: Downgrade, event: Event) -> Event:
    before = copy.deepcopy(event)
    out = downgrade(event)
    assert event == before, "the event that was given has changed"
    assert out is not None
    return out


@pytest.mark.parametrize("case", LOWERED, ids=lambda case: case[0])
def test_what_an_older_client_cannot_read_is_turned_into_what_it_reads(
    downgrade: Downgrade, case: tuple[str, Event, Event, bool, bool], caplog: pytest.LogCaptureFixture
) -> None:
    _, event, expected, _, lossy = case
    with caplog.at_level(logging.WARNING):
        assert lowered(downgrade, event) == expected
        lowered(downgrade, event)
    assert len(caplog.records) == (1 if lossy else 0), "one warning for each kind of loss, not for each event"
    if lossy:
        assert f"(at {event['type']} /" in caplog.text


@pytest.mark.parametrize("event", UNCHANGED, ids=lambda event: event["type"])
def test_what_an_older_client_reads_passes_as_the_same_object(
    downgrade: Downgrade, event: Event, caplog: pytest.LogCaptureFixture
) -> None:
    assert downgrade(event) is event
    assert not caplog.records


def test_the_table_is_that_of_the_older_client_itself(downgrade: Downgrade) -> None:
    """Each line is needed (0.0.59 rejects the event as it is) and enough (it accepts what comes out)."""
    before = schema_faults([event for _, event, *_ in LOWERED], schema="0.0.59")
    assert [(name, bool(found["faults"])) for (name, *_), found in zip(LOWERED, before, strict=True)] == [
        (name, rejected) for name, _, _, rejected, _ in LOWERED
    ]
    after = schema_faults([expected for _, _, expected, *_ in LOWERED], schema="0.0.59")
    assert [found["faults"] for found in after] == [[]] * len(LOWERED)


def test_every_kind_of_event_is_accepted_after_the_downgrade(downgrade: Downgrade) -> None:
    """All event types of 1.0 with all their optional members: nothing is missing from the table."""
    events = [lowered(downgrade, event) for event in every_event()]
    found = schema_faults(events, schema="0.0.59")
    assert [(event, one["faults"]) for event, one in zip(events, found, strict=True) if one["faults"]] == []
