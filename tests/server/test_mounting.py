"""The ways to serve an agent, in the apps of others, each on a real server."""

from __future__ import annotations

import asyncio
import contextvars
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastapi import Depends, FastAPI
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from live_server import JSON, Server, ThreadServer, run_input, serve
from statecast import Agent, Run, current_run

tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="nobody")


class Echo(Agent):
    """Tells what it knows of its request."""

    async def authorize(self, request: Request) -> Any:
        return request.headers.get("who")

    async def run(self, run: Run) -> Any:
        request = run.request
        assert request is not None
        return {
            "principal": run.principal,
            "header": request.headers.get("x-header"),
            "path": request.url.path,
            "parameters": request.path_params,
            "app": getattr(request.app.state, "label", None),
            "request state": getattr(request.state, "label", None),
            "tenant": tenant.get(),
            "tenant in a thread": await asyncio.to_thread(tenant.get),
            "same run": current_run() is run and await asyncio.to_thread(current_run) is run,
        }


class Other(Echo):
    pass


class Pooled(Agent):
    opened = 0
    open = False

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        self.opened += 1
        self.open = True
        yield
        self.open = False

    async def run(self, run: Run) -> bool:
        return self.open


def result(server: Server, path: str, **headers: str) -> Any:
    return server.events(path=path, headers=headers)[-1]["result"]


# Routes and mounts


def hosted(kind: str) -> tuple[ASGIApp, dict[str, str]]:
    """An app that serves `Echo`, and which paths it serves it at."""
    echo = Echo()
    match kind:
        case "app":
            return echo.app(), {"/": "Echo"}
        case "app at a path":
            return echo.app(path="/agent"), {"/agent": "Echo", "/agent/": "Echo"}
        case "routes in Starlette":
            return Starlette(routes=[*echo.routes("/a"), *Other().routes("/b/{c}")]), {"/a": "Echo", "/b/1": "Other"}
        case "routes in FastAPI":
            api = FastAPI()
            api.router.routes.extend(echo.routes("/a"))
            api.router.routes.extend(Other().routes("/b"))
            return api, {"/a": "Echo", "/b": "Other"}
        case "endpoint":
            return Starlette(routes=[Route("/a", echo.endpoint())]), {"/a": "Echo"}
        case "mounts":
            routes = [Mount("/a", echo.app()), Mount("/b", Other().app(path="/deep"))]
            return Starlette(routes=routes), {"/a/": "Echo", "/b/deep": "Other"}
        case "mounts in FastAPI":
            api = FastAPI()
            api.mount("/a", echo.app())
            return api, {"/a/": "Echo"}
        case _:
            raise AssertionError(kind)


@pytest.mark.parametrize(
    "kind",
    [
        "app", "app at a path", "routes in Starlette", "routes in FastAPI", "endpoint", "mounts", "mounts in FastAPI",
    ],
)  # fmt: skip
def test_every_way_answers_at_its_path_without_a_redirect(kind: str) -> None:
    app, paths = hosted(kind)
    with serve(app, log_level="critical") as server:
        for path, name in paths.items():
            capabilities = server.request("GET", path)
            assert capabilities.headers["content-type"] == "application/json"
            assert capabilities.json()["identity"]["name"] == name
            assert server.request("PUT", path).problem()["status"] == 405
            assert server.post([], path).problem()["status"] == 422
            assert result(server, path)["path"] == path


def test_capabilities_have_the_protocols_names_and_no_nulls() -> None:
    with serve(Echo().app()) as server:
        capabilities = server.request("GET", "/").json()
    assert capabilities["transport"] == {"streaming": True}
    assert capabilities["state"].items() >= {"snapshots": True, "deltas": True}.items()
    assert capabilities["identity"]["description"] == "Tells what it knows of its request."
    assert "null" not in json.dumps(capabilities)


def test_an_unmounted_path_of_an_app_is_a_problem() -> None:
    with serve(Echo().app(path="/agent")) as server:
        assert server.post(path="/").problem()["status"] == 404
        assert server.request("POST", "/health").problem()["status"] == 405
        # Not a redirect: its absolute address would be the wrong one behind a proxy.
        assert server.request("GET", "/health/").problem()["status"] == 404


@pytest.mark.parametrize("path", ["agent", "", "/health"])
def test_a_path_that_cannot_be_served_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"path must begin|/health is taken"):
        Echo().app(path=path)


