"""`Agent`: what authors subclass."""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from functools import cached_property
from typing import Any, ClassVar, ForwardRef, Generic, Literal, TypedDict, cast, get_args, get_origin, get_type_hints

from ag_ui.core import (
    AgentCapabilities,
    Event,
    IdentityCapabilities,
    RunAgentInput,
    StateCapabilities,
    TransportCapabilities,
)
from pydantic import TypeAdapter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp
from typing_extensions import TypeVar, Unpack

from .ending import Ending, SentEvent
from .errors import AgentError
from .run import Run
from .server.app import build_app, build_routes
from .server.endpoint import Endpoint
from .server.execution import Execution
from .server.inputs import prepare
from .server.inspector import mount
from .server.lifespan import SharedLifespan
from .server.options import Options
from .state import StateType

__all__ = ["Agent", "RunOptions"]

S = TypeVar("S", default=dict[str, Any])

_event = TypeAdapter[Event](Event)


class RunOptions(TypedDict, total=False):
    """The keyword arguments of `Agent.app`, which `routes`, `endpoint` and `stream` take too."""

    debug: bool
    state_interval: float
    keepalive: float
    send_timeout: float
    timeout: float | None
    grace: float
    max_body: int
    max_runs: int | None
    cors: Sequence[str]
    first_state: Literal["snapshot", "delta"]


class _FromClass:
    """A default that is read off the class, until a subclass or an instance says otherwise."""

    def __init__(self, read: Any) -> None:
        self._read = read

    def __get__(self, instance: object, owner: type) -> Any:
        return self._read(owner)


def _first_doc_line(cls: type) -> str | None:
    doc = inspect.cleandoc(cls.__doc__ or "")
    return doc.splitlines()[0] if doc and cls is not Agent else None


