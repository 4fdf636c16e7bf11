"""What a client meets that reads, leaves, stalls or waits, on a real server with bare sockets."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from starlette.applications import Starlette

from live_server import Connection, ThreadServer, run_input, serve, spawn, stretched, wait_until
from statecast import Agent, AgentError, Ending, Run

GRACE = 1.0


class Watched(Agent):
    """Notes what happens to its runs."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.endings: list[Ending] = []

    async def on_finish(self, run: Run, ending: Ending) -> None:
        self.endings.append(ending)

    def note(self, what: str) -> None:
        self.events.append(what)


class Sleeper(Watched):
    """Waits for long, as for a tool; its cleanup awaits `forwarded_props` seconds."""

    async def run(self, run: Run) -> None:
        await run.say("before")
        try:
            self.note("working")
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.note("cancelled")
            raise
        finally:
            await asyncio.sleep(run.forwarded_props or 0.05)
            self.note("cleaned")


class Busy(Watched):
    """Never really awaits."""

    async def run(self, run: Run) -> None:
        try:
            self.note("working")
            async with run.text() as text:
                while True:
                    await text.write("word ")
                    self.note("word")
        except asyncio.CancelledError:
            self.note("cancelled")
            raise


class Counting(Watched):
    """Changes its state, never anything else, and only gives the loop its turns."""

    async def run(self, run: Run) -> None:
        run.state.update(n=0, filler="x" * 1000)
        await run.flush()
        for n in range(1, run.forwarded_props + 1):
            run.state["n"] = n
            if n % 50 == 0:
                await asyncio.sleep(0)
        self.note("counted")


class Flood(Watched):
    """More text than any socket buffer takes."""

    async def run(self, run: Run) -> None:
        async with run.text() as text:
            for _ in range(run.forwarded_props):
                await text.write("x" * 10_000)
                self.note("written")


class Brief(Watched):
    async def run(self, run: Run) -> Any:
        match run.user_text:
            case "fail":
                raise RuntimeError("postgres://user:secret@db")
            case "agent error":
                raise AgentError("No rooms left.", "no_rooms")
            case "exit":
                raise SystemExit(3)
        await run.say("hello")
        return {"ok": True}


class Slow(Watched):
    """Says nothing for `forwarded_props` seconds, twice."""

    async def run(self, run: Run) -> None:
        await asyncio.sleep(run.forwarded_props)
        await run.say("half")
        await asyncio.sleep(run.forwarded_props)


sleeper, busy, counting, flood, brief, slow = Sleeper(), Busy(), Counting(), Flood(), Brief(), Slow()
AGENTS: list[Watched] = [sleeper, busy, counting, flood, brief, slow]


@pytest.fixture(scope="module")
def server() -> Iterator[ThreadServer]:
    app = Starlette(
        routes=[
            *sleeper.routes("/sleeper", grace=GRACE, send_timeout=1),
            *sleeper.routes("/limited", grace=GRACE, timeout=0.2),
            *busy.routes("/busy", grace=GRACE, send_timeout=1),
            *sleeper.routes("/thousand/sleeper"),
            *busy.routes("/thousand/busy"),
            *counting.routes("/counting", send_timeout=5, state_interval=0),
            *counting.routes("/paced", state_interval=0.05),
            *flood.routes("/flood", send_timeout=1, grace=GRACE),
            *flood.routes("/patient", send_timeout=20),
            *brief.routes("/brief"),
            *slow.routes("/slow", keepalive=0.1),
        ]
    )
    with serve(app) as live:
        yield live


@pytest.fixture(autouse=True)
def forgotten() -> None:
    forget()


def forget() -> None:
    for agent in AGENTS:
        agent.events.clear()
        agent.endings.clear()


def types(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


# The end of the body


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("hello", {"type": "RUN_FINISHED", "result": {"ok": True}}),
        ("fail", {"type": "RUN_ERROR", "code": "internal"}),
        ("exit", {"type": "RUN_ERROR", "code": "internal"}),
        ("agent error", {"type": "RUN_ERROR", "code": "no_rooms", "message": "No rooms left."}),
    ],
)
def test_the_body_ends_at_once_and_in_order_after_one_terminal_event(
    server: ThreadServer, text: str, last: dict[str, Any]
) -> None:
    with server.run(run_input(messages=[{"id": "m", "role": "user", "content": text}]), "/brief") as run:
        events, times = [], []
        for event in run.events():
            events.append(event)
            times.append(monotonic())
        assert monotonic() - times[-1] < stretched(0.5)
        assert run.ended
        assert last.items() <= events[-1].items()
        assert [type for type in types(events) if type in ("RUN_FINISHED", "RUN_ERROR")] == [last["type"]]
        assert "secret" not in json.dumps(events)


def test_a_connection_serves_one_run_after_the_other(server: ThreadServer) -> None:
    with server.run(path="/brief") as connection:
        for _ in range(3):
            assert types(list(connection.events()))[-1] == "RUN_FINISHED"
            connection.send("POST", "/brief", json.dumps(run_input()).encode(), {"Content-Type": "application/json"})
        assert types(list(connection.events()))[-1] == "RUN_FINISHED"


