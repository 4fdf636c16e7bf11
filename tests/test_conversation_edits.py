"""Edits of `run.messages`: what a client can be brought to hold is restated to it, the rest raises at the line that did it."""

from copy import deepcopy
from datetime import date
from random import Random
from typing import Any

import pytest
from ag_ui.core import (
    ActivityMessage,
    AssistantMessage,
    DeveloperMessage,
    ImagePart,
    Message,
    ReasoningMessage,
    TextPart,
    ToolMessage,
    UrlSource,
    UserMessage,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from statecast.conversation import Conversation
from statecast.errors import SequenceError, StateError
from statecast.replica import Replica
from statecast.stream.rules import Sequence


def user(id: str, content: str = "x", **fields: Any) -> UserMessage:
    return UserMessage(id=id, content=content, **fields)


def three() -> Conversation:
    return Conversation([user("1"), AssistantMessage(id="2", content="y"), user("3")])


def special() -> Conversation:
    """Two activities, two reasoning messages, and what is between them."""
    return Conversation(
        [
            user("1"),
            ReasoningMessage(id="t1", content="", encrypted_value="=1"),
            ActivityMessage(id="a1", activity_type="x", content={"n": 1}),
            AssistantMessage(id="2", content="y", encrypted_value="=2"),
            ReasoningMessage(id="t2", content=""),
            ActivityMessage(id="a2", activity_type="x", content={"n": 2}),
        ]
    )


def ids(messages: Any) -> list[str]:
    return [message["id"] if isinstance(message, dict) else message.id for message in messages]


def taken(conversation: Conversation) -> list[dict[str, Any]]:
    messages = conversation.take()
    assert messages is not None
    return messages


# What is restated


def test_nothing_is_restated_without_an_edit() -> None:
    conversation = three()
    assert list(conversation) == three()
    assert not conversation.dirty
    assert conversation.take() is None


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        pytest.param(lambda c: c.append(user("4")), ["1", "2", "3", "4"], id="append"),
        pytest.param(lambda c: c.extend([user("4"), user("5")]), ["1", "2", "3", "4", "5"], id="extend"),
        pytest.param(lambda c: c.extend(m for m in [user("4")]), ["1", "2", "3", "4"], id="extend by a generator"),
        pytest.param(lambda c: c.__iadd__([user("4")]), ["1", "2", "3", "4"], id="+="),
        pytest.param(lambda c: c.insert(3, user("4")), ["1", "2", "3", "4"], id="insert at the end"),
        pytest.param(lambda c: c.insert(99, user("4")), ["1", "2", "3", "4"], id="insert behind the end"),
        pytest.param(lambda c: c.__delitem__(0), ["2", "3"], id="del"),
        pytest.param(lambda c: c.__delitem__(-1), ["1", "2"], id="del the last"),
        pytest.param(lambda c: c.__delitem__(slice(0, None, 2)), ["2"], id="del a slice"),
        pytest.param(lambda c: c.pop(), ["1", "2"], id="pop"),
        pytest.param(lambda c: c.pop(0), ["2", "3"], id="pop the first"),
        pytest.param(lambda c: c.remove(c[1]), ["1", "3"], id="remove"),
        pytest.param(lambda c: c.clear(), [], id="clear"),
        pytest.param(lambda c: c.__setitem__(1, user("2", "new")), ["1", "2", "3"], id="replace"),
        pytest.param(lambda c: c.__setitem__(-1, user("4")), ["1", "2", "4"], id="replace the last by another"),
        pytest.param(lambda c: c.__setitem__(slice(None), [c[1], user("4")]), ["2", "4"], id="assign the whole"),
        pytest.param(lambda c: c.__setitem__(slice(1, 2), []), ["1", "3"], id="assign nothing"),
        pytest.param(
            lambda c: c.__setitem__(slice(2, None), [user("4"), user("5")]), ["1", "2", "4", "5"], id="the tail"
        ),
    ],
)
def test_edits_are_one_snapshot(edit: Any, expected: list[str]) -> None:
    conversation = three()
    edit(conversation)
    assert ids(conversation) == expected
    assert conversation.dirty
    assert ids(taken(conversation)) == expected
    assert not conversation.dirty
    assert conversation.take() is None


