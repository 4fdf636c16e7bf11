"""Reports from users of other implementations about state, threads and runs at once: the trial of each, with a running agent.

The id is the report's own. `NOT_TRIED` says which parts of a trial have nothing to try here, and why.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import random
import threading
from contextlib import AsyncExitStack
from time import monotonic
from typing import Annotated, Any

import pytest
from pydantic import Field
from starlette.requests import Request

from agents_support import agent_of, only, wire
from live_server import run_input, serve
from statecast import Agent, AgentError, ReadOnly, Run, SentEvent, State, StateError, current_run
from statecast.author import Author
from statecast.testing import RunResult, open_run, run_agent, run_agent_sync

NOT_TRIED = {
    "C13": "restoring a thread from the server: nothing is stored there, the state comes back with the next input",
    "C16": "finding that a state belongs to another thread: that takes a store; the client owns the state",
    "C24": "refusing, queueing or cancelling a second run of one thread: that takes a store; both run, each on its own",
}

STATE_EVENTS = ("STATE_SNAPSHOT", "STATE_DELTA")


def states(result: RunResult) -> list[str]:
    """The types of the state events."""
    return [type for type in result.types if type in STATE_EVENTS]


async def client_states(agent: Agent[Any], **given: Any) -> list[Any]:
    """What the client's state was after each event."""
    async with open_run(agent, "go", **given) as live:
        seen = [live.state async for _ in live]
    live.result().raise_error()
    return seen


# C01


@pytest.mark.parametrize("changes", [False, True], ids=["untouched", "changed once"])
def test_C01_a_large_state_goes_out_once_at_most_however_long_the_run(changes: bool) -> None:
    large = {"rows": [{"id": index, "text": "x" * 80} for index in range(450)]}
    answer = "y" * 34_000
    text = "word " * 40

    async def body(run: Run) -> None:
        if changes:
            run.state["rows"][0]["id"] = -1
        async with run.tool_call("read", {"path": "a"}) as call:
            await call.result(answer)
        await run.say(text for _ in range(200))

    result = run_agent_sync(agent_of(body), "go", state=large).raise_error()
    assert result.types.count("TEXT_MESSAGE_CONTENT") == 200
    assert states(result) == (["STATE_SNAPSHOT"] if changes else [])
    state_bytes = len(json.dumps(large))
    assert state_bytes > 45_000
    assert result.ending is not None
    assert result.ending.bytes < 1.2 * (state_bytes + len(answer) + 200 * len(text))


# C03, C04


def test_C03_tools_in_parallel_keep_each_others_data() -> None:
    async def tool(run: Run, key: str, start: asyncio.Barrier) -> None:
        async with run.tool_call(key) as call:
            await start.wait()
            run.state[key] = {"found": key}
            await call.result("done")
            run.state[key]["more"] = [key]

    async def body(run: Run) -> None:
        start = asyncio.Barrier(2)
        async with asyncio.TaskGroup() as group:
            for key in ("weather", "news"):
                group.create_task(tool(run, key, start))

    given = {"kept": 1}
    seen = asyncio.run(client_states(agent_of(body), state=given))
    assert seen[-1] == {
        "kept": 1,
        "weather": {"found": "weather", "more": ["weather"]},
        "news": {"found": "news", "more": ["news"]},
    }
    for before, after in itertools.pairwise(seen):
        assert before.keys() <= after.keys(), "a key that was there has gone"


class Page(State):
    title: str = ""
    body: str = "text"
    tags: list[str] = []
    author: dict[str, Any] = {"name": "Ada"}


@pytest.mark.parametrize("way", ["assign", "update", "merge", "emitted patch", "model"])
def test_C04_saying_a_part_of_the_state_leaves_the_rest_alone(way: str) -> None:
    async def body(run: Run[Any]) -> None:
        if way == "assign":
            run.state["title"] = "x"
        elif way == "update":
            run.state.update({"title": "x"})
        elif way == "merge":
            run.state |= {"title": "x"}
        elif way == "emitted patch":
            await run.emit({"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/title", "value": "x"}]})
        else:
            run.state.title = "x"

    class Typed(Agent[Page]):
        async def run(self, run: Run[Page]) -> None:
            await body(run)

    full = {"title": "", "body": "text", "tags": ["a"], "author": {"name": "Ada"}}
    agent = Typed() if way == "model" else agent_of(body)
    seen = asyncio.run(client_states(agent, state=full))
    assert seen[-1] == {**full, "title": "x"}
    assert all(state in (full, seen[-1]) for state in seen)


