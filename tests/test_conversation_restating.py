"""What a restatement says: activities and reasoning, messages that stream, changes in place, and whom it wakes."""

from copy import deepcopy
from typing import Any

import pytest
from ag_ui.core import (
    ActivityMessage,
    AssistantMessage,
    DeveloperMessage,
    ImagePart,
    ReasoningMessage,
    ToolMessage,
    UrlSource,
    UserMessage,
)

from conversation_support import ids, special, taken, three, user
from statecast.conversation import Conversation
from statecast.errors import SequenceError

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
