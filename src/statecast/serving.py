"""Serving an agent with uvicorn: one process, several, or one that reloads."""

from __future__ import annotations

import copy
import json
import logging
import math
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from logging.config import dictConfig
from typing import Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.config import LOGGING_CONFIG
from uvicorn.logging import DefaultFormatter

from .agent import Agent
from .loading import LoadError, load_agent
from .server import inspector
from .server.app import HEALTH

__all__ = ["Serving", "make_app", "serve", "serve_agent"]

logger = logging.getLogger("statecast.server")

Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]

END_SECONDS = 2.0
"""Seconds that a process has to end after the last of its runs has, or has had its grace."""

_VARIABLE = "STATECAST_SERVING"
"""How the options reach the processes that uvicorn starts."""


@dataclass(frozen=True)
class Serving:
    """The options of `statecast serve`. Those that `Agent.app` has too mean the same."""

    agent: str = ""
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    reload: bool = False
    path: str = "/"
    debug: bool = False
    grace: float = 5.0
    timeout: float | None = None
    max_runs: int | None = None
    cors: tuple[str, ...] = ()
    inspector: bool = False

    def app(self, agent: Agent[Any]) -> Starlette:
        """The app of an agent with these options.

        Raises:
            LoadError: an option, the agent's state type, or the lack of the inspector does not allow it.
        """
        try:
            app = agent.app(
                path=self.path,
                debug=self.debug,
                grace=self.grace,
                timeout=self.timeout,
                max_runs=self.max_runs,
                cors=self.cors,
            )
            if self.inspector:
                inspector.mount(app, agent, self.path, suggestions=getattr(agent, "suggestions", ()))
        except (TypeError, ValueError, RuntimeError) as error:
            raise LoadError(str(error)) from error
        app.router.lifespan_context = _ending_the_process(app.router.lifespan_context)
        return app

    def uvicorn_options(self) -> dict[str, Any]:
        """What uvicorn is told. It waits for the runs' grace, and two seconds for the rest of their ends."""
        return {
            "host": self.host,
            "port": self.port,
            "timeout_graceful_shutdown": math.ceil(self.grace) + 2,
            "log_config": log_config(debug=self.debug),
        }


def serve(options: Serving, announce: Callable[[str], None]) -> None:
    """Serves `options.agent` until it is told to stop. Ends with `SystemExit`: 0 when it was told to.

    Args:
        announce: called with the address once the server listens; not with several workers or reload.

    Raises:
        LoadError: the agent cannot be had.
    """
    if options.workers == 1 and not options.reload:
        serve_agent(load_agent(options.agent), options, announce)
        return
    if not options.reload:
        # Here too, so that a mistake is one error at the start and not one for each new worker, for ever.
        options.app(load_agent(options.agent))
    os.environ[_VARIABLE] = json.dumps(asdict(options))
    _end_quietly()
    uvicorn.run(
        "statecast.serving:make_app",
        factory=True,
        workers=options.workers,
        reload=options.reload,
        **options.uvicorn_options(),
    )


def make_app() -> Starlette:
    """The app in a process that uvicorn started for `serve`."""
    given = json.loads(os.environ[_VARIABLE])
    options = Serving(**{**given, "cors": tuple(given["cors"])})
    try:
        return options.app(load_agent(options.agent))
    except LoadError as error:
        sys.exit(f"Error: {error}")


def serve_agent(agent: Agent[Any], options: Serving, announce: Callable[[str], None]) -> None:
    """Serves an agent in this process until it is told to stop. See `serve`."""
    _end_quietly()
    # uvicorn does it too, but the app is made before.
    dictConfig(log_config(debug=options.debug))
    server = _Server(uvicorn.Config(options.app(agent), **options.uvicorn_options()), announce)
    with suppress(KeyboardInterrupt):
        server.run()
    sys.exit(0 if server.started else 1)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, announce: Callable[[str], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
            self._announce(f"http://{f'[{host}]' if ':' in host else host}:{port}")


def _ending_the_process(lifespan: Lifespan) -> Lifespan:
    """The process ends soon after its app, also when an agent that swallows its cancellation keeps the event loop."""

    @asynccontextmanager
    async def ending(app: Any) -> AsyncIterator[Any]:
        async with lifespan(app) as state:
            yield state
        threading.Thread(target=_end_soon, name="statecast end", daemon=True).start()

    return ending


def _end_soon() -> None:
    time.sleep(END_SECONDS)
    logger.error("something goes on although it was cancelled: the process ends without it")
    logging.shutdown()
    os._exit(1)


def _end_quietly() -> None:
    # When uvicorn is done it raises the signal that stopped it again, which would be death by a signal: not the exit
    # status of a service that stopped as it was told.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))


def log_config(*, debug: bool = False) -> dict[str, Any]:
    """uvicorn's logging, and with it ours and the warnings of the author's code."""
    config = copy.deepcopy(LOGGING_CONFIG)
    config["formatters"]["default"]["()"] = RunFormatter
    config["loggers"]["statecast"] = {
        "handlers": ["default"],
        "level": "DEBUG" if debug else "INFO",
        "propagate": False,
    }
    config["root"] = {"handlers": ["default"], "level": "WARNING"}
    config["filters"] = {"healthy": {"()": Healthy}}
    config["handlers"]["access"]["filters"] = ["healthy"]
    return config


class Healthy(logging.Filter):
    """Leaves out what a container's health check would fill the access log with, as long as all is well."""

    def filter(self, record: logging.LogRecord) -> bool:
        # uvicorn's client, method, path, version and status.
        args = record.args
        return not (isinstance(args, tuple) and len(args) == 5 and args[1:5:3] == ("GET", 200) and args[2] == HEALTH)


class RunFormatter(DefaultFormatter):
    """Adds the ids of the run to a record that carries them."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        run_id = getattr(record, "run_id", None)
        if run_id is None:
            return text
        first, line, rest = text.partition("\n")
        return f"{first} [thread {record.__dict__.get('thread_id')}, run {run_id}]{line}{rest}"