def test_the_headers_keep_proxies_from_buffering(server: ThreadServer) -> None:
    with server.run(path="/brief") as run:
        run.read_head()
        assert run.headers["cache-control"] == "no-store, no-transform"
        assert run.headers["x-accel-buffering"] == "no"
        assert run.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert "content-length" not in run.headers
        assert "connection" not in run.headers
        assert "keep-alive" not in run.headers


# The time limit


def test_a_run_over_its_time_ends_as_cancelled(server: ThreadServer) -> None:
    events = server.events(path="/limited")
    assert events[-1]["outcome"] == {"type": "cancelled"}
    assert events[-1]["metadata"] == {"statecast": {"reason": "timeout"}}
    assert sleeper.events == ["working", "cancelled", "cleaned"]
    assert [(ending.kind, ending.reason) for ending in sleeper.endings] == [("cancelled", "timeout")]


# Silence


def test_silence_is_filled_with_comments_and_nothing_else_is(server: ThreadServer) -> None:
    with server.run(run_input(forwardedProps=0.55), "/slow") as run:
        events = list(run.events())
        assert 3 <= len(run.comments) <= 100
        assert set(run.comments) == {": keep-alive"}
        assert types(events) == [
            "RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED",
        ]  # fmt: skip


def test_who_talks_sends_no_comments(server: ThreadServer) -> None:
    with server.run(run_input(forwardedProps=0.04), "/slow") as run:
        list(run.events())
        assert run.comments == []


# A client that leaves


def leave_half_open(run: Connection) -> None:
    """Shuts down neither side and reads nothing more: what a vanished network looks like to the server."""


@pytest.mark.parametrize("path", ["/sleeper", "/busy"])
@pytest.mark.parametrize("leave", [Connection.close, Connection.reset], ids=["close", "reset"])
def test_an_agent_is_cancelled_within_a_second_of_its_clients_leave(
    server: ThreadServer, path: str, leave: Any
) -> None:
    agent: Watched = sleeper if path == "/sleeper" else busy
    for _ in range(3):
        agent.events.clear()
        agent.endings.clear()
        run = server.run(path=path)
        events = run.events()
        assert next(events)["type"] == "RUN_STARTED"
        wait_until(lambda: "working" in agent.events)
        leave(run)
        assert wait_until(lambda: "cancelled" in agent.events) < stretched(1)
        wait_until(lambda: bool(agent.endings))
        assert [ending.kind for ending in agent.endings] == ["disconnected"]


def test_cleanup_may_await_for_the_grace_and_no_longer(server: ThreadServer, caplog: pytest.LogCaptureFixture) -> None:
    for seconds, cleaned in ((GRACE / 4, True), (60, False)):
        sleeper.events.clear()
        sleeper.endings.clear()
        with server.run(run_input(forwardedProps=seconds), "/sleeper"):
            wait_until(lambda: "working" in sleeper.events)
        took = wait_until(lambda: bool(sleeper.endings))
        assert took < GRACE + stretched(0.5)
        assert ("cleaned" in sleeper.events) is cleaned
    assert "left running" in caplog.text
    assert "test_streams.py" in caplog.text

    async def stop() -> None:
        left = [task for task in asyncio.all_tasks() if task.get_name().startswith("statecast run")]
        assert len(left) == 1
        left[0].cancel()
        await asyncio.wait(left, timeout=2)

    server.call(stop())


def test_a_client_that_takes_nothing_is_dropped_after_the_send_timeout(
    server: ThreadServer, caplog: pytest.LogCaptureFixture
) -> None:
    with server.run(path="/busy", receive_buffer=4096) as run:
        leave_half_open(run)
        took = wait_until(lambda: bool(busy.endings))
        assert 0.9 < took < stretched(3)
        assert [ending.kind for ending in busy.endings] == ["disconnected"]
        # Far less was made than the agent could have: it waited for the client.
        assert len(busy.events) * len('data: {"type":"TEXT_MESSAGE_CONTENT"') < 30 * 2**20
    assert "Traceback" not in caplog.text


def test_a_client_that_only_stops_sending_still_gets_its_run(server: ThreadServer) -> None:
    """Shutting down the sending side is what `nc` does at the end of its input. uvicorn takes it for a close."""
    import socket

    with server.run(path="/brief") as run:
        run.socket.shutdown(socket.SHUT_WR)
        try:
            events = list(run.events())
        except EOFError:
            wait_until(lambda: bool(brief.endings))
        else:
            assert types(events)[-1] == "RUN_FINISHED"


# A client that is slow


