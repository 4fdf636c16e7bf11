"""One HTTP request to an ASGI app in this process, streamed both ways, without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from starlette.types import ASGIApp, Message, Scope

__all__ = ["Exchange"]


class Exchange:
    """A request and its response, chunk by chunk as the app sends it.

    The app's `send` returns when the chunk was read, so a client that does not read is a slow client. Call `start`, then
    `read` until it gives `None`, or `disconnect`; then `wait`. Each of them waits for the app without a limit of its own.

    Attributes:
        status: the HTTP status, `None` before the response began.
        headers: the response's headers, names in lower case.
        complete: the app ended the body in order.
        task: the app's task.
    """

    def __init__(
        self,
        app: ASGIApp,
        body: bytes,
        *,
        method: str = "POST",
        path: str = "/",
        headers: Iterable[tuple[str, str]] = (),
    ) -> None:
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.complete = False
        self._body: bytes | None = body
        self._gone = asyncio.Event()
        self._changed = asyncio.Event()
        self._chunk: bytes | None = None
        self._taken: asyncio.Future[None] | None = None
        scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": b"",
            "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers],
            "client": ("127.0.0.1", 50000),
            "server": ("testserver", 80),
            "state": {},
        }
        self.task: asyncio.Task[None] = asyncio.create_task(_call(app, scope, self._receive, self._send))
        self.task.add_done_callback(lambda task: self._changed.set())

    async def start(self) -> int:
        """Waits for the beginning of the response; its status.

        Raises whatever the app raised, and `RuntimeError` when it ended without an answer.
        """
        while self.status is None and not self.task.done():
            await self._change()
        if self.status is None:
            await self.task
            raise RuntimeError("the app ended without an answer")
        return self.status

    async def read(self) -> bytes | None:
        """The next chunk of the body; `None` at its end. Raises what the app raised."""
        while self._chunk is None:
            if self.task.done():
                await self.task
                return None
            await self._change()
        chunk, self._chunk = self._chunk, None
        self._release()
        return chunk

    def disconnect(self) -> None:
        """The client closes the connection: the app is told, and whatever it still sends goes nowhere."""
        self._gone.set()
        self._release()
        self._changed.set()

    async def wait(self, timeout: float) -> bool:
        """Waits at most `timeout` seconds for the app to end; cancels it then. True: it ended by itself.

        Raises what the app raised.
        """
        await asyncio.wait({self.task}, timeout=timeout)
        if self.task.done():
            await self.task
            return True
        self.task.cancel()
        # Bounded: an app that swallows its cancellation is left to the end of the loop.
        await asyncio.wait({self.task}, timeout=1.0)
        return False

    async def _receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {
                name.decode("latin-1").lower(): value.decode("latin-1") for name, value in message.get("headers", ())
            }
            self._changed.set()
            return
        if message["type"] != "http.response.body":
            raise RuntimeError(f"the app sent {message['type']!r}, which is not HTTP")
        if self._gone.is_set():
            return
        chunk = message.get("body", b"")
        if chunk:
            self._chunk = bytes(chunk)
            self._taken = asyncio.get_running_loop().create_future()
            self._changed.set()
            try:
                await self._taken
            finally:
                self._taken = None
        if not message.get("more_body", False):
            self.complete = True
            self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _release(self) -> None:
        if self._taken is not None and not self._taken.done():
            self._taken.set_result(None)


async def _call(app: ASGIApp, scope: Scope, receive: Any, send: Any) -> None:
    await app(scope, receive, send)
