"""The reduction of events to messages, by the Python side alone; the real client is asked in test_replica_client."""

from time import perf_counter
from typing import Any

import pytest
from ag_ui.core import ActivityMessage, AssistantMessage, FunctionCall, ReasoningMessage, ToolCall

from reduction_support import ASSISTANT, EventDict, activity, after, call, delta, result, text, thought, wire
from statecast.conversation import Conversation


def assistant(id: str, *calls: EventDict) -> EventDict:
    return {"id": id, "role": "assistant", "toolCalls": list(calls)}


def made(id: str, arguments: str = "", **fields: Any) -> EventDict:
    return {"id": id, "type": "function", "function": {"name": "search", "arguments": arguments}, **fields}


@pytest.mark.parametrize(
    ("events", "messages"),
    [
        pytest.param(text(), [ASSISTANT], id="an empty message"),
        pytest.param(text("m", "a", "", "é🧭"), [{**ASSISTANT, "content": "aé🧭"}], id="pieces are joined"),
        pytest.param(text(role="user", name="Ada"), [{**ASSISTANT, "role": "user", "name": "Ada"}], id="role and name"),
        pytest.param([*text("m", "a"), *text("m", "b")], [{**ASSISTANT, "content": "ab"}], id="S2-opened again"),
        pytest.param(
            [*text("m", "a"), *text("n", "x"), *text("m", "b")],
            [{**ASSISTANT, "content": "ab"}, {**ASSISTANT, "id": "n", "content": "x"}],
            id="S2-opened again in its place",
        ),
        pytest.param(text(subagentRunId="a"), [{**ASSISTANT, "subagentRunId": "a"}], id="an owner"),
        pytest.param(
            call("c", '{"q":', " 1}"), [assistant("c", made("c", '{"q": 1}'))], id="S6-a call makes its message"
        ),
        pytest.param(
            call("c", parentMessageId="p"), [assistant("p", made("c"))], id="S6-a call makes its parent's message"
        ),
        pytest.param(
            [*call("c", parentMessageId="p"), *text("p", "x")],
            [{**assistant("p", made("c")), "content": "x"}],
            id="S6-which text then joins",
        ),
        pytest.param(
            [*text(), *call("c", parentMessageId="m"), *call("d", "{", parentMessageId="m")],
            [{**ASSISTANT, "toolCalls": [made("c"), made("d", "{")]}],
            id="T1-two calls of one message",
        ),
        pytest.param(
            [*text(role="user"), *call("c", parentMessageId="m")],
            [{**ASSISTANT, "role": "user"}, assistant("c", made("c"))],
            id="T1-a parent that is no assistant's",
        ),
        pytest.param(
            [*call("c", "{"), *call("c", "}")], [assistant("c", made("c", "{}"))], id="S2-a call opened again"
        ),
        pytest.param(
            [*call(), result(), *text("m")],
            [assistant("c", made("c")), {"id": "r", "role": "tool", "content": "3", "toolCallId": "c"}, ASSISTANT],
            id="T2-a result",
        ),
        pytest.param(
            [*call("c"), *text("m"), result("c", "r"), result("c", "s")],
            [
                assistant("c", made("c")),
                {"id": "r", "role": "tool", "content": "3", "toolCallId": "c"},
                {"id": "s", "role": "tool", "content": "3", "toolCallId": "c"},
                ASSISTANT,
            ],
            id="S6-results behind their message, in order",
        ),
        pytest.param(
            [result("unknown")], [{"id": "r", "role": "tool", "content": "3", "toolCallId": "unknown"}], id="T2-alone"
        ),
        pytest.param(
            [result(content=[{"type": "text", "text": "x"}])],
            [{"id": "r", "role": "tool", "content": [{"type": "text", "text": "x"}], "toolCallId": "c"}],
            id="T2-parts",
        ),
        pytest.param(
            thought("t", "a", "b"), [{"id": "t", "role": "reasoning", "content": "ab"}], id="R1-a reasoning message"
        ),
        pytest.param([{"type": "REASONING_START", "messageId": "s"}], [], id="R1-a span makes no message"),
        pytest.param(
            [
                *thought(),
                {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "t", "encryptedValue": "="},
            ],
            [{"id": "t", "role": "reasoning", "content": "", "encryptedValue": "="}],
            id="R2-of a message",
        ),
        pytest.param(
            [
                *call(),
                {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "tool-call", "entityId": "c", "encryptedValue": "="},
            ],
            [assistant("c", made("c", encryptedValue="="))],
            id="R2-of a call",
        ),
        pytest.param(
            [activity(), delta({"op": "add", "path": "/k", "value": [None]}, activityType="other")],
            [{"id": "act", "role": "activity", "activityType": "other", "content": {"n": 1, "k": [None]}}],
            id="A2-a delta",
        ),
        pytest.param(
            [activity(), activity(content={}, activityType="other", subagentRunId="a")],
            [{"id": "act", "role": "activity", "activityType": "other", "content": {}, "subagentRunId": "a"}],
            id="A1-replaced, with its owner",
        ),
        pytest.param(
            [activity(subagentRunId="a", metadata={"k": 1}), activity(metadata={"l": 2})],
            [
                {
                    "id": "act",
                    "role": "activity",
                    "activityType": "search",
                    "content": {"n": 1},
                    "metadata": {"k": 1, "l": 2},
                }
            ],
            id="A1-metadata survives, the owner does not",
        ),
        pytest.param(
            [activity(), activity(content={}, activityType="other", replace=False, metadata={"k": 1})],
            [
                {
                    "id": "act",
                    "role": "activity",
                    "activityType": "search",
                    "content": {"n": 1},
                    "metadata": {"k": 1},
                }
            ],
            id="A1-not replaced",
        ),
        pytest.param(
            [activity(), delta({"op": "add", "path": "/k", "value": 1}, {"op": "remove", "path": "/missing"})],
            [{"id": "act", "role": "activity", "activityType": "search", "content": {"n": 1}}],
            id="D4-all or nothing",
        ),
        pytest.param(
            [activity(), delta({"op": "replace", "path": "", "value": 5})],
            [{"id": "act", "role": "activity", "activityType": "search", "content": {"n": 1}}],
            id="A2-stays an object",
        ),
        pytest.param(
            [delta(), *text("act"), delta({"op": "remove", "path": ""})], [{**ASSISTANT, "id": "act"}], id="A3"
        ),
        pytest.param(
            [
                {"type": "TEXT_MESSAGE_START", "messageId": "m", "metadata": {"a": 1, "b": {"x": 1}}},
                {
                    "type": "TEXT_MESSAGE_CONTENT",
                    "messageId": "m",
                    "delta": "x",
                    "metadata": {"b": {"y": 2}, "c": None},
                },
                {"type": "TEXT_MESSAGE_END", "messageId": "m", "metadata": {"a": 3}},
            ],
            [{**ASSISTANT, "content": "x", "metadata": {"a": 3, "b": {"y": 2}, "c": None}}],
            id="X1-key by key, not recursively",
        ),
        pytest.param(
            [
                *call(metadata={"a": 1}),
                call()[0],
                {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{}", "metadata": {"b": 2}},
                {"type": "TOOL_CALL_END", "toolCallId": "c", "metadata": {"c": 3}},
                result(metadata={"d": 4}),
            ],
            [
                assistant("c", made("c", "{}", metadata={"a": 1, "b": 2, "c": 3})),
                {"id": "r", "role": "tool", "content": "3", "toolCallId": "c", "metadata": {"d": 4}},
            ],
            id="X1-of a call, and of its result",
        ),
        pytest.param(
            [
                {"type": "CUSTOM", "name": "x", "value": 1, "metadata": {"a": 1}},
                {"type": "STATE_SNAPSHOT", "snapshot": 1, "metadata": {"a": 1}},
            ],
            [],
            id="X1-other events keep theirs",
        ),
        pytest.param(
            [
                *call("c", parentMessageId="m"),
                {"type": "TOOL_CALL_START", "toolCallId": "d", "toolCallName": "search", "parentMessageId": "m"},
                {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "search", "parentMessageId": "m"},
                {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "A1"},
                {"type": "TOOL_CALL_ARGS", "toolCallId": "d", "delta": "B1"},
                {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "A2"},
                {"type": "TOOL_CALL_ARGS", "toolCallId": "d", "delta": "B2"},
            ],
            [assistant("m", made("c", "A1A2"), made("d", "B1B2"))],
            id="S1-interleaved arguments stay apart",
        ),
        pytest.param(
            [
                {"type": "TEXT_MESSAGE_START", "messageId": "m"},
                {"type": "TEXT_MESSAGE_START", "messageId": "n"},
                {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "A1"},
                {"type": "TEXT_MESSAGE_CONTENT", "messageId": "n", "delta": "B1"},
                {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "A2"},
            ],
            [{**ASSISTANT, "content": "A1A2"}, {**ASSISTANT, "id": "n", "content": "B1"}],
            id="S1-interleaved texts stay apart",
        ),
    ],
)
def test_events_make_messages(events: list[EventDict], messages: list[EventDict]) -> None:
    assert after(events) == messages


@pytest.mark.parametrize(
    ("events", "messages"),
    [
        ([*text("old", " more")], ["Hello. more"]),
        ([*call("old-call", "}")], ["Hello.", "{}"]),
        ([*call("new", parentMessageId="old")], ["Hello."]),
    ],
)
def test_the_inputs_messages_go_on(events: list[EventDict], messages: list[str]) -> None:
    old = AssistantMessage(
        id="old",
        content="Hello.",
        tool_calls=[ToolCall(id="old-call", function=FunctionCall(name="search", arguments="{"))],
    )
    before = old.model_dump()
    [read] = after(events, [old])
    assert read["content"] == messages[0]
    assert len(read["toolCalls"]) == 1 + (events[0].get("toolCallId") == "new")
    assert read["toolCalls"][0]["function"]["arguments"] == (messages[1] if len(messages) > 1 else "{")
    assert old.model_dump() == before, "the input itself stays as it is"


@pytest.mark.parametrize(
    "event",
    [
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "gone", "delta": "x"},
        {"type": "TEXT_MESSAGE_END", "messageId": "gone"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "gone", "delta": "x"},
        {"type": "TOOL_CALL_END", "toolCallId": "gone"},
        {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "gone", "encryptedValue": "="},
        {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "act", "encryptedValue": "="},
        {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "tool-call", "entityId": "gone", "encryptedValue": "="},
        {"type": "TEXT_MESSAGE_START", "messageId": "act"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "act", "delta": "x"},
        {"type": "REASONING_MESSAGE_START", "messageId": "act", "role": "reasoning"},
        delta(id="gone"),
        delta({"op": "remove", "path": "/missing"}),
        delta({"op": "remove", "path": ""}),
    ],
)
def test_what_cannot_be_done_is_warned_of(event: EventDict) -> None:
    warnings: list[str] = []
    conversation = Conversation([ActivityMessage(id="act", activity_type="x", content={})], on_warning=warnings.append)
    before = wire(conversation)
    conversation.apply(event)
    assert wire(conversation) == before
    assert len(warnings) == 1
    assert warnings[0].startswith(f"{event['type']}: ")


