"""Messages that are edited and restated."""

from __future__ import annotations

from typing import Any

from ag_ui.core import (
    UserMessage,
)

from interop_recording import Recorded
from statecast import Run

from .scenario import Results, contents, scenario
from .streamed import PARTS

HISTORY: list[dict[str, Any]] = [
    {"id": "s", "role": "system", "content": "be brief"},
    {"id": "u1", "role": "user", "content": [{"type": "text", "text": "look: "}, {"type": "text", "text": "a cat"}]},
    {"id": "r1", "role": "reasoning", "content": "a cat?", "encryptedValue": "opaque"},
    {
        "id": "a1",
        "role": "assistant",
        "content": "I see",
        "toolCalls": [{"id": "c1", "type": "function", "function": {"name": "see", "arguments": "{}"}}],
    },
    {"id": "t1", "role": "tool", "toolCallId": "c1", "content": "a cat"},
    {"id": "a2", "role": "assistant", "content": "a cat", "name": "eye", "metadata": {"k": None}},
]


@scenario(thread={"messages": HISTORY})
class EditedMessages(Recorded):
    """Messages that are removed, replaced and appended reach the client in one snapshot."""

    async def run(self, run: Run) -> None:
        activity = run.activity("plan", {"n": 1})
        await run.say("before", id="before")
        del run.messages[0]
        index = next(number for number, message in enumerate(run.messages) if message.id == "a2")
        run.messages[index] = run.messages[index].model_copy(update={"content": "a dog"})
        run.messages.append(UserMessage(id="added", content="said elsewhere"))
        await run.flush()
        await run.say("after", id="after")
        activity.content["n"] = 2
        run.messages.pop()

    @staticmethod
    def check(results: Results, client: str) -> None:
        ids = [message["id"] for message in results[0]["messages"] if message["role"] != "activity"]
        assert ids == ["u1", "r1", "a1", "t1", "a2", "user-6", "before", "added"]
        assert next(m for m in results[0]["messages"] if m["id"] == "a2")["content"] == "a dog"
        assert next(m for m in results[0]["messages"] if m["id"] == "r1")["encryptedValue"] == "opaque"
        assert [m["content"] for m in results[0]["messages"] if m["role"] == "activity"] == [{"n": 2}]
        assert results[0]["events"].count("MESSAGES_SNAPSHOT") == 2


MEDIA = [
    {"type": "text", "text": "see"},
    {"type": "image", "source": {"type": "url", "value": "https://example.org/a.png"}},
]


@scenario(thread={"messages": [{"id": "u0", "role": "user", "content": MEDIA}]})
class RestatedMessages(Recorded):
    """A restatement without an edit, with parts in user and tool messages."""

    async def run(self, run: Run) -> None:
        async with run.tool_call("map") as chart:
            await chart.result(PARTS)
        run.messages.restate()
        await run.flush()
        await run.say(run.user_text)

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert results[0]["events"].count("MESSAGES_SNAPSHOT") == 1
        assert contents(results[0], "user")[0] == MEDIA
        assert contents(results[0], "assistant")[-1] == "go"