def test_a_proxy_that_strips_a_prefix() -> None:
    with serve(Starlette(routes=[Mount("/inner", Echo().app())]), root_path="/outer") as server:
        assert result(server, "/inner/")["path"] == "/outer/inner/"


def test_a_web_socket_is_closed() -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(Echo().endpoint()({"type": "websocket", "path": "/", "headers": []}, receive, send))
    assert sent[0]["type"] == "websocket.close"


def test_an_endpoint_alone_has_no_lifespan_and_says_so() -> None:
    async def nothing(*args: Any) -> Any:
        raise AssertionError

    with pytest.raises(RuntimeError, match=r"serve `agent.app\(\)`"):
        asyncio.run(Echo().endpoint()({"type": "lifespan"}, nothing, nothing))


# Lifespans


def test_an_app_opens_the_lifespan_by_itself_again_and_again() -> None:
    agent = Pooled()
    app = agent.app()
    for times in (1, 2):
        with serve(app) as server:
            assert result(server, "/") is True
            assert server.request("GET", "/health").json() == {"status": "ok"}
            assert agent.opened == times
        assert agent.open is False


def test_a_host_opens_it_in_its_own() -> None:
    agent = Pooled()

    @asynccontextmanager
    async def lifespan(app: object) -> AsyncIterator[None]:
        async with agent.running():
            yield

    routes = [*agent.routes("/a"), Mount("/b", agent.app())]
    with serve(Starlette(routes=routes, lifespan=lifespan)) as server:
        assert result(server, "/a") is True
        assert result(server, "/b/") is True
        assert server.request("GET", "/b/health").status == 200
    with serve(Starlette(routes=routes), log_level="critical") as server:
        assert server.post(path="/a").problem()["status"] == 503
        assert server.request("GET", "/b/health").status == 503
        assert server.request("GET", "/b/health").json() == {"status": "not running"}


def test_a_lifespan_that_fails_ends_the_server() -> None:
    class Broken(Agent):
        @asynccontextmanager
        async def lifespan(self) -> AsyncIterator[None]:
            raise RuntimeError("no database")
            yield

        async def run(self, run: Run) -> None: ...

    with pytest.raises(RuntimeError, match="did not start"), serve(Broken().app(), log_level="critical"):
        pass


def test_health_counts_runs_only_in_debug() -> None:
    with serve(Echo().app(debug=True)) as server:
        assert server.request("GET", "/health").json() == {"status": "ok", "runs": 0}


# Request, principal, context


