"""A request that is played to an ASGI app by hand, where a server would not show what it calls when."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from live_server import run_input

SCOPE = {
    "type": "http",
    "method": "POST",
    "path": "/",
    "query_string": b"",
    "root_path": "",
    "headers": [(b"content-type", b"application/json")],
}


class Exchange:
    """One valid request.

    Args:
        block: the kind of call, "start" or "body", that never returns, as for a client that takes nothing.
        leave: the client has gone when the app listens for that; else it stays.

    Attributes:
        calls: the calls of the app, in their order: "receive", "start", "body".
        messages: what it sent.
        begun: RUN_STARTED was sent.
        blocked: the call that never returns was made.
    """

    def __init__(self, *, block: str = "", leave: bool = False) -> None:
        self.calls: list[str] = []
        self.messages: list[dict[str, Any]] = []
        self.begun = asyncio.Event()
        self.blocked = asyncio.Event()
        self._block = block
        self._leave = leave

    @property
    def body(self) -> bytes:
        """What was sent of the body."""
        return b"".join(message.get("body", b"") for message in self.messages)

    async def play(self, app: Any) -> None:
        """Returns when the app does."""
        await app(SCOPE, self._receive, self._send)

    async def _receive(self) -> dict[str, Any]:
        self.calls.append("receive")
        if self.calls.count("receive") == 1:
            return {"type": "http.request", "body": json.dumps(run_input()).encode(), "more_body": False}
        if not self._leave:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        self.calls.append(message["type"].rpartition(".")[2])
        self.messages.append(message)
        if b"RUN_STARTED" in message.get("body", b""):
            self.begun.set()
        if self.calls[-1] == self._block:
            self.blocked.set()
            await asyncio.Event().wait()
