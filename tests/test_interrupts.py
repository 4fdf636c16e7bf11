"""Questions that end a run and answers that begin the next one (P1 to P3)."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Literal

import pytest
from pydantic import BaseModel, TypeAdapter

from agents_support import agent_of, last, only
from statecast import Abandoned, Question, Run, SequenceError
from statecast.testing import run_agent


def play(body: Any, **given: Any) -> Any:
    return asyncio.run(run_agent(agent_of(body), "hi", **given))


def answer(id: str, payload: Any = None, status: str = "resolved") -> dict[str, Any]:
    entry = {"interruptId": id, "status": status}
    return entry | ({"payload": payload} if status == "resolved" else {})


def test_P1_a_question_without_an_answer_ends_the_run_and_closes_what_it_passes() -> None:
    async def body(run: Run[Any]) -> None:
        async with run.step("s"):
            try:
                await run.ask("approve", message="Book it?", schema=bool, metadata={"k": 1})
            except Exception:
                pytest.fail("an open question is no Exception")

    result = play(body)
    assert result.outcome == "interrupt"
    assert result.types[-2:] == ["STEP_FINISHED", "RUN_FINISHED"]
    assert last(result)["outcome"]["interrupts"] == [
        {
            "id": "approve",
            "reason": "approve",
            "message": "Book it?",
            "responseSchema": {"type": "boolean"},
            "metadata": {"k": 1},
        }
    ]


@pytest.mark.parametrize(
    ("given", "id"),
    [
        ({}, "why"),
        ({"tool_call_id": "t1"}, "why:t1"),
        ({"id": "mine"}, "mine"),
        ({"id": "mine", "tool_call_id": "t"}, "mine"),
    ],
)
def test_the_default_id_is_the_reason_and_never_a_count(given: dict[str, Any], id: str) -> None:
    async def body(run: Run[Any]) -> None:
        async with run.tool_call("x", id=given.get("tool_call_id")):
            pass
        await run.ask("why", **given)

    assert [interrupt.id for interrupt in play(body).interrupts] == [id]


def test_P1_an_id_is_asked_once_a_run() -> None:
    async def body(run: Run[Any]) -> None:
        assert await run.ask("why") == 1
        with pytest.raises(SequenceError, match="id=") as raised:
            await run.ask("why")
        assert raised.value.rule == "P1"

    assert play(body, resume=[answer("why", 1)]).outcome == "success"


def test_three_questions_one_after_the_other_end_in_four_runs() -> None:
    async def body(run: Run[Any]) -> None:
        for name in ("a", "b", "c"):
            if run.state.get(name) is None:
                run.state[name] = await run.ask(name)
        await run.say("all answered")

    async def scenario() -> tuple[int, Any]:
        result = await run_agent(agent_of(body), "hi")
        runs = 1
        while result.outcome == "interrupt":
            assert runs < 10
            (interrupt,) = result.interrupts
            result = await result.resume({interrupt.id: f"to {interrupt.id}"})
            runs += 1
        return runs, result

    runs, result = asyncio.run(scenario())
    assert runs == 4
    assert result.state == {"a": "to a", "b": "to b", "c": "to c"}
    assert result.text == "all answered"


def test_questions_asked_together_are_answered_together_and_in_order() -> None:
    async def body(run: Run[Any]) -> list[Any]:
        return await run.ask_all([Question("a", schema=int), Question("b", message="B?")])

    result = play(body)
    assert [interrupt.id for interrupt in result.interrupts] == ["a", "b"]
    both = play(body, resume=[answer("b", "yes"), answer("a", 1)])
    assert last(both)["result"] == [1, "yes"]


def test_questions_asked_together_are_asked_again_together_as_an_answer_would_be_lost() -> None:
    async def body(run: Run[Any]) -> None:
        await run.ask_all([Question("a"), Question("b")])

    assert [interrupt.id for interrupt in play(body, resume=[answer("a", 1)]).interrupts] == ["a", "b"]


class Choice(BaseModel):
    seat: int


@pytest.mark.parametrize(
    ("schema", "payload", "expected"),
    [
        (bool, True, True),
        (Choice, {"seat": 3}, Choice(seat=3)),
        (TypeAdapter(Literal["yes", "no"]), "no", "no"),
        (TypeAdapter(int | None), None, None),
        (datetime, "2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ({"type": "boolean"}, "not checked", "not checked"),
        (None, {"any": [1]}, {"any": [1]}),
    ],
)
def test_an_answer_is_read_as_its_type(schema: Any, payload: Any, expected: Any) -> None:
    got = []

    async def body(run: Run[Any]) -> None:
        got.append(await run.ask("q", schema=schema))

    assert play(body, resume=[answer("q", payload)]).outcome == "success"
    assert got == [expected]
    assert type(got[0]) is type(expected)


def test_an_answer_that_does_not_fit_ends_the_run_with_its_own_code() -> None:
    async def body(run: Run[Any]) -> None:
        await run.ask("q", schema=Choice)

    result = play(body, resume=[answer("q", {"seat": "hunter2"})])
    assert result.error.code == "invalid_answer"
    assert "hunter2" not in result.error.message


def test_P2_an_abandoned_question_raises_and_ends_in_the_cancelled_outcome() -> None:
    caught: list[Abandoned] = []

    async def body(run: Run[Any]) -> None:
        try:
            await run.ask_all([Question("a"), Question("b")])
        except Abandoned as exc:
            caught.append(exc)
            raise

    result = play(body, resume=[answer("a", 1), answer("b", status="cancelled")])
    assert (caught[0].ids, caught[0].answers) == (["b"], {"a": 1})
    assert result.outcome == "cancelled"
    assert last(result)["metadata"] == {"statecast": {"reason": "abandoned"}}


def test_a_default_answers_an_abandoned_question() -> None:
    async def body(run: Run[Any]) -> Any:
        return await run.ask("q", schema=bool, default=False)

    assert last(play(body, resume=[answer("q", status="cancelled")]))["result"] is False
    assert play(body).outcome == "interrupt"


def test_P2_an_answer_that_nobody_asked_for_is_ignored_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    async def body(run: Run[Any]) -> None: ...

    assert play(body, resume=[answer("stranger", 1)]).outcome == "success"
    assert "stranger" in caplog.text


def test_debug_mode_explains_an_agent_that_asks_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    async def body(run: Run[Any]) -> None:
        await run.ask("b")

    play(body, resume=[answer("a", 1)], debug=True)
    assert "keep the first answer in the state" in caplog.text


def test_a_user_who_writes_on_instead_of_answering_is_asked_again() -> None:
    async def body(run: Run[Any]) -> None:
        await run.ask("q")

    async def scenario() -> list[Any]:
        first = await run_agent(agent_of(body), "hi")
        second = await first.say("something else")
        return [first.interrupts[0].id, second.interrupts[0].id]

    assert asyncio.run(scenario()) == ["q", "q"]


UTC_NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (UTC_NOON, "2026-01-02T12:00:00Z"),
        (UTC_NOON.replace(tzinfo=None), "2026-01-02T12:00:00Z"),
        (UTC_NOON.astimezone(timezone(timedelta(hours=2))), "2026-01-02T14:00:00+02:00"),
        ("2026-01-02T12:00:00Z", "2026-01-02T12:00:00Z"),
    ],
)
def test_P3_an_expiry_is_sent_with_its_zone(given: Any, sent: str) -> None:
    async def body(run: Run[Any]) -> None:
        await run.ask("q", expires_at=given)

    assert last(play(body))["outcome"]["interrupts"][0]["expiresAt"] == sent


def test_P3_an_expiry_may_be_seconds_from_now() -> None:
    async def body(run: Run[Any]) -> None:
        await run.ask("q", expires_in=3600)

    sent = last(play(body))["outcome"]["interrupts"][0]["expiresAt"]
    left = datetime.fromisoformat(sent) - datetime.now(UTC)
    assert timedelta(minutes=59) < left <= timedelta(hours=1)
    with pytest.raises(TypeError, match="not both"):
        Question("q", expires_at=UTC_NOON, expires_in=1)


def test_G2_a_subagent_that_asks_is_suspended_and_the_interrupt_names_it() -> None:
    async def body(run: Run[Any]) -> None:
        async with run.subagent("outer", id="o") as outer, outer.subagent("inner", id="i") as inner:
            await inner.ask("approve")

    result = play(body)
    finished = only(result, "SUBAGENT_FINISHED")
    assert [event["subagentRunId"] for event in finished] == ["i", "o"]
    assert finished[0]["outcome"] == {"type": "suspended", "interruptIds": ["approve"]}
    assert finished[1]["outcome"] == {"type": "suspended"}
    assert last(result)["outcome"]["interrupts"][0]["subagentRunId"] == "i"


def test_a_question_in_a_task_group_ends_the_run_as_an_interrupt() -> None:
    async def ask(run: Run[Any]) -> None:
        await run.ask("approve")

    async def body(run: Run[Any]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(ask(run))
            group.create_task(asyncio.sleep(60))

    assert play(body).outcome == "interrupt"


def test_a_question_that_gather_swallowed_is_still_open_at_the_end() -> None:
    async def body(run: Run[Any]) -> str:
        await asyncio.gather(run.ask("approve"), return_exceptions=True)
        return "went on"

    assert play(body).outcome == "interrupt"


def test_an_unexpected_exception_beside_a_question_wins() -> None:
    async def ask(run: Run[Any]) -> None:
        await run.ask("approve")

    async def fail() -> None:
        raise ValueError("bug")

    async def body(run: Run[Any]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(ask(run))
            group.create_task(fail())

    assert play(body).error.code == "internal"


def test_a_repeated_run_id_is_accepted_on_a_resume(caplog: pytest.LogCaptureFixture) -> None:
    async def body(run: Run[Any]) -> Any:
        return await run.ask("q")

    async def scenario() -> Any:
        first = await run_agent(agent_of(body), "hi", thread_id="t", run_id="r")
        assert first.outcome == "interrupt"
        return await run_agent(agent_of(body), "hi", thread_id="t", run_id="r", resume=[answer("q", 5)])

    caplog.set_level(logging.WARNING)
    assert last(asyncio.run(scenario()))["result"] == 5


def test_P2_half_a_surrogate_pair_in_an_answer() -> None:
    async def body(run: Run[Any]) -> Any:
        return await run.ask("say", schema=dict[str, str])

    half = {"text": "\ud83d"}
    assert last(play(body, resume=[answer("say", half)]))["result"] == half
    assert play(body, resume=[answer("say", {"text": 5, "half": "\ud83d"})]).error.code == "invalid_answer"
