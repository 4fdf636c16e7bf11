"""Text, reasoning and tool calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from ag_ui.core import (
    DataSource,
    ImagePart,
    TextPart,
    UrlSource,
)

from interop_recording import Recorded
from statecast import Run

from .scenario import Results, contents, scenario


async def words(*pieces: str) -> AsyncIterator[str]:
    for piece in pieces:
        await asyncio.sleep(0)
        yield piece


@scenario()
class Texts(Recorded):
    """Text in all its forms: roles, names, metadata, empty, interleaved, opened again."""

    async def run(self, run: Run) -> None:
        first = await run.say("plain", metadata={"a": None, "b": {"c": 1}})
        await run.say(["a ", "list"], role="system", name="narrator")
        await run.say(words("an ", "async ", "stream"), role="developer")
        await run.say("from the user", role="user", id="u-2")
        await run.say("")
        async with run.text(id="x") as one, run.text(id="y") as two:
            await one.write("1")
            await two.write("2")
            await one.write("3")
        async with run.text(id=first, metadata={"b": {"d": 2}}) as again:
            await again.write(", and more")

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert contents(results[0], "assistant") == ["plain, and more", "", "13", "2"]
        assert contents(results[0], "system") == ["a list"]
        assert contents(results[0], "user") == ["go", "from the user"]


@scenario(runs=[{"say": "a"}, {"say": "b"}], endings=["success"] * 2)
class ReasoningWithEncryptedValues(Recorded):
    """Reasoning comes back in the next input, its encrypted value unchanged."""

    async def run(self, run: Run) -> None:
        run.state["came back"] = [message.encrypted_value for message in run.messages if message.role == "reasoning"]
        async with run.reasoning(metadata={"effort": "high"}) as thought:
            await thought.write("Let me ")
            await thought.write("think.")
            await thought.encrypted(f"opaque-{run.user_text}")
        async with run.tool_call("lookup", {"q": 1}) as call:
            await call.encrypted("opaque-call")
            await call.result("found")
        async with run.reasoning():
            pass
        await run.say("Done.")

    @staticmethod
    def check(results: Results, client: str) -> None:
        thoughts = [message for message in results[0]["messages"] if message["role"] == "reasoning"]
        assert thoughts[0]["content"] == "Let me think."
        assert thoughts[0]["encryptedValue"] == "opaque-a"
        assert results[1]["state"]["came back"][0] == "opaque-a"
        calls = [call for message in results[0]["messages"] for call in message.get("toolCalls", [])]
        assert calls[0]["encryptedValue"] == "opaque-call"


PARTS = [
    TextPart(text="A map"),
    ImagePart(source=UrlSource(value="https://example.org/map.png")),
    ImagePart(source=DataSource(value="iVBORw0KGgo=", mime_type="image/png")),
    TextPart(text=" of Lisbon"),
]


@scenario(runs=[{"say": "a"}, {"say": "b"}], endings=["success"] * 2)
class ToolCalls(Recorded):
    """Tool calls: arguments streamed or whole, results as text, JSON and parts, failures, a parent, two at once."""

    async def run(self, run: Run) -> None:
        parent = await run.say("I look it up.")
        async with run.tool_call("search", parent=parent) as search:
            for piece in ('{"q":', '"caf', 'é"', "}"):
                await search.write(piece)
            await search.result("three hits", metadata={"ms": 12})
        async with run.tool_call("weather", {"city": "Lisbon"}, parent=parent, metadata={"unit": "C"}) as weather:
            await weather.result({"temperature": 21.5, "wind": None})
        async with run.tool_call("map") as chart:
            await chart.result(PARTS)
        async with run.tool_call("broken", [1]) as broken:
            await broken.result("it failed", error="no connection")
        async with run.tool_call("one", {}) as one, run.tool_call("two", {}) as two:
            await two.result("second")
            await one.result("first")
        await run.say("Here you are.")

    @staticmethod
    def check(results: Results, client: str) -> None:
        first = results[0]
        assert contents(first, "tool")[:2] == ["three hits", '{"temperature":21.5,"wind":null}']
        assert contents(first, "tool")[2] == (
            "A map of Lisbon"
            if client == "0.0.59"
            else [part.model_dump(mode="json", by_alias=True, exclude_none=True) for part in PARTS]
        )
        calls = [call["function"] for message in first["messages"] for call in message.get("toolCalls", [])]
        assert calls[0] == {"name": "search", "arguments": '{"q":"café"}'}
        assert [call["arguments"] for call in calls[1:4]] == ['{"city":"Lisbon"}', "{}", "[1]"]


BROWSER_TOOL = {"name": "pick_color", "description": "Lets the user pick.", "parameters": {"type": "object"}}


@scenario(
    runs=[
        {"say": "paint", "tools": [BROWSER_TOOL]},
        {
            "tools": [BROWSER_TOOL],
            "messages": [{"id": "answer", "role": "tool", "toolCallId": "pick", "content": '{"color":"red"}'}],
        },
    ],
    endings=["success"] * 2,
)
class FrontendTool(Recorded):
    """A tool of the client: left pending, answered in the next input."""

    async def run(self, run: Run) -> str:
        answers = [message for message in run.messages if message.role == "tool"]
        if not answers:
            await run.call_frontend("pick_color", {"of": ["red", "blue"]}, id="pick")
            return "asked"
        await run.say(f"painted: {answers[-1].content}")
        return "painted"

    @staticmethod
    def check(results: Results, client: str) -> None:
        if client == "1.0.0":
            assert results[0]["pendingToolCallIds"] == ["pick"]
            assert not results[1]["pendingToolCallIds"]
        assert [run["result"] for run in results] == ["asked", "painted"]
        assert contents(results[1], "assistant")[-1] == 'painted: {"color":"red"}'
