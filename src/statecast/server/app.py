"""The ways to serve an agent: an app of its own, or routes for the app of a host."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .endpoint import Endpoint
from .options import Options
from .problem import Problem
from .runs import Runs
from .service import Service

__all__ = ["build_app", "build_routes"]

HEALTH = "/health"


def build_app(service: Service, path: str, options: Options) -> Starlette:
    """An app with the agent at `path` and its health at `/health`. Its lifespan opens the agent's.

    Nothing redirects: behind a proxy that ends TLS, the absolute address of a redirect is the wrong one.

    Raises:
        ValueError: `path` does not begin with a slash, or is `/health`.
    """
    runs = Runs(options.max_runs)
    endpoint = Endpoint(service, options, runs)
    _check_path(path)
    paths = [path] if path.endswith("/") else [path, f"{path}/"]
    if HEALTH in paths:
        raise ValueError(f"{HEALTH} is taken: it says whether the app is healthy")

    async def health(request: Request) -> Response:
        body: dict[str, object] = {"status": "ok"}
        if runs.shutting_down:
            body["status"] = "shutting down"
        elif service.needs_lifespan and not service.is_running:
            body["status"] = "not running"
        if options.debug:
            body["runs"] = len(runs)
        return JSONResponse(body, 200 if body["status"] == "ok" else 503, headers={"Cache-Control": "no-store"})

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        runs.open()
        async with service.running():
            try:
                yield
            finally:
                await runs.shutdown()

    app = Starlette(
        routes=[*(Route(one, endpoint) for one in paths), Route(HEALTH, health)],
        lifespan=lifespan,
        exception_handlers={HTTPException: _problem},
    )
    app.router.redirect_slashes = False
    return app


def build_routes(service: Service, path: str, options: Options) -> list[Route]:
    """A route for a host's own app: every method of exactly `path`, which may have parameters (`/agents/{tenant}`).

    Raises:
        ValueError: `path` does not begin with a slash.
    """
    _check_path(path)
    return [Route(path, Endpoint(service, options), name=service.name)]


def _check_path(path: str) -> None:
    if not path.startswith("/"):
        raise ValueError(f"path must begin with '/': {path!r}")


async def _problem(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, HTTPException)
    return Problem.from_exception(exc).response()
