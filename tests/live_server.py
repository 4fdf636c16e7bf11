"""A real uvicorn for tests, and an HTTP client on a bare socket that shows what really arrives, and when.

with serve(agent.app()) as server:                      # uvicorn in a thread, on a free port
    reply = server.request("POST", "/", b"[]", {"Content-Type": "application/json"})
    with server.run(run_input(state={"a": 1})) as run:  # a Connection whose request is sent
        for event in run.events(): ...
        assert run.ended                                # the body ended in order

with spawn("serve", "planner:Planner", cwd=folder) as process:     # `statecast …` as a process of its own
    process.port; process.terminate(); process.wait(10); process.output
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep, thread_time
from typing import Any, NamedTuple

import uvicorn

JSON = {"Content-Type": "application/json"}
SOURCE = Path(__file__).parent.parent / "src"

_numbers = itertools.count(1)


def run_input(**members: Any) -> dict[str, Any]:
    """A run input as a client of the 1.0 line sends it; `members` replace or add."""
    return {
        "threadId": "thread",
        "runId": f"run-{next(_numbers)}",
        "protocolVersion": "1.0",
        "messages": [{"id": "m1", "role": "user", "content": "hello"}],
        **members,
    }


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def problem(self) -> Any:
        """The body of a refusal, which has the form that every refusal has."""
        assert self.headers["content-type"] == "application/problem+json", self
        problem = self.json()
        assert problem["status"] == self.status >= 400, problem
        assert problem["title"]
        assert problem["type"] == "about:blank"
        return problem


class Connection:
    """One HTTP/1.1 exchange on a bare socket.

    Attributes:
        comments: SSE comments that `events` met.
        ended: the body ended in order: its last chunk, or all of its announced length, arrived.
    """

    def __init__(self, port: int, timeout: float = 10.0, *, receive_buffer: int | None = None) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout)
        try:
            self.socket.connect(("127.0.0.1", port))
        except OSError:
            self.socket.close()
            raise
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.comments: list[str] = []
        self._stream: Iterator[dict[str, Any]] | None = None
        self.ended = False
        self.status = 0
        self.headers: dict[str, str] = {}
        self._buffer = b""

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        chunks: Iterable[bytes] | None = None,
    ) -> None:
        """Sends a request: with `body`, or with `chunks` and no Content-Length. The answer to the last one was read."""
        self.status, self.ended, self._stream = 0, False, None
        lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"]
        if chunks is not None:
            lines.append("Transfer-Encoding: chunked")
        elif body is not None:
            lines.append(f"Content-Length: {len(body)}")
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode() + (body or b""))
        if chunks is not None:
            for chunk in chunks:
                self.socket.sendall(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            self.socket.sendall(b"0\r\n\r\n")

    def read_head(self) -> None:
        """Reads the status and the headers, once."""
        if self.status:
            return
        while True:
            head = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
            self.status = int(head[0].split()[1])
            if self.status != 100:
                break
        self.headers = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)
        }

    def chunks(self, method: str = "POST") -> Iterator[bytes]:
        """The pieces of the body as they arrive."""
        self.read_head()
        if self.headers.get("transfer-encoding") == "chunked" and method != "HEAD":
            while size := int(self._until(b"\r\n"), 16):
                piece = self._exactly(size)
                self._exactly(2)
                yield piece
            self._exactly(2)
        elif method != "HEAD" and self.status != 204:
            yield self._exactly(int(self.headers["content-length"]))
        self.ended = True

    def events(self) -> Iterator[dict[str, Any]]:
        """The protocol events as they arrive, each once. Fails for anything that is not a frame of the protocol (W2)."""
        if self._stream is None:
            self._stream = self._read_events()
        return self._stream

    def _read_events(self) -> Iterator[dict[str, Any]]:
        self.read_head()
        assert self.status == 200, (self.status, *self.chunks())
        text = b""
        for chunk in self.chunks():
            text += chunk
            assert b"\r" not in chunk
            *frames, text = text.split(b"\n\n")
            for frame in frames:
                if frame.startswith(b":"):
                    self.comments.append(frame.decode())
                else:
                    assert frame.startswith(b"data: "), frame
                    assert b"\n" not in frame, frame
                    yield json.loads(frame[6:])
        assert text == b"", text

    def reply(self, method: str = "POST") -> Reply:
        """The whole answer."""
        body = b"".join(self.chunks(method))
        return Reply(self.status, self.headers, body)

    def close(self) -> None:
        """Closes in order."""
        self.socket.close()

    def reset(self) -> None:
        """Closes with a reset, as a process that dies does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def _until(self, end: bytes) -> bytes:
        while end not in self._buffer:
            self._receive()
        found, self._buffer = self._buffer.split(end, 1)
        return found

    def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._receive()
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found

    def _receive(self) -> None:
        data = self.socket.recv(65536)
        if not data:
            raise EOFError(f"the connection closed with {self._buffer[-200:]!r} unread")
        self._buffer += data


