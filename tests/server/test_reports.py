"""Faults that users of comparable projects reported, one test each, tried against a real server.

The first line of each docstring says what they saw; the second where.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import json
import logging
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import anyio
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from asgi_support import Exchange
from live_server import JSON, ThreadServer, run_input, serve, spawn, stretched, wait_until
from statecast import Agent, AgentError, Ending, Run
from statecast.replica import Replica

TERMINAL = ("RUN_FINISHED", "RUN_ERROR")


class Case(Agent[dict[str, Any]]):
    """Behaves as the function that the test gives it; notes its endings."""

    def __init__(self, behave: Callable[[Run], Awaitable[Any]]) -> None:
        self.behave = behave
        self.endings: list[Ending] = []

    async def run(self, run: Run) -> Any:
        return await self.behave(run)

    async def on_finish(self, run: Run, ending: Ending) -> None:
        self.endings.append(ending)


@contextmanager
def served(
    behave: Callable[[Run], Awaitable[Any]], *middleware: Middleware, **options: Any
) -> Iterator[tuple[ThreadServer, Case]]:
    agent = Case(behave)
    with serve(Starlette(routes=agent.routes("/", **options), middleware=middleware), log_level="critical") as server:
        yield server, agent


def played(events: list[dict[str, Any]], **held: Any) -> Replica:
    """A client that has read the stream, and found nothing wrong with it."""
    replica = Replica(**held)
    for event in events:
        replica.apply(event)
    replica.close()
    assert [event["type"] for event in events if event["type"] in TERMINAL] == [events[-1]["type"]]
    return replica


def told(run: Run) -> str:
    return run.user_text


def saying(text: str, **members: Any) -> dict[str, Any]:
    return run_input(messages=[{"id": "m", "role": "user", "content": text}], **members)


async def forever(run: Run) -> None:
    await run.say("begun")
    await asyncio.sleep(60)


def test_every_way_out_of_an_agent_ends_the_stream_with_one_terminal_event() -> None:
    """A truncated stream cannot be told from a finished one.
    ag-ui-protocol/ag-ui#2300, #2354"""

    async def behave(run: Run) -> Any:
        await run.say("begun")
        match told(run):
            case "return":
                return 1
            case "exception":
                raise ValueError
            case "cancelled":
                raise asyncio.CancelledError
            case "generator exit":
                raise GeneratorExit
            case "sys.exit":
                sys.exit(1)
            case "timeout":
                await asyncio.sleep(60)
            case "group":
                async with asyncio.TaskGroup() as group:
                    group.create_task(asyncio.sleep(60))
                    raise ValueError
        return None

    with served(behave, timeout=0.3) as (server, agent):
        for text in ("return", "exception", "cancelled", "generator exit", "sys.exit", "timeout", "group"):
            played(server.events(saying(text)))
        assert [ending.kind for ending in agent.endings] == [
            "finished", "failed", "cancelled", "failed", "failed", "cancelled", "failed",
        ]  # fmt: skip


def test_an_exception_anywhere_is_one_run_error_and_nothing_after_it() -> None:
    """An exception ends the stream silently, or is followed by a false RUN_FINISHED.
    ag-ui-protocol/ag-ui#2531, #2416; agno-agi/agno#9487"""

    async def behave(run: Run) -> Any:
        match told(run):
            case "first line":
                raise ValueError
            case "between chunks":
                async with run.text() as text:
                    await text.write("half")
                    raise ValueError
            case "in a tool":
                async with run.tool_call("search", {"q": 1}):
                    raise ValueError
            case "in the state":
                run.state["bad"] = float("nan")
            case "in the return":
                return {1, 2, object()}
        return None

    with served(behave) as (server, _):
        for text in ("first line", "between chunks", "in a tool", "in the state", "in the return"):
            events = server.events(saying(text))
            assert events[-1]["type"] == "RUN_ERROR", text
            played(events)


