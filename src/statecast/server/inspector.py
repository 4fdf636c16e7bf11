"""A web page that shows an agent's state, messages and events as they change; the extra `inspector`."""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Awaitable, Callable, Sequence

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from .service import Service

__all__ = ["PATH", "is_installed", "mount"]

PATH = "/inspector"


def is_installed() -> bool:
    """The extra is there."""
    return importlib.util.find_spec("agui_inspector") is not None


def mount(app: Starlette, service: Service, path: str = "/", *, suggestions: Sequence[str] = ()) -> None:
    """Serves the page at `/inspector`. It has no authentication of its own: for development.

    Args:
        path: where in `app` the agent is.
        suggestions: messages that the page offers to send.

    Raises:
        RuntimeError: the extra is not installed.
        ValueError: the agent is where the page would be.
    """
    if not is_installed():
        raise RuntimeError("the inspector is not installed: pip install 'statecast[inspector]'")
    if path.rstrip("/") == PATH:
        raise ValueError(f"{PATH} is taken: it is the inspector's page")
    package = importlib.import_module("agui_inspector")
    agent = package.Agent(
        id=service.name,
        url=path,
        name=service.name,
        capabilities=path,
        preset={"quickMessages": list(suggestions)} if suggestions else None,
    )
    package.mount_inspector(_Routes(app), agents=[agent], enabled=True, path=PATH)


class _Routes:
    """Where the package adds its routes. It tells the page where the agent is from the root of the server, which it can only
    know when `app` is not mounted below a path; so what it tells is put right for each request."""

    def __init__(self, app: Starlette) -> None:
        self._app = app

    def add_route(
        self, path: str, endpoint: Callable[[Request], Awaitable[Response]], *, methods: Sequence[str]
    ) -> None:
        async def placed(request: Request) -> Response:
            response = await endpoint(request)
            prefix = request.scope.get("root_path", "").rstrip("/")
            if not prefix or request.path_params.get("asset") != "config.json":
                return response
            config = json.loads(bytes(response.body))
            for agent in config["agents"]:
                agent["url"] = prefix + agent["url"]
                agent["capabilities"] = prefix + agent["capabilities"]
            headers = {"content-security-policy": response.headers["content-security-policy"]}
            return JSONResponse(config, headers=headers)

        self._app.add_route(path, placed, methods=list(methods))