def test_several_edits_are_one_snapshot() -> None:
    conversation = three()
    conversation.append(user("4"))
    del conversation[0]
    conversation[0] = conversation[0].model_copy(update={"content": "changed"})
    assert taken(conversation) == [
        {"id": "2", "role": "assistant", "content": "changed"},
        {"id": "3", "role": "user", "content": "x"},
        {"id": "4", "role": "user", "content": "x"},
    ]


@pytest.mark.parametrize(
    ("edit", "rule"),
    [
        pytest.param(lambda c: c.insert(0, user("4")), "M2", id="insert before the end"),
        pytest.param(lambda c: c.insert(-1, user("4")), "M2", id="insert before the last"),
        pytest.param(lambda c: c.sort(key=lambda m: m.id), "M2", id="sort"),
        pytest.param(lambda c: c.reverse(), "M2", id="reverse"),
        pytest.param(lambda c: c.__setitem__(0, user("4")), "M2", id="another message in the place of one"),
        pytest.param(lambda c: c.__setitem__(slice(None), [c[1], c[0]]), "M2", id="assign in another order"),
        pytest.param(lambda c: c.__setitem__(slice(0, 0), [user("4")]), "M2", id="assign before the first"),
        pytest.param(lambda c: c.append(user("2")), "L8", id="append what is there"),
        pytest.param(lambda c: c.__setitem__(0, c[1]), "L8", id="one message twice"),
        pytest.param(lambda c: Random(1).shuffle(c), "L8", id="shuffle"),
        pytest.param(lambda c: c.extend([user("4"), user("4")]), "L8", id="extend by one id twice"),
        pytest.param(lambda c: c.append(user("4", extra=1)), "W7", id="an unknown member"),
        pytest.param(
            lambda c: c.append(UserMessage(id="4", content=[TextPart(text="x", extra=1)])), "W7", id="deep inside"
        ),
        pytest.param(lambda c: c.append(user("4", encryptedValueType="x")), "X2", id="a member of 1.1"),
        pytest.param(lambda c: c.append(UserMessage.model_construct(id="4", content=5)), "W7", id="a wrong value"),
    ],
)
def test_what_a_client_cannot_follow_raises_and_changes_nothing(edit: Any, rule: str) -> None:
    conversation = three()
    with pytest.raises(SequenceError) as raised:
        edit(conversation)
    assert raised.value.rule == rule
    assert conversation == three()
    assert not conversation.dirty


def test_values_that_are_not_json_raise_where_they_are_put_in() -> None:
    conversation = three()
    with pytest.raises(StateError) as raised:
        conversation.append(user("4", metadata={"a": [object()]}))
    assert raised.value.pointer == "/metadata/a/0"
    conversation.append(user("5", metadata={"at": date(2026, 1, 2), "half": "\ud83d"}))
    assert taken(conversation)[-1]["metadata"] == {"at": "2026-01-02", "half": "\ud83d"}


@pytest.mark.parametrize("value", [{"id": "4", "role": "user", "content": "x"}, "x", None, 5, [user("4")]])
def test_only_messages_are_taken(value: Any) -> None:
    conversation = three()
    with pytest.raises(TypeError):
        conversation.append(value)
    with pytest.raises(TypeError):
        conversation[0] = value
    assert conversation == three()
    assert not conversation.dirty


def test_indexes_are_a_lists() -> None:
    conversation = three()
    assert conversation[-1].id == "3"
    assert ids(conversation[1:]) == ["2", "3"]
    assert type(conversation[1:]) is list
    assert user("1") in conversation
    assert conversation.index(user("3")) == 2
    assert ids(reversed(conversation)) == ["3", "2", "1"]
    for edit in (lambda: conversation[3], lambda: conversation.__setitem__(3, user("4")), lambda: conversation.pop(3)):
        with pytest.raises(IndexError):
            edit()
    assert user("x") not in conversation


# Activities and reasoning


