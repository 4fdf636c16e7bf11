"""A thousand concurrent runs in one process: every stream ends well, and what it costs.

    python tests/benchmarks/load.py [--runs 1000]

Each run changes a state of 1 KB 20 times and says 20 words. Every stream is replayed by a consumer, whose state must be the
one that the agent ended with. Beside it, in the same process, `EventSourceResponse` with one task a stream.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from ag_ui.core import RunAgentInput
from serving import body, memory, request, serve, server
from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from statecast import Agent, Run
from statecast.replica import Replica

STEPS = 20
PAUSE = 0.1


class Working(Agent[dict[str, Any]]):
    async def run(self, run: Run[dict[str, Any]]) -> dict[str, Any]:
        run.state["text"] = "x" * 1000
        run.state["items"] = []
        async with run.text() as text:
            for index in range(STEPS):
                run.state["items"].append(index)
                await text.write("word ")
                await asyncio.sleep(PAUSE)
        return {"items": list(run.state["items"]), "text": run.state["text"]}


async def plain(request: Request) -> Response:
    RunAgentInput.model_validate_json(await request.body())
    queue: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def work() -> None:
        for index in range(STEPS):
            await queue.put(b'data: {"type":"CUSTOM","name":"x","value":%d}\n\n' % index)
            await asyncio.sleep(PAUSE)
        await queue.put(None)

    async def frames() -> AsyncIterator[bytes]:
        task = asyncio.create_task(work())
        try:
            while (frame := await queue.get()) is not None:
                yield frame
        finally:
            await task

    return EventSourceResponse(frames(), sep="\n", headers={"X-Kind": "plain"})


def app() -> Starlette:
    return Starlette(routes=[Route("/plain", plain, methods=["POST"]), *Working().routes("/agent")])


async def one(port: int, path: str, index: int) -> tuple[float, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    started = time.perf_counter()
    writer.write(request(path, body(threadId=f"t{index}", runId=f"r{index}")))
    head = await reader.readuntil(b"\r\n\r\n")
    assert b" 200 " in head, head
    answer = await reader.readexactly(1)
    first = time.perf_counter() - started
    while piece := await reader.read(1 << 16):
        answer += piece
    writer.close()
    return first, answer


def judge(raw: bytes) -> bool:
    """The stream is legal, ends with its terminal event, and its replayed state is the agent's."""
    frames = [line[6:] for line in unchunk(raw).split(b"\n\n") if line.startswith(b"data: ")]
    replica = Replica(state={})
    for frame in frames:
        replica.apply(json.loads(frame))
    replica.close()
    last = json.loads(frames[-1])
    return last["type"] == "RUN_FINISHED" and replica.state == last["result"] and not replica.warnings


def unchunk(raw: bytes) -> bytes:
    body, rest = b"", raw
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        body, rest = body + rest[:length], rest[length + 2 :]
        if not length:
            break
    return body


async def wave(port: int, pid: int, path: str, runs: int) -> tuple[list[float], list[bytes], int]:
    before = memory(pid)
    peak = before

    async def watch() -> None:
        nonlocal peak
        while True:
            peak = max(peak, memory(pid))
            await asyncio.sleep(0.05)

    watcher = asyncio.create_task(watch())
    results = await asyncio.gather(*(one(port, path, index) for index in range(runs)))
    watcher.cancel()
    return [first for first, _ in results], [answer for _, answer in results], (peak - before) // runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--serve", action="store_true")
    given = parser.parse_args()
    if given.serve:
        serve(app())
        return
    print(f"{'':28}{'right':>12}{'KB/stream':>12}{'first byte p50':>16}{'p99 ms':>10}")
    for path, name in (("/plain", "EventSourceResponse + task"), ("/agent", "statecast")):
        # A process of its own for each, as memory that was freed is seldom given back.
        with server(Path(__file__)) as (port, pid):
            asyncio.run(wave(port, pid, path, 20))
            firsts, answers, each = asyncio.run(wave(port, pid, path, given.runs))
        # The first byte after the head of the answer is a chunk's length, so the whole is a chunked body.
        right = sum(judge(answer) for answer in answers) if path == "/agent" else len(answers)
        firsts.sort()
        p99 = firsts[int(len(firsts) * 0.99)] * 1e3
        print(f"{name:28}{right:>7}/{given.runs}{each / 1024:12.1f}{statistics.median(firsts) * 1e3:16.1f}{p99:10.1f}")


if __name__ == "__main__":
    main()
