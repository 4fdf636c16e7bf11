"""Reports from users of other implementations about messages and event order: the trial of each, here.

The id is the report's own. What needs a running agent is tried where agents are tested.
"""

import json
from typing import Any

import pytest
from ag_ui.core import AssistantMessage, ReasoningMessage, ToolMessage, UserMessage

from interop_support import require_node, run_lines
from statecast.conversation import Conversation
from statecast.errors import SequenceError
from statecast.replica import Replica
from statecast.stream.chunks import Expander
from statecast.stream.rules import Sequence
from statecast.stream.wire import WireError, read_input, read_json

EventDict = dict[str, Any]

RUN: EventDict = {"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0"}
FINISHED: EventDict = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}


class Run:
    """A producer and a client, joined by the wire."""

    def __init__(self, *messages: Any, tools: tuple[str, ...] = ()) -> None:
        self.sequence = Sequence("t", messages=messages, tools=[{"name": name} for name in tools])
        self.expander = Expander()
        self.messages = Conversation(messages)
        self.client = Replica(messages=messages)
        self.sent: list[EventDict] = []
        self.send(RUN)

    def send(self, *events: EventDict) -> None:
        for event in events:
            for one in self.expander.feed(event):
                self.sequence.advance(one)
                self.messages.apply(one)
                self.sent.append(one)
                self.client.apply(json.dumps(one))

    def flush(self) -> None:
        stated = self.messages.take()
        if stated is not None:
            self.send({"type": "MESSAGES_SNAPSHOT", "messages": stated})

    def next_input(self) -> Any:
        """What the client sends with its next run."""
        messages = [
            one.model_dump(mode="json", by_alias=True) for one in self.client.messages if one.role != "activity"
        ]
        read, warnings = read_input(
            read_json(json.dumps({"threadId": "t", "runId": "next", "messages": messages}).encode())
        )
        assert warnings == []
        return read

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.sent]


