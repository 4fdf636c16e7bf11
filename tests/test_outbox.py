"""The one way out of a run: what is in the way of a piece of text is sent before it, whatever it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from ag_ui.core import AssistantMessage, MessagesSnapshotEvent, UserMessage
from pydantic import computed_field

from agents_support import agent_of, only
from statecast import Agent, Run, SentEvent, SequenceError, State
from statecast.state import Document
from statecast.testing import run_agent


def play(body: Any, **given: Any) -> Any:
    return asyncio.run(run_agent(agent_of(body), "hi", **given))


async def _by_thread(run: Run[Any]) -> None:
    await asyncio.to_thread(run.state.update, {"n": 1})


async def _restate(run: Run[Any]) -> None:
    run.messages.restate()


async def _append(run: Run[Any]) -> None:
    run.messages.append(AssistantMessage(id="extra", content="extra"))


async def _emit_messages(run: Run[Any]) -> None:
    await run.emit(MessagesSnapshotEvent(messages=[*run.messages, AssistantMessage(id="extra", content="extra")]))


async def _edit(run: Run[Any]) -> None:
    run.state["n"] = 1


async def _batch(run: Run[Any]) -> None:
    with run.batch():
        run.state["n"] = 1


async def _activity(run: Run[Any]) -> None:
    run.activity("PLAN", {"n": 1}, id="a")


async def _rename(run: Run[Any]) -> None:
    run.messages[0] = run.messages[0].model_copy(update={"content": "changed"})


async def _resync(run: Run[Any]) -> None:
    run.state["n"] = 1
    await run.flush()
    run.resync()


BETWEEN: dict[str, tuple[Callable[[Run[Any]], Any], str]] = {
    "a state edit": (_edit, "STATE_SNAPSHOT"),
    "a state edit in a thread": (_by_thread, "STATE_SNAPSHOT"),
    "a batch": (_batch, "STATE_SNAPSHOT"),
    "resync": (_resync, "STATE_SNAPSHOT"),
    "an activity": (_activity, "ACTIVITY_SNAPSHOT"),
    "restated messages": (_restate, "MESSAGES_SNAPSHOT"),
    "an appended message": (_append, "MESSAGES_SNAPSHOT"),
    "a changed message": (_rename, "MESSAGES_SNAPSHOT"),
    "an emitted messages snapshot": (_emit_messages, "MESSAGES_SNAPSHOT"),
}


@pytest.mark.parametrize("kind", ["text", "reasoning"])
@pytest.mark.parametrize("between", list(BETWEEN))
def test_what_is_pending_goes_out_before_the_next_piece(between: str, kind: str) -> None:
    do, expected = BETWEEN[between]

    async def body(run: Run[Any]) -> None:
        async with run.text() if kind == "text" else run.reasoning() as stream:
            for index in range(5):
                await stream.write(f"{index} ")
            await do(run)
            for index in range(5, 10):
                await stream.write(f"{index} ")
        written = next(message for message in run.messages if message.id == stream.id)
        assert written.content == "0 1 2 3 4 5 6 7 8 9 "

    result = play(body, state={})
    content = "TEXT_MESSAGE_CONTENT" if kind == "text" else "REASONING_MESSAGE_CONTENT"
    order = [type for type in result.types if type in (content, expected)]
    last = len(order) - 1 - order[::-1].index(expected)
    assert last == len(order) - 6


@pytest.mark.parametrize("delta", ["\ud83d", '"\\\n\x00\x1f\u2028', "é€😀", "data: \n\n"])
def test_every_piece_arrives_as_it_was_written(delta: str) -> None:
    async def body(run: Run[Any]) -> None:
        async with run.text() as text:
            await text.write("first")
            await text.write(delta)

    assert [event["delta"] for event in only(play(body), "TEXT_MESSAGE_CONTENT")] == ["first", delta]


def test_a_piece_of_a_subclass_of_str_is_text_too() -> None:
    class Word(str):
        def __str__(self) -> str:
            return "other"

    async def body(run: Run[Any]) -> None:
        async with run.text() as text:
            await text.write("a")
            await text.write(Word("b"))

    assert play(body).text == "ab"


def test_a_scope_whose_id_was_opened_by_another_appends_to_the_same_message() -> None:
    async def body(run: Run[Any]) -> None:
        async with run.text(id="m") as first:
            await first.write("a")
        with pytest.raises(SequenceError):
            await first.write("x")
        async with run.text(id="m") as second:
            await second.write("b")
            await first.write("c")
            await second.write("d")
        assert run.messages[-1].content == "abcd"

    assert play(body).text == "abcd"


def test_pieces_are_observed_and_counted() -> None:
    seen: list[SentEvent] = []

    class Observed(Agent[dict[str, Any]]):
        async def run(self, run: Run[dict[str, Any]]) -> None:
            async with run.text() as text:
                for _ in range(10):
                    await text.write("word ")

        def on_event(self, run: Run[dict[str, Any]], event: SentEvent) -> None:
            seen.append(event)

    result = asyncio.run(run_agent(Observed(), "hi"))
    assert [event.type for event in seen] == result.types
    assert result.ending.events == len(result.types)
    assert result.ending.bytes == sum(event.bytes for event in seen)


def test_a_fault_of_our_own_at_the_end_still_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from statecast.state import Document

    async def body(run: Run[Any]) -> None:
        await run.say("before")
        monkeypatch.setattr(Document, "take", lambda self, **given: {}["missing"])
        run.state["n"] = 1

    result = asyncio.run(_unjudged(body))
    assert result[-1] == "RUN_ERROR"


async def _unjudged(body: Any) -> list[str]:
    from ag_ui.core import RunAgentInput

    given = RunAgentInput.model_validate(
        {"threadId": "t", "runId": "r", "messages": [], "tools": [], "context": [], "protocolVersion": "1.0"}
    )
    return [event.type async for event in agent_of(body).stream(given)]


@pytest.mark.parametrize("what", ["state", "activity"])
def test_a_burst_that_gives_the_loop_its_turns_is_one_event_an_interval(what: str) -> None:
    async def body(run: Run[Any]) -> None:
        target = run.state if what == "state" else run.activity("PLAN", {}).content
        target["n"] = -1
        await run.flush()
        for index in range(50):
            target["n"] = index
            await asyncio.sleep(0)

    result = play(body, state={}, options={"state_interval": 30.0})
    sent = [type for type in result.types if type.startswith(("STATE", "ACTIVITY"))]
    assert len(sent) == 2


# The id of an activity


async def _as_a_message(run: Run[Any]) -> None:
    run.messages.append(UserMessage(id="a", content="mine"))


async def _in_place_of_a_message(run: Run[Any]) -> None:
    run.messages[:] = [*run.messages, UserMessage(id="a", content="mine")]


async def _in_a_snapshot(run: Run[Any]) -> None:
    await run.emit(MessagesSnapshotEvent(messages=[*run.messages, UserMessage(id="a", content="mine")]))


async def _as_a_text(run: Run[Any]) -> None:
    await run.say("mine", id="a")


async def _as_an_activity(run: Run[Any]) -> None:
    run.activity("PLAN", {"n": 1}, id="a")


TAKING: list[Callable[[Run[Any]], Any]] = [
    *(_as_a_message, _in_place_of_a_message, _in_a_snapshot, _as_a_text, _as_an_activity),
]


@pytest.mark.parametrize("take", TAKING)
@pytest.mark.parametrize("state", ["pending", "sent", "removed"])
def test_nothing_else_takes_the_id_of_an_activity(state: str, take: Callable[[Run[Any]], Any]) -> None:
    async def body(run: Run[Any]) -> None:
        run.activity("OTHER", {}, id="other")
        activity = run.activity("PLAN", {"n": 0}, id="a")
        if state != "pending":
            await run.flush()
        if state == "removed":
            del run.messages[next(index for index, one in enumerate(run.messages) if one.id == "a")]
        with pytest.raises(SequenceError, match="'a'") as caught:
            await take(run)
        assert caught.value.rule == "L8"
        activity.content["n"] = 2
        await run.flush()

    result = play(body).raise_error()
    held = next(one for one in result.messages if one.id == "a")
    assert (held.role, held.content) == ("activity", {"n": 2})


@pytest.mark.parametrize("take", [_as_a_message, _in_place_of_a_message, _in_a_snapshot, _as_a_text])
def test_an_activity_takes_the_id_of_nothing_else(take: Callable[[Run[Any]], Any]) -> None:
    async def body(run: Run[Any]) -> None:
        await take(run)
        with pytest.raises(SequenceError, match="'a'"):
            await _as_an_activity(run)
        await run.say("and on")

    result = play(body).raise_error()
    assert [one.role for one in result.messages if one.id == "a"] in (["user"], ["assistant"])


class Doubled(State):
    n: int = 0

    @computed_field
    def two(self) -> int:
        return 2 * self.n


@pytest.mark.parametrize("holder", ["the input", "a message", "an activity"])
def test_an_activity_that_is_refused_leaves_nothing_behind(holder: str) -> None:
    async def body(run: Run[Any]) -> None:
        id = run.messages[0].id if holder == "the input" else "x"
        if holder == "a message":
            run.messages.append(UserMessage(id=id, content="mine"))
        if holder == "an activity":
            first = run.activity("PLAN", {"n": 1}, id=id)
            await run.flush()
        with pytest.raises(SequenceError) as caught:
            # Its content has something to say from the start, as what it derives must be asked for.
            run.activity("PLAN", Doubled(n=5), id=id)
        assert caught.value.rule == "L8"
        if holder == "a message":
            del run.messages[-1]
            await run.say("free again", id=id)
        await run.flush()
        run.activity("PLAN", {"n": 1}, id="fine")
        await run.say("one")
        if holder == "an activity":
            first.content["n"] = 2

    result = play(body, options={"state_interval": 5.0}).raise_error()
    assert [one.content for one in result.messages if one.role == "activity"] == (
        [{"n": 2}, {"n": 1}] if holder == "an activity" else [{"n": 1}]
    )


def test_a_take_that_fails_in_the_reader_does_not_break_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands for a fault of ours: nobody's line is running then, and the client is told in order."""

    def fail(document: Document[Any]) -> None:
        raise ZeroDivisionError

    async def body(run: Run[Any]) -> None:
        run.state["n"] = 0
        await run.flush()
        monkeypatch.setattr(Document, "take_leaf", fail)
        run.state["n"] = 1
        await asyncio.sleep(0.05)
        monkeypatch.undo()
        run.state["n"] = 2

    result = play(body, options={"state_interval": 0}).raise_error()
    assert result.types[-1] == "RUN_FINISHED"
    assert result.state == {"n": 2}