def test_text_a_tool_and_more_text_with_one_handle_is_a_legal_stream() -> None:
    """RUN_FINISHED while a message is open; content after the end.
    contextablemark/clawg-ui#7; pydantic/pydantic-ai#3108; agentscope-ai/agentscope-java#3071"""

    async def behave(run: Run) -> None:
        text = await run.text().__aenter__()
        await text.write("let me look ")
        async with run.tool_call("search", {}) as call:
            await call.result("found")
        await text.write("and there it is")

    with served(behave) as (server, _):
        replica = played(server.events(run_input(messages=[])))
        assert replica.outcome == "success"
        assert [message.content for message in replica.messages if message.role == "assistant" and message.content] == [
            "let me look and there it is"
        ]


def test_a_step_may_be_left_with_a_message_open() -> None:
    """STEP_FINISHED inside an open text message is rejected.
    agno-agi/agno#5466"""

    async def behave(run: Run) -> None:
        async with run.step("plan"), run.step("inner"):
            text = await run.text().__aenter__()
            await text.write("half")
        with pytest.raises(ValueError, match="left"):
            async with run.step("broken"):
                raise ValueError("left")
        await text.write("whole")

    with served(behave) as (server, _):
        assert played(server.events()).outcome == "success"


def test_a_browser_that_leaves_stops_its_agent() -> None:
    """The agent keeps running and spending tokens.
    soliplex/soliplex#680; pydantic/pydantic-ai#1524; xiaoyu-work/claw-os#18"""
    cleaned = threading.Event()

    async def behave(run: Run) -> None:
        try:
            await forever(run)
        finally:
            await asyncio.sleep(0.1)
            cleaned.set()

    with served(behave) as (server, agent):
        with server.run() as run:
            while next(run.events())["type"] != "TEXT_MESSAGE_CONTENT":
                pass
        began = monotonic()
        assert cleaned.wait(10)
        assert monotonic() - began < stretched(1)
        wait_until(lambda: bool(agent.endings))
        assert agent.endings[0].kind == "disconnected"


def test_an_agent_that_never_awaits_stops_when_its_client_leaves() -> None:
    """3,999 of 4,000 chunks were produced after the socket was closed; others starved.
    Kludex/starlette#1775; fastapi/fastapi#14681"""
    made = 0

    async def behave(run: Run) -> None:
        nonlocal made
        if told(run) == "other":
            return
        async with run.text() as text:
            for made in range(1_000_000):  # noqa: B007
                await text.write("x")

    with served(behave) as (server, agent):
        with server.run() as run:
            next(run.events())
            assert server.events(saying("other"))[-1]["type"] == "RUN_FINISHED"
        wait_until(lambda: len(agent.endings) == 2)
        assert made < 900_000


def test_a_stopped_run_is_not_reported_as_finished_and_starts_nothing_more() -> None:
    """An aborted run is reported as finished and its source is still drained.
    ag-ui-protocol/ag-ui#2417, #2288"""
    calls = []

    async def behave(run: Run) -> None:
        while True:
            calls.append(monotonic())
            await asyncio.sleep(0.02)

    with served(behave, timeout=0.12) as (server, _):
        assert played(server.events()).outcome == "cancelled"
        count = len(calls)
        time.sleep(0.1)
        assert len(calls) == count


async def passes(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    return await call_next(request)


class Plain:
    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)


BASE = Middleware(BaseHTTPMiddleware, dispatch=passes)


@pytest.mark.parametrize("middleware", [[], [BASE], [BASE, BASE], [Middleware(Plain), BASE]], ids=len)
def test_persistence_runs_exactly_once_however_the_client_leaves(middleware: list[Middleware]) -> None:
    """A hook in a background task of the response is skipped on disconnect.
    lsst/daf_butler#1407; Kludex/starlette#1438, #919"""
    stored = []

    async def behave(run: Run) -> None:
        run.state["a"] = 1
        await run.say("one")
        await asyncio.sleep(0.05 if told(run) == "stay" else 60)

    class Storing(Case):
        async def on_finish(self, run: Run, ending: Ending) -> None:
            await asyncio.sleep(0.05)
            stored.append((ending.kind, dict(run.state)))

    agent = Storing(behave)
    with serve(Starlette(routes=agent.routes("/"), middleware=middleware)) as server:
        for read in (0, 1, 3):
            with server.run() as run:
                events = run.events()
                for _ in range(read):
                    next(events)
                wait_until(lambda: bool(agent_state_is_set(server)))
        server.events(saying("stay"))
        wait_until(lambda: len(stored) == 4)
        time.sleep(0.1)
    assert sorted(stored) == [("disconnected", {"a": 1})] * 3 + [("finished", {"a": 1})]


