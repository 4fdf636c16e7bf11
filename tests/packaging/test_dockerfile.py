"""The container image: what its file says, its command run here, and the image itself where a tool can build it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from dockerfile_support import read_dockerfile
from packaging_support import ROOT, open_run, process, read_events

STAGES = read_dockerfile((ROOT / "Dockerfile").read_text())
IMAGE = STAGES[-1]


def here(words: list[str]) -> list[str]:
    """A command of the image, as this environment has it."""
    named = {"python": [sys.executable], "statecast": [sys.executable, "-m", "statecast.cli"]}
    return [*named[words[0]], *words[1:]]


def environment(**more: str) -> dict[str, str]:
    """What a container's process finds set, with the checkout as the installed package."""
    given = {name: value for name, value in IMAGE.environment.items() if name != "PATH"}
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src"), **given, "STATECAST_HOST": "127.0.0.1", **more}


def health_command() -> list[str]:
    return here(IMAGE.command("HEALTHCHECK"))


# What the file says


def test_one_stage_builds_and_a_slim_one_runs() -> None:
    build, image = STAGES
    assert build.name == "build"
    assert build.base == image.base
    found = re.fullmatch(r"python:3\.(\d+)-slim", image.base)
    assert found
    assert int(found[1]) >= 11
    (copied,) = image.all("COPY")
    assert copied.startswith("--from=build ")


def test_the_image_gets_no_tools() -> None:
    """What builds is left behind in the first stage; the environment that is copied has no pip either."""
    assert not re.search(r"\b(apt|apt-get|pip|gcc|curl|uv)\b", " ".join(IMAGE.all("RUN")))
    assert "--without-pip" in " ".join(STAGES[0].all("RUN"))


def test_it_does_not_run_as_root() -> None:
    user = IMAGE.last("USER")
    # An orchestrator that demands another user than root cannot tell from a name.
    assert user.isdigit()
    assert int(user) >= 1000
    keywords = [word for word, _ in IMAGE.instructions]
    assert "RUN" not in keywords[keywords.index("USER") :]


def test_what_it_copies_is_in_the_build_context() -> None:
    ignored = (ROOT / ".dockerignore").read_text().split("\n")
    kept = {line[1:] for line in ignored if line.startswith("!")}
    assert "*" in ignored
    sources = {name for rest in STAGES[0].all("COPY") for name in rest.split()[:-1]}
    assert sources == kept
    assert all((ROOT / name).exists() for name in sources)


def test_the_command_is_one_process_that_gets_the_signals() -> None:
    assert IMAGE.command("ENTRYPOINT") == ["statecast"]
    assert IMAGE.command("CMD") == ["serve"]
    assert "STATECAST_AGENT" in IMAGE.environment
    # One that asks for it gets it: what is mounted by a variable of the image would be there for every agent.
    assert "STATECAST_INSPECTOR" not in IMAGE.environment


@pytest.mark.parametrize(
    "line",
    ["CMD statecast serve", "ENTRYPOINT exec statecast"],
)
def test_the_shell_form_would_be_found(line: str) -> None:
    (stage,) = read_dockerfile(f"FROM python:3.13-slim\n{line}\n")
    with pytest.raises(ValueError, match="exec form"):
        stage.command(line.split()[0])


# Its command


def test_sigterm_ends_it_cleanly_and_its_run_as_cancelled(tmp_path: Path) -> None:
    command = here(IMAGE.command("ENTRYPOINT") + IMAGE.command("CMD"))
    with process(command, env=environment(PORT="0"), cwd=tmp_path) as served:
        with open_run(served.url, "Plan a day in Lisbon") as response:
            events = read_events(response)
            types = [next(events)["type"]]
            served.child.send_signal(signal.SIGTERM)
            ending = {}
            for ending in events:
                types.append(ending["type"])
        assert types[0] == "RUN_STARTED"
        assert ending["type"] == "RUN_FINISHED"
        assert ending["outcome"]["type"] == "cancelled"


