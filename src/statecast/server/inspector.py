"""A web page that shows an agent's state, messages and events as they change; the extra `inspector`."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence

from starlette.applications import Starlette

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
    """
    if not is_installed():
        raise RuntimeError("the inspector is not installed: pip install 'statecast[inspector]'")
    package = importlib.import_module("agui_inspector")
    agent = package.Agent(
        id=service.name,
        url=path,
        name=service.name,
        capabilities=path,
        preset={"quickMessages": list(suggestions)} if suggestions else None,
    )
    package.mount_inspector(app, agents=[agent], enabled=True, path=PATH)