def agent_state_is_set(server: ThreadServer) -> bool:
    return any(name.startswith("statecast run") for name in server.tasks())


def test_one_app_in_two_event_loops() -> None:
    """'Bound to a different event loop' in tests and processes with several loops.
    sysid/sse-starlette#59, #135, #140"""

    async def behave(run: Run) -> None:
        await run.say("hello")
        await asyncio.sleep(0.02)

    app = Case(behave).app()
    with serve(app) as first, serve(app) as second:
        for server in (first, second, first, second):
            played(server.events())
    with serve(app) as third:
        played(third.events())


def test_nothing_is_left_of_short_runs() -> None:
    """One watcher task leaks for each connection.
    sysid/sse-starlette#152"""

    async def behave(run: Run) -> None:
        await run.say("hello")

    def parts_of_runs() -> int:
        gc.collect()
        return sum(type(one).__name__ in ("Execution", "Run", "Outbox", "Channel") for one in gc.get_objects())

    before = parts_of_runs()
    with served(behave) as (server, agent):
        for _ in range(10):
            server.events()
        tasks, threads = server.tasks(), threading.active_count()
        for _ in range(200):
            server.events()
        wait_until(lambda: len(server.tasks()) <= len(tasks))
        assert server.tasks() <= tasks
        assert threading.active_count() <= threads
        assert len(agent.endings) == 210
        agent.endings.clear()
        assert parts_of_runs() <= before


def test_a_signal_ends_active_and_silent_runs_and_then_the_process(tmp_path: Path) -> None:
    """SIGTERM hangs, or kills with tracebacks, while streams are open.
    sysid/sse-starlette#73, #124; modelcontextprotocol/python-sdk#514 and others"""
    (tmp_path / "four.py").write_text(
        "import asyncio\n"
        "from statecast import Agent, Run\n"
        "class Four(Agent):\n"
        "    async def run(self, run: Run) -> None:\n"
        "        await run.say('begun')\n"
        "        while True:\n"
        "            await asyncio.sleep(0.05 if run.user_text == 'active' else 60)\n"
        "            await run.say('more')\n"
    )
    with spawn("serve", "four:Four", "--grace", "2", cwd=tmp_path) as process:
        runs = [process.run(saying(text)) for text in ("active", "active", "active", "silent")]
        for run in runs:
            next(run.events())
        process.terminate()
        for run in runs:
            assert list(run.events())[-1]["outcome"] == {"type": "cancelled"}
            assert run.ended
            run.close()
        assert process.wait() == 0
        assert "Traceback" not in process.output


@pytest.mark.parametrize("middleware", [[BASE], [BASE, BASE], [Middleware(Plain), BASE]], ids=len)
def test_a_client_that_leaves_is_noticed_behind_middleware(middleware: list[Middleware]) -> None:
    """With BaseHTTPMiddleware a disconnect is never seen.
    1rgs/claude-code-proxy#114"""
    with served(forever, *middleware) as (server, agent):
        with server.run() as run:
            next(run.events())
        assert wait_until(lambda: bool(agent.endings)) < stretched(1)
        assert agent.endings[0].kind == "disconnected"


