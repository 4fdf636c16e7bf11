"""Real consumers for the tests: Node, the published TypeScript clients, and a real server to run them against.

Where Node or its packages are missing the tests skip and say why, unless `STATECAST_REQUIRE_NODE=1`: then they fail.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import uvicorn

CLIENTS = ("1.0.0", "0.0.59")
"""The versions of `@ag-ui/client` that every scenario runs with."""

FOLDER = Path(__file__).parent / "interop"


@cache
def missing() -> str | None:
    """Why the real consumers cannot run here; `None` if they can."""
    if shutil.which("node") is None:
        return "Node is not installed"
    if not (FOLDER / "node_modules" / "ag-ui-client-0").is_dir():
        return "the clients are not installed: run `npm ci` in tests/interop"
    return None


def require_node() -> None:
    """Skips the test where the real consumers are missing; fails it where they must be there."""
    reason = missing()
    if reason is not None:
        if os.environ.get("STATECAST_REQUIRE_NODE") == "1":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)


def run_script(name: str, given: str, *, timeout: float = 60.0) -> str:
    """What a script of tests/interop prints for this standard input.

    Raises:
        RuntimeError: the script failed; the text is what it wrote to standard error.
    """
    require_node()
    # Callers escape what goes in to ASCII: a lone surrogate has no UTF-8.
    done = subprocess.run(
        ["node", str(FOLDER / name)],
        input=given.encode(),
        capture_output=True,
        timeout=timeout,
        check=False,
        env={**os.environ, "NODE_ENV": "production"},
    )
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr.decode(errors='replace')[-4000:]}")
    return done.stdout.decode()


def run_lines(name: str, lines: Iterable[Any], *, timeout: float = 60.0) -> list[Any]:
    """The same for scripts that answer each JSON line with one."""
    given = "".join(json.dumps(line) + "\n" for line in lines)
    if not given:
        return []
    return [json.loads(line) for line in run_script(name, given, timeout=timeout).splitlines()]


def run_threads(
    threads: Iterable[dict[str, Any]], *, client: str = "1.0.0", timeout: float = 20.0
) -> list[list[dict[str, Any]]]:
    """What the real client holds after each run of each thread. `client.mjs` says what a thread may hold.

    Args:
        timeout: seconds for each run.
    """
    request = {"client": client, "threads": list(threads), "timeout": int(timeout * 1000)}
    runs = sum(len(thread["runs"]) for thread in request["threads"])
    done = json.loads(run_script("client.mjs", json.dumps(request), timeout=timeout * runs + 15))
    out: list[list[dict[str, Any]]] = done["threads"]
    return out


def run_client(url: str, *runs: dict[str, Any], client: str = "1.0.0", **thread: Any) -> list[dict[str, Any]]:
    """The same for the runs of one thread, which may begin with `state=`, `messages=`, `headers=`, `threadId=`."""
    return run_threads([{"url": url, "runs": list(runs), **thread}], client=client)[0]


def apply_patches(cases: Iterable[tuple[Any, list[dict[str, Any]]]]) -> list[dict[str, Any]]:
    """What the clients' patch library makes of (document, patch) pairs: `{"result", "text"}` or `{"error"}`."""
    return run_lines("patches.mjs", [{"document": document, "patch": patch} for document, patch in cases])


def compare_patches(cases: Iterable[tuple[Any, Any]]) -> list[dict[str, Any]]:
    """What the clients' patch library finds between (before, after) pairs: `{"patch": …, "bytes": …}`."""
    return run_lines("patches.mjs", [{"before": before, "after": after} for before, after in cases])


def schema_faults(events: Iterable[dict[str, Any]], *, schema: str = "1.0.0") -> list[dict[str, Any]]:
    """What the clients' own event schema says of each event: `{"faults": […], "stripped": …}`."""
    return run_lines("validate.mjs", [{"schema": schema, "event": event} for event in events])


class _Server(uvicorn.Server):
    """Tells when it listens, and when it never will."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.settled = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.settled.set()

    def serve_in_thread(self, listener: socket.socket) -> None:
        try:
            self.run(sockets=[listener])
        finally:
            self.settled.set()


@contextmanager
def serving(app: Any, *, path: str = "/") -> Iterator[str]:
    """Serves an ASGI app with a real uvicorn on a free port of 127.0.0.1, in a thread; gives the URL of `path`."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = _Server(uvicorn.Config(app, log_level="warning", lifespan="on", timeout_graceful_shutdown=5))
        # A daemon, so that a server which does not stop fails the test below and not the end of the test run.
        thread = threading.Thread(target=server.serve_in_thread, args=[listener], name="uvicorn", daemon=True)
        thread.start()
        try:
            assert server.settled.wait(20), "the server did not start within 20 s"
            assert server.started, "the application's lifespan failed"
            yield f"http://127.0.0.1:{listener.getsockname()[1]}{path}"
        finally:
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive(), "the server did not stop within 20 s"
