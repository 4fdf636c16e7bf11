"""`pip install` of the wheel into an empty environment, and an agent served from there."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import textwrap
import urllib.request
import zipfile
from pathlib import Path

import pytest

from packaging_support import interpreters, open_run, process, read_events

VERSIONS = [(3, 11), (3, 12), (3, 13)]

# What pip says when the index cannot be reached.
UNREACHABLE = ("NewConnectionError", "Connection refused", "name resolution", "ConnectTimeoutError", "ReadTimeoutError")

AGENT = textwrap.dedent(
    """
    from statecast import Agent, Run, State

    class Tally(State):
        count: int = 0

    class Counter(Agent[Tally]):
        async def run(self, run: Run[Tally]) -> None:
            run.state.count += 1
            await run.say(f"{run.state.count} so far")
    """
)

# Without the extras: the package that shows runs in a terminal is all that needs one.
IMPORT_ALL = textwrap.dedent(
    """
    import importlib, os, pkgutil, statecast
    assert "site-packages" in statecast.__file__
    for module in pkgutil.walk_packages(statecast.__path__, "statecast.", onerror=print):
        if not module.name.startswith("statecast.watch"):
            importlib.import_module(module.name)
            print(module.name)
    """
)


def cannot(reason: str) -> None:
    if os.environ.get("STATECAST_REQUIRE_INSTALL") == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="module", params=VERSIONS, ids=lambda version: f"python{version[0]}.{version[1]}")
def environment(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment with the wheel and what it needs, and nothing else."""
    version: tuple[int, int] = request.param
    python = interpreters().get(version)
    if python is None:
        pytest.skip(f"no Python {version[0]}.{version[1]} on this machine")
    if importlib.util.find_spec("pip") is None:
        cannot("pip is not installed")
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True, timeout=60)
    # It runs in that environment, only its code comes from here.
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin/python", "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "install", "--no-compile", "--retries", "1", wheel],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if done.returncode and any(text in done.stderr for text in UNREACHABLE):
        cannot(f"pip cannot reach its index: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stdout + done.stderr
    subprocess.run([*pip, "check"], check=True, timeout=60)
    return folder / "bin"


def test_every_module_imports_without_the_extras(environment: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [environment / "python", "-I", "-c", IMPORT_ALL],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {"statecast.agent", "statecast.testing", "statecast.cli", "statecast.demo"} <= set(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [(["serve", "statecast.demo:Planner", "--inspector"], "inspector"), (["watch", "http://127.0.0.1:1/"], "client")],
)
def test_what_needs_an_extra_names_it(arguments: list[str], extra: str, environment: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [environment / "statecast", *arguments], capture_output=True, text=True, timeout=60, cwd=tmp_path, check=False
    )
    assert done.returncode != 0
    assert re.search(rf"pip install ['\"]statecast\[{extra}\]", done.stderr)
    assert "Traceback" not in done.stderr


def test_the_demo_needs_no_extra(environment: Path, tmp_path: Path) -> None:
    env = {"PATH": f"{environment}:/usr/bin:/bin", "STATECAST_PORT": "0"}
    with process([environment / "statecast", "demo"], env=env, cwd=tmp_path) as served:
        urllib.request.urlopen(f"{served.url}/health", timeout=10).close()
    assert "statecast[inspector]" in served.output


def test_a_type_checker_sees_the_types(wheel: Path, tmp_path: Path) -> None:
    """`py.typed` is there and does its work: a mistake in an author's code is found by way of the installed package."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    agent = tmp_path / "counting.py"
    agent.write_text(AGENT)
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}
    env.pop("MYPYPATH", None)
    check = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "--config-file="]
    right = subprocess.run(
        [*check, agent], capture_output=True, text=True, timeout=240, cwd=tmp_path, env=env, check=False
    )
    assert right.returncode == 0, right.stdout
    agent.write_text(AGENT.replace("run.state.count += 1", "run.state.cuont += 1"))
    wrong = subprocess.run(
        [*check, agent], capture_output=True, text=True, timeout=240, cwd=tmp_path, env=env, check=False
    )
    assert '"Tally" has no attribute "cuont"' in wrong.stdout


def test_an_agent_runs_from_the_wheel(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "counting.py").write_text(AGENT)
    # No PYTHONPATH: what runs is what was installed.
    env = {"PATH": f"{environment}:/usr/bin:/bin"}
    command = [environment / "statecast", "serve", "counting:Counter", "--port", "0"]
    with process(command, env=env, cwd=tmp_path) as served, open_run(served.url, state={"count": 41}) as response:
        events = list(read_events(response))
    assert [event["type"] for event in events] == [
        "RUN_STARTED",
        "STATE_SNAPSHOT",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]
    assert events[1]["snapshot"] == {"count": 42}
    assert events[3]["delta"] == "42 so far"