def test_what_waits_for_a_client_is_bounded_and_the_client_is_dropped() -> None:
    """A queue without a bound for each client.
    IBM/mcp-context-forge#1682; sysid/sse-starlette#209; vercel/ai#9475"""
    written = 0

    async def behave(run: Run) -> None:
        nonlocal written
        async with run.text() as text:
            while True:
                await text.write("x" * 1000)
                written += 1000

    with served(behave, send_timeout=0.5, keepalive=0.05) as (server, agent):
        with server.run(receive_buffer=4096) as run:
            next(run.events())
            wait_until(lambda: bool(agent.endings))
        assert agent.endings[0].kind == "disconnected"
        # The socket's own buffers and ours.
        assert written < 10 * 2**20


class Compressor:
    """Compresses whatever has no `no-transform`, holding everything back until the end, as the worst of them do."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        held: list[Any] = []
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def hold(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = {name.lower(): value for name, value in message["headers"]}
                if b"no-transform" in headers.get(b"cache-control", b""):
                    held.append(None)
            if held[:1] == [None]:
                await send(message)
            else:
                held.append(message)

        await self.app(scope, receive, hold)
        for message in held:
            if message is not None:
                await send(message)


@pytest.mark.parametrize(
    "middleware", [Middleware(GZipMiddleware, minimum_size=1), Middleware(Compressor)], ids=["gzip", "other"]
)
def test_compressors_let_each_event_through_as_it_is_emitted(middleware: Middleware) -> None:
    """Compression holds events back, or the headers until the first of them.
    Kludex/starlette#2753; tower-rs/tower-http#420; tuffnatty/zstd-asgi#5 and others"""

    async def behave(run: Run) -> None:
        await asyncio.sleep(0.5)
        await run.say("hello")
        await asyncio.sleep(60)

    with served(behave, middleware, keepalive=0.1) as (server, _):
        began = monotonic()
        with server.run(headers={"Accept-Encoding": "gzip, br, zstd"}) as run:
            run.read_head()
            events = run.events()
            assert next(events)["type"] == "RUN_STARTED"
            assert monotonic() - began < stretched(0.3)
            assert next(events)["type"] == "TEXT_MESSAGE_START"
            assert monotonic() - began < stretched(1)
            assert run.comments


def test_headers_tell_proxies_not_to_buffer() -> None:
    """Behind nginx all events arrive at the end.
    nginx/nginx#1505; xorbitsai/xagent#1358; nearai/nearai#1133"""

    async def behave(run: Run) -> None: ...

    with served(behave) as (server, _), server.run() as run:
        list(run.events())
        assert run.headers["x-accel-buffering"] == "no"
        assert {"no-store", "no-transform"} <= {part.strip() for part in run.headers["cache-control"].split(",")}
        assert "content-length" not in run.headers


def test_a_silent_phase_is_kept_alive() -> None:
    """A long tool is cut by an idle timeout on the way.
    microsoft/agent-framework#6941, #6611; CopilotKit/CopilotKit#6980; ag-ui-protocol/ag-ui#1001"""

    async def behave(run: Run) -> None:
        await asyncio.sleep(0.3)
        await asyncio.to_thread(time.sleep, 0.3)

    for keepalive, at_least, at_most in ((0.1, 3, 100), (100_000.0, 0, 0)):
        with served(behave, keepalive=keepalive) as (server, _), server.run() as run:
            assert [event["type"] for event in run.events()] == ["RUN_STARTED", "RUN_FINISHED"]
            assert at_least <= len(run.comments) <= at_most


EVIL = "a\n\ndata: {}\n\n\r\rid: 1\r\n: x\u2028\u2029\x85\x00\x0b"


def test_line_ends_in_any_text_cannot_make_events() -> None:
    """CR or LF in a text or an id injects fields or events.
    arizona-framework/roadrunner#63; rexxars/sse-channel#42; wheels-dev/wheels#2051"""

    async def behave(run: Run) -> None:
        run.state[EVIL] = EVIL
        await run.say(EVIL, id=EVIL, name=EVIL)
        async with run.step(EVIL):
            await run.custom(EVIL, EVIL)
        raise AgentError(EVIL, EVIL)

    with served(behave) as (server, _):
        events = server.events(run_input(threadId=EVIL, runId=EVIL))
        replica = played(events)
        assert events[0]["runId"] == events[0]["threadId"] == EVIL
        assert replica.state == {EVIL: EVIL}
        assert replica.messages[-1].content == EVIL
        assert [event["value"] for event in events if event["type"] == "CUSTOM"] == [EVIL]
        assert replica.error is not None
        assert replica.error.message == EVIL


