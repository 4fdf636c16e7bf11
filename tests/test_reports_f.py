"""What users of other implementations wanted: one test for each wish that this one fulfils.

The id is the report's own. `NOT_YET` says which wishes, or parts of one, are not fulfilled, and why.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import sys
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from ag_ui.core import RunAgentInput, TextMessageContentEvent
from pydantic import ConfigDict, Field, PrivateAttr
from pydantic.alias_generators import to_camel
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from agents_support import agent_of, only, wire
from live_server import run_input, serve
from statecast import Agent, Run, SequenceError, State, StateError, current_run
from statecast.testing import BrokenStream, RunTimeout, open_run, run_agent, run_agent_sync

NOT_YET = {
    "F02": "attaching to a run that goes on: that takes a store of events, and W2 has no id: lines",
    "F07": "stopping a run by a second request: that takes a registry that all processes share; who closes the connection "
    "stops the run (L3, reports of kind D)",
    "F17": "revision numbers: what a client edits comes with its next run's input and is that run's state",
}

STATE_EVENTS = ("STATE_SNAPSHOT", "STATE_DELTA")

TEN_LINES = """
from statecast import Agent, Run, State

class Basket(State):
    items: list[str] = []

class Shopper(Agent[Basket]):
    async def run(self, run: Run[Basket]) -> None:
        async with run.tool_call("add", {"item": run.user_text}) as call:
            run.state.items.append(run.user_text)
            await call.result("added")
"""


def test_F01_ten_lines_and_the_client_follows_live() -> None:
    names: dict[str, Any] = {"__name__": "shopper"}
    sys.modules["shopper"] = type(sys)("shopper")
    try:
        exec(TEN_LINES, names)
        assert len([line for line in TEN_LINES.splitlines() if line]) <= 10
        assert "Event" not in TEN_LINES

        async def main() -> None:
            async with open_run(names["Shopper"], "apples", state={"items": ["bread"]}) as live:
                async for event in live:
                    if event.type == "TOOL_CALL_RESULT":
                        assert live.state == {"items": ["bread", "apples"]}, (
                            "before the run's end, with the real result"
                        )
            assert live.result().raise_error().state == {"items": ["bread", "apples"]}

        asyncio.run(main())
    finally:
        del sys.modules["shopper"]


@pytest.mark.parametrize(
    ("event", "rule"),
    [
        ({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "x"}, "S1"),
        (TextMessageContentEvent(message_id="m", delta="x"), "S1"),
        ({"type": "TEXT_MESSAGE_END", "messageId": "m"}, "S1"),
        ({"type": "TOOL_CALL_ARGS", "toolCallId": "m", "delta": "x"}, "S1"),
        ({"type": "STEP_FINISHED", "stepName": "m"}, "L6"),
        ({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}, "L1"),
        ({"type": "SUBAGENT_FINISHED", "subagentRunId": "m"}, "G2"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_F04_a_forbidden_event_fails_on_the_line_that_emits_it(event: Any, rule: str) -> None:
    raised: list[SequenceError] = []

    async def body(run: Run) -> None:
        try:
            await run.emit(event)  # the line
        except SequenceError as error:
            raised.append(error)
        await run.say("The run goes on.")

    result = run_agent_sync(agent_of(body), "go").raise_error()
    [error] = raised
    assert error.rule == rule
    assert f"[{rule}]" in str(error)
    assert traceback.extract_tb(error.__traceback__)[0].line == "await run.emit(event)  # the line"
    assert result.types == [
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]


# F06

tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant")


class Authenticating:
    """A host's middleware: puts the user in the scope, and the tenant in a context variable."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = dict(scope["headers"])
            scope["user"] = headers.get(b"x-user", b"").decode()
            tenant.set(f"tenant of {scope['user']}")
        await self.app(scope, receive, send)