def call(id: str, name: str = "search", arguments: str = "{}") -> list[EventDict]:
    return [
        {"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name},
        {"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": arguments},
        {"type": "TOOL_CALL_END", "toolCallId": id},
    ]


def result(call_id: str, id: str) -> EventDict:
    return {"type": "TOOL_CALL_RESULT", "messageId": id, "toolCallId": call_id, "content": "3", "role": "tool"}


def text(id: str, *deltas: str) -> list[EventDict]:
    return [
        {"type": "TEXT_MESSAGE_START", "messageId": id},
        *({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta} for delta in deltas),
        {"type": "TEXT_MESSAGE_END", "messageId": id},
    ]


def test_E01_every_call_of_the_history_has_its_result_behind_it() -> None:
    run = Run(UserMessage(id="u", content="Hello"))
    run.send(*call("a"), *call("b"), *text("m", "Done."), result("b", "rb"), result("a", "ra"), FINISHED)
    history = run.next_input().messages
    assert [message.id for message in history] == ["u", "a", "ra", "b", "rb", "m"]
    for index, message in enumerate(history):
        for one in getattr(message, "tool_calls", None) or ():
            answer = history[index + 1]
            assert isinstance(answer, ToolMessage)
            assert answer.tool_call_id == one.id
    assert history == list(run.messages)


def test_E06_a_second_run_in_a_run_is_refused() -> None:
    run = Run()
    for event in (RUN, {**RUN, "runId": "other"}):
        with pytest.raises(SequenceError, match="still active"):
            run.send(event)
    with pytest.raises(SequenceError, match="runId"):
        run.send({**FINISHED, "runId": "other"})
    run.send(FINISHED)
    with pytest.raises(SequenceError):
        run.send(FINISHED)
    assert run.types == ["RUN_STARTED", "RUN_FINISHED"]


def test_E08_messages_are_known_by_their_ids_and_not_by_their_words() -> None:
    yes = [UserMessage(id=id, content="yes") for id in ("1", "2")]
    run = Run(*yes)
    run.messages.restate()
    run.flush()
    assert run.client.messages == yes == list(run.messages)
    twice = Run(*yes, UserMessage(id="2", content="yes"))
    twice.messages.restate()
    twice.flush()
    stated = twice.sent[-1]["messages"]
    assert [message["id"] for message in stated] == ["1", "2"], "one id is stated once"


@pytest.mark.parametrize("chunks", [False, True], ids=["explicit", "chunks"])
def test_E10_arguments_of_parallel_calls_stay_apart(chunks: bool) -> None:
    run = Run()
    pieces = [("a", '{"x":'), ("b", '{"y":'), ("a", " 1}"), ("b", " 2}")]
    if chunks:
        run.send(
            *(
                {"type": "TOOL_CALL_CHUNK", "toolCallId": id, "toolCallName": "f", "delta": delta}
                for id, delta in pieces
            )
        )
    else:
        run.send(*({"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": "f"} for id in "ab"))
        run.send(*({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": delta} for id, delta in pieces))
        run.send(*({"type": "TOOL_CALL_END", "toolCallId": id} for id in "ab"))
    run.send(FINISHED)
    calls = [one for message in run.client.messages for one in message.tool_calls]  # type: ignore[union-attr]
    assert [(one.id, json.loads(one.function.arguments)) for one in calls] == [("a", {"x": 1}), ("b", {"y": 2})]


def test_E10_calls_one_after_the_other_without_a_terminator() -> None:
    run = Run()
    run.send(
        *(
            {"type": "TOOL_CALL_CHUNK", "toolCallId": id, "toolCallName": "f", "delta": delta}
            for id, delta in [("a", "{"), ("a", "}"), ("b", "{"), ("b", "}")]
        ),
        FINISHED,
    )
    assert run.types[1:-1] == ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_ARGS", "TOOL_CALL_END"] * 2


def test_E11_client_tools_are_left_open_and_never_answered() -> None:
    run = Run(tools=("one", "two", "three"))
    for name in ("one", "two", "three"):
        run.send(*call(name, name))
    run.send(*call("server"), result("server", "r"))
    for name in ("one", "two", "three"):
        with pytest.raises(SequenceError) as raised:
            run.send(result(name, f"bogus-{name}"))
        assert raised.value.rule == "T3"
    pending = run.sequence.pending_tool_calls()
    assert pending == ["one", "two", "three"]
    run.send({**FINISHED, "outcome": {"type": "success", "pendingToolCallIds": pending}})
    assert run.types.count("TOOL_CALL_START") == run.types.count("TOOL_CALL_END") == 4
    assert run.types.count("TOOL_CALL_RESULT") == 1


def test_E13_an_edited_message_of_the_same_id_is_the_new_one() -> None:
    first = Run(UserMessage(id="u", content="old"))
    first.send(*text("m", "Answer."), FINISHED)
    edited = [UserMessage(id="u", content="new"), *first.client.messages[1:]]
    again = Run(*edited)
    assert again.messages[0].content == "new"
    again.messages.restate()
    again.flush()
    assert again.client.messages == edited


def test_E14_ids_stay_the_same_over_turns_and_an_empty_thread_states_nothing() -> None:
    empty = Run()
    empty.messages.restate()
    empty.flush()
    assert "MESSAGES_SNAPSHOT" not in empty.types
    messages: list[Any] = []
    for turn in range(3):
        run = Run(*messages, UserMessage(id=f"u{turn}", content="Hello"))
        run.send(*text(f"m{turn}", "Hello."), *call(f"c{turn}"), result(f"c{turn}", f"r{turn}"))
        run.messages.restate()
        run.flush()
        run.send(FINISHED)
        messages = run.next_input().messages
    ids = [message.id for message in messages]
    assert ids == [f"{kind}{turn}" for turn in range(3) for kind in "umcr"]


def thinking() -> list[EventDict]:
    return [
        {"type": "REASONING_MESSAGE_START", "messageId": "think", "role": "reasoning"},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "think", "delta": "Hm."},
        {"type": "REASONING_MESSAGE_END", "messageId": "think"},
        {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "think", "encryptedValue": "="},
        {"type": "ACTIVITY_SNAPSHOT", "messageId": "act", "activityType": "x", "content": {"n": 1}},
    ]


def test_E15_a_restatement_loses_no_reasoning_and_no_activity() -> None:
    developer = {"type": "TEXT_MESSAGE_START", "messageId": "dev", "role": "developer"}
    run = Run(UserMessage(id="u", content="Hello"), ReasoningMessage(id="earlier", content="Hm.", encrypted_value="="))
    run.send(*thinking(), developer, {"type": "TEXT_MESSAGE_END", "messageId": "dev"}, *text("m", "Hello."))
    before = run.client.messages
    run.messages.restate()
    run.flush()
    assert run.client.messages == before == list(run.messages)
    assert [message.id for message in before] == ["u", "earlier", "think", "act", "dev", "m"]
    assert [getattr(message, "encrypted_value", None) for message in before[1:3]] == ["=", "="]


PARTS = [
    {"type": "text", "text": "What is this?", "metadata": {"k": None}},
    {"type": "image", "source": {"type": "data", "value": "aGk=", "mimeType": "image/png"}},
    {"type": "document", "source": {"type": "file", "value": "file-1", "provider": "openai"}},
    {"type": "audio", "source": {"type": "url", "value": "https://x.example/a.mp3"}, "id": "p"},
]


def test_E17_content_parts_survive_a_restatement_and_the_next_run() -> None:
    user = {"id": "u", "role": "user", "content": PARTS}
    tool = {"id": "t", "role": "tool", "toolCallId": "c", "content": PARTS}
    read, _ = read_input({"threadId": "t", "runId": "r", "messages": [user, tool]})
    run = Run(*read.messages)
    run.messages[0] = run.messages[0].model_copy(update={"name": "Ada"})
    run.flush()
    assert run.sent[-1]["messages"] == [{**user, "name": "Ada"}, tool]
    after = run.next_input().messages
    assert [message.model_dump(mode="json", by_alias=True) for message in after] == [{**user, "name": "Ada"}, tool]


@pytest.mark.parametrize(
    ("message", "pointer"),
    [
        ({"role": "user", "content": "x"}, "/messages/0/id"),
        ({"id": "1", "role": "tool", "content": "x", "tool_call_id": "c"}, "/messages/0/toolCallId"),
        ({"id": "1", "role": "user", "content": {"text": "x"}}, "/messages/0/content"),
    ],
)
def test_E22_faults_can_be_read(message: EventDict, pointer: str) -> None:
    with pytest.raises(WireError) as raised:
        read_input({"threadId": "t", "runId": "r", "messages": [message]})
    assert [fault.pointer for fault in raised.value.faults] == [pointer]
    assert len(str(raised.value)) < 120


@pytest.mark.parametrize(
    "message",
    [
        {"id": "1", "role": "narrator", "content": "x"},
        {"id": "1", "role": "user", "content": "x", "newField": {"deep": 1}},
        {"id": "1", "role": "user", "content": [{"type": "hologram"}]},
    ],
)
def test_E22_what_a_newer_client_sends_is_tolerated(message: EventDict) -> None:
    read, warnings = read_input({"threadId": "t", "runId": "r", "messages": [message]})
    assert len(read.messages) <= 1
    assert len(warnings) == 1
    assert warnings[0].startswith("/messages/0")


@pytest.mark.parametrize("with_it", [True, False], ids=["with", "without"])
def test_E24_activities_and_restatements(with_it: bool) -> None:
    """With the activity in it the snapshot declares all activities; without it the client keeps its own."""
    held = {"id": "held", "role": "activity", "activityType": "x", "content": {"old": 1}}
    stated = {"id": "act", "role": "activity", "activityType": "y", "content": {"restated": 1}}
    stream = [
        RUN,
        {"type": "ACTIVITY_SNAPSHOT", "messageId": "held", "activityType": "x", "content": {"old": 1}},
        {"type": "ACTIVITY_SNAPSHOT", "messageId": "act", "activityType": "x", "content": {"n": 1}},
        {
            "type": "ACTIVITY_DELTA",
            "messageId": "act",
            "activityType": "x",
            "patch": [{"op": "replace", "path": "/n", "value": 2}],
        },
        {"type": "MESSAGES_SNAPSHOT", "messages": [stated] if with_it else []},
        FINISHED,
    ]
    replica = Replica()
    for event in stream:
        replica.apply(event)
    messages = [message.model_dump(mode="json", by_alias=True) for message in replica.messages]
    assert messages == ([stated] if with_it else [held, {**stated, "activityType": "x", "content": {"n": 2}}])
    require_node()
    [client] = run_lines("replay.mjs", [{"events": stream}])
    assert client["messages"] == messages


def test_history_that_is_only_part_of_a_thread_is_what_it_is() -> None:
    """E12: what the client shows is the whole history (I4), however much of it there was before."""
    run = Run(UserMessage(id="u7", content="Only this"))
    run.send(*text("m", "Hello."), FINISHED)
    assert list(run.messages) == [UserMessage(id="u7", content="Only this"), AssistantMessage(id="m", content="Hello.")]
