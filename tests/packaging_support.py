"""The project as those who install it meet it: built, in an empty environment, as a process of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
"""The checkout."""


def interpreters() -> dict[tuple[int, int], Path]:
    """The Pythons of this machine by version: this one, those installed beside it, pyenv's, those on the path."""
    beside = [Path(sys.base_prefix).parent, Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"]
    candidates = [Path(sys.executable)]
    for folder in beside:
        candidates += sorted(folder.glob("*/bin/python3"), reverse=True)
    candidates += [Path(found) for minor in range(11, 16) if (found := shutil.which(f"python3.{minor}"))]
    found: dict[tuple[int, int], Path] = {}
    for candidate in candidates:
        version = _version(candidate)
        if version is not None:
            found.setdefault(version, candidate)
    return found


def _version(python: Path) -> tuple[int, int] | None:
    """`None` for what is no working Python, such as a pyenv shim of a version that is not chosen."""
    try:
        done = subprocess.run(
            [python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else tuple(int(part) for part in done.stdout.split())[:2]  # type: ignore[return-value]


@contextmanager
def process(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stop: bool = True,
    seconds: float = 60,
) -> Iterator[Served]:
    """A server in a process of its own; gives it once it listens. At the end it is told to stop, and must with 0.

    Args:
        env: the whole environment.
        stop: send SIGTERM at the end; else the block has ended it.
        seconds: until it must listen.
    """
    with subprocess.Popen(
        [str(part) for part in command],
        env=None if env is None else dict(env),
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
    ) as child:
        served = Served(child)
        try:
            served.wait_until_it_listens(seconds)
            yield served
            if stop:
                child.send_signal(signal.SIGTERM)
            child.wait(20)
        finally:
            child.kill()
        served.reader.join(10)
    assert child.returncode == 0, f"ended with {child.returncode}:\n{served.output}"


class Served:
    """A process whose output is read as it comes."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self.child = child
        self.lines: list[str] = []
        self.url = ""
        self._settled = threading.Event()
        self._changed = threading.Condition()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            text = line.decode(errors="replace").rstrip()
            with self._changed:
                self.lines.append(text)
                self._changed.notify_all()
            if found := re.search(r"Uvicorn running on (http://\S+)", text):
                self.url = found[1].replace("0.0.0.0", "127.0.0.1")
                self._settled.set()
        self._settled.set()

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def wait_for_line(self, text: str, times: int = 1, seconds: float = 10) -> None:
        """Waits until it has written a text so many times."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.output.count(text) >= times, seconds), self.output

    def wait_until_it_listens(self, seconds: float) -> None:
        assert self._settled.wait(seconds), f"it does not listen after {seconds} s:\n{self.output}"
        assert self.url, f"it ended before it listened:\n{self.output}"


def open_run(url: str, text: str = "", **fields: Any) -> Any:
    """Posts a run; the response, to be read line by line."""
    messages = [{"id": "m1", "role": "user", "content": text}] if text else []
    body = {"threadId": "t1", "runId": "r1", "protocolVersion": "1.0", "messages": messages, **fields}
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    return urllib.request.urlopen(request, timeout=30)


def read_events(response: Any) -> Iterator[dict[str, Any]]:
    """The events of a response as they arrive."""
    for line in response:
        if line.startswith(b"data: "):
            yield json.loads(line[6:])