def test_F06_user_headers_and_dependencies_of_the_request_reach_the_agent() -> None:
    opened: list[str] = []

    class Connection:
        def __init__(self, user: str) -> None:
            self.user = user
            opened.append(user)

    class Dependent(Agent):
        async def authorize(self, request: Request) -> Connection:
            if not request.scope["user"]:
                raise HTTPException(401)
            return Connection(request.scope["user"])  # made for each run

        async def run(self, run: Run) -> Any:
            def tool() -> str:
                return f"{current_run().principal.user} {tenant.get()}"

            assert run.request is not None
            return {
                "user": run.principal.user,
                "trace": run.request.headers["x-trace"],
                "path": run.request.path_params["team"],
                "pool": run.request.app.state.pool,
                "tool": await asyncio.to_thread(tool),
            }

    app = Starlette(routes=[Route("/{team}/agent", Dependent().endpoint())], middleware=[Middleware(Authenticating)])
    app.state.pool = "the pool"
    with serve(app) as server:
        assert server.post(path="/red/agent").status == 401
        assert opened == []
        for user in ("ada", "bob"):
            forged = run_input(state={"user": "admin"}, forwardedProps={"user": "admin"})
            events = server.events(forged, "/red/agent", {"X-User": user, "X-Trace": "1"})
            assert events[-1]["result"] == {
                "user": user,
                "trace": "1",
                "path": "red",
                "pool": "the pool",
                "tool": f"{user} tenant of {user}",
            }
    assert opened == ["ada", "bob"]


# F09


def test_F09_delegates_share_the_state_each_under_its_own_path_and_say_each_their_own() -> None:
    class Notes(State):
        lines: list[str] = []
        done: bool = False

    class Shared(State):
        topic: str = "t"
        sub: dict[str, Notes] = {}

    async def delegate(run: Run[Shared], name: str, notes: Notes, together: asyncio.Barrier) -> None:
        async with run.subagent(name, id=name) as agent, agent.text(id=f"{name} says") as text:
            for index in range(5):
                await together.wait()
                notes.lines.append(f"{name} {index}")
                await text.write(f"{index}")
            notes.done = True

    class Leader(Agent[Shared]):
        async def run(self, run: Run[Shared]) -> None:
            together = asyncio.Barrier(2)
            async with asyncio.TaskGroup() as group:
                for name in ("ada", "bob"):
                    run.state.sub[name] = Notes()
                    group.create_task(delegate(run, name, run.state.sub[name], together))

    result = run_agent_sync(Leader, "go").raise_error()
    assert result.state == {
        "topic": "t",
        "sub": {name: {"lines": [f"{name} {n}" for n in range(5)], "done": True} for name in ("ada", "bob")},
    }
    paths = {op["path"] for event in only(result, "STATE_DELTA") for op in event["delta"]}
    assert all(path.startswith(("/sub/ada", "/sub/bob")) for path in paths)
    assert {"/sub/ada/done", "/sub/bob/done"} <= paths
    said = {message.id: (message.content, message.subagent_run_id) for message in result.messages[1:]}
    assert said == {"ada says": ("01234", "ada"), "bob says": ("01234", "bob")}
    owners = [event["subagentRunId"] for event in only(result, "TEXT_MESSAGE_CONTENT")]
    assert owners != sorted(owners), "they spoke at the same time"


def test_F09_another_agent_runs_as_part_of_a_run() -> None:
    class Inner(Agent):
        async def run(self, run: Run) -> str:
            run.state["sub"]["by"] = "inner"
            await run.say("I did it.")
            return "done"

    async def body(run: Run) -> Any:
        run.state["sub"] = {"by": "outer"}
        async with run.subagent("inner", id="inner") as sub:
            given = RunAgentInput(
                thread_id="inner", run_id="inner", messages=[], state=json.loads(json.dumps(run.state))
            )
            return await sub.relay(Inner().stream(given))

    result = run_agent_sync(agent_of(body), "go").raise_error()
    assert result.result == "done"
    assert result.state == {"sub": {"by": "inner"}}
    assert result.messages[-1].content == "I did it."
    assert result.messages[-1].subagent_run_id == "inner"


# F11