class LabelMiddleware:
    """A plain ASGI middleware that sets what the agent should see."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            tenant.set("acme")
            scope.setdefault("state", {})["label"] = "from middleware"
        await self.app(scope, receive, send)


async def plain_middleware(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    return await call_next(request)


def test_a_run_knows_its_request_its_principal_and_its_context() -> None:
    app = Starlette(
        routes=Echo().routes("/agents/{name}"),
        middleware=[Middleware(LabelMiddleware), Middleware(BaseHTTPMiddleware, dispatch=plain_middleware)],
    )
    app.state.label = "of the app"
    with serve(app) as server:
        assert result(server, "/agents/ann", who="ann", **{"X-Header": "h"}) == {
            "principal": "ann",
            "header": "h",
            "path": "/agents/ann",
            "parameters": {"name": "ann"},
            "app": "of the app",
            "request state": "from middleware",
            "tenant": "acme",
            "tenant in a thread": "acme",
            "same run": True,
        }
        assert tenant.get() == "nobody"


def test_dependencies_of_fastapi_reach_the_run() -> None:
    def label(request: Request) -> None:
        request.state.label = "from a dependency"

    endpoint = Echo().endpoint()
    api = FastAPI()

    @api.post("/a", dependencies=[Depends(label)])
    async def run_agent(request: Request) -> Response:
        class Handed(Response):
            async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
                await endpoint(scope, receive, send)

        return Handed()

    with serve(api) as server:
        assert result(server, "/a")["request state"] == "from a dependency"


def test_current_run_outside_of_a_run_says_so() -> None:
    with pytest.raises(LookupError, match="no run is active"):
        current_run()


# CORS


ORIGIN = {"Origin": "https://a.example"}


@pytest.fixture(scope="module")
def cross() -> Iterator[ThreadServer]:
    class Broken(Echo):
        async def authorize(self, request: Request) -> Any:
            raise RuntimeError

    routes = [
        *Echo().routes("/listed", cors=("https://a.example", "http://localhost:3000"), max_body=1000),
        *Echo().routes("/none"),
        *Echo().routes("/any", cors=("*",)),
        *Broken().routes("/broken", cors=("*",)),
        Mount("/app", Echo().app(cors=("https://a.example",))),
    ]
    with serve(Starlette(routes=routes), log_level="critical") as server:
        yield server


def test_a_listed_origin_is_allowed_on_every_answer(cross: Server) -> None:
    for path in ("/listed", "/app/"):
        with cross.run(path=path, headers=ORIGIN) as run:
            assert list(run.events())
            assert run.headers["access-control-allow-origin"] == "https://a.example"
            assert "origin" in run.headers["vary"].lower()
        for reply in (
            cross.request("GET", path, headers=ORIGIN),
            cross.post([], path, ORIGIN),
            cross.request("POST", path, b"x", ORIGIN),
            cross.request("POST", path, b"x", {**JSON, **ORIGIN}),
            cross.request("PUT", path, headers=ORIGIN),
        ):
            assert reply.headers["access-control-allow-origin"] == "https://a.example", reply
            assert "access-control-allow-credentials" not in reply.headers
    reply = cross.post(path="/broken", headers=ORIGIN)
    assert reply.status == 500
    assert reply.headers["access-control-allow-origin"] == "*"


def test_another_origin_is_not(cross: Server) -> None:
    for path, origin in (("/listed", "https://b.example"), ("/none", "https://a.example"), ("/listed", "null")):
        reply = cross.post([], path, {"Origin": origin})
        assert "access-control-allow-origin" not in reply.headers


def test_a_preflight_allows_the_headers_that_clients_send(cross: Server) -> None:
    asked = "content-type, authorization, last-event-id, accept, x-anything"
    reply = cross.request(
        "OPTIONS",
        "/listed",
        headers={**ORIGIN, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": asked},
    )
    assert reply.status == 200
    assert reply.headers["access-control-allow-origin"] == "https://a.example"
    allowed = {name.strip().lower() for name in reply.headers["access-control-allow-headers"].split(",")}
    assert allowed >= {name.strip() for name in asked.split(",")}
    assert {"GET", "POST"} <= {name.strip() for name in reply.headers["access-control-allow-methods"].split(",")}


def test_a_preflight_from_another_origin_is_refused(cross: Server) -> None:
    reply = cross.request(
        "OPTIONS", "/listed", headers={"Origin": "https://b.example", "Access-Control-Request-Method": "POST"}
    )
    assert reply.status == 400
    assert "access-control-allow-origin" not in reply.headers


# Compression


def test_a_hosts_compression_leaves_the_stream_alone() -> None:
    class Patient(Agent):
        def __init__(self) -> None:
            self.go = asyncio.Event()

        async def run(self, run: Run) -> None:
            await run.say("first " * 500)
            await self.go.wait()
            await run.say("second " * 500)

    agent = Patient()

    async def big(request: Request) -> Response:
        return JSONResponse(["x" * 5000])

    app = Starlette(
        routes=[*agent.routes("/a"), Route("/big", big)], middleware=[Middleware(GZipMiddleware, minimum_size=100)]
    )
    gzip = {"Accept-Encoding": "gzip, deflate, br, zstd"}
    with serve(app) as server:
        assert server.request("GET", "/big", headers=gzip).headers["content-encoding"] == "gzip"
        with server.run(path="/a", headers=gzip) as run:
            events = run.events()
            # The first message arrives whole while the agent waits.
            while next(events)["type"] != "TEXT_MESSAGE_END":
                pass
            assert "content-encoding" not in run.headers
            server.loop.call_soon_threadsafe(agent.go.set)
            assert [event["type"] for event in events][-1] == "RUN_FINISHED"


# In process


def test_the_same_app_serves_one_event_loop_after_the_other_and_two_at_once() -> None:
    app = Echo().app()
    with serve(app) as first, serve(app) as second:
        for server in (first, second, first):
            assert server.events()[-1]["type"] == "RUN_FINISHED"
    with serve(app) as third:
        assert third.events(run_input())[-1]["type"] == "RUN_FINISHED"
