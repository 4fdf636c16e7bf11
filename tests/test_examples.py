"""Each example, run as its docstring says, in a process of its own, and what a client then sees."""

from __future__ import annotations

import ast
import asyncio
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from statecast.testing import RunResult, run_url

EXAMPLES = Path(__file__).parent.parent / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))


@contextmanager
def running(name: str) -> Iterator[str]:
    """`python examples/NAME.py`, on a free port, until the block ends; gives its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py")],
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        url = f"http://127.0.0.1:{port}/"
        deadline = time.monotonic() + 30
        while True:
            assert process.poll() is None, process.stdout.read()
            try:
                assert httpx.get(f"{url}health", timeout=5).status_code == 200
                break
            except httpx.TransportError:
                assert time.monotonic() < deadline, "the example does not listen"
                time.sleep(0.05)
        yield url
        process.terminate()
        output = process.communicate(timeout=15)[0]
        assert "Traceback" not in output, output
        assert "Finished server process" in output, output
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def first(url: str, text: str | None = None, *, state: Any = None, **headers: str) -> RunResult:
    """The first run of a thread; its stream is judged. `state=None`: the client has none, and sends `{}`."""
    given = {
        "threadId": "t",
        "runId": "r",
        "protocolVersion": "1.0",
        "state": {} if state is None else state,
        "messages": [] if text is None else [{"id": "u", "role": "user", "content": text}],
    }
    return asyncio.run(run_url(url, given, headers=headers, strict=True)).raise_error()


def say(result: RunResult, text: str) -> RunResult:
    """The next run on the thread, with what the client holds now."""
    return asyncio.run(result.say(text)).raise_error()


def answer(result: RunResult, **answers: Any) -> RunResult:
    return asyncio.run(result.resume(answers))


def abandon(result: RunResult, *ids: str) -> RunResult:
    return asyncio.run(result.resume(cancel=ids))


def test_dict_state() -> None:
    with running("dict_state") as url:
        result = first(url, "milk, eggs")
        assert result.state == {"items": [{"name": "milk", "count": 1}, {"name": "eggs", "count": 1}]}
        assert result.result == 2
        result = say(result, "milk")
        assert result.state["items"][0] == {"name": "milk", "count": 2}
        assert result.text == "2 things to buy."


def test_typed_state() -> None:
    with running("typed_state") as url:
        result = first(url, "Porto", state={"maxStops": 2, "plansMade": 99})
        assert result.state == {
            "city": "Porto",
            "stops": [
                {"name": "Castelo", "at": "09:30:00", "minutes": 90},
                {"name": "Alfama", "at": "11:30:00", "minutes": 60},
            ],
            "maxStops": 2,
            "plansMade": 1,
            "minutes": 150,
        }
        assert "STATE_DELTA" in result.types
        refused = httpx.post(url, json={"threadId": "t", "runId": "r", "messages": [], "state": {"maxStops": 0}})
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["pointer"] == "/state/maxStops"


def test_shared_document() -> None:
    with running("shared_document") as url:
        result = first(url, "Bees")
        assert result.state["title"] == "Bees"
        assert result.state["sections"][0]["words"] == 7
        result.state["sections"] += [{"title": "Honey", "text": "written by the user"}, {"title": "Wax"}]
        result.state["edited_by"] = "user"
        result = say(result, "Go on")
        intro, honey, wax = result.state["sections"]
        assert intro["words"] == 7
        assert honey == {"title": "Honey", "text": "written by the user", "words": 4}
        assert wax["text"] == "What there is to say about wax."
        assert result.state["edited_by"] == "agent"


def test_human_approval() -> None:
    with running("human_approval") as url:
        asked = first(url, "Pay 120 to Acme")
        assert [question.id for question in asked.interrupts] == ["approve"]
        again = answer(asked, approve=True)
        assert [question.id for question in again.interrupts] == ["receipt"]
        wrong = answer(again, receipt={"email": "nobody"})
        assert wrong.error is not None
        assert wrong.error.code == "invalid_answer"
        paid = answer(again, receipt={"email": "ada@example.org", "copies": 2})
        assert paid.outcome == "success"
        assert paid.state == {"order": "Pay 120 to Acme", "approved": True, "sent_to": "ada@example.org"}
        assert paid.text == "Paid. 2 receipt(s) to ada@example.org."
        unsent = abandon(again, "receipt")
        assert (unsent.outcome, unsent.text) == ("success", "Paid, without a receipt.")
        declined = answer(asked, approve=False)
        assert (declined.outcome, declined.text) == ("success", "Then I leave it.")


def test_parallel_subagents() -> None:
    with running("parallel_subagents") as url:
        result = first(url, "kites")
        assert {source: len(found) for source, found in result.state["findings"].items()} == {"news": 3, "patents": 2}
        assert result.text.splitlines()[-1] == "5 findings. There are no rumours today."
        assert result.types.count("SUBAGENT_STARTED") == 3
        assert result.types.count("SUBAGENT_ERROR") == 1
        progress = [message.content for message in result.messages if message.role == "activity"]
        assert {"source": "news", "done": 3, "of": 3} in progress
        ends = [kind for kind in result.types if kind in ("TOOL_CALL_START", "TOOL_CALL_RESULT")]
        assert ends[:2] == ["TOOL_CALL_START"] * 2, "the subagents do not run side by side"


def test_fastapi_mount() -> None:
    with running("fastapi_mount") as url:
        public = first(f"{url}public")
        assert say(public, "again").state == {"visits": 2}
        body = {"threadId": "t", "runId": "r", "messages": []}
        refused = httpx.post(f"{url}private", json=body)
        assert refused.status_code == 401
        assert refused.headers["WWW-Authenticate"] == "Bearer"
        assert httpx.get(f"{url}private").status_code == 401
        private = first(f"{url}private", Authorization="Bearer grace")
        assert private.state == {"owner": "Grace", "balance": 80}
        assert httpx.get(f"{url}public").json()["identity"]["description"] == "Answers everybody."


def test_old_state() -> None:
    with running("old_state") as url:
        result = first(url, "next", state={"todo": ["buy milk", "call Ada"], "done": ["call Ada"]})
        tasks = [{"title": "buy milk", "done": True}, {"title": "call Ada", "done": True}]
        assert result.state == {"version": 2, "tasks": tasks}
        assert say(result, "next").text == "Nothing is left to do."


def test_pydantic_ai_relay() -> None:
    pytest.importorskip("pydantic_ai")
    with running("pydantic_ai_relay") as url:
        result = first(url, "Where to in Lisbon?")
        assert result.state == {"found": ["a number 1"], "answers": 1}
        assert result.text.splitlines()[-1] == "Have a look at the places on the left."
        assert result.types.count("RUN_STARTED") == result.types.count("RUN_FINISHED") == 1
        assert result.usage[0].model == "test"
        assert say(result, "And then?").state["answers"] == 2


def test_every_example_is_run_here_and_says_how_to_try_it() -> None:
    here = Path(__file__).read_text()
    assert NAMES
    for name in NAMES:
        assert f'running("{name}")' in here
        doc = ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text()))
        assert doc is not None
        assert re.search(rf"Try it.*:\n    python examples/{name}\.py\n", doc), name