def test_an_emoji_in_two_halves_is_one_in_the_client() -> None:
    """An emoji that is split over two chunks shows as two boxes.
    elizaOS/eliza#30904"""

    async def behave(run: Run) -> None:
        async with run.text(id="m2") as text:
            await text.write("\ud83d")
            await text.write("\ude00")
        run.state["half"] = "\ud83d"

    with served(behave) as (server, _):
        with server.run() as run:
            body = b"".join(run.chunks()).decode()
        deltas = [
            json.loads(line[6:])["delta"]
            for line in body.splitlines()
            if line.startswith("data: ") and '"delta":"' in line
        ]
        # JavaScript joins the two halves; so does this.
        assert "".join(deltas).encode("utf-16", "surrogatepass").decode("utf-16") == "\U0001f600"


def test_an_error_before_the_run_is_not_a_stream() -> None:
    """Errors before the first event come back as 200 with an empty body.
    fastapi/fastapi#15917; sysid/sse-starlette#139, #52"""

    async def behave(run: Run) -> None:
        raise ValueError

    class Guarded(Case):
        async def authorize(self, request: Request) -> None:
            from starlette.exceptions import HTTPException

            raise HTTPException(403)

        def initial_state(self) -> Any:
            raise RuntimeError("no defaults today")

    class Broken(Case):
        def initial_state(self) -> Any:
            raise RuntimeError("no defaults today")

    routes = [*Case(behave).routes("/a"), *Guarded(behave).routes("/b"), *Broken(behave).routes("/c")]
    with serve(Starlette(routes=routes), log_level="critical") as server:
        assert server.request("POST", "/a", b"{", JSON).problem()["status"] == 400
        assert server.request("POST", "/a", b"{}", {}).problem()["status"] == 415
        assert server.post({"runId": "r", "messages": []}, "/a").problem()["status"] == 422
        assert server.post(path="/b").problem()["status"] == 403
        assert server.post(path="/c").problem()["status"] == 500
        events = server.events(path="/a")
        assert [event["type"] for event in events] == ["RUN_STARTED", "RUN_ERROR"]


def test_the_text_of_an_exception_stays_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Raw exception texts reach the client.
    NorthlandPositronics/Cogtrix#2114; raullenchai/Rapid-MLX#730"""

    async def behave(run: Run) -> None:
        if told(run) == "chosen":
            raise AgentError("No rooms left.", "no_rooms")
        raise RuntimeError("postgres://u:secret@db")

    with served(behave) as (server, _):
        with caplog.at_level(logging.ERROR):
            events = server.events(saying("raw", runId="r-17"))
        assert "secret" not in json.dumps(events)
        assert events[-1]["code"] == "internal"
        assert "postgres://u:secret@db" in caplog.text
        assert any(getattr(record, "run_id", None) == "r-17" for record in caplog.records)
        assert server.events(saying("chosen"))[-1].items() >= {"message": "No rooms left.", "code": "no_rooms"}.items()


def test_an_endless_agent_can_be_read_from_and_left() -> None:
    """An endless endpoint cannot be tested in process: the client waits for the whole body.
    encode/httpx#2186; Kludex/starlette#1102; sysid/sse-starlette#165"""
    from statecast.testing import open_run

    agent = Case(forever)

    async def main() -> None:
        async with open_run(agent, "hello") as run:
            seen = [await anext(run) for _ in range(2)]
            assert len(seen) == 2
            await run.disconnect()

    began = monotonic()
    asyncio.run(main())
    assert monotonic() - began < stretched(1)
    assert agent.endings[0].kind == "disconnected"


