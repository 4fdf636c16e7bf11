"""Conversations to edit."""

from __future__ import annotations

from typing import Any

from ag_ui.core import (
    ActivityMessage,
    AssistantMessage,
    ReasoningMessage,
    UserMessage,
)

from statecast.conversation import Conversation


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