class Agent(Generic[S]):
    """Answers runs. Subclass it, change `run.state` in `run`, and serve `app()`.

        class Planner(Agent[Trip]):
            async def run(self, run: Run[Trip]) -> None:
                run.state.city = "Lisbon"
                await run.say("Here is your plan.")

        app = Planner().app()

    `S` is the type of the state: a `State` subclass, `dict`, a TypedDict, a pydantic model, a list or any JSON type;
    `dict[str, Any]` when it is left out. One instance serves many runs at a time: keep what belongs to a run in `run`.

    Attributes:
        name: the class name, unless the class sets another.
        description: the first line of the class docstring, unless the class sets another.
        version: the agent's own version.
    """

    name: str = cast(str, _FromClass(lambda cls: cls.__name__))
    description: str | None = cast("str | None", _FromClass(_first_doc_line))
    version: str | None = None

    _state_type: ClassVar[StateType | None] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        run = cls.run
        if inspect.isasyncgenfunction(run):
            raise TypeError(f"{cls.__name__}.run yields: an agent sends with `await run.say(…)`, it does not yield")
        if not inspect.iscoroutinefunction(run):
            raise TypeError(f"{cls.__name__}.run must be an `async def`")
        try:
            inspect.signature(run).bind(None, None)
        except TypeError:
            raise TypeError(
                f"{cls.__name__}.run takes the run as its only argument: `async def run(self, run)`"
            ) from None
        for name in ("authorize", "on_finish"):
            if not inspect.iscoroutinefunction(getattr(cls, name)):
                raise TypeError(f"{cls.__name__}.{name} must be an `async def`")
        if inspect.isasyncgenfunction(cls.lifespan) or inspect.iscoroutinefunction(cls.lifespan):
            raise TypeError(f"{cls.__name__}.lifespan lacks its decorator: put @asynccontextmanager above it")
        cls._state_type = None

    # What authors override

    async def run(self, run: Run[S]) -> Any:
        """Answers one run. What it returns, a JSON value, becomes `RUN_FINISHED.result`; `None` is left out.

        Raise `AgentError` to end the run with a text for the user; any other exception ends it with a fixed text.

        It is cancelled once, with `CancelledError`, when the client goes away or the run is stopped; `finally` blocks may
        await for `grace` seconds, sending in them raises, and swallowing the cancellation does not keep the run alive.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define run()")

    def initial_state(self) -> S:
        """The state when the input carries none: `state` absent, `{}`, or `null` where the type takes no null.

        It is copied, and may be called in a worker thread. Default: `S()`, or an empty dict or list; a type that has none of
        these (a required field, a union) needs this method, and `app()` says so.
        """
        return cast(S, self.state_type.default())

    def load_state(self, data: Any) -> Any:
        """The input's state, before it is validated: migrate, repair or drop what an older client or deploy sent.

        May be called in a worker thread. An exception here is answered with 422.
        """
        return data

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Opens what all runs share (pools, clients) and closes it at the end of the app's life."""
        yield

    async def authorize(self, request: Request) -> Any:
        """Says who asks: what it returns is `run.principal`. Raise `HTTPException(401)` or `(403)` to refuse.

        Called before the body is read, for runs and for capabilities.
        """
        return None

    def error(self, exc: Exception, run: Run[S]) -> AgentError | None:
        """The error that an unexpected exception means for the user; `None`: a fixed text with the code `internal`."""
        return None

    async def on_finish(self, run: Run[S], ending: Ending) -> None:
        """Called exactly once for every run that started, on every way out, after its last event.

        It may await for `grace` seconds, also when the client has gone. Its own failure is logged and changes nothing.
        """

    def on_event(self, run: Run[S], event: SentEvent) -> None:
        """Observes each event after it was encoded, for metrics. Called in a worker thread, in order, never in the way of the
        stream: what it raises is logged, and events that it is too slow for are counted and dropped."""

    def capabilities(self) -> AgentCapabilities:
        """What this class declares about itself, served at `GET`; extend it by way of `super()`. What is left out is not
        declared, which does not mean unsupported."""
        return AgentCapabilities(
            identity=IdentityCapabilities(
                name=self.name, description=self.description, version=self.version, type="statecast"
            ),
            transport=TransportCapabilities(streaming=True),
            state=StateCapabilities(snapshots=True, deltas=True),
            custom={"stateSchema": self.state_type.json_schema()},
        )

    # How it is served

    def app(
        self,
        *,
        path: str = "/",
        debug: bool = False,
        state_interval: float = 1 / 60,
        keepalive: float = 15.0,
        send_timeout: float = 30.0,
        timeout: float | None = None,
        grace: float = 5.0,
        max_body: int = 16 * 2**20,
        max_runs: int | None = None,
        cors: Sequence[str] = (),
        first_state: Literal["snapshot", "delta"] = "snapshot",
        inspector: bool = False,
    ) -> Starlette:
        """An ASGI app: `POST {path}` runs the agent, `GET {path}` gives its capabilities, `GET /health` its health.

        Args:
            path: where the agent answers.
            debug: exception texts reach the client, and the state is checked against a copy at every event: it costs the
                size of the state each time, and keeps it twice.
            state_interval: seconds between two state events that nobody asked for. 0: one for each turn of the event loop.
            keepalive: seconds of silence after which a comment is sent.
            send_timeout: seconds that a client may take nothing before it is dropped.
            timeout: seconds after which a run is cancelled; `None`: no limit.
            grace: seconds that a cancelled run has for its `finally` blocks.
            max_body: bytes of the request body.
            max_runs: concurrent runs in this process; more get 503. `None`: no limit.
            cors: origins whose pages may call the agent.
            first_state: `"delta"` lets a run's first state event be a delta; a widely used relay corrupts threads then (D2).
            inspector: a page at `/inspector` that shows state, messages and events live (extra `inspector`).

        Raises:
            TypeError: the state's type cannot be read back, or has no first value; or an option has the wrong type.
            ValueError: an option is out of its range.
            RuntimeError: `inspector=True` without its extra.
        """
        self._check()
        app = build_app(
            self,
            path,
            Options(
                debug=debug,
                state_interval=state_interval,
                keepalive=keepalive,
                send_timeout=send_timeout,
                timeout=timeout,
                grace=grace,
                max_body=max_body,
                max_runs=max_runs,
                cors=cors,
                first_state=first_state,
            ),
        )
        if inspector:
            mount(app, self, path)
        return app

    def routes(self, path: str = "/agent", **options: Unpack[RunOptions]) -> list[Route]:
        """Routes for a host's own app: POST and GET at exactly `path`; options as in `app`.

        The host opens `running()` in its lifespan.
        """
        self._check()
        return build_routes(self, path, Options(**options))

    def endpoint(self, **options: Unpack[RunOptions]) -> ASGIApp:
        """An ASGI app for one path, such as `Route("/agent", agent.endpoint())`; it answers 405 itself. Options as in `app`."""
        self._check()
        return Endpoint(self, Options(**options))

    def running(self) -> AbstractAsyncContextManager[None]:
        """Opens `lifespan`, once however many apps share this agent. `app()` does it; a host app does it in its own."""
        return self._lifespan.open()

    async def stream(self, input: RunAgentInput, **options: Unpack[RunOptions]) -> AsyncIterator[Event]:
        """The events of one run, without HTTP: `async for event in agent.stream(input)`. Same rules, same endings.

        Closing the iterator, or cancelling the task that iterates, cancels the run as a client that goes away does.

        Raises:
            statecast.server.problem.Problem: the input or its state is not valid; `.errors` says where.
        """
        data = input.model_dump(mode="json", by_alias=True)
        if "state" in input.model_fields_set:
            data["state"] = input.state
        chosen = Options(**options)
        async with self.running():
            execution = Execution(self, prepare(self, data, debug=chosen.debug), chosen)
            execution.open()
            try:
                async with aclosing(execution.frames()) as chunks:
                    async for chunk in chunks:
                        for frame in chunk.split(b"\n\n"):
                            if frame.startswith(b"data: "):
                                yield _event.validate_json(frame[6:])
            finally:
                await execution.leave()

    # For the server

    @property
    def state_type(self) -> StateType:
        """The type `S`, made once for the class."""
        cls = type(self)
        if cls._state_type is None:
            cls._state_type = StateType(state_annotation(cls))
        return cls._state_type

    @property
    def is_running(self) -> bool:
        """`lifespan` is open."""
        return self._lifespan.is_open

    @property
    def loads_state(self) -> bool:
        """The class has a `load_state` of its own, which may change its argument."""
        return type(self).load_state is not Agent.load_state

    @property
    def observes(self) -> bool:
        """The class has an `on_event` of its own."""
        return type(self).on_event is not Agent.on_event

    @property
    def needs_lifespan(self) -> bool:
        """The class has a `lifespan` of its own, so runs must not start before it is open."""
        return type(self).lifespan is not Agent.lifespan

    def _check(self) -> None:
        """Finds what is missing, or a state type that has no first value, before the first request does."""
        if type(self).run is Agent.run:
            raise TypeError(f"{type(self).__name__} does not define `async def run(self, run)`")
        if type(self).initial_state is Agent.initial_state:
            self.state_type.default()

    @cached_property
    def _lifespan(self) -> SharedLifespan:
        return SharedLifespan(self.lifespan)