@pytest.mark.parametrize(
    ("edit", "stated"),
    [
        pytest.param(lambda c: c.restate(), ["1", "2"], id="restate"),
        pytest.param(lambda c: c.append(user("3")), ["1", "2", "3"], id="M3-others are edited"),
        pytest.param(lambda c: c.remove(c[0]), ["2"], id="M3-others are removed"),
        pytest.param(lambda c: c.pop(1), ["1", "2", "t2"], id="M4-reasoning is removed"),
        pytest.param(
            lambda c: c.__setitem__(4, ReasoningMessage(id="t2", content="new")),
            ["1", "t1", "2", "t2"],
            id="M4-reasoning is replaced",
        ),
        pytest.param(lambda c: c.pop(), ["1", "a1", "2"], id="M4-an activity is removed"),
        pytest.param(
            lambda c: c.append(ActivityMessage(id="a3", activity_type="x", content={})),
            ["1", "a1", "2", "a2", "a3"],
            id="M4-an activity is appended",
        ),
        pytest.param(lambda c: c.__delitem__(slice(1, 3)), ["1", "2", "t2", "a2"], id="M4-one of each is removed"),
        # The filter that everybody writes: what stays is not edited.
        pytest.param(
            lambda c: c.__setitem__(slice(None), [m for m in c if m.id != "1"]), ["2"], id="M3-others are filtered out"
        ),
    ],
)
def test_special_roles_are_stated_only_when_they_are_edited(edit: Any, stated: list[str]) -> None:
    conversation = special()
    edit(conversation)
    assert ids(taken(conversation)) == stated
    conversation.restate()
    assert ids(taken(conversation)) == [id for id in stated if id[0] not in "at"], "and only once"


@pytest.mark.parametrize(
    "edit",
    [
        lambda c: c.clear(),
        lambda c: c.__delitem__(slice(4, None)) or c.__delitem__(slice(1, 3)),
        lambda c: c.__setitem__(slice(None), [m for m in c if m.role != "reasoning"]),
        lambda c: c.__setitem__(slice(None), [m for m in c if m.role != "activity"]),
    ],
    ids=["clear", "one after the other", "all reasoning", "all activities"],
)
def test_M3_the_last_of_a_special_role_cannot_be_removed(edit: Any) -> None:
    conversation = special()
    with pytest.raises(SequenceError) as raised:
        edit(conversation)
    assert raised.value.rule == "M3"
    assert {message.role for message in conversation} >= {"reasoning", "activity"}


def test_R2_encrypted_values_are_restated() -> None:
    conversation = special()
    conversation[3] = conversation[3].model_copy(update={"content": "new"})
    conversation[4] = conversation[4].model_copy(update={"content": "new"})
    values = {message["id"]: message.get("encryptedValue") for message in taken(conversation)}
    assert values == {"1": None, "t1": "=1", "2": "=2", "t2": None}


def test_R2_encrypted_values_that_were_streamed_are_restated() -> None:
    conversation = three()
    secret = {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "2", "encryptedValue": "="}
    conversation.apply(secret)
    conversation.restate()
    assert taken(conversation)[1]["encryptedValue"] == "="


@pytest.mark.parametrize(
    ("first", "second", "rule"),
    [
        pytest.param(lambda c: c.pop(0), lambda c: c.append(user("1")), "M2", id="removed and appended again"),
        pytest.param(
            lambda c: c.pop(1),
            lambda c: c.__setitem__(3, user("t2")),
            "M3",
            id="one removed, the other made another role",
        ),
    ],
)
def test_edits_are_judged_by_what_the_client_holds(first: Any, second: Any, rule: str) -> None:
    conversation = special()
    first(conversation)
    before = list(conversation)
    with pytest.raises(SequenceError) as raised:
        second(conversation)
    assert raised.value.rule == rule
    assert conversation == before
    conversation.take()
    if rule == "M2":
        second(conversation)


def test_what_the_client_has_not_seen_may_be_taken_back() -> None:
    conversation = three()
    conversation.append(ActivityMessage(id="a", activity_type="x", content={}))
    conversation.pop()
    conversation.append(user("4"))
    conversation[-1] = user("5")
    assert ids(taken(conversation)) == ["1", "2", "3", "5"]


# While text streams


