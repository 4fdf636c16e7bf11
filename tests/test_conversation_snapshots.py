"""MESSAGES_SNAPSHOT: reconciled by id, as consumers do it."""

import pytest
from ag_ui.core import UserMessage

from reduction_support import ASSISTANT, EventDict, after, call, result, text


def snapshot(*messages: EventDict) -> EventDict:
    return {"type": "MESSAGES_SNAPSHOT", "messages": list(messages)}


def user(id: str, content: str = "x") -> EventDict:
    return {"id": id, "role": "user", "content": content}


REASONING = {"id": "t", "role": "reasoning", "content": ""}
ACTIVITY = {"id": "act", "role": "activity", "activityType": "search", "content": {"n": 1}}


@pytest.mark.parametrize(
    ("before", "stated", "ids"),
    [
        pytest.param([user("1"), user("2")], [user("2"), user("1")], ["1", "2"], id="M2-never reordered"),
        pytest.param(
            [user("1"), user("3")], [user("1"), user("2"), user("3")], ["1", "3", "2"], id="M2-unseen at the end"
        ),
        pytest.param([user("2")], [user("3"), user("1"), user("2")], ["2", "3", "1"], id="M2-unseen in snapshot order"),
        pytest.param([user("1"), user("2")], [user("2")], ["2"], id="M3-absent is dropped"),
        pytest.param([user("1")], [], [], id="M3-all dropped"),
        pytest.param(
            [user("1"), ACTIVITY, REASONING], [user("1")], ["1", "act", "t"], id="M3-activity and reasoning stay"
        ),
        pytest.param(
            [ACTIVITY, REASONING], [user("1"), {**ACTIVITY, "id": "b"}], ["t", "1", "b"], id="M4-activities declared"
        ),
        pytest.param([ACTIVITY, REASONING], [{**REASONING, "id": "u"}], ["act", "u"], id="M4-reasoning declared"),
        pytest.param([ACTIVITY, user("1")], [{**ACTIVITY, "content": {}}], ["act"], id="M4-replaced in place"),
    ],
)
def test_snapshots_reconcile(before: list[EventDict], stated: list[EventDict], ids: list[str]) -> None:
    read = after([snapshot(*before), snapshot(*stated)])
    assert [message["id"] for message in read] == ids
    by_id = {message["id"]: message for message in stated}
    assert all(message == by_id[message["id"]] for message in read if message["id"] in by_id)


def test_M2_a_message_is_replaced_whole() -> None:
    read = after([*text("m", "x", metadata={"a": 1}), *call("c", parentMessageId="m"), snapshot(user("m", "y"))])
    assert read == [user("m", "y")]


def test_M2_a_snapshot_in_the_middle_of_a_message() -> None:
    start, *_, end = text()
    piece = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "z"}
    kept = [start, piece, snapshot({**ASSISTANT, "content": "restated "}), piece, end]
    dropped = [start, piece, snapshot(), piece, end]
    assert after(kept) == [{**ASSISTANT, "content": "restated z"}]
    assert after(dropped) == []


def test_of_two_messages_with_one_id_the_first_goes_on() -> None:
    read = after([result("c", "r"), result("c", "r"), *text("r", " more")[1:]])
    assert [message["content"] for message in read] == ["3 more", "3"]


def test_unseen_messages_of_one_id_are_both_appended() -> None:
    assert len(after([snapshot(user("1", "a"), user("1", "b"))])) == 2


def test_L7_echoed_history_is_appended_where_it_is_unknown() -> None:
    started = {
        "type": "RUN_STARTED",
        "threadId": "t",
        "runId": "r",
        "input": {"threadId": "t", "runId": "r", "messages": [user("1", "changed"), user("2")]},
    }
    assert after([started], [UserMessage(id="1", content="x")]) == [user("1"), user("2")]