# C06


def test_C06_a_change_goes_out_before_the_words_that_follow_it_while_the_model_streams() -> None:
    async def body(run: Run) -> None:
        run.state["phase"] = "drafting"
        async with run.text() as text:
            for index in range(50):
                if index == 25:
                    run.state["phase"] = "second half"
                await text.write(f"{index} ")
                await asyncio.sleep(0)

    # An interval that never passes: it is the words that bring the state along.
    result = run_agent_sync(agent_of(body), "go", state_interval=60).raise_error()
    assert result.types[:3] == ["RUN_STARTED", "STATE_SNAPSHOT", "TEXT_MESSAGE_START"]
    deltas = [event for event in wire(result) if event["type"] in ("STATE_DELTA", "TEXT_MESSAGE_CONTENT")]
    at = next(index for index, event in enumerate(deltas) if event["type"] == "STATE_DELTA")
    assert deltas[at - 1]["delta"] == "24 "
    assert deltas[at + 1]["delta"] == "25 "


# C08, C09, C21, C22


def test_C08_a_run_that_only_chats_leaves_the_clients_state_alone() -> None:
    async def body(run: Run) -> None:
        await run.say("Hello.")

    result = run_agent_sync(agent_of(body), "go", state={"notes": ["x"]}).raise_error()
    assert states(result) == []
    assert result.state == {"notes": ["x"]}


class Board(State):
    title: str = "new"
    columns: list[list[str]] = [["todo"], ["done"]]


class Boards(Agent[Board]):
    """Has declared defaults, and only talks."""

    async def run(self, run: Run[Board]) -> None:
        await run.say("Hello.")


DEFAULT = {"title": "new", "columns": [["todo"], ["done"]]}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, DEFAULT),
        ({"state": {}}, DEFAULT),
        ({"state": None}, DEFAULT),
        ({"state": {"title": "mine"}}, {**DEFAULT, "title": "mine"}),
        ({"state": {"columns": []}}, {"title": "new", "columns": []}),
    ],
    ids=["absent", "empty", "null", "partial", "an empty list is a value"],
)
def test_C09_the_first_state_event_tells_what_the_defaults_filled_in(given: dict[str, Any], told: Any) -> None:
    result = run_agent_sync(Boards, "go", **given).raise_error()
    assert only(result, *STATE_EVENTS) == [{"type": "STATE_SNAPSHOT", "snapshot": told}]
    assert result.types[1] == "STATE_SNAPSHOT", "before the words"
    # The next thread starts from the same, whatever this one did.
    assert run_agent_sync(Boards, "go").state == DEFAULT


@pytest.mark.parametrize("first_state", ["snapshot", "delta"])
@pytest.mark.parametrize(
    ("given", "at_once"),
    [
        ({}, True),
        ({"state": None}, True),
        ({"state": {}}, True),
        ({"state": DEFAULT}, False),
        ({"state": {"title": "other", "columns": [["a"]]}}, False),
        ({"state": {"title": "other", "unknown": 1}}, True),
    ],
    ids=["absent", "null", "empty", "equal", "different", "not all of it is known"],
)
def test_C21_deltas_apply_to_what_the_client_holds_whatever_it_sent(
    given: dict[str, Any], at_once: bool, first_state: str
) -> None:
    """A state event comes before any change exactly when the agent's state is not what the client sent."""

    class Mover(Agent[Board]):
        async def run(self, run: Run[Board]) -> None:
            await run.say("Before the change.")
            run.state.columns[0].append("next")
            await run.flush()
            run.state.columns.append([])
            await run.flush()
            run.state.title += "!"

    result = run_agent_sync(Mover, "go", **given, first_state=first_state).raise_error()
    spoken = result.types.index("TEXT_MESSAGE_START")
    before = [type for type in result.types[:spoken] if type in STATE_EVENTS]
    assert len(before) == at_once
    if first_state == "snapshot":
        assert states(result) == ["STATE_SNAPSHOT", *["STATE_DELTA"] * (len(states(result)) - 1)]
    held = given.get("state") or DEFAULT
    columns = [list(column) for column in held.get("columns", DEFAULT["columns"])]
    columns[0].append("next")
    assert result.state == {"title": held["title"] + "!", "columns": [*columns, []]}


