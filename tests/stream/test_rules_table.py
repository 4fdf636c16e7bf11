"""Every rule that binds a producer, both ways: what it allows goes out, what it forbids raises and changes nothing."""

from copy import deepcopy
from typing import Any

import pytest
from ag_ui.core import AssistantMessage, FunctionCall, Tool, ToolCall, UserMessage

from rules_cases import (
    ACTIVITY,
    ARGS,
    CALL,
    CALL_END,
    CASES,
    CONTENT,
    CUSTOM,
    FINISHED,
    RESULT,
    RUN,
    SECRET,
    SNAPSHOT,
    SUB,
    TEXT,
    TEXT_END,
    THINKING,
    THOUGHT,
    THOUGHT_END,
    Case,
    EventDict,
    of,
    patch,
)
from statecast.errors import SequenceError
from statecast.stream.rules import Sequence

MESSAGES_BEFORE = [
    UserMessage(id="asked", content="Hello"),
    AssistantMessage(
        id="old",
        content="Hello.",
        tool_calls=[ToolCall(id="old-call", function=FunctionCall(name="search", arguments="{}"))],
    ),
]
TOOLS = [Tool(name="confirm", description="Asks the user.")]


def producer(sent: list[EventDict], *, dumped: bool = False) -> Sequence:
    """A sequence to which these events were sent, seeded with models or with wire dicts."""
    messages: list[Any] = [m.model_dump(by_alias=True) if dumped else m for m in MESSAGES_BEFORE]
    tools: list[Any] = [tool.model_dump(by_alias=True) if dumped else tool for tool in TOOLS]
    sequence = Sequence("thread", messages=messages, tools=tools)
    for event in sent:
        sequence.advance(event)
    return sequence


def memory_of(value: Any) -> Any:
    """Everything that a sequence remembers, as plain values."""
    if isinstance(value, dict):
        return {key: memory_of(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [memory_of(inner) for inner in value]
    if hasattr(value, "__dict__"):
        return {name: memory_of(inner) for name, inner in vars(value).items() if not callable(inner)}
    return set(value) if isinstance(value, set) else value


def described() -> list[Any]:
    return [
        pytest.param(case, id=f"{rule}-{number}-{case.event['type']}-{case.rule or 'allowed'}")
        for rule, cases in CASES.items()
        for number, case in enumerate(cases)
    ]


@pytest.mark.parametrize("dumped", [False, True], ids=["models", "dicts"])
@pytest.mark.parametrize("case", described())
def test_rule(case: Case, dumped: bool) -> None:
    sequence = producer(case.sent, dumped=dumped)
    event, before = deepcopy(case.event), memory_of(sequence)
    if case.rule is None:
        sequence.check(case.event)
        assert memory_of(sequence) == before
        sequence.advance(case.event)
    else:
        for judge in (sequence.check, sequence.advance):
            with pytest.raises(SequenceError) as raised:
                judge(case.event)
            assert raised.value.rule == case.rule
            assert str(raised.value).endswith(f"[{case.rule}]")
            assert memory_of(sequence) == before, "a refused event leaves no trace"
    assert case.event == event


def test_every_rule_that_forbids_is_tried_both_ways() -> None:
    forbidden = {case.rule for cases in CASES.values() for case in cases} - {None}
    for rule in forbidden:
        assert any(case.rule is None for case in CASES[rule]) or rule == "S5", rule


# What is fatal for a stream (C3), and everything else is taken by a consumer.
FATAL = {"L1", "L2", "L4", "L5", "L6", "L7", "S1", "S5", "R1", "D5", "G2", "G3", "T1"}
TAKEN_BY_A_CONSUMER = [
    Case([RUN, of("a", TEXT)], SUB, "G2"),
    Case([RUN, of("a", CUSTOM)], SUB, "G2"),
    Case([RUN, of("a", SNAPSHOT)], SUB, "G2"),
]


@pytest.mark.parametrize("case", described())
def test_consumer_takes_what_is_not_fatal(case: Case) -> None:
    sequence = Sequence("thread", side="consumer")
    for event in case.sent:
        sequence.advance(event)
    ids = [interrupt["id"] for interrupt in (case.event.get("outcome") or {}).get("interrupts", ())]
    seeded = any(id in ("old", "asked", "old-call") for id in case.event.values() if isinstance(id, str))
    fatal = (case.rule in FATAL and case not in TAKEN_BY_A_CONSUMER and not seeded) or len(set(ids)) < len(ids)
    if fatal:
        with pytest.raises(SequenceError) as raised:
            sequence.advance(case.event)
        assert raised.value.rule == case.rule
    else:
        sequence.advance(case.event)


def test_consumer_keeps_the_owner_that_a_snapshot_without_replacing_leaves() -> None:
    sequence = Sequence("thread", side="consumer")
    for event in [RUN, of("a", ACTIVITY), of("b", {**ACTIVITY, "replace": False}), of("a", patch())]:
        sequence.advance(event)
    with pytest.raises(SequenceError) as raised:
        sequence.advance(of("b", patch()))
    assert raised.value.rule == "G3"


def test_consumer_knows_whose_result_a_message_is() -> None:
    sequence = Sequence("thread", side="consumer")
    for event in [RUN, of("a", RESULT)]:
        sequence.advance(event)
    with pytest.raises(SequenceError) as raised:
        sequence.advance(of("b", {**TEXT, "messageId": "r"}))
    assert raised.value.rule == "G3"
    sequence.advance(of("a", {**TEXT, "messageId": "r"}))


def test_consumer_knows_whose_echoed_history_is_and_forgets_it_with_the_run() -> None:
    message = of("a", {"id": "m", "role": "assistant", "content": ""})
    echo = {**RUN, "input": {"threadId": "thread", "runId": "run", "messages": [message]}}
    sequence = Sequence("thread", side="consumer")
    sequence.advance(echo)
    with pytest.raises(SequenceError) as raised:
        sequence.advance(of("b", TEXT))
    assert raised.value.rule == "G3"
    sequence.advance(FINISHED)
    sequence.advance({**RUN, "runId": "next"})
    sequence.advance(of("b", TEXT))


@pytest.mark.parametrize(
    ("start", "piece", "end"), [(TEXT, CONTENT, TEXT_END), (CALL, ARGS, CALL_END), (THOUGHT, THINKING, THOUGHT_END)]
)
def test_consumer_keeps_the_owner_when_an_untagged_start_opens_again(
    start: EventDict, piece: EventDict, end: EventDict
) -> None:
    sequence = Sequence("thread", side="consumer")
    for event in [RUN, of("a", start), end, start, of("a", piece)]:
        sequence.advance(event)
    with pytest.raises(SequenceError) as raised:
        sequence.advance(of("b", piece))
    assert raised.value.rule == "G3"


def test_consumer_takes_a_restatement_of_owners() -> None:
    """What a snapshot says of owners holds from then on."""
    restated = [of("b", {"id": "m", "role": "assistant", "content": "", "toolCalls": [CALLED]})]
    sequence = Sequence("thread", side="consumer")
    for event in [RUN, of("a", TEXT), {"type": "MESSAGES_SNAPSHOT", "messages": restated}]:
        sequence.advance(event)
    for refused in (of("a", CONTENT), of("a", CALL), of("a", SECRET)):
        with pytest.raises(SequenceError) as raised:
            sequence.advance(refused)
        assert raised.value.rule == "G3"
    for taken in (of("b", CONTENT), of("b", CALL), of("b", SECRET)):
        sequence.advance(taken)


CALLED = {"id": "c", "type": "function", "function": {"name": "search", "arguments": ""}}
