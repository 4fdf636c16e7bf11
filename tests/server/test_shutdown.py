"""What SIGTERM does to a server with runs: real processes, real signals."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from sse_starlette.sse import AppStatus

from asgi_support import Exchange
from live_server import Connection, Process, run_input, serve, spawn, stretched, wait_until
from statecast import Agent, Run
from statecast.server.options import Options
from statecast.server.problem import Problem
from statecast.server.runs import Runs

AGENT = '''
import asyncio, time
from contextlib import asynccontextmanager
from statecast import Agent, Run

class Sleeper(Agent):
    """`user_text` says how it spends its time."""

    @asynccontextmanager
    async def lifespan(self):
        print("opened", flush=True)
        yield
        print("closed", flush=True)

    async def run(self, run: Run) -> None:
        run.state["at"] = "work"
        await run.say("working")
        try:
            match run.user_text:
                case "silent":
                    await asyncio.sleep(60)
                case "busy":
                    async with run.text() as text:
                        while True:
                            await text.write("x")
                case "stubborn":
                    while True:
                        try:
                            await asyncio.sleep(60)
                        except asyncio.CancelledError:
                            pass
        finally:
            await asyncio.sleep(0.2)
            run.state["at"] = "cleaned"
            print("cleaned", flush=True)

    async def on_finish(self, run: Run, ending) -> None:
        print("ending", ending.kind, ending.reason, flush=True)

app = Sleeper().app(grace=1)
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sleeping.py").write_text(AGENT)
    return tmp_path


def start(process: Process, text: str) -> Connection:
    run = process.run(run_input(messages=[{"id": "m", "role": "user", "content": text}]), timeout=15)
    events = run.events()
    while next(events)["type"] != "TEXT_MESSAGE_END":
        pass
    return run


def rest(run: Connection) -> list[dict[str, Any]]:
    """The events that are still to come; the body must end in order."""
    events = list(run.events())
    assert run.ended
    return events


COMMANDS = {
    "statecast": ["statecast.cli", "serve", "sleeping:Sleeper", "--grace", "1"],
    "workers": ["statecast.cli", "serve", "sleeping:Sleeper", "--grace", "1", "--workers", "2"],
    "uvicorn": ["uvicorn", "sleeping:app", "--port", "0"],
}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("kind", ["statecast", "uvicorn"])
def test_runs_end_as_cancelled_and_the_process_by_itself(folder: Path, kind: str, number: signal.Signals) -> None:
    module, *arguments = COMMANDS[kind]
    with spawn(*arguments, cwd=folder, module=module) as process:
        runs = [start(process, text) for text in ("silent", "busy", "silent")]
        process.process.send_signal(number)
        began = monotonic()
        for run in runs:
            events = rest(run)
            assert events[-1]["type"] == "RUN_FINISHED"
            assert events[-1]["outcome"] == {"type": "cancelled"}
            assert events[-1]["metadata"] == {"statecast": {"reason": "shutdown"}}
            assert [event for event in events if event["type"] == "STATE_DELTA"]
            run.close()
        status = process.wait()
        assert monotonic() - began < stretched(3)
        if kind == "statecast":
            assert status == 0
        assert process.output.count("cleaned") == 3
        assert process.output.count("ending cancelled shutdown") == 3
        assert process.output.count("closed") == 1
        if number == signal.SIGTERM:
            assert "Traceback" not in process.output


@pytest.mark.parametrize("kind", ["statecast", "workers"])
def test_a_run_that_will_not_end_does_not_keep_the_process(folder: Path, kind: str) -> None:
    module, *arguments = COMMANDS[kind]
    with spawn(*arguments, cwd=folder, module=module) as process:
        wait_until(lambda: "opened" in process.output, 20)
        run = start(process, "stubborn")
        process.terminate()
        began = monotonic()
        events = rest(run)
        assert events[-1]["outcome"] == {"type": "cancelled"}
        run.close()
        # A worker ends by the signal that uvicorn raises again.
        assert process.wait() == (1 if kind == "statecast" else 0)
        assert monotonic() - began < stretched(1 + 2 + 2.5)
        assert "left running at" in process.output
        assert ("the process ends without it" in process.output) is (kind == "statecast")


def test_an_idle_server_stops_at_once(folder: Path) -> None:
    module, *arguments = COMMANDS["statecast"]
    with spawn(*arguments, cwd=folder, module=module) as process, process.connect() as idle:
        idle.send("GET", "/health")
        assert idle.reply().status == 200
        process.terminate()
        began = monotonic()
        assert process.wait() == 0
        assert monotonic() - began < stretched(2)


def test_several_workers_end_as_one(folder: Path) -> None:
    module, *arguments = COMMANDS["workers"]
    with spawn(*arguments, cwd=folder, module=module) as process:
        wait_until(lambda: process.output.count("opened") == 2, 20)
        runs = [start(process, "silent") for _ in range(4)]
        process.terminate()
        for run in runs:
            assert rest(run)[-1]["outcome"] == {"type": "cancelled"}
            run.close()
        assert process.wait() == 0
        assert process.output.count("ending cancelled shutdown") == 4


def test_a_request_that_comes_while_it_shuts_down_is_503(folder: Path) -> None:
    module, *arguments = COMMANDS["statecast"]
    with spawn(*arguments, cwd=folder, module=module) as process:
        run = start(process, "silent")
        # Connected before, so that the server, which takes no new connections, still reads what it sends.
        late = [process.connect() for _ in range(3)]
        for connection in late:
            connection.socket.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n")
        process.terminate()
        # Within the tenth of a second before uvicorn closes idle connections.
        for connection in late:
            connection.socket.sendall(b"Content-Length: 2\r\n\r\n[]")
        replies = []
        for connection in late:
            try:
                replies.append(connection.reply())
            except (EOFError, ConnectionError):
                continue
            finally:
                connection.close()
        assert replies
        for reply in replies:
            assert reply.problem()["status"] == 503
            assert "shutting down" in reply.problem()["detail"]
            assert int(reply.headers["retry-after"]) >= 1
        assert rest(run)[-1]["outcome"] == {"type": "cancelled"}
        run.close()
        assert process.wait() == 0


# The registry by itself


class Ended:
    """As much of a run as the registry knows."""

    def __init__(self, seconds: float, grace: float = 0.2) -> None:
        self.options = Options(grace=grace)
        self.reasons: list[str] = []
        self.done = asyncio.get_running_loop().create_task(asyncio.sleep(seconds))

    def cancel(self, reason: str) -> None:
        self.reasons.append(reason)


def test_the_end_of_an_apps_life_ends_its_runs_and_admits_no_more() -> None:
    async def main() -> None:
        runs = Runs()
        runs.open()
        with runs.admit():
            pass
        running = Ended(0.1)
        runs.add(running)  # type: ignore[arg-type]
        began = monotonic()
        await runs.shutdown()
        assert 0.05 < monotonic() - began < stretched(1)
        assert running.reasons == ["shutdown"]
        assert runs.shutting_down
        with pytest.raises(Problem) as refused, runs.admit():
            pass
        assert refused.value.status == 503
        runs.open()
        with runs.admit():
            assert len(runs) == 2

    asyncio.run(main())


def test_a_server_that_a_program_stops_ends_its_runs_too() -> None:
    """No signal tells of it: the server waits as long as it may for the response, and then cancels it."""
    endings = []

    class Sleeper(Agent):
        async def run(self, run: Run) -> None:
            await run.say("begun")
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(0.05)

        async def on_finish(self, run: Run, ending: Any) -> None:
            endings.append((ending.kind, ending.reason))

    with serve(Sleeper().app(), timeout_graceful_shutdown=1, log_level="critical") as server:
        run = server.run()
        while next(run.events())["type"] != "TEXT_MESSAGE_END":
            pass
        server.stop()
        assert rest(run)[-1]["outcome"] == {"type": "cancelled"}
        run.close()
    assert endings == [("cancelled", "shutdown")]


def test_an_app_serves_after_another_server_of_the_process_was_stopped() -> None:
    class Brief(Agent):
        async def run(self, run: Run) -> None: ...

    AppStatus.should_exit = True
    try:
        with serve(Brief().app()) as server:
            assert server.request("GET", "/health").status == 200
            assert server.events()[-1]["type"] == "RUN_FINISHED"
    finally:
        AppStatus.should_exit = False


def test_a_run_that_does_not_end_is_not_waited_for_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        runs = Runs()
        running = Ended(60, grace=0.1)
        runs.add(running)  # type: ignore[arg-type]
        began = monotonic()
        await runs.shutdown()
        assert monotonic() - began < stretched(3)
        running.done.cancel()

    asyncio.run(main())
    assert "did not end" in caplog.text


def test_an_app_ends_the_runs_that_its_server_leaves_running() -> None:
    """Not every server waits for its connections before it ends an app's life."""
    endings = []

    class Sleeper(Agent):
        async def run(self, run: Run) -> None:
            await asyncio.sleep(60)

        async def on_finish(self, run: Run, ending: Any) -> None:
            endings.append((ending.kind, ending.reason))

    async def main() -> None:
        app = Sleeper().app(grace=1)
        exchange = Exchange()
        async with app.router.lifespan_context(app):
            request = asyncio.create_task(exchange.play(app))
            await exchange.begun.wait()
        await asyncio.wait_for(request, 2)
        assert b'"outcome":{"type":"cancelled"}' in exchange.body
        assert exchange.messages[-1] == {"type": "http.response.body", "body": b"", "more_body": False}

    asyncio.run(main())
    assert endings == [("cancelled", "shutdown")]