@pytest.mark.parametrize("way", ["end", "error", "leave"])
def test_cancel_scopes_and_context_around_an_agents_sends(way: str, caplog: pytest.LogCaptureFixture) -> None:
    """'Attempted to exit cancel scope in a different task' at the end or the cancellation of a stream.
    anthropics/claude-agent-sdk-python#4; vllm-project/vllm#25697; Mng-dev-ai/agentrove#192"""
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")

    async def behave(run: Run) -> None:
        token = variable.set("mine")
        try:
            async with anyio.create_task_group() as group, asyncio.timeout(30):
                group.start_soon(anyio.sleep, 0.15)
                with anyio.move_on_after(30):
                    for _ in range(3):
                        await run.say("word")
                        await asyncio.sleep(0.05)
                    if way == "error":
                        raise ValueError
                    if way == "leave":
                        await asyncio.sleep(60)
        finally:
            variable.reset(token)

    with served(behave, keepalive=0.02) as (server, agent):
        if way == "leave":
            with server.run() as run:
                events = run.events()
                for _ in range(4):
                    next(events)
        else:
            played(server.events())
        wait_until(lambda: bool(agent.endings))
    assert agent.endings[0].kind == {"end": "finished", "error": "failed", "leave": "disconnected"}[way]
    assert "cancel scope" not in caplog.text
    assert "Context" not in caplog.text


def test_a_blocking_agent_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """One blocking call in an agent freezes all streams.
    aws-samples/sample-strands-agentcore-starter#37; unslothai/unsloth#6465"""

    async def behave(run: Run) -> None:
        if told(run) == "block":
            time.sleep(2.0)  # noqa: ASYNC251
        elif told(run) == "in a thread":
            await asyncio.to_thread(time.sleep, 2.0)

    with served(behave) as (server, _), caplog.at_level(logging.WARNING, "statecast"):
        server.events(saying("in a thread"))
        assert "test_reports.py" not in caplog.text
        server.events(saying("block", runId="r-blocking"))
        wait_until(lambda: "time.sleep(2.0)" in caplog.text)


def test_no_header_of_ours_belongs_to_the_connection() -> None:
    """`Connection: keep-alive` breaks HTTP/2 hops.
    soliplex/soliplex#680"""

    async def behave(run: Run) -> None: ...

    exchange = Exchange()
    asyncio.run(exchange.play(Case(behave).endpoint()))
    names = {name.decode().lower() for name, _ in exchange.messages[0]["headers"]}
    assert names == {"content-type", "cache-control", "x-accel-buffering"}


def test_a_browser_of_another_origin_can_call_the_agent_and_read_its_errors() -> None:
    """The CORS option is missing, or leaves headers out, or errors lack it.
    microsoft/agent-framework#3191; modelcontextprotocol/python-sdk#2978; fetchai/uAgents#563"""
    origin = {"Origin": "https://a.example"}

    class Guarded(Case):
        async def authorize(self, request: Request) -> None:
            from starlette.exceptions import HTTPException

            match request.headers.get("authorization"):
                case None:
                    raise HTTPException(401)
                case "broken":
                    raise RuntimeError

    async def behave(run: Run) -> None: ...

    agent = Guarded(behave)
    with serve(Starlette(routes=agent.routes("/", cors=("https://a.example",))), log_level="critical") as server:
        asked = {
            **origin,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type, authorization, last-event-id, accept",
        }
        replies = [
            server.request("OPTIONS", headers=asked),
            server.post(headers=origin),
            server.post([], headers={**origin, "Authorization": "ann"}),
            server.post(headers={**origin, "Authorization": "broken"}),
            server.post(headers={**origin, "Authorization": "ann"}),
        ]
        assert [reply.status for reply in replies] == [200, 401, 422, 500, 200]
        for reply in replies:
            assert reply.headers["access-control-allow-origin"] == "https://a.example"
            assert "access-control-allow-credentials" not in reply.headers
        allowed = replies[0].headers["access-control-allow-headers"].lower()
        assert all(name in allowed for name in ("content-type", "authorization", "last-event-id", "accept"))
