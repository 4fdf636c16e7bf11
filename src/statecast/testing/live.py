"""A run of an agent at a URL, read strictly and judged."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from ag_ui.core import RunAgentInput
from pydantic_core import to_json

from .failures import BrokenStream
from .inputs import make_input, next_input, wire
from .result import Continue, RunResult
from .stream import LiveStream
from .transcript import Transcript

__all__ = ["RemoteRun", "open_input", "open_url", "run_url"]


async def run_url(
    url: str,
    input: RunAgentInput | Mapping[str, Any] | str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    timeout: float | None = 30.0,
    strict: bool = False,
) -> RunResult:
    """Runs the agent at a URL and judges its stream: W2 to the letter, the sequence rules, and a proper end.

    Needs the extra `client` (httpx).

    Args:
        input: the run input, as a model or in wire form; or the text of a user message.
        timeout: seconds that the whole run may take; `None`: no limit.
        strict: what a consumer forgives with a warning is a fault too; else it is in `RunResult.warnings`.

    Raises:
        BrokenStream: (an `AssertionError`) the stream is malformed, breaks a rule, or is truncated.
        RunTimeout: (an `AssertionError`) the run took longer than `timeout`.
        httpx.TransportError: the server cannot be reached.
    """
    __tracebackhide__ = True
    async with open_url(url, input, headers=headers, timeout=timeout, strict=strict) as live:
        async for _ in live:
            pass
    return live.result()


def open_url(
    url: str,
    input: RunAgentInput | Mapping[str, Any] | str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    timeout: float | None = 30.0,
    strict: bool = False,
) -> AbstractAsyncContextManager[RemoteRun]:
    """A run at a URL that is read as it goes; the arguments are those of `run_url`. Leaving the block early disconnects."""
    sent = _wire_input(input)
    return open_input(url, sent, sent.get("messages", []), headers=headers, timeout=timeout, strict=strict)


def open_input(
    url: str,
    sent: dict[str, Any],
    held: list[dict[str, Any]],
    *,
    headers: Mapping[str, str] | None = None,
    timeout: float | None = None,
    strict: bool = False,
) -> AbstractAsyncContextManager[RemoteRun]:
    """`open_url` for an input in wire form, and the messages that the client holds: activities too, which no input carries."""

    async def go_on(**changes: Any) -> RunResult:
        held, sent = next_input(**changes)
        async with open_input(url, sent, held, headers=headers, timeout=timeout, strict=strict) as live:
            async for _ in live:
                pass
        return live.result()

    @asynccontextmanager
    async def opened() -> AsyncIterator[RemoteRun]:
        async with AsyncExitStack() as stack:
            live = RemoteRun(Transcript(sent, held=held, strict=strict), timeout, go_on, stack)
            try:
                await live.start(url, headers or {})
                yield live
            except BaseException:
                await live.leave(judge=False)
                raise
            await live.leave()

    return opened()


def _wire_input(input: RunAgentInput | Mapping[str, Any] | str | None) -> dict[str, Any]:
    if isinstance(input, Mapping):
        return dict(input)
    if not isinstance(input, RunAgentInput):
        return make_input(input)
    sent: dict[str, Any] = wire(input)
    if "state" in input.model_fields_set:
        sent["state"] = input.state  # null is a state
    return sent


class RemoteRun(LiveStream):
    """A run at a URL. Iterate it for its events; each was judged before you get it."""

    def __init__(self, transcript: Transcript, timeout: float | None, go_on: Continue, stack: AsyncExitStack) -> None:
        super().__init__(transcript, timeout, go_on)
        self._stack = stack
        self._chunks: AsyncIterator[bytes] | None = None

    async def start(self, url: str, headers: Mapping[str, str]) -> None:
        """Sends the request and waits for the beginning of the response."""
        httpx = _httpx()
        # Silence is legal: the limit is that of the whole run.
        # Reading the certificates takes longer than many a run, and redirects are not followed.
        verify = not url.lower().startswith("http://")
        client = await self._stack.enter_async_context(
            httpx.AsyncClient(timeout=httpx.Timeout(10.0, read=self._timeout), verify=verify)
        )
        self._begin()
        told = {"Content-Type": "application/json", "Accept": "text/event-stream", **headers}
        request = client.build_request("POST", url, content=to_json(self._transcript.sent), headers=told)
        response = await self._bounded(client.send(request, stream=True), "the request was not answered")
        self._stack.push_async_callback(response.aclose)
        self._chunks = response.aiter_bytes()
        await self._answered(response.status_code, {name.lower(): value for name, value in response.headers.items()})

    async def _read(self) -> bytes | None:
        assert self._chunks is not None
        httpx = _httpx()
        try:
            return await anext(self._chunks, None)
        except (httpx.RemoteProtocolError, httpx.ReadError) as error:
            self._ended = True
            raise BrokenStream(f"the connection was cut: {error}", "W4", self.payloads) from error

    async def _close(self) -> None:
        await self._stack.aclose()

    async def _finish(self) -> None:
        __tracebackhide__ = True
        self._transcript.close()


def _httpx() -> Any:
    try:
        import httpx
    except ImportError:
        raise RuntimeError('running an agent at a URL needs httpx: pip install "statecast[client]"') from None
    return httpx