def test_F11_equal_assignments_say_nothing_and_touch_says_what_python_cannot_show() -> None:
    async def body(run: Run) -> None:
        run.state["n"] = 1
        await run.flush()
        run.state["n"] = run.state["n"]
        run.state["rows"] = run.state["rows"]
        await run.flush()
        dict.__setitem__(run.state, "n", 2)  # past Python's own methods, as C code does
        list.append(run.state["rows"], 2)
        await run.flush()
        await run.custom("com.example.before", None)
        run.touch("/n")
        await run.flush()
        await run.custom("com.example.between", None)
        run.touch()
        await run.flush()

    result = run_agent_sync(agent_of(body), "go", state={"n": 1, "rows": [1]}).raise_error()
    before, between = [index for index, type in enumerate(result.types) if type == "CUSTOM"]
    assert only(result, "STATE_DELTA", "STATE_SNAPSHOT") == [
        event for event in wire(result)[before:] if event["type"] in STATE_EVENTS
    ], "nothing before touch()"
    assert [type for type in result.types[before:between] if type in STATE_EVENTS] == ["STATE_SNAPSHOT"]
    assert result.state == {"n": 2, "rows": [1, 2]}


# F13


def test_F13_private_members_never_leave_and_cannot_be_set(caplog: pytest.LogCaptureFixture) -> None:
    class Session(State):
        shown: int = 0
        key: str = Field(default="", exclude=True)
        _token: str = PrivateAttr(default="")

    seen: list[tuple[str, str]] = []

    class Keeping(Agent[Session]):
        async def run(self, run: Run[Session]) -> Any:
            seen.append((run.state.key, run.state._token))
            run.state.key = "HIDDEN-1"
            run.state._token = "HIDDEN-2"
            run.state.shown += 1
            await run.flush()
            run.state.key += " HIDDEN-3"
            run.state.shown += 1
            await run.say(f"{len(run.state.key)}")
            return run.state

    with caplog.at_level(logging.INFO):
        result = run_agent_sync(
            Keeping, "go", state={"shown": 1, "key": "FORGED", "_token": "FORGED", "token": "FORGED"}
        ).raise_error()
    assert seen == [("", "")]
    assert result.state == {"shown": 3}
    assert result.result == {"shown": 3}
    assert "HIDDEN" not in json.dumps(result.payloads)
    assert "HIDDEN" not in caplog.text
    assert "FORGED" not in json.dumps(result.payloads) + caplog.text
    assert "key" not in json.dumps(Keeping().capabilities().model_dump(mode="json")["custom"])


# F15


def test_F15_a_run_can_be_tested_as_it_goes() -> None:
    cleaned: list[str] = []

    class Endless(Agent):
        async def run(self, run: Run) -> None:
            try:
                async with run.text() as text:
                    for number in range(10**9):
                        run.state["n"] = number
                        await text.write(f"{number} ")
            finally:
                cleaned.append("up")

    async def main() -> None:
        async with open_run(Endless, "go") as live:
            async for event in live:
                if event.type == "TEXT_MESSAGE_CONTENT" and event.delta == "20 ":
                    assert live.state["n"] == 20
                    assert live.messages[-1].content == "".join(f"{number} " for number in range(21))
                    await live.disconnect()
        result = live.result()
        assert result.ending is not None
        assert result.ending.kind == "disconnected"
        assert cleaned == ["up"]
        # A slow reader: what it does not take waits, and the agent with it.
        async with open_run(Endless, "go") as live:
            for _ in range(5):
                await anext(live)
            run = live.run
            assert run is not None
            reached, turns = -1, 0
            while run.state["n"] != reached:
                reached, turns = run.state["n"], turns + 1
                assert turns < 1_000, "it goes on without its reader"
                for _ in range(50):
                    await asyncio.sleep(0)
        with pytest.raises(RunTimeout):
            await run_agent(Endless, "go", timeout=0.2)
        assert cleaned == ["up"] * 3

    asyncio.run(main())