@pytest.mark.parametrize("state", [{}, {"x": 1}, None, [1], 0], ids=str)
def test_C22_an_agent_without_a_state_of_its_own_takes_and_keeps_any_state(
    state: Any, caplog: pytest.LogCaptureFixture
) -> None:
    class Chat(Agent[Any]):
        async def run(self, run: Run[Any]) -> None:
            await run.say("Hello.")

    class Bare(Agent):
        async def run(self, run: Run) -> None:
            await run.say("Hello.")

    for agent in (Chat, Bare) if isinstance(state, dict) else (Chat,):
        result = run_agent_sync(agent, "go", state=state).raise_error()
        assert states(result) == []
        assert result.state == state
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


# C11, C12, C13, C16, C24: runs beside each other, and one after the other


class Tenant(Agent):
    """Writes who it is into everything that belongs to a run, and looks again after each await."""

    async def run(self, run: Run) -> dict[str, Any]:
        me = run.run_id
        run.state["me"] = me
        for step in range(10):
            await asyncio.sleep(0)
            assert run.state == {"me": me, "steps": list(range(step))} or step == 0
            run.state.setdefault("steps", []).append(step)
            await run.say(f"{me}:{step}")
            assert current_run() is run
            assert run.user_text == me
            assert [entry.value for entry in run.context] == [me]
            assert await asyncio.to_thread(lambda: current_run().run_id) == me if step == 5 else True
        return {"answer": await run.ask("who")}


