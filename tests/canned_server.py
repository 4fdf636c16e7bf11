"""A server that answers each request with the same bytes, right or wrong."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


def frame(**event: Any) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\n\n"


STARTED = frame(type="RUN_STARTED", threadId="t", runId="r", protocolVersion="1.0")
FINISHED = frame(type="RUN_FINISHED", threadId="t", runId="r")


def chunked(body: bytes, *, complete: bool = True, head: bytes = HEAD) -> bytes:
    """A response with this body in one chunk; `complete=False`: the last chunk is missing, as when a server dies."""
    return head + b"Transfer-Encoding: chunked\r\n\r\n" + b"%x\r\n%b\r\n" % (len(body), body) + b"0\r\n\r\n" * complete


class Canned:
    """Attributes: url; requests: head and body of what was asked; wait: keeps the connection open after the answer."""

    def __init__(self, answers: list[bytes], hold: threading.Event | None) -> None:
        self._answers = answers
        self._hold = hold
        self.requests: list[tuple[str, bytes]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(20)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/"
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        for answer in self._answers:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(20)
                self.requests.append(_request(connection))
                connection.sendall(answer)
                if self._hold is not None:
                    self._hold.wait(20)

    def close(self) -> None:
        if self._hold is not None:
            self._hold.set()
        # A thread that waits in accept() is woken by a connection, not by close().
        with socket.socket() as waker:
            waker.settimeout(1)
            waker.connect_ex(self._listener.getsockname())
        self._listener.close()
        self.thread.join(10)


def _request(connection: socket.socket) -> tuple[str, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return data.decode("latin-1"), b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    while length is not None and len(body) < int(length[1]):
        body += connection.recv(65536)
    return head.decode("latin-1"), body


@contextmanager
def canned(*answers: bytes, hold: bool = False) -> Iterator[Canned]:
    """Serves these answers, one a connection, in order. `hold`: connections stay open until the block ends."""
    server = Canned(list(answers), threading.Event() if hold else None)
    try:
        yield server
    finally:
        server.close()
