"""`statecast watch` on a terminal: what is shown live, questions, Ctrl-C."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from kit_agents import Asker, Counter, Guarded
from live_server import SOURCE, serve, spawn
from statecast import Agent, Run
from statecast.watch.command import CANCELLED, INTERRUPTED, REFUSED, STOPPED, SUCCESS
from terminal_support import CTRL_C, CTRL_D, Terminal, terminal

pytest.importorskip("httpx")
pytest.importorskip("rich")

HIGHLIGHTED = "\x1b[1;30;43m"


def watching(url: str, *arguments: str) -> Any:
    return terminal("-m", "statecast.cli", "watch", url, *arguments)


def until(condition: Any, timeout: float = 10.0) -> None:
    deadline = monotonic() + timeout
    while not condition():
        assert monotonic() < deadline, "it did not happen in time"
        sleep(0.01)


def test_a_run_of_a_served_process_is_shown():
    with (
        spawn("serve", "kit_agents:Planner", cwd=Path(__file__).parent.parent) as server,
        watching(server.url, "Faro") as shown,
    ):
        assert shown.wait() == SUCCESS
    assert "search ✓" in shown.text
    assert 'book → {"ok":true}' in shown.text
    assert "assistant: Here is your plan." in shown.text
    assert '├── city: "Faro"' in shown.text
    assert "used acme m1: 3 in, 5 out" in shown.text
    assert 'finished: {"stops": 2}' in shown.text
    # The cursor is there again, and nothing is left of what was live.
    assert shown.raw.rindex("\x1b[?25h") > shown.raw.rindex("\x1b[?25l")


class Slow(Agent):
    """Goes on when it is told to."""

    def __init__(self) -> None:
        self.turn = asyncio.Semaphore(0)

    async def run(self, run: Run) -> None:
        run.state.update(city="Faro", stops=["a"], other=1)
        async with run.step("search"), run.text() as text:
            await text.write("Hello ")
            await self.turn.acquire()
            run.state["stops"].append("b")
            await run.flush()
            await self.turn.acquire()
            await text.write("there")


def test_steps_and_words_and_changes_are_shown_while_they_happen():
    agent = Slow()
    with serve(agent.app()) as server, watching(server.url) as shown:
        shown.expect("assistant: Hello ▌")
        shown.expect("⠋ search")
        shown.expect("└── stops [1]" if "└── stops [1]" in shown.text else "├── stops [1]")
        seen = len(shown.raw)
        server.loop.call_soon_threadsafe(agent.turn.release)
        shown.expect('1: "b"')
        until(lambda: f"{HIGHLIGHTED}1" in shown.raw[seen:])
        # Marked for a moment, then like the rest.
        until(lambda: HIGHLIGHTED not in _last_frame(shown))
        server.loop.call_soon_threadsafe(agent.turn.release)
        assert shown.wait() == SUCCESS
    assert "assistant: Hello there" in shown.text


def _last_frame(shown: Terminal) -> str:
    return shown.raw[shown.raw.rindex("assistant: Hello") :]


def test_a_question_is_asked_and_the_run_goes_on():
    with serve(Asker().app()) as server, watching(server.url) as shown:
        shown.expect("? Go on?")
        shown.expect("yes or no; an empty line abandons the question")
        shown.type("perhaps\n")
        shown.expect("answer with yes or no")
        shown.type("y\n")
        assert shown.wait() == SUCCESS
    assert "assistant: yes" in shown.text
    assert "asked: 2" in shown.text


@pytest.mark.parametrize(
    ("keys", "status"), [("\n", CANCELLED), (CTRL_D, INTERRUPTED), (CTRL_C, STOPPED)], ids=["line", "ctrl-d", "ctrl-c"]
)
def test_a_question_that_is_not_answered(keys, status):
    with serve(Asker().app()) as server, watching(server.url) as shown:
        shown.expect("> ")
        shown.type(keys)
        assert shown.wait() == status
    assert "Traceback" not in shown.text


def test_a_refusal_is_told_without_a_picture():
    with serve(Guarded().app()) as server, watching(server.url) as shown:
        assert shown.wait() == REFUSED
    assert shown.text.strip() == "statecast: refused with HTTP 401: Unauthorized"


def test_ctrl_c_stops_the_run():
    agent = Counter()
    with serve(agent.app()) as server, watching(server.url) as shown:
        shown.expect("assistant: 5")
        shown.type(CTRL_C)
        assert shown.wait() == STOPPED
        until(lambda: agent.finished is not None)
        assert agent.finished.kind == "disconnected"
    assert "Traceback" not in shown.text
    assert shown.raw.rindex("\x1b[?25h") > shown.raw.rindex("\x1b[?25l")


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_an_interrupt_signal_stops_the_run_without_a_terminal(more):
    agent = Counter()
    with serve(agent.app()) as server:
        process = subprocess.Popen(
            [sys.executable, "-m", "statecast.cli", "watch", server.url, *more],
            env={"PYTHONPATH": str(SOURCE), "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline()
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=15)
        finally:
            process.kill()
        until(lambda: agent.finished is not None)
    assert process.returncode == STOPPED
    assert "Traceback" not in errors
    assert "stopped" in errors
    assert agent.finished.kind == "disconnected"


def test_a_large_state_stays_within_the_window():
    class Large(Agent):
        async def run(self, run: Run) -> None:
            run.state["rows"] = [{"n": n} for n in range(5000)]
            await run.flush()
            run.state["rows"][4321]["n"] = "changed"
            await asyncio.sleep(0.3)

    with serve(Large().app()) as server, watching(server.url) as shown:
        assert shown.wait() == SUCCESS
    assert 'n: "changed"' in shown.text
    assert len(shown.text.splitlines()) < 1000
