"""Events that the application or other code made: custom, raw, emitted, relayed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pydantic_ai
from ag_ui.core import (
    CustomEvent,
    RawEvent,
    TextMessageChunkEvent,
    ToolCallChunkEvent,
)
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.ui.ag_ui import AGUIAdapter

from interop_recording import Recorded
from statecast import Run

from .scenario import Results, contents, scenario
from .streamed import BROWSER_TOOL


@scenario()
class CustomAndRaw(Recorded):
    """An application's own events, any JSON, also null."""

    async def run(self, run: Run) -> None:
        for value in (None, 0, "", [], {"a": {"b": None}}, "é🎉"):
            await run.custom("com.example.value", value, metadata={"kind": type(value).__name__})
            await run.raw(value, source="elsewhere")
        await run.raw({"no": "source"})

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert results[0]["events"].count("CUSTOM") == 6
        assert results[0]["events"].count("RAW") == 7


@scenario()
class EmittedEvents(Recorded):
    """Events that other code made, chunks among them, under the same rules."""

    async def run(self, run: Run) -> None:
        await run.emit(TextMessageChunkEvent(message_id="m", role="assistant", delta="Hel"))
        run.state["between"] = True
        await run.emit(TextMessageChunkEvent(message_id="m", delta="lo"))
        await run.emit(ToolCallChunkEvent(tool_call_id="c", tool_call_name="search", delta='{"q"'))
        await run.emit(ToolCallChunkEvent(delta=":1}"))
        await run.emit({"type": "REASONING_MESSAGE_CHUNK", "messageId": "r", "delta": "hm"})
        await run.emit({"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/patched", "value": [1]}]})
        await run.emit(CustomEvent(name="com.example.made", value=None))
        await run.emit(RawEvent(event=[1]))
        await run.emit(
            {"type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "plan", "content": {"steps": [1]}}
        )
        await run.emit(
            {
                "type": "ACTIVITY_DELTA",
                "messageId": "a",
                "activityType": "plan",
                "patch": [{"op": "add", "path": "/steps/-", "value": 2}],
            }
        )
        await run.say("done")

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert results[0]["state"] == {"between": True, "patched": [1]}
        assert contents(results[0], "activity") == [{"steps": [1, 2]}]
        assert contents(results[0], "assistant")[0] == "Hello"
        assert not [kind for kind in results[0]["events"] if kind.endswith("_CHUNK")]


@scenario()
class Relayed(Recorded):
    """Another producer's stream goes out as ours."""

    async def run(self, run: Run) -> None:
        run.state["mine"] = 1

        async def other() -> AsyncIterator[dict[str, Any]]:
            yield {"type": "RUN_STARTED", "threadId": "other", "runId": "other"}
            yield {"type": "STATE_SNAPSHOT", "snapshot": {"mine": 1, "theirs": [1]}}
            yield {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "relayed"}
            yield {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/theirs/-", "value": 2}]}
            yield {"type": "RUN_FINISHED", "threadId": "other", "runId": "other", "result": "theirs"}

        async with run.subagent("other") as sub:
            sub.result = await sub.relay(other())
        await run.say("over")

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert results[0]["state"] == {"mine": 1, "theirs": [1, 2]}
        assert contents(results[0], "assistant") == ["relayed", "over"]


guide = pydantic_ai.Agent(TestModel(custom_output_text="Have a look."), deps_type=Run[dict[str, Any]])


@guide.tool
async def find_place(context: pydantic_ai.RunContext[Run[dict[str, Any]]], kind: str) -> str:
    """Finds a place and puts it into the state of the run."""
    context.deps.state["found"] = [kind]
    return "found"


@scenario()
class RelayedPydanticAI(Recorded):
    """A pydantic-ai agent, whose tool changes our state while its stream goes out as ours."""

    async def run(self, run: Run) -> None:
        request = run.input.model_copy(update={"state": None})
        await run.relay(AGUIAdapter(guide, request, include_usage=True).run_stream(deps=run))
        run.state["over"] = True

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert results[0]["state"] == {"found": ["a"], "over": True}
        assert contents(results[0], "tool") == ["found"]
        assert contents(results[0], "assistant")[-1] == "Have a look."
        assert results[0]["events"].count("RUN_STARTED") == results[0]["events"].count("RUN_FINISHED") == 1
        assert results[0]["usage"][0]["model"] == "test"
        assert results[0]["usage"][0]["inputTokens"] > 0


cashier = pydantic_ai.Agent(
    TestModel(custom_output_text="Thank you."), output_type=[str, pydantic_ai.DeferredToolRequests]
)


@cashier.tool_plain(requires_approval=True)
async def pay(amount: int) -> str:
    """Pays, when a person agrees."""
    return f"paid {amount}"


@scenario(
    runs=[{"say": "go"}, {"answers": {"int-pyd_ai_tool_call_id__pay": {"approved": True}}}],
    endings=["interrupt", "success"],
)
class RelayedApproval(Recorded):
    """A question of the relayed agent is a question of this run, and its answer reaches the relayed agent."""

    async def run(self, run: Run) -> None:
        request = run.input.model_copy(update={"state": None})
        await run.relay(AGUIAdapter(cashier, request).run_stream())

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert results[0]["interrupts"][0]["toolCallId"] == "pyd_ai_tool_call_id__pay"
        assert contents(results[1], "tool") == ["paid 0"]
        assert contents(results[1], "assistant")[-1] == "Thank you."


painter = pydantic_ai.Agent(TestModel(), output_type=[str, pydantic_ai.DeferredToolRequests])


@scenario(runs=[{"say": "paint", "tools": [BROWSER_TOOL]}])
class RelayedFrontendTool(Recorded):
    """A tool of the client, called by the relayed agent, is left pending by this run."""

    async def run(self, run: Run) -> None:
        request = run.input.model_copy(update={"state": None})
        await run.relay(AGUIAdapter(painter, request).run_stream())

    @staticmethod
    def check(results: Results, client: str) -> None:
        if client == "1.0.0":
            assert results[0]["pendingToolCallIds"] == ["pyd_ai_tool_call_id__pick_color"]


async def out_of_order(messages: Any, info: Any) -> AsyncIterator[str]:
    yield "so far"
    raise ValueError("the model is out of order")


broken = pydantic_ai.Agent(FunctionModel(stream_function=out_of_order))


@scenario(endings=["error agent_error"])
class RelayedFailure(Recorded):
    """The relayed agent fails: its RUN_ERROR, which is its own text for the user, is this run's."""

    async def run(self, run: Run) -> None:
        request = run.input.model_copy(update={"state": None})
        await run.relay(AGUIAdapter(broken, request).run_stream())

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert results[0]["runError"]["message"] == "the model is out of order"
        assert contents(results[0], "assistant") == ["so far"]
