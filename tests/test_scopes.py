"""What a run opens and closes, as it goes out."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from ag_ui.core import TextPart
from pydantic import RootModel

from agents_support import agent_of, last, only, wire
from statecast import AgentError, Run, RunEnded, SequenceError
from statecast.testing import run_agent


def play(body: Any, text: str = "hi", **given: Any) -> Any:
    return asyncio.run(run_agent(agent_of(body), text, **given))


def test_S1_text_goes_out_as_start_content_end_and_grows_the_conversation() -> None:
    async def body(run: Run[Any]) -> None:
        id = await run.say("Hello", name="Bot", metadata={"k": None})
        assert run.messages[-1].content == "Hello"
        assert run.messages[-1].id == id

    result = play(body)
    start, content, end = wire(result)[1:-1]
    assert start == {
        "type": "TEXT_MESSAGE_START",
        "messageId": start["messageId"],
        "role": "assistant",
        "name": "Bot",
        "metadata": {"k": None},
    }
    assert content == {"type": "TEXT_MESSAGE_CONTENT", "messageId": start["messageId"], "delta": "Hello"}
    assert end == {"type": "TEXT_MESSAGE_END", "messageId": start["messageId"]}
    assert result.text == "Hello"


@pytest.mark.parametrize("kind", ["list", "generator", "async generator"])
def test_say_streams_the_pieces_of_an_iterable_and_leaves_out_empty_ones(kind: str) -> None:
    closed = []

    async def pieces() -> Any:
        try:
            for piece in ("a", "", "b"):
                yield piece
        finally:
            closed.append(True)

    async def body(run: Run[Any]) -> None:
        given: Any = {"list": ["a", "", "b"], "generator": iter(["a", "", "b"]), "async generator": pieces()}[kind]
        await run.say(given)
        await run.say("")

    result = play(body)
    assert [event["delta"] for event in only(result, "TEXT_MESSAGE_CONTENT")] == ["a", "b"]
    assert result.types.count("TEXT_MESSAGE_START") == 2
    assert closed == ([True] if kind == "async generator" else [])


@pytest.mark.parametrize("text", [b"bytes", 1, None, [1]])
def test_say_takes_text_only(text: Any) -> None:
    async def body(run: Run[Any]) -> None:
        with pytest.raises(TypeError):
            await run.say(text)

    result = play(body)
    assert result.outcome == "success"


def test_an_async_generator_is_closed_when_sending_fails() -> None:
    closed = []

    async def pieces() -> Any:
        try:
            yield "a"
            raise AgentError("enough")
        finally:
            closed.append(True)

    async def body(run: Run[Any]) -> None:
        await run.say(pieces())

    result = play(body)
    assert closed == [True]
    assert result.types == [
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_ERROR",
    ]


def test_S2_a_closed_message_is_opened_again_and_appended_to() -> None:
    async def body(run: Run[Any]) -> None:
        id = await run.say("one ")
        await run.say("two", id=id)
        with pytest.raises(SequenceError) as raised:
            await run.say("three", id=id, role="user")
        assert raised.value.rule == "S2"
        assert run.messages[-1].content == "one two"

    assert play(body).messages[-1].content == "one two"


def test_S1_a_message_that_is_open_cannot_be_opened_again_and_nothing_is_sent() -> None:
    async def body(run: Run[Any]) -> None:
        async with run.text() as text:
            await text.write("a")
            with pytest.raises(SequenceError) as raised:
                await run.say("b", id=text.id)
            assert raised.value.rule == "S1"
            await text.write("c")

    result = play(body)
    assert result.text == "ac"


def test_S1_writing_to_a_closed_message_raises_at_that_line() -> None:
    async def body(run: Run[Any]) -> None:
        async with run.text() as text:
            pass
        with pytest.raises(SequenceError):
            await text.write("late")

    assert play(body).outcome == "success"


def test_R1_reasoning_is_a_span_with_one_message_and_may_carry_an_encrypted_value() -> None:
    async def body(run: Run[Any]) -> None:
        async with run.reasoning() as thought:
            await thought.write("hm")
            await thought.encrypted("secret")

    result = play(body)
    assert result.types[1:-1] == [
        "REASONING_START",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_ENCRYPTED_VALUE",
        "REASONING_MESSAGE_END",
        "REASONING_END",
    ]
    assert only(result, "REASONING_MESSAGE_START")[0]["role"] == "reasoning"
    message = result.messages[-1]
    assert (message.role, message.content, message.encrypted_value) == ("reasoning", "hm", "secret")


def test_T2_a_tool_call_sends_its_arguments_and_its_result_after_its_end() -> None:
    async def body(run: Run[Any]) -> None:
        async with run.tool_call("search", {"q": "x"}) as call:
            await call.result({"hits": [1, None]})
            await run.say("found")

    result = play(body)
    assert result.types[1:5] == ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"]
    assert result.types.count("TOOL_CALL_END") == 1
    assert only(result, "TOOL_CALL_ARGS")[0]["delta"] == '{"q":"x"}'
    assert only(result, "TOOL_CALL_RESULT")[0]["content"] == '{"hits":[1,null]}'
    owner, answer = result.messages[-3:-1]
    assert owner.tool_calls[0].function.arguments == '{"q":"x"}'
    assert answer.role == "tool"
    assert answer.tool_call_id == owner.tool_calls[0].id


def test_a_call_without_arguments_has_the_arguments_of_an_empty_object() -> None:
    async def body(run: Run[Any]) -> None:
        async with run.tool_call("now") as call:
            await call.result("12:00")
        async with run.tool_call("later"):
            pass

    result = play(body)
    assert [event["delta"] for event in only(result, "TOOL_CALL_ARGS")] == ["{}", "{}"]
    assert only(result, "TOOL_CALL_RESULT")[0]["content"] == "12:00"


def test_S4_arguments_are_written_in_pieces_that_need_not_be_json() -> None:
    async def body(run: Run[Any]) -> None:
        async with run.tool_call("search") as call:
            await call.write('{"q": ')
            await call.write('"x')
            await call.encrypted("blob")

    result = play(body)
    call = result.messages[-1].tool_calls[0]
    assert call.function.arguments == '{"q": "x'
    assert call.encrypted_value == "blob"


def test_T2_content_parts_go_out_as_parts() -> None:
    async def body(run: Run[Any]) -> None:
        async with run.tool_call("look") as call:
            await call.result([TextPart(text="a"), TextPart(text="b")])

    result = play(body)
    assert only(result, "TOOL_CALL_RESULT")[0]["content"] == [
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
    ]


def test_a_failed_tool_says_so_in_its_metadata_and_in_the_conversation() -> None:
    async def body(run: Run[Any]) -> None:
        async with run.tool_call("search") as call:
            await call.result("", error="no network", metadata={"tries": 2})
        assert run.messages[-1].error == "no network"

    event = only(asyncio.run(run_agent(agent_of(body), "hi")), "TOOL_CALL_RESULT")[0]
    assert event["metadata"] == {"tries": 2, "error": "no network"}


TOOL = {"name": "confirm", "description": "Asks", "parameters": {"type": "object"}}


def test_T3_a_frontend_call_is_left_pending_and_named_at_the_end() -> None:
    ids = []

    async def body(run: Run[Any]) -> None:
        ids.append(await run.call_frontend("confirm", {"text": "ok?"}))

    result = play(body, tools=[TOOL])
    assert last(result)["outcome"] == {"type": "success", "pendingToolCallIds": ids}


def test_T3_a_frontend_call_is_never_answered_here() -> None:
    async def body(run: Run[Any]) -> None:
        async with run.tool_call("confirm") as call:
            with pytest.raises(SequenceError) as raised:
                await call.result("yes")
            assert raised.value.rule == "T3"

    result = play(body, tools=[TOOL])
    assert "TOOL_CALL_RESULT" not in result.types


def test_a_tool_that_the_client_does_not_offer_is_refused_by_name() -> None:
    async def body(run: Run[Any]) -> None:
        with pytest.raises(ValueError, match="confirm"):
            await run.call_frontend("delete")

    assert "TOOL_CALL_START" not in play(body, tools=[TOOL]).types


def test_L6_steps_overlap_but_not_under_one_name() -> None:
    async def body(run: Run[Any]) -> None:
        async with run.step("a"), run.step("b"):
            with pytest.raises(SequenceError) as raised:
                async with run.step("a"):
                    pass
            assert raised.value.rule == "L6"
        async with run.step("a"):
            pass

    result = play(body)
    names = [event["stepName"] for event in only(result, "STEP_STARTED", "STEP_FINISHED")]
    assert names == ["a", "b", "b", "a", "a", "a"]


def test_A1_an_activity_is_tracked_like_state() -> None:
    async def body(run: Run[Any]) -> None:
        activity = run.activity("PLAN", {"steps": [], "text": "x" * 600}, metadata={"m": 1})
        await run.flush()
        activity.content["steps"].append("one")
        await run.say("words after the activity")
        activity.content["steps"].append("two")

    result = play(body)
    events = only(result, "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA")
    assert [event["type"] for event in events] == ["ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "ACTIVITY_DELTA"]
    assert events[0]["metadata"] == {"m": 1}
    assert events[1]["patch"] == [{"op": "add", "path": "/steps/0", "value": "one"}]
    assert result.types.index("ACTIVITY_DELTA") < result.types.index("TEXT_MESSAGE_START")
    message = next(message for message in result.messages if message.role == "activity")
    assert message.content == {"steps": ["one", "two"], "text": "x" * 600}


@pytest.mark.parametrize("content", [[], "text", None, 1, RootModel[list[int]]([1])])
def test_A1_an_activity_is_an_object(content: Any) -> None:
    async def body(run: Run[Any]) -> None:
        with pytest.raises(ValueError, match="A1"):
            run.activity("PLAN", content)
        activity = run.activity("PLAN", {})
        with pytest.raises(ValueError, match="A2"):
            activity.content = content

    assert play(body).outcome == "success"


def test_G1_a_subagents_events_carry_its_id_and_the_parents_none() -> None:
    async def body(run: Run[Any]) -> None:
        async with run.subagent("helper", id="h", description="helps") as sub:
            await sub.say("from the helper")
            async with sub.subagent("nested", id="n") as nested, nested.step("s"):
                pass
            await run.say("from the parent")
            sub.result = {"n": 1}

    result = play(body)
    owners = {event["type"]: event.get("subagentRunId") for event in wire(result)}
    assert only(result, "SUBAGENT_STARTED")[1]["parentSubagentRunId"] == "h"
    assert owners["STEP_STARTED"] == owners["STEP_FINISHED"] == "n"
    assert [event.get("subagentRunId") for event in only(result, "TEXT_MESSAGE_END")] == ["h", None]
    assert only(result, "SUBAGENT_FINISHED")[1] == {
        "type": "SUBAGENT_FINISHED",
        "subagentRunId": "h",
        "result": {"n": 1},
    }


def test_G3_parallel_subagents_never_mix_owners() -> None:
    async def work(run: Run[Any], name: str) -> None:
        async with run.subagent(name, id=name) as sub, sub.text() as text:
            for index in range(20):
                await text.write(f"{name}{index} ")
                await asyncio.sleep(0)
            async with sub.tool_call(f"tool-{name}") as call:
                await asyncio.sleep(0)
                await call.result(name)

    async def body(run: Run[Any]) -> None:
        async with asyncio.TaskGroup() as group:
            for name in ("a", "b", "c"):
                group.create_task(work(run, name))

    result = play(body)
    for event in only(result, "TEXT_MESSAGE_CONTENT"):
        assert event["delta"].startswith(event["subagentRunId"])
    for event in only(result, "TOOL_CALL_START"):
        assert event["toolCallName"] == f"tool-{event['subagentRunId']}"


def test_G2_a_subagent_that_fails_does_not_end_the_run_and_its_text_is_not_told() -> None:
    async def body(run: Run[Any]) -> None:
        try:
            async with run.subagent("helper") as sub, sub.text() as text:
                await text.write("a")
                raise ValueError("postgres://user:secret@db")
        except ValueError:
            await run.say("went on")

    result = play(body)
    assert result.types.index("TEXT_MESSAGE_END") < result.types.index("SUBAGENT_ERROR")
    assert "secret" not in str(wire(result))
    assert result.outcome == "success"


def test_L5_scopes_close_themselves_when_the_author_raises() -> None:
    async def body(run: Run[Any]) -> None:
        async with run.step("s"), run.subagent("x") as sub, sub.reasoning() as thought:
            await thought.write("hm")
            raise AgentError("no", code="nope")

    result = play(body)
    assert result.error.code == "nope"
    assert result.types[-5:] == [
        "REASONING_MESSAGE_END",
        "REASONING_END",
        "SUBAGENT_ERROR",
        "STEP_FINISHED",
        "RUN_ERROR",
    ]


def test_L5_what_an_author_left_open_is_closed_at_a_normal_end(caplog: pytest.LogCaptureFixture) -> None:
    async def body(run: Run[Any]) -> None:
        await run.step("s").__aenter__()
        await run.text().__aenter__()

    result = play(body)
    assert result.outcome == "success"
    assert set(result.types[-3:-1]) == {"STEP_FINISHED", "TEXT_MESSAGE_END"}
    assert "left open" in caplog.text


def test_L4_after_the_end_sending_raises() -> None:
    kept: list[Run[Any]] = []

    async def body(run: Run[Any]) -> None:
        kept.append(run)

    async def scenario() -> None:
        await run_agent(agent_of(body), "hi")
        with pytest.raises(RunEnded):
            await kept[0].say("late")
        with pytest.raises(RunEnded):
            await kept[0].flush()

    asyncio.run(scenario())


def test_W7_custom_and_raw_carry_any_json() -> None:
    async def body(run: Run[Any]) -> None:
        await run.custom("com.example.cart", None)
        await run.raw({"a": [1, None]}, source="other", metadata={"k": 1})

    custom, raw = wire(play(body))[1:-1]
    assert custom == {"type": "CUSTOM", "name": "com.example.cart", "value": None}
    assert raw == {"type": "RAW", "event": {"a": [1, None]}, "source": "other", "metadata": {"k": 1}}


def test_an_event_that_was_sent_is_not_changed_by_a_later_change_of_its_value() -> None:
    async def body(run: Run[Any]) -> None:
        value = {"items": [1]}
        await run.custom("x", value)
        value["items"].append(2)
        await run.say("later")

    assert only(play(body), "CUSTOM")[0]["value"] == {"items": [1]}


def test_L8_an_activity_takes_its_id_on_the_line_that_makes_it() -> None:
    async def body(run: Run[Any]) -> None:
        await run.say("hello", id="m")
        with run.batch():  # nothing of the activity goes out yet
            run.activity("plan", {"n": 1}, id="a")
            for id, again in (("m", "message"), ("a", "activity")):
                with pytest.raises(SequenceError, match=again) as raised:
                    run.activity("plan", {"n": 2}, id=id)
                assert raised.value.rule == "L8"
            with pytest.raises(SequenceError) as raised:
                await run.say("hello", id="a")
            assert raised.value.rule == "L8"

    result = play(body)
    assert [(message.id, message.content) for message in result.messages[1:]] == [("m", "hello"), ("a", {"n": 1})]


@pytest.mark.parametrize("removed", [False, True], ids=["replaced", "removed"])
def test_A2_an_activity_whose_message_was_edited_is_stated_anew_when_it_changes(removed: bool) -> None:
    async def body(run: Run[Any]) -> None:
        run.activity("other", {})
        activity = run.activity("plan", {"rows": [1, 2, 3]}, id="a")
        await run.flush()
        if removed:
            del run.messages[-1]
        else:
            run.messages[-1] = run.messages[-1].model_copy(update={"content": {"edited": True}})
        await run.flush()
        activity.content["rows"].append(4)
        await run.flush()
        activity.content["rows"].append(5)

    result = play(body)
    assert [event["type"] for event in only(result, "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA")][2:] == [
        "ACTIVITY_SNAPSHOT",
        "ACTIVITY_DELTA",
    ]
    assert result.messages[-1].content == {"rows": [1, 2, 3, 4, 5]}


def test_S1_what_is_being_streamed_cannot_be_removed() -> None:
    async def body(run: Run[Any]) -> None:
        async with run.text(id="t") as text, run.tool_call("f", id="c") as call:
            await text.write("one ")
            await call.write("{")
            messages = run.messages
            for index in (-1, -2):
                with pytest.raises(SequenceError) as raised:
                    del messages[index]
                assert raised.value.rule == "S1"
            with pytest.raises(SequenceError):
                messages[-1] = messages[-1].model_copy(update={"tool_calls": None})
            with pytest.raises(SequenceError):
                await run.emit({"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "t", "role": "assistant"}]})
            messages[-2] = messages[-2].model_copy(update={"content": "two "})
            await text.write("three")
            await call.write("}")
        del run.messages[-1]

    result = play(body)
    assert [message.content for message in result.messages] == ["hi", "two three"]