def test_F15_a_test_fails_for_a_broken_stream_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    from statecast.outbox import Outbox

    put: Callable[..., None] = Outbox._write

    def lose(outbox: Outbox, kind: str, encoded: bytes) -> None:
        if kind != "TEXT_MESSAGE_END":
            put(outbox, kind, encoded)

    async def body(run: Run) -> None:
        await run.say("Hello.")

    monkeypatch.setattr(Outbox, "_write", lose)
    with pytest.raises(BrokenStream, match="L5"):
        run_agent_sync(agent_of(body), "go")


# F16


class Camel(State):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class Stop(Camel):
    street_name: str
    house_number: int | None  # required, and may be null


class Trip(Camel):
    first_stop: Stop | None = None
    all_stops: list[Stop] = []
    by_name: dict[str, Stop] = {}


class Traveller(Agent[Trip]):
    async def run(self, run: Run[Trip]) -> list[Any]:
        await run.flush()
        run.state.all_stops.append(Stop(street_name="Rua Nova", house_number=None))
        await run.flush()
        run.state.all_stops[0].street_name = "Rua Velha"
        run.state.first_stop = run.state.all_stops[0]
        run.state.by_name["snake_case key"] = Stop(street_name="x", house_number=1)
        return [stop.street_name for stop in run.state.all_stops]


def test_F16_names_are_camel_case_on_the_wire_and_snake_case_in_python() -> None:
    first = run_agent_sync(Traveller, "go", state={"allStops": []}).raise_error()
    assert {op["path"] for event in only(first, "STATE_DELTA") for op in event["delta"]} == {
        "/allStops/0",
        "/allStops/0/streetName",
        "/firstStop",
        "/byName/snake_case key",
    }
    velha = {"streetName": "Rua Velha", "houseNumber": None}
    assert first.state == {
        "firstStop": velha,
        "allStops": [velha],
        "byName": {"snake_case key": {"streetName": "x", "houseNumber": 1}},
    }
    # What was sent is read back.
    second = run_agent_sync(Traveller, "go", state=first.state).raise_error()
    assert second.result == ["Rua Velha", "Rua Nova"]
    custom = Traveller().capabilities().custom
    assert custom is not None
    schema = custom["stateSchema"]
    assert set(schema["properties"]) == {"firstStop", "allStops", "byName"}
    assert set(schema["$defs"]["Stop"]["properties"]) == {"streetName", "houseNumber"}
    assert set(schema["$defs"]["Stop"]["required"]) == {"streetName", "houseNumber"}


@pytest.mark.parametrize(
    ("stop", "pointer"),
    [
        ({"streetName": "x"}, "/state/allStops/0/houseNumber"),
        ({"streetName": 1, "houseNumber": None}, "/state/allStops/0/streetName"),
    ],
)
def test_F16_what_is_refused_is_named_as_it_is_on_the_wire(stop: dict[str, Any], pointer: str) -> None:
    refused = run_agent_sync(Traveller, "go", state={"allStops": [stop]})
    assert refused.http_status == 422
    assert [error["pointer"] for error in refused.problem["errors"]] == [pointer]


# F17


@pytest.mark.parametrize("fails", [False, True], ids=["done", "undone"])
def test_F17_a_batch_is_one_delta_or_none(fails: bool) -> None:
    async def move(run: Run, amount: int) -> None:
        async with run.batch():
            run.state["from"] -= amount
            await run.say("half way")  # goes out, without the state
            run.state["to"] += amount
            run.state["log"].append(amount)
            if fails:
                raise StateError("not enough")

    async def body(run: Run) -> None:
        run.state["log"] = []
        await run.flush()
        try:
            await move(run, 5)
        except StateError:
            assert run.state == {"from": 9, "to": 0, "log": []}
        await run.flush()

    async def main() -> list[Any]:
        async with open_run(agent_of(body), "go", state={"from": 9, "to": 0}) as live:
            seen = [live.state async for _ in live]
        assert live.result().raise_error().types.count("STATE_DELTA") == (0 if fails else 1)
        return seen

    seen = asyncio.run(main())
    assert all(state["from"] + state["to"] == 9 for state in seen), "no client ever sees half of it"
    assert seen[-1] == ({"from": 9, "to": 0, "log": []} if fails else {"from": 4, "to": 5, "log": [5]})
