"""What every run in progress shares, wherever its bytes come from."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from typing import Any, Self, TypeVar

from ag_ui.core import Event, Message

from .failures import BrokenStream, RunTimeout
from .result import Continue, RunResult, make_result
from .transcript import Transcript

__all__ = ["LiveStream", "parsed"]

T = TypeVar("T")


class LiveStream:
    """A run in progress. Iterate it for its events; each was judged before you get it.

    Attributes:
        http_status: of the response; anything but 200 means that there is no run, and no event.
        headers: of the response, names in lower case.
        problem: the parsed body of a refusal.
    """

    def __init__(self, transcript: Transcript, timeout: float | None, go_on: Continue) -> None:
        self.http_status = 0
        self.headers: dict[str, str] = {}
        self.problem: Any = None
        self._transcript = transcript
        self._timeout = timeout
        self._deadline: float | None = None
        self._go_on = go_on
        self._ended = False
        self._left = False

    @property
    def events(self) -> list[Event]:
        """The events so far."""
        return self._transcript.events

    @property
    def applied(self) -> list[Event]:
        """The events so far as an application gets them: chunk events expanded."""
        return self._transcript.applied

    @property
    def payloads(self) -> list[dict[str, Any]]:
        """The events so far in wire form."""
        return self._transcript.payloads

    @property
    def state(self) -> Any:
        """The client's state now, plain JSON."""
        return self._transcript.replica.state

    @property
    def messages(self) -> list[Message]:
        """The client's messages now."""
        return list(self._transcript.replica.messages)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        __tracebackhide__ = True
        while (event := None if self._left else self._transcript.next()) is None:
            if self._ended:
                raise StopAsyncIteration
            chunk = await self._bounded(self._read(), "the run sent nothing more")
            if chunk is not None:
                self._transcript.feed(chunk)
                continue
            self._ended = True
            await self._finish()
        return event

    async def disconnect(self) -> None:
        """The client goes away."""
        if not self._ended:
            self._ended = self._left = True
            await self._close()

    def forget(self) -> None:
        """Lets go of the events so far, for a run that goes on for days; the state, the messages and the ending stay."""
        self._transcript.forget()

    def result(self) -> RunResult:
        """What the run came to. Only after its end: after the last event, `disconnect()` or the block."""
        if not self._ended:
            raise RuntimeError("the run has not ended: read its events to the end, or disconnect")
        return make_result(
            self._transcript,
            http_status=self.http_status,
            headers=self.headers,
            problem=self.problem,
            continue_=self._go_on,
        )

    async def leave(self, *, judge: bool = True) -> None:
        """Ends the run if it goes on. When its end was seen already, what remains of the body is read and judged."""
        if self._ended:
            return
        replica = self._transcript.replica
        if judge and (replica.outcome is not None or replica.error is not None):
            async for _ in self:
                pass
            return
        await self.disconnect()

    def _begin(self) -> None:
        """The request goes out now: the clock starts."""
        if self._timeout is not None:
            self._deadline = asyncio.get_running_loop().time() + self._timeout

    # What a source of bytes does

    async def _read(self) -> bytes | None:
        """The next bytes; `None` at the end."""
        raise NotImplementedError

    async def _close(self) -> None:
        """Closes the connection early."""
        raise NotImplementedError

    async def _finish(self) -> None:
        """The stream has ended by itself: judges the whole."""
        raise NotImplementedError

    async def _answered(self, status: int, headers: dict[str, str]) -> None:
        """The response has begun: checks what it is, and reads the whole body of a refusal."""
        self.http_status = status
        self.headers = headers
        if status != 200:
            body = b""
            while chunk := await self._bounded(self._read(), "the refusal did not end"):
                body += chunk
            self.problem = parsed(body)
            self._ended = True
            await self._close()
        elif (kind := headers.get("content-type", "")).partition(";")[0].strip().lower() != "text/event-stream":
            raise BrokenStream(f"the content type is {kind!r}, not text/event-stream", "W2")

    async def _bounded(self, waiting: Awaitable[T], what: str) -> T:
        __tracebackhide__ = True
        limit = asyncio.timeout_at(self._deadline)
        try:
            async with limit:
                return await waiting
        except TimeoutError:
            if not limit.expired():
                raise
            raise RunTimeout(f"{what} within {self._timeout:g} s of its start", self.payloads) from None


def parsed(body: bytes) -> Any:
    """The JSON value of a body; its text when it is not JSON."""
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")