def test_C11_fifty_runs_at_once_on_one_app_share_nothing() -> None:
    ids = [f"r{index}" for index in range(50)]
    with serve(Tenant().app()) as server:
        inputs = [
            run_input(
                threadId=f"t-{id}",
                runId=id,
                messages=[{"id": f"u-{id}", "role": "user", "content": id}],
                context=[{"description": "who", "value": id}],
                resume=[{"interruptId": "who", "status": "resolved", "payload": id}],
            )
            for id in ids
        ]
        connections = [server.run(one, timeout=30.0) for one in inputs]
        try:
            for id, connection in zip(ids, connections, strict=True):
                events = list(connection.events())
                assert events[-1] == {
                    "type": "RUN_FINISHED",
                    "threadId": f"t-{id}",
                    "runId": id,
                    "result": {"answer": id},
                }
                texts = [event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT"]
                assert texts == [f"{id}:{step}" for step in range(10)]
                assert {event["snapshot"]["me"] for event in events if event["type"] == "STATE_SNAPSHOT"} == {id}
        finally:
            for connection in connections:
                connection.close()


def test_C12_a_run_that_waits_in_a_tool_finds_its_own_state_again() -> None:
    parked, go_on = asyncio.Event(), asyncio.Event()
    shared = {"limits": {"max": 3}, "tools": ["search"]}

    class Parking(Agent):
        def __init__(self, deps: dict[str, Any]) -> None:
            self.deps = deps

        def initial_state(self) -> dict[str, Any]:
            return self.deps  # what all runs share, handed out as it is

        async def run(self, run: Run) -> None:
            run.state["who"] = run.user_text
            run.state["limits"]["max"] += 1
            async with run.tool_call("work") as call:
                if run.user_text == "a":
                    parked.set()
                    await go_on.wait()
                await call.result(run.state["who"])
            run.state["tools"].append(run.user_text)

    async def main() -> None:
        agent = Parking(shared)
        waiting = asyncio.create_task(run_agent(agent, "a"))
        await asyncio.wait_for(parked.wait(), 5)
        other = await run_agent(agent, "b", state={"who": "?", "limits": {"max": 90}, "tools": []})
        go_on.set()
        first = await waiting
        assert other.state == {"who": "b", "limits": {"max": 91}, "tools": ["b"]}
        assert first.state == {"limits": {"max": 4}, "tools": ["search", "a"], "who": "a"}
        assert only(first, "TOOL_CALL_RESULT")[0]["content"] == "a"

    asyncio.run(main())
    assert shared == {"limits": {"max": 3}, "tools": ["search"]}


def test_C13_a_new_thread_starts_from_the_defaults_and_an_old_one_from_what_its_client_kept() -> None:
    class Memory(Agent[Board]):
        async def run(self, run: Run[Board]) -> None:
            run.state.columns[0].append(run.thread_id)

    async def main() -> None:
        agent = Memory()
        first = await run_agent(agent, thread_id="t1")
        assert first.state["columns"] == [["todo", "t1"], ["done"]]
        second = await run_agent(agent, thread_id="t2")
        assert second.state["columns"] == [["todo", "t2"], ["done"]]
        again = await run_agent(agent, thread_id="t1", state=first.state)
        assert again.state["columns"] == [["todo", "t1", "t1"], ["done"]]
        forgotten = await run_agent(agent, thread_id="t1")
        assert forgotten.state == first.state, "the server remembers nothing"

    asyncio.run(main())


class Account(State):
    note: str = ""
    balance: Annotated[int, ReadOnly] = 10
    secret: str = Field(default="server's", exclude=True)


class Bank(Agent[Account]):
    """Owns the balance."""

    def initial_state(self) -> Account:
        return Account(balance=70)

    async def run(self, run: Run[Account]) -> dict[str, Any]:
        seen = {"balance": run.state.balance, "secret": run.state.secret}
        await run.say("Looked.")
        return seen


@pytest.mark.parametrize("sent", [60, 1_000_000, "many", None, {"balance": 1}], ids=str)
def test_C14_what_the_server_owns_is_the_servers_and_the_client_is_corrected(sent: Any) -> None:
    result = run_agent_sync(Bank, "go", state={"note": "n", "balance": sent, "secret": "forged"}).raise_error()
    assert result.result == {"balance": 70, "secret": "server's"}
    assert result.state == {"note": "n", "balance": 70}
    assert result.types[1] == "STATE_SNAPSHOT"


def test_C16_another_threads_state_is_the_state_but_for_what_the_server_owns() -> None:
    """The client owns the state (README, "Who owns the state?"): what it sends with a new thread is that thread's."""

    async def main() -> None:
        first = await run_agent(Bank, "go", thread_id="t1", state={"note": "of t1", "balance": 70})
        other = await run_agent(Bank, "go", thread_id="t2", state={**first.state, "balance": 5})
        assert other.state == {"note": "of t1", "balance": 70}
        assert states(other) == ["STATE_SNAPSHOT"]

    asyncio.run(main())


def test_C24_two_runs_of_one_thread_at_once_mix_nothing() -> None:
    async def body(run: Run) -> None:
        for index in range(10):
            run.state["who"].append(run.run_id)
            await run.say(f"{run.run_id}-{index}")
            await asyncio.sleep(0)

    async def main() -> None:
        agent = agent_of(body)
        async with AsyncExitStack() as stack:
            lives = [
                await stack.enter_async_context(
                    open_run(agent, "go", thread_id="t", run_id=id, state={"who": [f"before {id}"]})
                )
                for id in "ab"
            ]
            going = [aiter(live) for live in lives]
            while going:
                for one in list(going):
                    if await anext(one, None) is None:
                        going.remove(one)
        for id, live in zip("ab", lives, strict=True):
            result = live.result().raise_error()
            assert result.state == {"who": [f"before {id}", *[id] * 10]}
            assert [message.content for message in result.messages[1:]] == [f"{id}-{index}" for index in range(10)]

    asyncio.run(main())


# C18, C19: the baseline is what was sent


def test_C18_the_next_delta_is_based_on_what_was_sent_whoever_said_it() -> None:
    async def body(run: Run) -> None:
        run.state = {"n": 1, "items": [1]}
        await run.flush()
        await run.emit({"type": "STATE_SNAPSHOT", "snapshot": {"n": 2, "items": [1, 2], "theirs": True}})
        run.state["n"] = 3
        await run.flush()
        # A patch that does not fit is not sent, and moves nothing.
        with pytest.raises(StateError):
            await run.emit({"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "/nowhere"}]})
        with pytest.raises(StateError):
            run.state["items"].append(object())
        run.state["items"].append(3)

    class Watched(Agent):
        async def run(self, run: Run) -> None:
            await body(run)

        def on_event(self, run: Run, event: SentEvent) -> None:
            raise RuntimeError("an observer of events can neither change nor drop one")

    result = run_agent_sync(Watched, "go").raise_error()
    assert result.state == {"n": 3, "items": [1, 2, 3], "theirs": True}
    assert states(result) == ["STATE_SNAPSHOT", "STATE_DELTA", "STATE_DELTA"]


@pytest.mark.parametrize("fails", [False, True], ids=["success", "RUN_ERROR"])
def test_C19_a_run_can_restate_its_state_at_its_end(fails: bool) -> None:
    async def body(run: Run) -> None:
        try:
            run.state["n"] = 1
            await run.flush()
            run.state["n"] = 2
            await run.flush()
            if fails:
                raise AgentError("failed")
        finally:
            run.resync()

    result = run_agent_sync(agent_of(body), "go")
    assert result.types[-2:] == ["STATE_SNAPSHOT", "RUN_ERROR" if fails else "RUN_FINISHED"]
    assert result.payloads[-2]["snapshot"] == {"n": 2}


def test_C19_a_state_that_could_not_be_written_leaves_no_client_behind() -> None:
    """Nothing of a failed flush was sent, so what follows fits; and every run's first state event is a snapshot."""

    class Box:
        def __init__(self) -> None:
            self.value: Any = 1

    class Opaque(State):
        model_config = {"arbitrary_types_allowed": True}
        values: dict[str, Any] = {}

    class Failing(Agent[Opaque]):
        async def run(self, run: Run[Opaque]) -> None:
            hidden = {1}
            run.state.values["a"] = hidden
            await run.flush()
            hidden.add(float("inf"))
            run.state.values["b"] = 1
            with pytest.raises(StateError):
                await run.flush()
            hidden.discard(float("inf"))
            hidden.add(2)
            await run.flush()
            run.state.values["c"] = 1

    async def main() -> None:
        first = (await run_agent(Failing(), "go")).raise_error()
        assert first.state == {"values": {"a": [1, 2], "b": 1, "c": 1}}
        second = (await first.say("again")).raise_error()
        assert states(second)[0] == "STATE_SNAPSHOT"

    asyncio.run(main())


# C26, C27, C28: what a flood of changes costs


def test_C26_words_that_are_appended_to_a_string_coalesce_and_none_is_lost() -> None:
    words = [f"word{index} " for index in range(2_000)]
    interval = 0.05

    async def body(run: Run) -> float:
        began = monotonic()
        run.state["report"] = ""
        for word in words:
            run.state["report"] += word
            await asyncio.sleep(0)
        return monotonic() - began

    result = run_agent_sync(agent_of(body), "go", state_interval=interval, timeout=30).raise_error()
    assert result.state == {"report": "".join(words)}
    # The first, one an interval, and the last.
    assert len(states(result)) <= result.result / interval + 3
    assert result.ending is not None
    assert result.ending.bytes < 1_000 + len(states(result)) * (len("".join(words)) + 100)


def test_C27_a_loop_without_an_await_is_one_state_event() -> None:
    async def body(run: Run) -> None:
        run.state["n"] = 0
        await run.flush()
        for _ in range(5_000):
            run.state["n"] += 1

    result = run_agent_sync(agent_of(body), "go").raise_error()
    assert only(result, *STATE_EVENTS)[1:] == [
        {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/n", "value": 5_000}]}
    ]


def test_C27_a_flood_of_changes_has_a_bounded_rate_and_keeps_its_place_among_the_words() -> None:
    interval = 0.05

    async def body(run: Run) -> float:
        began = monotonic()
        for index in range(5_000):
            run.state["n"] = index
            if index % 1_000 == 0:
                await run.say(str(index))
            await asyncio.sleep(0)
        return monotonic() - began

    result = run_agent_sync(agent_of(body), "go", state_interval=interval, timeout=30).raise_error()
    said = 5
    assert len(states(result)) <= result.result / interval + said + 2
    state = None
    for event in wire(result):
        if event["type"] == "STATE_SNAPSHOT":
            state = event["snapshot"]["n"]
        elif event["type"] == "STATE_DELTA":
            state = event["delta"][0]["value"]
        elif event["type"] == "TEXT_MESSAGE_CONTENT":
            assert str(state) == event["delta"], "the words came with the state that they speak of"
    assert state == 4_999


def test_C28_only_add_remove_and_replace_ever_leave() -> None:
    def edit(choose: random.Random, items: list[Any]) -> None:
        at = choose.randrange(len(items))
        match choose.randrange(8):
            case 0:
                items.insert(at, items.pop())
            case 1:
                items.reverse()
            case 2:
                items.sort(key=repr)
            case 3:
                items[at : at + 2] = [{"n": choose.random()}] * 2
            case 4:
                items[0], items[at] = items[at], items[0]
            case 5:
                items.append(dict(items[at]))
            case 6 if len(items) > 3:
                del items[at]
            case _:
                items[at]["text"] = str(items[at].get("text", "")) + "more"

    async def body(run: Run) -> None:
        choose = random.Random(int(run.user_text))
        progress = run.activity("steps", {"list": [{"n": 1}, {"n": 2}]})
        await run.flush()
        for _ in range(60):
            edit(choose, choose.choice([run.state["items"], progress.content["list"]]))
            await run.flush()
        await run.emit({"type": "STATE_DELTA", "delta": [{"op": "copy", "from": "/items/0", "path": "/items/1"}]})
        await run.emit({"type": "STATE_DELTA", "delta": [{"op": "move", "from": "/items/0", "path": "/items/1"}]})

    ops = set()
    for seed in range(8):
        result = run_agent_sync(
            agent_of(body), str(seed), state={"items": [{"n": n, "pad": "p" * 500} for n in range(6)]}
        ).raise_error()
        assert result.types.count("STATE_DELTA") > 10
        ops |= {op["op"] for event in only(result, "STATE_DELTA") for op in event["delta"]}
        ops |= {op["op"] for event in only(result, "ACTIVITY_DELTA") for op in event["patch"]}
    assert ops == {"add", "remove", "replace"}


# C29, C31, C33: what the agent's own code sees


def test_C29_client_state_server_data_and_identity_are_three_places() -> None:
    class Secured(Agent[Account]):
        async def authorize(self, request: Request) -> Any:
            return {"user": request.headers["x-user"]}

        def initial_state(self) -> Account:
            return Account(secret="from the server")

        async def run(self, run: Run[Account]) -> dict[str, Any]:
            return {"note": run.state.note, "secret": run.state.secret, "user": run.principal["user"]}

    forged = {"note": "mine", "secret": "forged", "user": "admin", "principal": {"user": "admin"}, "_node": 1}
    result = run_agent_sync(Secured, "go", state=forged, headers={"X-User": "ada"}).raise_error()
    assert result.result == {"note": "mine", "secret": "server's", "user": "ada"}
    assert result.state == {"note": "mine", "balance": 10}
    assert "from the server" not in json.dumps(result.payloads[:-1])
    assert run_agent_sync(Secured, "go", headers={"X-User": "ada"}).result["secret"] == "from the server"


@pytest.mark.parametrize("where", ["helper", "subagent", "thread"])
def test_C31_what_a_delegate_changes_is_seen_while_it_goes_on(where: str) -> None:
    seen = asyncio.Event()
    released = threading.Event()

    async def helper(state: dict[str, Any], author: Author | None) -> None:
        state["step"] = "in the delegate"
        await asyncio.wait_for(seen.wait(), 5)  # says nothing more until the client has seen it

    def blocking(state: dict[str, Any]) -> None:
        state["step"] = "in the delegate"
        assert released.wait(5)

    async def body(run: Run) -> None:
        run.state["step"] = "before"
        await run.flush()
        if where == "helper":
            await helper(run.state, None)
        elif where == "thread":
            await asyncio.to_thread(blocking, run.state)
        else:
            async with run.subagent("delegate") as sub:
                await helper(run.state, sub)

    async def main() -> None:
        async with open_run(agent_of(body), "go") as live:
            async for _ in live:
                if live.state == {"step": "in the delegate"}:
                    seen.set()
                    released.set()
        live.result().raise_error()
        assert seen.is_set()

    asyncio.run(main())


@pytest.mark.parametrize("typed", [False, True], ids=["dict", "State"])
def test_C33_the_next_prompt_sees_what_a_tool_changed(typed: bool) -> None:
    prompts: list[str] = []

    class Counting(State):
        n: int = 0

    def tool() -> None:
        state = current_run().state
        if typed:
            state.n += 1
        else:
            state["n"] += 1

    def prompt() -> str:
        state = current_run().state
        return f"n is {state.n if typed else state['n']}; {json.dumps(state.model_dump() if typed else state)}"

    async def body(run: Run[Any]) -> None:
        prompts.append(prompt())
        async with run.tool_call("count") as call:
            tool()
            await call.result("counted")
        prompts.append(prompt())
        await asyncio.to_thread(tool)
        async with run.subagent("other"):
            prompts.append(prompt())

    class Typed(Agent[Counting]):
        async def run(self, run: Run[Counting]) -> None:
            await body(run)

    run_agent_sync(Typed() if typed else agent_of(body), "go", state={"n": 0}).raise_error()
    assert prompts == [f'n is {n}; {{"n": {n}}}' for n in range(3)]
