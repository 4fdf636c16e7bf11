from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from live_server import SOURCE, Process, spawn, wait_until
from statecast.cli import main
from statecast.server import inspector

PLANNER = '''
import os
from statecast import Agent, Run, State

class Trip(State):
    city: str = "Lisbon"

class Planner(Agent[Trip]):
    """Plans trips."""
    async def run(self, run: Run[Trip]) -> str:
        if run.user_text == "fail":
            raise ValueError("secret")
        return os.environ.get("GREETING", "none")

planner = Planner()
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "planner.py").write_text(PLANNER)
    (tmp_path / "typed.py").write_text(PLANNER.replace("Agent[Trip]", "Agent[dict[int, str]]"))
    (tmp_path / "broken.py").write_text("import planner\nvalue = 1 / 0\n")
    (tmp_path / "one.env").write_text("GREETING='hello there'\nSTATECAST_PATH=/agent\n")
    return tmp_path


def command(*arguments: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "statecast.cli", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(SOURCE), **env},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def result(process: Process, path: str = "/") -> Any:
    return process.events(path=path)[-1].get("result")


# serve


@pytest.mark.parametrize("name", ["planner:Planner", "planner:planner"])
def test_serve_serves_an_agent_of_the_working_directory(folder: Path, name: str) -> None:
    with spawn("serve", name, cwd=folder) as process:
        assert process.request("GET", "/").json()["identity"]["description"] == "Plans trips."
        assert result(process) == "none"
        assert process.request("GET", "/health").json() == {"status": "ok"}
        assert process.request("GET", "/inspector").status == 404
        process.terminate()
        assert process.wait() == 0
        # Health checks do not fill the log.
        assert "GET /inspector" in process.output
        assert "GET /health" not in process.output
        # One line for the run, with its ids.
        assert re.search(r"Planner: finished in .*\[thread thread, run run-\d+\]", process.output)


def test_options_come_from_the_environment_and_from_a_file(folder: Path) -> None:
    env = {"STATECAST_AGENT": "planner:Planner", "STATECAST_DEBUG": "1"}
    with spawn("serve", "--env-file", "one.env", cwd=folder, env=env) as process:
        assert result(process, "/agent") == "hello there"
        assert process.request("GET", "/health").json() == {"status": "ok", "runs": 0}
    with spawn(
        "serve", "--env-file", "one.env", "--path", "/other", cwd=folder, env={**env, "GREETING": "mine"}
    ) as process:
        assert result(process, "/other") == "mine"


def test_several_workers_get_the_options_too(folder: Path) -> None:
    options = [
        "--workers",
        "2",
        "--debug",
        "--path",
        "/agent",
        "--cors",
        "https://a.example",
        "--cors",
        "https://b.example",
    ]
    with spawn("serve", "planner:Planner", *options, cwd=folder) as process:
        wait_until(lambda: process.output.count("Application startup complete") == 2, 20)
        assert process.request("GET", "/health").json() == {"status": "ok", "runs": 0}
        reply = process.request("GET", "/agent", headers={"Origin": "https://b.example"})
        assert reply.headers["access-control-allow-origin"] == "https://b.example"
        process.terminate()
        assert process.wait() == 0


def test_reload_starts_again_when_a_file_changes(folder: Path) -> None:
    with spawn("serve", "planner:Planner", "--reload", cwd=folder) as process:
        wait_until(lambda: "Application startup complete" in process.output, 20)
        assert result(process) == "none"
        changed = folder / "planner.py"
        # uvicorn looks at the time of the change, to the second on some file systems.
        changed.write_text(PLANNER.replace('"none"', '"changed"'))
        os.utime(changed, (changed.stat().st_atime + 10, changed.stat().st_mtime + 10))
        wait_until(lambda: process.output.count("Application startup complete") == 2, 20)
        assert result(process) == "changed"
        process.process.send_signal(signal.SIGINT)
        process.wait()


@pytest.mark.parametrize("options", [[], ["--workers", "2"]])
@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("broken:Planner", r"^Error: broken could not be imported: ZeroDivisionError.* \(broken.py, line 2: value = 1 / 0\)$"),
        ("planner:Nobody", r"^Error: planner has no 'Nobody'; its agents: Planner, planner$"),
        ("nowhere:Planner", r"^Error: there is no module 'nowhere' in "),
    ],
)  # fmt: skip
def test_an_agent_that_cannot_be_had_is_one_line(folder: Path, target: str, said: str, options: list[str]) -> None:
    done = command("serve", target, "--port", "0", *options, cwd=folder)
    assert done.returncode == 1
    assert re.search(said, done.stderr)
    assert len(done.stderr.splitlines()) == 1


def test_an_option_that_cannot_be_is_one_line(folder: Path) -> None:
    for options, said in (
        (["--path", "agent"], "path must begin with '/'"),
        (["--cors", "a.example"], "is not an origin"),
        (["--path", "/health"], "/health is taken"),
        ([], "dict[int, str]"),
    ):
        done = command("serve", "planner:Planner" if options else "typed:Planner", "--port", "0", *options, cwd=folder)
        assert done.returncode == 1
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_port_that_is_taken_ends_it(folder: Path) -> None:
    with spawn("serve", "planner:Planner", cwd=folder) as process:
        done = command("serve", "planner:Planner", "--port", str(process.port), cwd=folder)
        assert done.returncode != 0
        assert "address already in use" in done.stderr
        assert "Traceback" not in done.stderr


# demo


def test_the_demo_prints_its_address_and_a_curl_line_that_works(tmp_path: Path) -> None:
    with spawn("demo", cwd=tmp_path) as process:
        wait_until(lambda: "Its source" in process.output)
        assert f"http://127.0.0.1:{process.port}" in process.output
        line = next(line for line in process.output.splitlines() if "curl" in line)
        assert line.startswith("Or by hand:   curl -N http://127.0.0.1")
        body = re.search(r"-d '(.*)'$", line)
        assert body
        events = process.events(json.loads(body[1]))
        assert events[-1]["type"] == "RUN_FINISHED"
        assert {"STATE_SNAPSHOT", "STATE_DELTA"} <= {event["type"] for event in events}
        if inspector.is_installed():
            assert process.request("GET", "/inspector/").headers["content-type"].startswith("text/html")
            assert f"http://127.0.0.1:{process.port}/inspector" in process.output
        else:
            assert "statecast[inspector]" in process.output
        process.terminate()
        assert process.wait() == 0


# schema and help


def test_schema_prints_the_states_json_schema(folder: Path) -> None:
    done = command("schema", "planner:Planner", cwd=folder)
    assert done.returncode == 0
    assert json.loads(done.stdout)["properties"]["city"]["default"] == "Lisbon"
    for name in ("planner:Nobody", "typed:Planner"):
        done = command("schema", name, cwd=folder)
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 1


def test_help_states_defaults_and_what_debug_costs() -> None:
    said = " ".join(CliRunner().invoke(main, ["serve", "--help"]).output.split())
    for part in (
        "default: 8000",
        "default: 127.0.0.1",
        "default: 5.0",
        "proportional to the size of the state",
        "no limit",
    ):
        assert part in said, part
    for name in ("serve", "demo", "schema"):
        assert name in CliRunner().invoke(main, ["--help"]).output


# The inspector


def test_the_inspector_is_served_only_when_it_is_asked_for(folder: Path) -> None:
    if not inspector.is_installed():
        done = command("serve", "planner:Planner", "--inspector", cwd=folder)
        assert done.returncode == 1
        assert "pip install 'statecast[inspector]'" in done.stderr
        return
    with spawn("serve", "planner:Planner", "--path", "/agent", cwd=folder, env={"STATECAST_INSPECTOR": "1"}) as process:
        wait_until(lambda: "Inspector:" in process.output)
        assert process.request("GET", "/inspector/").status == 200
        agents = process.request("GET", "/inspector/config.json").json()["agents"]
        assert [agent["url"] for agent in agents] == ["/agent"]


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from statecast.demo import Planner

    agent = Planner()
    monkeypatch.setattr(inspector, "is_installed", lambda: False)
    with pytest.raises(RuntimeError, match=r"statecast\[inspector\]"):
        inspector.mount(agent.app(), agent)
