"""What agents held, and what went over the wire: the two sides that the tests compare with the real clients."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from typing import Any, Generic

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from typing_extensions import TypeVar

from statecast import Agent, Ending, Run
from statecast.state import encode_json

Event = dict[str, Any]
S = TypeVar("S", default=dict[str, Any])


@dataclass(frozen=True)
class Final:
    """What an agent held when its run was over."""

    run_id: str
    state: Any
    messages: list[dict[str, Any]]
    ending: Ending


class Recorded(Agent[S], Generic[S]):
    """An agent whose state and messages are kept at the end of each run. The base of the agents below it in the tests."""

    def __init__(self) -> None:
        self._finals: list[Final] = []
        self._failure: Exception | None = None
        self._arrived = threading.Condition()

    async def on_finish(self, run: Run[S], ending: Ending) -> None:
        try:
            state = json.loads(encode_json(run.state))
            messages = [message.model_dump(mode="json", by_alias=True, exclude_none=True) for message in run.messages]
        except Exception as failure:
            self._failure = failure
        with self._arrived:
            if self._failure is None:
                self._finals.append(Final(run.run_id, state, messages, ending))
            self._arrived.notify_all()

    def finals(self, count: int, *, timeout: float = 10.0) -> list[Final]:
        """What the agent held after each of its `count` runs; waits for the last, which ends after its response does."""
        with self._arrived:
            assert self._arrived.wait_for(lambda: self._failure or len(self._finals) >= count, timeout), "a run goes on"
            if self._failure is not None:
                raise self._failure
            return list(self._finals)


@dataclass
class Stream:
    """One request and the events that answered it."""

    path: str
    input: dict[str, Any]
    status: int = 0
    body: bytes = b""
    ended: bool = False

    @property
    def events(self) -> list[Event]:
        """The events of the response, in wire form. Fails on a body that is not one frame after the other, LF only (W2)."""
        assert b"\r" not in self.body
        frames = self.body.split(b"\n\n")
        assert frames.pop() == b"", "the body does not end with a whole frame"
        assert all(frame.startswith((b"data: ", b": ")) and b"\n" not in frame for frame in frames)
        return [json.loads(frame[6:]) for frame in frames if frame.startswith(b"data: ")]

    @property
    def schema(self) -> str:
        """The version of the client that asked."""
        return "1.0.0" if "protocolVersion" in self.input else "0.0.59"


@dataclass
class Recorder:
    """ASGI middleware that keeps what goes over the wire."""

    app: ASGIApp
    streams: list[Stream] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        stream = Stream(scope["path"], {})
        body = b""

        async def recording_receive() -> Message:
            nonlocal body
            message = await receive()
            if message["type"] == "http.request":
                body += message.get("body", b"")
                if not message.get("more_body"):
                    stream.input = json.loads(body)
            return message

        async def recording_send(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.start":
                stream.status = message["status"]
            elif message["type"] == "http.response.body":
                stream.body += message.get("body", b"")
                stream.ended = not message.get("more_body")

        self.streams.append(stream)
        await self.app(scope, recording_receive, recording_send)
