"""One agent at one URL: a request is refused, or becomes a run and its response."""

from __future__ import annotations

import asyncio
import logging
from time import monotonic

from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ..stream.wire import NotJSON, WireError, read_json
from .execution import Execution
from .inputs import Prepared, invalid, prepare
from .options import Options
from .problem import Problem
from .response import RunResponse
from .runs import Runs
from .service import Service
from .stall import Stall

__all__ = ["Endpoint"]

logger = logging.getLogger("statecast.server")

ALLOW = "GET, HEAD, OPTIONS, POST"

IN_THREAD = 32 * 1024
"""Bytes of a body above which it is read in a worker thread: tens of milliseconds in which other runs go on."""


class Endpoint:
    """An ASGI app for one path: POST runs the agent, GET gives its capabilities, anything else is refused.

    An instance, not a function: Starlette's `Route` then passes every method, and adds no redirect.

    A request is refused, always as `application/problem+json`, in this order: 405; 503 when the server shuts down, as many
    runs are active as may be, or the agent's lifespan was not opened; what `Agent.authorize` raises; 415; 413; 400; 422.
    Nothing is refused for its `Accept`: a producer that has only SSE answers with it (W5).

    Raises:
        TypeError: the agent's state type cannot be used.
    """

    def __init__(self, service: Service, options: Options, runs: Runs | None = None) -> None:
        service.state_type  # noqa: B018  a type that cannot be read fails here, not in the first request
        self.service = service
        self.options = options
        self.runs = Runs(options.max_runs) if runs is None else runs
        self._app: ASGIApp = self._handle
        if options.cors:
            self._app = CORSMiddleware(
                self._handle,
                allow_origins=options.cors,
                allow_methods=("GET", "POST"),
                allow_headers=("*",),
                expose_headers=("Retry-After",),
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1003, "reason": "AG-UI is served over HTTP"})
            return
        if scope["type"] != "http":
            raise RuntimeError(
                f"an endpoint answers HTTP, not {scope['type']}: serve `agent.app()` to run its lifespan"
            )
        await self._app(scope, receive, send)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._respond(request)
        except Problem as problem:
            response = problem.response()
        except HTTPException as error:
            response = Problem.from_exception(error).response()
        except ClientDisconnect:
            return
        except Exception as error:
            logger.exception("%s failed before the run began", self.service.name)
            detail = f"{type(error).__name__}: {error}" if self.options.debug else None
            response = Problem(500, detail).response()
        # Nothing is awaited between the admission of a run and its start, in here.
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        match request.method:
            case "POST":
                return await self._start(request)
            case "GET" | "HEAD":
                return await self._capabilities(request)
            case "OPTIONS":
                return Response(status_code=204, headers={"Allow": ALLOW})
            case _:
                raise Problem(405, headers={"Allow": ALLOW})

    async def _capabilities(self, request: Request) -> Response:
        self.runs.check_open()
        self._check_running()
        await self.service.authorize(request)
        capabilities = self.service.capabilities().model_dump(mode="json", by_alias=True, exclude_none=True)
        return Response(to_json(capabilities), media_type="application/json", headers={"Cache-Control": "no-cache"})

    async def _start(self, request: Request) -> Response:
        with self.runs.admit():
            self._check_running()
            principal = await self.service.authorize(request)
            check_content_type(request)
            body = await read_body(request, limit=self.options.max_body, stall=self.options.send_timeout)
            if len(body) > IN_THREAD:
                prepared = await asyncio.to_thread(self._prepare, body)
            else:
                prepared = self._prepare(body)
            execution = Execution(
                self.service, prepared, self.options, request=request, principal=principal, runs=self.runs
            )
            return RunResponse(execution)

    def _check_running(self) -> None:
        service = self.service
        if service.needs_lifespan and not service.is_running:
            logger.error(
                "%s has a lifespan that nobody opened: put `async with agent.running():` in the lifespan of the app "
                "that serves it, or serve `agent.app()`",
                service.name,
            )
            raise Problem(503, "The agent is not running: the app that serves it did not open its lifespan.")

    def _prepare(self, body: bytes) -> Prepared:
        try:
            data = read_json(body)
        except NotJSON as error:
            raise Problem(400, f"The body cannot be read as JSON: {error}") from None
        except WireError as error:
            raise invalid(error.faults) from None
        return prepare(self.service, data, debug=self.options.debug)


def check_content_type(request: Request) -> None:
    """Refuses what is not plain `application/json` (W1). A charset says nothing: JSON is UTF-8."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem(415, "The content type must be application/json.", headers={"Accept-Post": "application/json"})
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Problem(415, "The body must not be compressed.", headers={"Accept-Encoding": "identity"})


async def read_body(request: Request, *, limit: int, stall: float) -> bytes:
    """The body, read piece by piece: a client can leave `Content-Length` out, or lie.

    Args:
        limit: bytes.
        stall: seconds that the client may send nothing.

    Raises:
        Problem: 413 above the limit, 408 when it stalled.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and (len(declared) > 18 or int(declared) > limit):
        raise _too_large(limit)
    pieces: list[bytes] = []
    size = 0
    more = True
    try:
        with Stall(stall, TimeoutError) as waits:
            while more:
                waits.since = monotonic()
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                more = message.get("more_body", False)
                piece = message.get("body", b"")
                size += len(piece)
                if size > limit:
                    raise _too_large(limit)
                pieces.append(piece)
    except TimeoutError:
        raise Problem(408, f"The body did not arrive: nothing came for {stall:g} s.") from None
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _too_large(limit: int) -> Problem:
    return Problem(413, f"The body must not be larger than {limit} bytes.")
