"""What the real clients make of refusals, silence, large frames, a server that stops, and what the agent sees of an abort."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request

from interop_recording import Recorded, Recorder
from interop_support import require_node, run_client, serving
from statecast import Run, State


class Count(State):
    n: int = 0


class Counter(Recorded[Count]):
    async def run(self, run: Run[Count]) -> None:
        run.state.n += 1


def test_a_state_that_does_not_fit_is_refused_before_a_stream_begins(client: str) -> None:
    with serving(Counter().app()) as url:
        (result,) = run_client(url, {"say": "go"}, client=client, state={"n": "secret"})
    assert result["status"] == 422
    assert json.loads(result["payload"])["errors"][0]["pointer"] == "/state/n"
    assert "secret" not in repr(result["payload"])
    assert result["events"] == []


class Guarded(Recorded):
    async def authorize(self, request: Request) -> str:
        if request.headers.get("Authorization") != "Bearer ada":
            raise HTTPException(403)
        return "Ada"

    async def run(self, run: Run) -> None:
        run.state["who"] = run.principal


def test_the_clients_headers_reach_the_agent(client: str) -> None:
    with serving(Guarded().app()) as url:
        (refused,) = run_client(url, {"say": "go"}, client=client)
        (result,) = run_client(url, {"say": "go"}, client=client, headers={"Authorization": "Bearer ada"})
    assert refused["status"] == 403
    assert result["state"] == {"who": "Ada"}


class Endless(Recorded):
    async def run(self, run: Run) -> None:
        run.state["n"] = 0
        try:
            async with run.text() as text:
                while True:
                    run.state["n"] += 1
                    await text.write("more ")
                    await asyncio.sleep(0.005)
        finally:
            await asyncio.sleep(0.01)
            self.cleaned_up = True


def test_an_abort_of_the_client_cancels_the_agent(client: str) -> None:
    agent = Endless()
    with serving(agent.app()) as url:
        abort = {"type": "STATE_DELTA", "count": 3}
        (result,) = run_client(url, {"say": "go", "abortAfter": abort}, client=client)
        (final,) = agent.finals(1, timeout=5)
    assert result["resolved"]
    assert result["runError"]["code"] == "abort"
    assert result["messages"][-1]["content"].startswith("more more ")
    assert final.ending.kind == "disconnected"
    assert agent.cleaned_up


class Silent(Recorded):
    async def run(self, run: Run) -> None:
        await asyncio.sleep(0.4)
        await run.say("at last")


def test_comments_keep_a_silent_stream_alive(client: str) -> None:
    recorder = Recorder(Silent().app(keepalive=0.05))
    with serving(recorder) as url:
        (result,) = run_client(url, {"say": "go"}, client=client)
    assert result["error"] is None
    assert result["warnings"] == []
    assert 3 <= recorder.streams[0].body.count(b"\n\n: ") <= 8
    assert result["messages"][-1]["content"] == "at last"


class Large(Recorded):
    async def run(self, run: Run) -> None:
        run.state["text"] = "é" * int(run.user_text)
        await run.flush()
        run.state["n"] = 1


@pytest.mark.parametrize(("size", "code"), [(1_000_000, None), (3_900_000, None), (4_300_000, "state_too_large")])
def test_a_large_state_arrives_or_ends_the_run(
    client: str, size: int, code: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(Large().app()) as url:
        (result,) = run_client(url, {"say": str(size)}, client=client)
    assert result["error"] is None
    assert result["warnings"] == []
    assert (result.get("runError") or {}).get("code") == code
    if code is None:
        assert len(result["state"]["text"]) == size
        assert result["state"]["n"] == 1
    assert bool([one for one in caplog.records if one.levelno >= logging.ERROR]) == (code is not None)


def test_a_server_that_stops_ends_the_run_in_order(client: str, tmp_path: Path) -> None:
    require_node()
    (tmp_path / "stopping.py").write_text(
        textwrap.dedent(
            """
            import asyncio, os, signal
            from statecast import Agent, Run

            class Stopping(Agent):
                async def run(self, run: Run) -> None:
                    run.state["n"] = 1
                    async with run.text() as text:
                        await text.write("half")
                        os.kill(os.getpid(), signal.SIGTERM)
                        await asyncio.sleep(60)
            """
        )
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "statecast.cli", "serve", "stopping:Stopping", "--port", str(port)]
    server = subprocess.Popen(
        command, cwd=tmp_path, env={**os.environ}, stderr=subprocess.STDOUT, stdout=subprocess.PIPE
    )
    try:
        wait_for(port, server)
        (result,) = run_client(f"http://127.0.0.1:{port}/", {"say": "go"}, client=client)
        output = server.communicate(timeout=20)[0].decode()
    finally:
        server.kill()
        server.communicate()
    assert result["error"] is None, output
    assert result["warnings"] == []
    assert result["state"] == {"n": 1}
    assert result["messages"][-1]["content"] == "half"
    if client == "1.0.0":
        assert result["outcome"] == "cancelled"
        assert result["metadata"] == {"statecast": {"reason": "shutdown"}}
    else:
        assert result["runError"]["code"] == "STOPPED"
    assert "Traceback" not in output


def wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    """Returns when the server listens."""
    deadline = time.monotonic() + 30
    while True:
        assert server.poll() is None, server.communicate()[0].decode()
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_two_agents_in_one_app_are_two_urls(client: str) -> None:
    first, second = Counter(), Guarded()
    app: Any = Starlette(routes=[*first.routes("/count"), *second.routes("/guarded")])
    with serving(app, path="/count") as url:
        one, two = run_client(url, {"say": "go"}, {"say": "again"}, client=client)
    assert (one["state"], two["state"]) == ({"n": 1}, {"n": 2})
