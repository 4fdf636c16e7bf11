"""Edits of `run.messages`: what a client can be brought to hold is restated to it, the rest raises at the line that did it."""

from copy import deepcopy
from datetime import date
from random import Random
from typing import Any

import pytest
from ag_ui.core import (
    ActivityMessage,
    AssistantMessage,
    Message,
    ReasoningMessage,
    TextPart,
    ToolMessage,
    UserMessage,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from conversation_support import ids, taken, three, user
from statecast.conversation import Conversation
from statecast.errors import SequenceError, StateError
from statecast.replica import Replica
from statecast.stream.rules import Sequence


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