def test_memory_stays_bounded_while_the_state_changes_and_nobody_reads(server: ThreadServer) -> None:
    changes = 200_000
    gc.collect()
    tracemalloc.start()
    try:
        with server.run(run_input(forwardedProps=changes), "/counting", timeout=60, receive_buffer=4096) as run:
            wait_until(lambda: counting.events == ["counted"], 60)
            peak = tracemalloc.get_traced_memory()[1]
            assert peak < 3 * 2**20, f"{peak} bytes for a state of 1 KB"
            events = list(run.events())
            assert run.ended
    finally:
        tracemalloc.stop()
    assert replayed(events)["n"] == changes
    assert len(events) < changes / 2


def replayed(events: list[dict[str, Any]]) -> Any:
    state: Any = {}
    for event in events:
        if event["type"] == "STATE_SNAPSHOT":
            state = event["snapshot"]
        elif event["type"] == "STATE_DELTA":
            for op in event["delta"]:
                assert op["path"] == "/n"
                state["n"] = op["value"]
    return state


def test_a_client_that_reads_again_in_time_sees_all_of_the_text(server: ThreadServer) -> None:
    pieces = 1000
    with server.run(run_input(forwardedProps=pieces), "/patient", timeout=20, receive_buffer=4096) as run:
        assert next(run.events())["type"] == "RUN_STARTED"
        count = 0
        while count != (count := len(flood.events)) or count == 0:
            wait_for(0.3)
        # The rest waits: buffers of the sockets, the channel's, and not ten megabytes.
        assert count < pieces
        events = list(run.events())
        assert sum(len(event.get("delta", "")) for event in events) == pieces * 10_000
        assert events[-1]["type"] == "RUN_FINISHED"


def wait_for(seconds: float) -> None:
    end = monotonic() + seconds
    wait_until(lambda: monotonic() >= end)


def test_bursts_of_changes_are_paced(server: ThreadServer) -> None:
    with server.run(run_input(forwardedProps=20_000), "/paced") as run:
        began = monotonic()
        events = list(run.events())
        took = monotonic() - began
    assert replayed(events)["n"] == 20_000
    assert sum(type.startswith("STATE_") for type in types(events)) <= took / 0.05 + 3


# An agent that never awaits


BUSY = """
from statecast import Agent

class Busy(Agent):
    async def run(self, run):
        async with run.text() as text:
            while True:
                await text.write("word ")

agent = Busy()
"""


def test_the_first_events_of_an_agent_that_never_awaits_arrive_at_once(tmp_path: Path) -> None:
    (tmp_path / "busy.py").write_text(BUSY)
    best = 1.0
    # In a process of its own: a client in the same one waits its turn for the interpreter, however soon the bytes are there.
    with spawn("serve", "busy:agent", cwd=tmp_path) as served:
        for _ in range(3):
            with served.run() as run:
                began = monotonic()
                events = run.events()
                assert [next(events)["type"] for _ in range(3)][2] == "TEXT_MESSAGE_CONTENT"
                best = min(best, monotonic() - began)
    assert best < stretched(0.05)


def test_others_go_on_beside_an_agent_that_never_awaits(server: ThreadServer) -> None:
    with server.run(path="/busy") as run:
        events = run.events()
        next(events)
        began = monotonic()
        assert types(server.events(path="/brief"))[-1] == "RUN_FINISHED"
        assert monotonic() - began < stretched(1)
        next(events)


# Nothing is left


def test_nothing_is_left_of_a_thousand_runs_whose_clients_leave(
    server: ThreadServer, caplog: pytest.LogCaptureFixture
) -> None:
    # pytest keeps what is logged, and on a busy machine the watchdog does.
    caplog.set_level(logging.CRITICAL, "statecast")
    # One id for all: pydantic's parser keeps a bounded number of the strings that it has met.
    given = run_input(runId="again")

    def leave_runs(count: int) -> None:
        for number in range(count):
            run = server.run(given, "/thousand/sleeper" if number % 2 else "/thousand/busy")
            if number % 3:
                next(run.events())
            (run.reset if number % 2 else run.close)()
        # Who leaves before the first frame has no run. Connections are taken in order: after this one, all were.
        server.events(path="/brief")
        wait_until(lambda: server.active == 0, 30)
        assert len(sleeper.endings) + len(busy.endings) <= count
        assert len(sleeper.endings) + len(busy.endings) >= count // 2
        forget()

    def left() -> tuple[set[str], int, int]:
        """Tasks, open files, and blocks of memory, without what these tests themselves keep of each run."""
        wait_until(lambda: not any("statecast" in name for name in server.tasks()), 10)
        gc.collect()
        return server.tasks(), len(os.listdir("/proc/self/fd")), sys.getallocatedblocks()

    wait_until(lambda: server.active == 0)
    forget()
    leave_runs(100)
    growth: list[int] = []
    # What else goes on in the process may grow once; what runs leave behind grows each time, by a block for each and more.
    while len(growth) < 2 or (min(growth) >= 225 and len(growth) < 4):
        tasks, files, blocks = left()
        leave_runs(450)
        tasks_after, files_after, blocks_after = left()
        assert tasks_after <= tasks
        assert files_after <= files
        growth.append(blocks_after - blocks)
    assert min(growth) < 225, growth
