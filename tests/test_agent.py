"""What authors subclass, and what is found when the class is defined."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Generic, TypedDict

import pytest
from ag_ui.core import AgentCapabilities, RunAgentInput, UserMessage
from typing_extensions import TypeVar

from agents_support import agent_of
from statecast import Agent, Ending, Run, State
from statecast.agent import state_annotation


class Trip(State):
    city: str = ""


class Form(TypedDict):
    name: str


T = TypeVar("T")


class Plain(Agent):
    """First line.

    More."""

    async def run(self, run: Run) -> None: ...


class Middle(Agent[T], Generic[T]):
    pass


class ListOf(Agent[list[T]], Generic[T]):
    pass


class Pair(Agent[dict[str, T]], Generic[T]):
    pass


def test_the_state_type_is_found_in_class_statements() -> None:
    class A(Middle[Trip]): ...

    class B(A): ...

    class C(ListOf[int]): ...

    class D(ListOf): ...

    class E(Middle): ...

    class F(Middle[list[Trip]]): ...

    class G(Agent[Form]): ...

    class H(Agent["Trip"]): ...

    class I(Pair[int]): ...  # noqa: E742

    class Both(Generic[T], Agent[T]): ...

    class J(Both[Trip]): ...

    found = {cls.__name__: state_annotation(cls) for cls in (Agent, Plain, A, B, C, D, E, F, G, H, I, J)}
    assert found == {
        "Agent": dict[str, Any],
        "Plain": dict[str, Any],
        "A": Trip,
        "B": Trip,
        "C": list[int],
        "D": list[Any],
        "E": dict[str, Any],
        "F": list[Trip],
        "G": Form,
        "H": Trip,
        "I": dict[str, int],
        "J": Trip,
    }


def test_a_name_that_cannot_be_found_says_so() -> None:
    class Lost(Agent["Nowhere"]):  # type: ignore[name-defined]
        ...

    with pytest.raises(TypeError, match="Nowhere"):
        state_annotation(Lost)


def test_names_come_from_the_class_unless_it_sets_them() -> None:
    class Named(Agent):
        """Doc."""

        name = "Other"
        version = "2"

    assert (Plain().name, Plain().description, Plain().version) == ("Plain", "First line.", None)
    assert (Named().name, Named().description, Named().version) == ("Other", "Doc.", "2")


def test_a_run_that_is_not_async_is_refused_when_the_class_is_defined() -> None:
    with pytest.raises(TypeError, match="async def"):

        class Sync(Agent):
            def run(self, run: Run) -> None:  # type: ignore[override]
                ...


def test_a_run_that_yields_is_refused_when_the_class_is_defined() -> None:
    with pytest.raises(TypeError, match="say"):

        class Yielding(Agent):
            async def run(self, run: Run) -> AsyncIterator[str]:  # type: ignore[override]
                yield "text"


def test_a_lifespan_without_its_decorator_is_refused_when_the_class_is_defined() -> None:
    with pytest.raises(TypeError, match="asynccontextmanager"):

        class Bare(Agent):
            async def lifespan(self) -> AsyncIterator[None]:  # type: ignore[override]
                yield


def test_a_state_without_a_first_value_is_found_when_the_app_is_made() -> None:
    class Needs(State):
        city: str

    class Unready(Agent[Needs]):
        async def run(self, run: Run[Needs]) -> None: ...

    class Ready(Unready):
        def initial_state(self) -> Needs:
            return Needs(city="x")

    for make in (Unready().app, Unready().endpoint, Unready().routes):
        with pytest.raises(TypeError, match="initial_state"):
            make()
    Ready().app()


@pytest.mark.parametrize(
    "options",
    [
        {"grace": -1},
        {"state_interval": None},
        {"first_state": "x"},
        {"cors": "https://a"},
        {"max_body": 0},
        {"threads": 1},
    ],
)
def test_a_wrong_option_is_found_when_the_app_is_made(options: dict[str, Any]) -> None:
    for make in (Plain().app, Plain().endpoint, Plain().routes):
        with pytest.raises((TypeError, ValueError), match=next(iter(options))):
            make(**options)


def test_capabilities_declare_what_the_class_says_and_can_be_extended() -> None:
    class Declares(Agent[Trip]):
        """Plans."""

        version = "3"

        def capabilities(self) -> AgentCapabilities:
            declared = super().capabilities()
            declared.custom = {**(declared.custom or {}), "extra": 1}
            return declared

    declared = Declares().capabilities().model_dump(by_alias=True, exclude_none=True)
    assert declared["identity"]["name"] == "Declares"
    assert declared["identity"]["description"] == "Plans."
    assert declared["identity"]["version"] == "3"
    assert declared["transport"] == {"streaming": True}
    assert declared["state"] == {"snapshots": True, "deltas": True}
    assert declared["custom"]["extra"] == 1
    assert declared["custom"]["stateSchema"]["properties"]["city"]["type"] == "string"


def given(text: str = "hi", **more: Any) -> RunAgentInput:
    return RunAgentInput(
        thread_id="t", run_id="r", messages=[UserMessage(id="u", content=text)], tools=[], context=[], state={},
        forwarded_props=None, **more,
    )  # fmt: skip


def test_a_run_without_http_gives_the_same_events() -> None:
    async def body(run: Run[Any]) -> str:
        assert run.request is None
        run.state["n"] = 1
        await run.say("hello")
        return "done"

    async def scenario() -> list[str]:
        return [event.type async for event in agent_of(body).stream(given())]

    assert asyncio.run(scenario()) == [
        "RUN_STARTED",
        "STATE_SNAPSHOT",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]


@pytest.mark.parametrize("how", ["aclose", "cancel"])
def test_leaving_a_run_without_http_cancels_it_and_waits_for_its_cleanup(how: str) -> None:
    seen = []

    async def body(run: Run[Any]) -> None:
        try:
            while True:
                await run.say("tick")
        finally:
            await asyncio.sleep(0.01)
            seen.append("cleaned")

    async def scenario() -> None:
        events = agent_of(body).stream(given())

        async def read() -> None:
            async for event in events:
                if event.type == "TEXT_MESSAGE_END" and how == "aclose":
                    break

        if how == "aclose":
            await read()
            await events.aclose()  # type: ignore[attr-defined]
        else:
            reader = asyncio.create_task(read())
            await asyncio.sleep(0.02)
            reader.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reader

    asyncio.run(scenario())
    assert seen == ["cleaned"]


def test_a_run_without_http_opens_the_lifespan() -> None:
    seen = []

    class Pooled(Agent[dict[str, Any]]):
        @asynccontextmanager
        async def lifespan(self) -> AsyncIterator[None]:
            seen.append("open")
            yield
            seen.append("close")

        async def run(self, run: Run[dict[str, Any]]) -> None:
            seen.append("run")

    async def scenario() -> None:
        agent = Pooled()
        async with agent.running():
            async for _ in agent.stream(given()):
                pass
            async for _ in agent.stream(given()):
                pass

    asyncio.run(scenario())
    assert seen == ["open", "run", "run", "close"]


def test_a_reader_that_leaves_after_the_first_event_leaves_no_run_behind() -> None:
    started = []
    endings = []

    class Left(Agent[dict[str, Any]]):
        async def run(self, run: Run[dict[str, Any]]) -> None:
            started.append(run)

        async def on_finish(self, run: Run[dict[str, Any]], ending: Ending) -> None:
            endings.append(ending.kind)

    async def scenario() -> set[Any]:
        before = asyncio.all_tasks()
        events = Left().stream(given())
        assert (await anext(events)).type == "RUN_STARTED"
        await events.aclose()  # type: ignore[attr-defined]
        await asyncio.sleep(0)
        return asyncio.all_tasks() - before

    assert asyncio.run(asyncio.wait_for(scenario(), 5)) == set()
    assert started == []
    assert endings == ["disconnected"]


def test_a_run_that_is_cancelled_before_it_began_ends_as_cancelled() -> None:
    from statecast.server.execution import Execution
    from statecast.server.inputs import prepare
    from statecast.server.options import Options

    started = []

    async def body(run: Run[Any]) -> None:
        started.append(run)

    async def scenario() -> bytes:
        agent = agent_of(body)
        execution = Execution(agent, prepare(agent, given().model_dump(mode="json", by_alias=True)), Options())
        execution.open()
        execution.cancel("shutdown")
        frames = b"".join([chunk async for chunk in execution.frames()])
        await execution.leave()
        return frames

    frames = asyncio.run(asyncio.wait_for(scenario(), 5))
    assert frames.count(b"data: ") == 2
    assert b"RUN_STARTED" in frames
    assert b'"reason":"shutdown"' in frames or b"STOPPED" in frames
    assert started == []


def test_a_run_that_cannot_take_the_run_is_refused_when_the_class_is_defined() -> None:
    with pytest.raises(TypeError, match="async def run"):

        class NoArgument(Agent):
            async def run(self) -> None:  # type: ignore[override]
                ...


@pytest.mark.parametrize("name", ["authorize", "on_finish"])
def test_hooks_that_are_awaited_are_async(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} must be an `async def`"):
        type("Sync", (Agent,), {name: lambda self, *given: None})


def test_an_agent_without_run_is_found_when_the_app_is_made() -> None:
    class Nothing(Agent): ...

    for make in (Nothing().app, Nothing().endpoint, Nothing().routes):
        with pytest.raises(TypeError, match="does not define"):
            make()