def test_messages_share_nothing_with_their_events() -> None:
    event = activity(content={"deep": {"n": 1}}, metadata={"deep": {"n": 1}})
    conversation = Conversation()
    conversation.apply(event)
    event["content"]["deep"]["n"] = event["metadata"]["deep"]["n"] = 2
    read = conversation[0]
    assert isinstance(read, ActivityMessage)
    assert read.content == read.metadata == {"deep": {"n": 1}}
    read.content["deep"]["n"] = 3
    conversation.apply(delta({"op": "test", "path": "/deep/n", "value": 1}, {"op": "add", "path": "/k", "value": 1}))
    assert wire(conversation)[0]["content"] == {"deep": {"n": 1}, "k": 1}


def test_a_message_is_the_same_object_until_it_changes() -> None:
    conversation = Conversation([ReasoningMessage(id="t", content="")])
    for event in text("m", "x"):
        conversation.apply(event)
    first = conversation[1]
    assert conversation[1] is first
    assert conversation[0] is conversation[0]
    conversation.apply({"type": "TEXT_MESSAGE_START", "messageId": "m"})
    conversation.apply({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "y"})
    assert conversation[1].content == "xy"
    assert first.content == "x"


def test_a_collector_serves_its_message_as_long_as_it_stands() -> None:
    conversation = Conversation()
    assert conversation.collector("m") is None
    conversation.apply({"type": "TEXT_MESSAGE_START", "messageId": "m"})
    collect = conversation.collector("m")
    assert collect is not None
    collect("a")
    assert conversation[0].content == "a"
    for event in text("m", "b"):
        conversation.apply(event)
    collect("c")
    assert conversation[0].content == "abc"


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (text()[0], {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "word "}),
        (thought()[0], {"type": "REASONING_MESSAGE_CONTENT", "messageId": "t", "delta": "word "}),
        (call()[0], {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "word "}),
    ],
    ids=["text", "reasoning", "arguments"],
)
def test_a_piece_costs_the_same_however_long_the_text_is(start: EventDict, piece: EventDict) -> None:
    conversation = Conversation()
    conversation.apply(start)

    def seconds(pieces: int) -> float:
        begun = perf_counter()
        for _ in range(pieces):
            conversation.apply(piece)
        return perf_counter() - begun

    early = min(seconds(1000) for _ in range(5))
    seconds(200_000)
    late = min(seconds(1000) for _ in range(5))
    assert late < 50 * early


def test_interleaved_arguments_cost_no_more() -> None:
    """A join at every change of the call would make this quadratic: a thousand times the pieces, a million times the work."""
    conversation = Conversation()
    conversation.apply(text()[0])
    for id in "cd":
        conversation.apply({**call(id)[0], "parentMessageId": "m"})

    def seconds(rounds: int) -> float:
        begun = perf_counter()
        for _ in range(rounds):
            for id in "cd":
                conversation.apply({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": "x" * 20})
        return perf_counter() - begun

    early = min(seconds(500) for _ in range(5))
    seconds(50_000)
    late = min(seconds(500) for _ in range(5))
    assert late < 50 * early
    assert len(wire(conversation)[0]["toolCalls"][0]["function"]["arguments"]) == 20 * (500 * 10 + 50_000)
