"""Microseconds per event and time to first byte through a real uvicorn, beside what others would do.

    python tests/benchmarks/stream.py [--events 20000] [--rounds 7]

Every row is measured in every round, one after the other, so that ratios hold on a noisy machine. uvloop and httptools are
used where they are installed, unless STATECAST_PLAIN=1 is set.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from ag_ui.core import RunAgentInput, TextMessageContentEvent
from ag_ui.encoder import EventEncoder
from serving import body, read_all, serve, server
from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from statecast import Agent, Run, State

FRAME = b'data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"7f1d8a52-4f4e-4d64-a3a7-3a4c9f2d1e11","delta":"word "}\n\n'


def count(request: Request) -> int:
    return int(request.path_params["n"])


async def bare(request: Request) -> Response:
    async def frames() -> AsyncIterator[bytes]:
        for _ in range(count(request)):
            yield FRAME

    return StreamingResponse(frames(), media_type="text/event-stream")


async def encoder(request: Request) -> Response:
    encode = EventEncoder().encode

    async def frames() -> AsyncIterator[str]:
        for _ in range(count(request)):
            yield encode(TextMessageContentEvent(message_id="7f1d8a52-4f4e-4d64-a3a7-3a4c9f2d1e11", delta="word "))

    return StreamingResponse(frames(), media_type="text/event-stream")


async def event_source(request: Request) -> Response:
    RunAgentInput.model_validate_json(await request.body())

    async def frames() -> AsyncIterator[bytes]:
        for _ in range(count(request)):
            yield FRAME

    return EventSourceResponse(frames(), sep="\n")


async def one_write(request: Request) -> Response:
    return Response(FRAME * count(request), media_type="text/event-stream")


class Words(Agent[dict[str, Any]]):
    async def run(self, run: Run[dict[str, Any]]) -> None:
        count = int(run.user_text)
        async with run.text() as text:
            for _ in range(count):
                await text.write("word ")


class Changes(Agent[dict[str, Any]]):
    """A state change in every turn of the event loop."""

    async def run(self, run: Run[dict[str, Any]]) -> None:
        count = int(run.user_text)
        for index in range(count):
            run.state["n"] = index
            await asyncio.sleep(0)


class Day(State):
    stops: int = 0


class Plan(State):
    title: str = ""
    day: Day = Day()


class TypedChanges(Agent[Plan]):
    """The same of a typed state, one level down."""

    async def run(self, run: Run[Plan]) -> None:
        count = int(run.user_text)
        for index in range(count):
            run.state.day.stops = index
            await asyncio.sleep(0)


CHANGE = b'data: {"type":"STATE_DELTA","delta":[{"op":"replace","path":"/n","value":12345}]}\n\n'


async def bare_change(request: Request) -> Response:
    """The bytes of a state delta, one write a turn."""

    async def frames() -> AsyncIterator[bytes]:
        for _ in range(count(request)):
            yield CHANGE
            await asyncio.sleep(0)

    return StreamingResponse(frames(), media_type="text/event-stream")


def app() -> Starlette:
    return Starlette(
        routes=[
            # Next to each other, as every route that does not match takes a microsecond of the first byte's time.
            *Words().routes("/words"),
            Route("/event-source/{n:int}", event_source, methods=["POST"]),
            Route("/bare/{n:int}", bare, methods=["POST"]),
            Route("/encoder/{n:int}", encoder, methods=["POST"]),
            Route("/one-write/{n:int}", one_write, methods=["POST"]),
            Route("/bare-change/{n:int}", bare_change, methods=["POST"]),
            *Changes().routes("/changes", state_interval=0),
            *TypedChanges().routes("/typed", state_interval=0),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--serve", action="store_true")
    given = parser.parse_args()
    if given.serve:
        serve(app())
        return
    n = given.events
    rows = {
        "statecast, text": ("/words", body(str(n)), n),
        "bare StreamingResponse, fixed bytes": (f"/bare/{n}", body(), n),
        "EventEncoder + StreamingResponse": (f"/encoder/{n}", body(), n),
        "EventSourceResponse, fixed bytes": (f"/event-source/{n}", body(), n),
        "one write of everything": (f"/one-write/{n}", body(), n),
        "statecast, a state change every turn": ("/changes", body(str(n)), n),
        "statecast, a typed field every turn": ("/typed", body(str(n)), n),
        "bare, those bytes every turn": (f"/bare-change/{n}", body(), n),
    }
    total: dict[str, list[float]] = {name: [] for name in rows}
    first: dict[str, list[float]] = {name: [] for name in ("statecast", "EventSourceResponse", "bare")}
    with server(Path(__file__)) as (port, _):
        for round in range(given.rounds + 1):
            for name, (path, payload, events) in rows.items():
                _, seconds, answer = read_all(port, path, payload)
                assert b" 200 OK" in answer[:40], answer[:300]
                if round:
                    total[name].append(seconds / events * 1e6)
            for name, path, payload in (
                ("statecast", "/words", body("1")),
                ("EventSourceResponse", "/event-source/1", body()),
                ("bare", "/bare/1", body()),
            ):
                for _ in range(20):
                    seconds, _, _ = read_all(port, path, payload)
                    if round:
                        first[name].append(seconds * 1e3)
    medians = {name: statistics.median(values) for name, values in total.items()}
    print(
        f"{'':40}{'us/event':>10}{'best':>8}{'ratio':>8}   ({n} events, {given.rounds} rounds, {sys.version.split()[0]})"
    )
    for name, median in medians.items():
        base = medians["statecast, a state change every turn" if "turn" in name else "statecast, text"]
        print(f"{name:40}{median:10.2f}{min(total[name]):8.2f}{median / base:8.2f}")
    print(f"\n{'time to first byte':40}{'ms':>10}{'best':>8}{'ratio':>8}")
    reference = statistics.median(first["EventSourceResponse"])
    for name, values in first.items():
        median = statistics.median(values)
        print(f"{name:40}{median:10.2f}{min(values):8.2f}{median / reference:8.2f}")


if __name__ == "__main__":
    main()