def state_annotation(cls: type) -> Any:
    """The argument that a class gives `Agent[S]`, also through generic classes in between; `dict[str, Any]` if none."""
    annotation = _argument(cls)
    if getattr(annotation, "__parameters__", ()):
        # A type variable that nobody bound, such as the T of list[T].
        annotation = annotation[tuple(Any for _ in annotation.__parameters__)]
    if type(annotation).__name__ == "TypeVar":
        return dict[str, Any]
    return _resolved(annotation, cls)


def _argument(cls: type) -> Any:
    for base in cls.__dict__.get("__orig_bases__", cls.__bases__):
        origin = get_origin(base) or base
        if not (isinstance(origin, type) and issubclass(origin, Agent)):
            continue
        args = get_args(base)
        if origin is Agent:
            return args[0] if args else S
        inner = _argument(origin)
        given = dict(zip(getattr(origin, "__parameters__", ()), args, strict=False))
        if inner in given:
            return given[inner]
        if parameters := getattr(inner, "__parameters__", ()):
            return inner[tuple(given.get(parameter, parameter) for parameter in parameters)]
        return inner
    return S


def _resolved(annotation: Any, cls: type) -> Any:
    """A forward reference, as in `Agent["Trip"]`, read in the module of the class."""
    if not isinstance(annotation, (str, ForwardRef)):
        return annotation

    def holder() -> None: ...

    holder.__annotations__ = {"state": annotation}
    try:
        return get_type_hints(holder, vars(sys.modules[cls.__module__]), include_extras=True)["state"]
    except NameError as error:
        raise TypeError(f"the state type of {cls.__name__} cannot be found: {error}") from None
