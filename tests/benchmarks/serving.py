"""Serving an app from a process of its own and reading it over a raw socket, for the benchmarks."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn


def serve(app: Any) -> None:
    """Serves `app` on a free port, printed first, until the process is ended."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", 0))
    print(sock.getsockname()[1], flush=True)
    # STATECAST_PLAIN=1: as `pip install statecast` alone serves, without uvloop and httptools.
    plain = {"loop": "asyncio", "http": "h11"} if os.environ.get("STATECAST_PLAIN") else {}
    config = uvicorn.Config(
        app, **plain, log_level="error", access_log=False, backlog=4096, timeout_graceful_shutdown=1
    )
    uvicorn.Server(config).run(sockets=[sock])


@contextlib.contextmanager
def server(script: str | Path) -> Iterator[tuple[int, int]]:
    """Runs `script --serve` in a process of its own; gives its port and its process id."""
    process = subprocess.Popen([sys.executable, str(script), "--serve"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.05)
        yield port, process.pid
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()


def body(text: str = "go", **more: Any) -> bytes:
    """A run input as JSON."""
    given = {
        "threadId": "t",
        "runId": "r",
        "messages": [{"id": "u", "role": "user", "content": text}],
        "tools": [],
        "context": [],
        "state": {},
        "forwardedProps": {},
        "protocolVersion": "1.0",
    }
    return json.dumps(given | more).encode()


def request(path: str, payload: bytes) -> bytes:
    """A POST of it as bytes for a socket."""
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(payload)}\r\nConnection: close\r\n\r\n"
    ).encode() + payload


def read_all(port: int, path: str, payload: bytes) -> tuple[float, float, bytes]:
    """Seconds to the first byte of the body, seconds to its end, and the raw answer."""
    with socket.create_connection(("127.0.0.1", port), 60) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        started = time.perf_counter()
        sock.sendall(request(path, payload))
        pieces: list[bytes] = []
        first = 0.0
        head = b""
        while piece := sock.recv(1 << 18):
            pieces.append(piece)
            if not first:
                head += piece
                _, separator, rest = head.partition(b"\r\n\r\n")
                if separator and rest:
                    first = time.perf_counter() - started
        return first, time.perf_counter() - started, b"".join(pieces)


def memory(pid: int) -> int:
    """Bytes of resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0