def stream(conversation: Conversation, *deltas: str) -> None:
    for delta in deltas:
        conversation.apply({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": delta})


def test_an_open_message_is_restated_as_far_as_it_is_and_goes_on() -> None:
    conversation = three()
    conversation.apply({"type": "TEXT_MESSAGE_START", "messageId": "m"})
    stream(conversation, "a", "b")
    conversation.restate()
    first = taken(conversation)
    before = deepcopy(first)
    stream(conversation, "c")
    assert first == before, "what was taken does not change"
    assert first[-1]["content"] == "ab"
    assert conversation[-1].content == "abc"


def test_an_open_message_that_is_replaced_goes_on_from_there() -> None:
    conversation = three()
    conversation.apply({"type": "TEXT_MESSAGE_START", "messageId": "m"})
    stream(conversation, "a")
    conversation[-1] = conversation[-1].model_copy(update={"content": "new "})
    stream(conversation, "b")
    assert conversation[-1].content == "new b"


def test_arguments_go_on_although_the_list_was_edited_in_between() -> None:
    conversation = three()
    conversation.apply({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "x"})
    for piece in "abc":
        conversation.apply({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": piece})
        conversation.pop(0)
    [message] = conversation
    assert isinstance(message, AssistantMessage)
    assert [call.function.arguments for call in message.tool_calls or ()] == ["abc"]


def test_a_snapshot_of_its_own_changes_nothing_not_even_the_objects() -> None:
    conversation = three()
    before = list(conversation)
    conversation.append(user("4"))
    conversation.apply({"type": "MESSAGES_SNAPSHOT", "messages": taken(conversation)})
    assert all(one is other for one, other in zip(conversation, before, strict=False))


def test_what_was_taken_shares_nothing_with_what_comes() -> None:
    conversation = Conversation([ActivityMessage(id="a", activity_type="x", content={"n": 1}), user("1")])
    conversation[0] = ActivityMessage(id="a", activity_type="x", content={"n": 2})
    first = taken(conversation)
    before = deepcopy(first)
    patch = [{"op": "replace", "path": "/n", "value": 3}]
    conversation.apply({"type": "ACTIVITY_DELTA", "messageId": "a", "activityType": "x", "patch": patch})
    conversation.apply({"type": "TEXT_MESSAGE_START", "messageId": "1", "role": "user", "metadata": {"k": 1}})
    assert first == before


# Restating, failing, waking


def test_restate_of_an_empty_conversation_says_nothing() -> None:
    conversation = Conversation()
    conversation.restate()
    assert conversation.dirty
    assert conversation.take() is None
    assert not conversation.dirty


def test_restate_of_special_roles_alone_says_nothing() -> None:
    conversation = Conversation([ReasoningMessage(id="t", content="")])
    conversation.restate()
    assert conversation.take() is None


def test_a_conversation_that_an_edit_emptied_is_restated_as_empty() -> None:
    conversation = three()
    conversation.clear()
    assert conversation.take() == []


def test_a_failed_tool_has_its_error() -> None:
    conversation = Conversation([ToolMessage(id="r", tool_call_id="c", content="")])
    conversation.mark_failed("r", "no luck")
    [message] = conversation
    assert isinstance(message, ToolMessage)
    assert message.error == "no luck"
    assert not conversation.dirty
    for id in ("unknown", "1"):
        with pytest.raises(KeyError):
            three().mark_failed(id, "no luck")


def test_an_edit_wakes_once_until_it_is_taken() -> None:
    woken: list[int] = []
    conversation = Conversation([user("1")], on_change=lambda: woken.append(1))
    conversation.append(user("2"))
    conversation.append(user("3"))
    assert len(woken) == 1
    conversation.take()
    conversation.restate()
    assert len(woken) == 2
    with pytest.raises(SequenceError):
        conversation.insert(0, user("4"))
    conversation.take()
    stream_start = {"type": "TEXT_MESSAGE_START", "messageId": "m"}
    conversation.apply(stream_start)
    assert len(woken) == 2, "what streams is no edit"


# Changes in place


def test_a_change_in_place_is_found_in_debug_mode() -> None:
    parts = UserMessage(id="p", content=[ImagePart(source=UrlSource(value="x"))], metadata={"a": [1]})
    conversation = Conversation([user("1"), parts, user("3"), DeveloperMessage(id="4", content="x")], debug=True)
    list(conversation)
    assert conversation.changed_in_place() == []
    first, second, third, _ = conversation
    first.content = "changed"
    second.metadata["a"].append(2)  # type: ignore[index]
    third.content = "changed"
    conversation[2] = third
    assert conversation.changed_in_place() == ["1", "p"]
    assert not {"1", "p"} & {message["id"] for message in taken(conversation) if message == "changed"}
    assert Conversation([user("1")]).changed_in_place() == []


def test_a_change_in_place_is_found_although_the_message_streams_on() -> None:
    conversation = Conversation(debug=True)
    conversation.apply({"type": "TEXT_MESSAGE_START", "messageId": "m"})
    stream(conversation, "a")
    conversation[0].content = "changed"
    stream(conversation, "b")
    assert conversation[0].content == "ab"
    assert conversation.changed_in_place() == ["m"]


@pytest.mark.parametrize("debug", [False, True])
def test_a_message_that_was_changed_in_place_and_assigned_again_is_sent(debug: bool) -> None:
    conversation = Conversation([user("1"), ReasoningMessage(id="t", content="x"), user("3")], debug=debug)
    for index, assign in ((0, 0), (1, slice(1, 2)), (2, slice(2, None))):
        message = conversation[index]
        conversation.restate()
        conversation.take()
        message.content = "changed"  # type: ignore[assignment]
        conversation[assign] = message if isinstance(assign, int) else [message]  # type: ignore[call-overload]
        stated = {one["id"]: one["content"] for one in taken(conversation)}
        assert stated[message.id] == "changed"
    assert conversation.changed_in_place() == []


# An input that holds an id twice


def test_an_input_that_holds_an_id_twice_can_be_edited() -> None:
    conversation = Conversation([user("1", "a"), user("1", "b"), user("2")])
    assert len(conversation) == 3
    conversation.append(user("3"))
    stated = taken(conversation)
    assert [(message["id"], message["content"]) for message in stated] == [("1", "a"), ("2", "x"), ("3", "x")]
    conversation.apply({"type": "MESSAGES_SNAPSHOT", "messages": stated})
    assert [message.content for message in conversation] == ["a", "a", "x", "x"], "as at the client"
    with pytest.raises(SequenceError):
        conversation.append(user("1"))


# The promise: whatever edits went through, the client holds the same

MAKERS: list[Any] = [
    lambda id: user(id, "new"),
    lambda id: AssistantMessage(id=id, content="new", encrypted_value="="),
    lambda id: ReasoningMessage(id=id, content="new"),
    lambda id: ActivityMessage(id=id, activity_type="x", content={"new": 1}),
    lambda id: ToolMessage(id=id, tool_call_id="c", content="new"),
]


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32).map(Random))
def test_the_client_holds_what_the_author_made_of_the_list(random: Random) -> None:
    start: list[Message] = [random.choice(MAKERS)(f"old-{n}") for n in range(random.randint(0, 6))]
    conversation = Conversation(start)
    replica = Replica(messages=deepcopy(start))
    sequence = Sequence("t", messages=start)
    serial = 0

    def flush() -> None:
        if (stated := conversation.take()) is not None:
            put({"type": "MESSAGES_SNAPSHOT", "messages": stated})
        assert replica.messages == conversation

    def send(event: dict[str, Any]) -> None:
        # As a run does: what was edited is said before what comes now.
        flush()
        put(event)

    def put(event: dict[str, Any]) -> None:
        sequence.advance(event)
        conversation.apply(event)
        replica.apply(deepcopy(event))

    def new() -> Message:
        nonlocal serial
        serial += 1
        message: Message = random.choice(MAKERS)(f"new-{serial}")
        return message

    def somewhere() -> int:
        return random.randrange(-1, len(conversation) + 1)

    edits: list[Any] = [
        lambda: conversation.append(new()),
        lambda: conversation.insert(somewhere(), new()),
        lambda: conversation.pop(somewhere()),
        lambda: conversation.__setitem__(somewhere(), new()),
        lambda: conversation.__setitem__(i := somewhere(), random.choice(MAKERS)(conversation[i].id)),
        lambda: conversation.__setitem__(slice(None), [m for m in conversation if random.random() < 0.7]),
        lambda: conversation.__setitem__(slice(somewhere(), None), [new(), new()]),
        lambda: conversation.__delitem__(slice(somewhere(), somewhere())),
        lambda: conversation.restate(),
        lambda: conversation.clear(),
        lambda: send({"type": "TEXT_MESSAGE_START", "messageId": new().id}),
    ]
    send({"type": "RUN_STARTED", "threadId": "t", "runId": "r"})
    for _ in range(random.randint(1, 12)):
        before = list(conversation)
        try:
            random.choice(edits)()
        except (SequenceError, IndexError):
            assert conversation == before
        if random.random() < 0.4:
            flush()
    flush()
    assert replica.warnings == []