@pytest.mark.parametrize("variable", ["PORT", "STATECAST_PORT"])
def test_the_agent_and_the_port_come_from_the_environment(variable: str, tmp_path: Path) -> None:
    (tmp_path / "planner.py").write_text(
        "from statecast.demo import Planner\n\nclass Mine(Planner):\n    name = 'Mine'\n"
    )
    command = here(IMAGE.command("ENTRYPOINT") + IMAGE.command("CMD"))
    port = free_port()
    env = environment(STATECAST_AGENT="planner:Mine", **{variable: str(port)})
    with process(command, env=env, cwd=tmp_path) as served:
        assert served.port == port
        with urllib.request.urlopen(served.url, timeout=10) as response:
            assert b'"Mine"' in response.read()
        subprocess.run(health_command(), env=env, check=True, timeout=20)


def test_the_agent_comes_as_an_argument_and_the_page_when_it_is_asked_for(tmp_path: Path) -> None:
    command = here([*IMAGE.command("ENTRYPOINT"), "serve", "statecast.demo:Planner"])
    with process(command, env=environment(STATECAST_AGENT="nothing:here", PORT="0"), cwd=tmp_path) as served:
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{served.url}/inspector/", timeout=10)
        assert refused.value.code == 404
        refused.value.close()


def test_the_demo_comes_with_the_page(tmp_path: Path) -> None:
    pytest.importorskip("agui_inspector")
    command = here([*IMAGE.command("ENTRYPOINT"), "demo"])
    with process(command, env=environment(PORT="0"), cwd=tmp_path) as served:
        with urllib.request.urlopen(f"{served.url}/inspector/", timeout=10) as response:
            assert b"<!doctype html>" in response.read()
        assert f"{served.url}/inspector" in served.output
        # Also what is said while the app is made looks like the rest of the log.
        assert served.lines[0].startswith("WARNING:")


def test_health_is_bad_when_the_server_says_so_or_is_gone(tmp_path: Path) -> None:
    with answering(200) as port:
        assert check(port) == 0
    with answering(503) as port:
        assert check(port) != 0
    assert check(free_port()) != 0


def check(port: int) -> int:
    """The exit status of the image's health check."""
    env = {"PATH": os.environ["PATH"], "PORT": str(port)}
    return subprocess.run(health_command(), env=env, timeout=20, check=False, stderr=subprocess.DEVNULL).returncode


@contextmanager
def answering(status: int) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/health" else 404)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join(10)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


# The image


def test_the_built_image_runs_an_agent_and_stops_cleanly() -> None:
    """`STATECAST_BUILD_IMAGE` names a command that, in a folder with a Dockerfile and called with `run PORT`, builds it and
    runs the image with that `PORT` on this machine's network, until the image's process ends.
    """
    tool = os.environ.get("STATECAST_BUILD_IMAGE")
    if not tool:
        pytest.skip("STATECAST_BUILD_IMAGE names no command that builds and runs an image")
    with process([tool, "run", str(free_port())], cwd=ROOT, stop=False, seconds=600) as served:
        assert f"user: {IMAGE.last('USER')};" in served.output
        with urllib.request.urlopen(f"{served.url}/health", timeout=10) as response:
            assert response.read() == b'{"status":"ok"}'
        with open_run(served.url, "Plan a day in Lisbon") as response:
            events = list(read_events(response))
        assert events[-1]["type"] == "RUN_FINISHED"
        (server,) = descendants(served.child.pid, "serve")
        assert os.stat(f"/proc/{server}").st_uid == int(IMAGE.last("USER"))
        os.kill(server, signal.SIGTERM)


def descendants(pid: int, word: str) -> list[int]:
    """The processes below `pid` that are the image's: python with this word in its command."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            if b"python" in words[0] and word.encode() in words:
                found.append(int(child))
            found += descendants(int(child), word)
    return found