class Server:
    """A server on 127.0.0.1 at `port`."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    def connect(self, timeout: float = 10.0, **options: Any) -> Connection:
        return Connection(self.port, timeout, **options)

    def request(
        self, method: str, path: str = "/", body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Sends a request on a connection of its own and returns the whole answer."""
        with self.connect() as connection:
            connection.send(method, path, body, headers)
            return connection.reply(method)

    def post(self, data: Any = None, path: str = "/", headers: Mapping[str, str] | None = None) -> Reply:
        """Posts `data` as JSON, by default a valid input, and returns the whole answer."""
        body = json.dumps(run_input() if data is None else data).encode()
        return self.request("POST", path, body, {**JSON, **(headers or {})})

    def run(
        self,
        data: Any = None,
        path: str = "/",
        headers: Mapping[str, str] | None = None,
        *,
        timeout: float = 10.0,
        **options: Any,
    ) -> Connection:
        """Posts `data` as JSON, by default a valid input; read its events from the connection."""
        connection = self.connect(timeout, **options)
        body = json.dumps(run_input() if data is None else data).encode()
        connection.send("POST", path, body, {**JSON, **(headers or {})})
        return connection

    def events(
        self, data: Any = None, path: str = "/", headers: Mapping[str, str] | None = None
    ) -> list[dict[str, Any]]:
        """All events of a run whose body ended in order."""
        with self.run(data, path, headers) as run:
            events = list(run.events())
            assert run.ended
            return events


class ThreadServer(Server):
    """uvicorn in a thread of this process."""

    def __init__(self, port: int, loop: asyncio.AbstractEventLoop, server: uvicorn.Server) -> None:
        super().__init__(port)
        self.loop = loop
        self._server = server

    @property
    def active(self) -> int:
        """How many requests are being answered."""
        return len(self._server.server_state.tasks)

    def stop(self) -> None:
        """Asks it to stop, as a program does, without a signal."""
        self._server.should_exit = True

    def call(self, coroutine: Coroutine[Any, Any, Any], timeout: float = 10.0) -> Any:
        """Runs a coroutine in the server's loop and returns what it returns."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout)

    def tasks(self) -> set[str]:
        """The names of the tasks in the server's loop."""

        async def names() -> set[str]:
            return {task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()}

        return set(self.call(names()))


@contextmanager
def serve(app: Any, **options: Any) -> Iterator[ThreadServer]:
    """Serves an ASGI app with uvicorn in a thread, on a free port, until the block ends."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(app, **{"log_level": "warning", "timeout_graceful_shutdown": 2, **options})
    server = uvicorn.Server(config)
    loops: list[asyncio.AbstractEventLoop] = []

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        await server.serve(sockets=[listener])

    def run() -> None:
        # uvicorn ends with SystemExit when an app does not start.
        with suppress(SystemExit), asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            runner.run(main())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        wait_until(lambda: server.started or not thread.is_alive())
        if not server.started:
            raise RuntimeError("the server did not start")
        yield ThreadServer(listener.getsockname()[1], loops[0], server)
    finally:
        server.should_exit = True
        thread.join(15)
        listener.close()
        assert not thread.is_alive(), "the server did not stop"


def wait_until(condition: Callable[[], bool], timeout: float = 10.0) -> float:
    """Waits until the condition holds; returns how many seconds it took. Fails after `timeout` seconds."""
    began = monotonic()
    while not condition():
        assert monotonic() - began < timeout, "it did not happen in time"
        sleep(0.005)
    return monotonic() - began


def stretched(seconds: float) -> float:
    """A bound in seconds, longer by as much as computing takes longer now than on an idle machine."""
    began, used = monotonic(), thread_time()
    while thread_time() - used < 0.02:
        pass
    return seconds * max(1.0, 1.5 * (monotonic() - began) / 0.02 - 0.5)


class Process(Server):
    """`statecast …` in a process of its own."""

    def __init__(self, port: int, process: subprocess.Popen[str], lines: list[str], reader: threading.Thread) -> None:
        super().__init__(port)
        self.process = process
        self._lines = lines
        self._reader = reader

    def connect(self, timeout: float = 10.0, **options: Any) -> Connection:
        """A connection. The first worker says that it has started a moment before it listens."""
        began = monotonic()
        while True:
            try:
                return super().connect(timeout, **options)
            except ConnectionRefusedError:
                if monotonic() - began > 10 or self.process.poll() is not None:
                    raise
                sleep(0.02)

    @property
    def output(self) -> str:
        """What it wrote so far, to either stream."""
        return "".join(self._lines)

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def wait(self, timeout: float = 15.0) -> int:
        """Waits for its end; returns its exit status."""
        status = self.process.wait(timeout)
        self._reader.join(5)
        return status


@contextmanager
def spawn(
    *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, module: str = "statecast.cli"
) -> Iterator[Process]:
    """Starts `statecast *arguments` on a free port; the block begins when it listens. It is killed after the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONUNBUFFERED": "1", "STATECAST_PORT": "0", **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # A group of its own, so that its workers can be ended with it.
        start_new_session=True,
    )
    lines: list[str] = []
    ports: list[int] = []

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if match := re.search(r"running on \S*?:(\d+)", line):
                ports.append(int(match[1]))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        wait_until(lambda: bool(ports) or process.poll() is not None, 20)
        if not ports:
            reader.join(5)
            raise RuntimeError("it did not start: " + "".join(lines))
        yield Process(ports[0], process, lines, reader)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
        reader.join(5)
        if process.stdout is not None:
            process.stdout.close()
