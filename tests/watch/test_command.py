"""`statecast watch` where nobody looks: plain lines and JSON lines, and how it ends."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from canned_server import HEAD, STARTED, canned, chunked, frame
from kit_agents import Asker, Counter, Failing, Guarded, Planner
from live_server import SOURCE, serve
from statecast import Agent, Run
from statecast.cli import main
from statecast.watch.command import BROKEN, CANCELLED, FAILED, INTERRUPTED, REFUSED, SUCCESS, USAGE

pytest.importorskip("httpx")
pytest.importorskip("rich")


def watch(*arguments: Any, input: str | None = None) -> Result:
    result = CliRunner().invoke(main, ["watch", *map(str, arguments)], input=input)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_a_run_is_shown_as_lines():
    with serve(Planner().app()) as server:
        result = watch(server.url, "Faro")
    assert result.exit_code == SUCCESS
    lines = result.stdout.splitlines()
    assert 'state    add /stops/0 "Belem"' in lines
    assert "step     search …" in lines
    assert "step     search ✓" in lines
    assert 'tool     book({"city":"Faro"})' in lines
    assert 'tool     book → {"ok":true}' in lines
    assert "text     assistant: Here is your plan." in lines
    assert "run      used acme m1: 3 in, 5 out" in lines
    assert 'run      finished: {"stops": 2}' in lines
    assert lines[-1] == 'state    {"city": "Faro", "stops": ["Belem", "Alfama"]}'
    assert result.stderr == ""


def test_json_prints_the_events_and_nothing_else():
    with serve(Planner().app()) as server:
        result = watch(server.url, "Faro", "--json")
    assert result.exit_code == SUCCESS
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert events[0]["type"] == "RUN_STARTED"
    assert events[-1]["type"] == "RUN_FINISHED"
    assert any(event["type"] == "STATE_DELTA" for event in events)
    assert result.stderr == ""


def test_the_state_comes_from_a_file_and_an_address_needs_no_scheme(tmp_path: Path):
    path = tmp_path / "state.json"
    path.write_text('{"city": "", "stops": ["Sintra"]}')
    with serve(Planner().app()) as server:
        result = watch(server.url.removeprefix("http://"), "--state", path, "--json")
        from_stdin = watch(server.url, "--state", "-", "--json", input=path.read_text())
    for one in (result, from_stdin):
        snapshot = next(json.loads(line) for line in one.stdout.splitlines() if "STATE_SNAPSHOT" in line)
        assert snapshot["snapshot"]["stops"][0] == "Sintra"


def test_headers_are_sent():
    with serve(Guarded().app()) as server:
        assert "hello somebody" in watch(server.url, "--header", "Authorization: Bearer yes").stdout
        refused = watch(server.url)
    assert refused.exit_code == REFUSED
    assert "refused with HTTP 401" in refused.stderr


def test_a_refused_state_names_the_place(tmp_path: Path):
    path = tmp_path / "state.json"
    path.write_text('{"city": 5}')
    with serve(Planner().app()) as server:
        result = watch(server.url, "--state", path)
    assert result.exit_code == REFUSED
    assert "/state/city" in result.stderr


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_failed_run(more):
    with serve(Failing().app()) as server:
        result = watch(server.url, "told", *more)
    assert result.exit_code == FAILED
    assert "No seats left." in result.stdout
    assert "sold_out" in result.stdout


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_question_without_a_terminal_stays_open(more):
    with serve(Asker().app()) as server:
        result = watch(server.url, *more, input="yes\n")
    assert result.exit_code == INTERRUPTED
    assert "waits for an answer" in result.stderr
    assert "approve" in result.stdout


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_cancelled_run(more):
    with serve(Counter().app(timeout=0.1)) as server:
        result = watch(server.url, *more)
    assert result.exit_code == CANCELLED
    assert "cancelled" in result.stdout


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (chunked(STARTED), "without RUN_FINISHED"),
        (chunked(STARTED, complete=False), "cut"),
        (chunked(b"data: [DONE]\n\n"), "not JSON"),
        (chunked(frame(type="RUN_FINISHED", threadId="t", runId="r")), "RUN_FINISHED"),
        (chunked(STARTED, head=HEAD.replace(b"event-stream", b"html")), "text/html"),
    ],
)
def test_a_stream_that_breaks(answer, said):
    with canned(answer) as server:
        result = watch(server.url)
    assert result.exit_code == BROKEN
    assert said in result.stderr


def test_what_breaks_the_stream_is_printed_as_json_too():
    with canned(chunked(STARTED + frame(type="STEP_FINISHED", stepName="s"))) as server:
        result = watch(server.url, "--json")
    assert result.exit_code == BROKEN
    assert [json.loads(line)["type"] for line in result.stdout.splitlines()] == ["RUN_STARTED", "STEP_FINISHED"]


def test_a_server_that_is_not_there():
    result = watch("127.0.0.1:9")
    assert result.exit_code == REFUSED
    assert "cannot be reached" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [("127.0.0.1:9", "--header", "nothing"), ("127.0.0.1:9", "--state", "/nowhere/x.json"), ()],
)
def test_a_wrong_command_line(arguments):
    assert watch(*arguments).exit_code == USAGE


def test_a_state_that_is_not_json(tmp_path: Path):
    path = tmp_path / "state.json"
    path.write_text("{")
    result = watch("127.0.0.1:9", "--state", path)
    assert result.exit_code == USAGE
    assert "not JSON" in result.stderr


@pytest.mark.parametrize("missing", ["httpx", "rich"])
def test_without_the_extra_it_says_what_to_install(monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    result = watch("127.0.0.1:9")
    assert result.exit_code == USAGE
    assert 'pip install "statecast[client]"' in result.stderr


def test_the_other_commands_do_not_need_the_extra():
    code = "import sys; sys.modules['httpx'] = sys.modules['rich'] = None; from statecast.cli import main; main(['--help'])"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(SOURCE)}, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0, done.stderr
    assert "watch" in done.stdout


def test_tool_calls_that_are_left_to_the_client_are_named():
    class Caller(Agent):
        async def run(self, run: Run) -> None:
            async with run.tool_call("open_page", {}):
                pass

    with serve(Caller().app()) as server:
        assert "tool     left to the client: open_page" in watch(server.url).stdout


def test_an_output_that_has_few_characters_is_no_error():
    with serve(Planner().app()) as server:
        done = subprocess.run(
            [sys.executable, "-m", "statecast.cli", "watch", server.url, "São Paulo"],
            env={"PYTHONPATH": str(SOURCE), "PYTHONIOENCODING": "latin-1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=30,
        )
    assert (done.returncode, done.stderr) == (SUCCESS, b"")
    assert b"S\xe3o Paulo" in done.stdout
    assert b"book \\u2192" in done.stdout


def test_lone_surrogates_and_escape_codes_are_harmless():
    class Odd(Agent):
        async def run(self, run: Run) -> None:
            run.state["odd"] = "\ud800"
            await run.say("\x1b[31mred")

    with serve(Odd().app()) as server:
        plain = watch(server.url)
        as_json = watch(server.url, "--json")
    assert plain.exit_code == as_json.exit_code == SUCCESS
    assert "\x1b" not in plain.stdout + as_json.stdout
    assert any("\\ud800" in line for line in as_json.stdout.splitlines())
