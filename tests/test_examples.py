"""Each example, run as its docstring says, in a process of its own, and what a client then sees."""

from __future__ import annotations

import ast
import json
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
from statecast.replica import Replica

EXAMPLES = Path(__file__).parent.parent / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))


@contextmanager
def running(name: str) -> Iterator[httpx.Client]:
    """`python examples/NAME.py`, on a free port, until the block ends."""
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
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
            deadline = time.monotonic() + 30
            while True:
                assert process.poll() is None, process.stdout.read()
                try:
                    assert client.get("/health").status_code == 200
                    break
                except httpx.TransportError:
                    assert time.monotonic() < deadline, "the example does not listen"
                    time.sleep(0.02)
            yield client
        process.terminate()
        output = process.communicate(timeout=15)[0]
        assert "Traceback" not in output, output
        assert "Finished server process" in output, output
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


class Thread:
    """A client's thread: what it holds goes with the next run."""

    def __init__(self, client: httpx.Client, path: str = "/", *, state: Any = None, **headers: str) -> None:
        self.client, self.path, self.headers = client, path, headers
        self.state: Any = {} if state is None else state
        self.messages: list[dict[str, Any]] = []
        self.runs = 0
        self.replica = Replica()
        self.events: list[dict[str, Any]] = []

    def say(self, text: str) -> Thread:
        self.messages.append({"id": f"u{self.runs}", "role": "user", "content": text})
        return self.run()

    def answer(self, id: str, payload: Any = None, *, status: str = "resolved") -> Thread:
        return self.run(resume=[{"interruptId": id, "status": status, "payload": payload}])

    def run(self, **members: Any) -> Thread:
        """One run; the replica fails it if the stream breaks a rule."""
        self.runs += 1
        body = {
            "threadId": "t",
            "runId": f"r{self.runs}",
            "protocolVersion": "1.0",
            "state": self.state,
            "messages": self.messages,
            **members,
        }
        answer = self.client.post(self.path, json=body, headers=self.headers)
        assert answer.status_code == 200, answer.text
        self.events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
        self.replica = Replica(state=self.state, messages=self.messages)
        for event in self.events:
            self.replica.apply(event)
        self.replica.close()
        assert self.replica.warnings == []
        self.state = self.replica.state
        self.messages = [
            message.model_dump(mode="json", by_alias=True, exclude_none=True)
            for message in self.replica.messages
            if message.role != "activity"
        ]
        return self

    @property
    def kinds(self) -> list[str]:
        return [event["type"] for event in self.events]

    @property
    def said(self) -> str:
        """The last words of the agent."""
        return next((m["content"] for m in reversed(self.messages) if m["role"] == "assistant"), "")


def test_dict_state() -> None:
    with running("dict_state") as client:
        thread = Thread(client).say("milk, eggs")
        assert thread.state == {"items": [{"name": "milk", "count": 1}, {"name": "eggs", "count": 1}]}
        assert thread.say("milk").state["items"][0] == {"name": "milk", "count": 2}
        assert thread.said == "2 things to buy."
        assert thread.events[-1]["result"] == 1


def test_typed_state() -> None:
    with running("typed_state") as client:
        thread = Thread(client, state={"maxStops": 2, "plansMade": 99}).say("Porto")
        assert thread.state == {
            "city": "Porto",
            "stops": [
                {"name": "Castelo", "at": "09:30:00", "minutes": 90},
                {"name": "Alfama", "at": "11:30:00", "minutes": 60},
            ],
            "maxStops": 2,
            "plansMade": 1,
            "minutes": 150,
        }
        assert "STATE_DELTA" in thread.kinds
        refused = client.post("/", json={"threadId": "t", "runId": "r", "messages": [], "state": {"maxStops": 0}})
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["pointer"] == "/state/maxStops"


def test_shared_document() -> None:
    with running("shared_document") as client:
        thread = Thread(client).say("Bees")
        assert thread.state["title"] == "Bees"
        assert thread.state["sections"][0]["words"] == 7
        thread.state["sections"].append({"title": "Honey", "text": "written by the user"})
        thread.state["sections"].append({"title": "Wax"})
        thread.state["edited_by"] = "user"
        thread.say("Go on")
        intro, honey, wax = thread.state["sections"]
        assert intro["words"] == 7
        assert honey == {"title": "Honey", "text": "written by the user", "words": 4}
        assert wax["text"] == "What there is to say about wax."
        assert thread.state["edited_by"] == "agent"


def test_human_approval() -> None:
    with running("human_approval") as client:
        thread = Thread(client).say("Pay 120 to Acme")
        assert thread.replica.interrupts[0].id == "approve"
        thread.answer("approve", True)
        assert thread.replica.interrupts[0].id == "receipt"
        assert thread.answer("receipt", {"email": "nobody"}).replica.error.code == "invalid_answer"
        thread.answer("receipt", {"email": "ada@example.org", "copies": 2})
        assert thread.replica.outcome == "success"
        assert thread.state == {"order": "Pay 120 to Acme", "approved": True, "sent_to": "ada@example.org"}
        assert thread.said == "Paid. 2 receipt(s) to ada@example.org."


@pytest.mark.parametrize(
    ("ways", "said"), [(["no"], "Then I leave it."), (["yes", "none"], "Paid, without a receipt.")]
)
def test_human_approval_declined(ways: list[str], said: str) -> None:
    with running("human_approval") as client:
        thread = Thread(client).say("Pay 120 to Acme").answer("approve", ways[0] == "yes")
        if "none" in ways:
            thread.answer("receipt", status="cancelled")
        assert thread.said == said
        assert thread.replica.outcome == "success"


def test_parallel_subagents() -> None:
    with running("parallel_subagents") as client:
        thread = Thread(client).say("kites")
        assert {source: len(found) for source, found in thread.state["findings"].items()} == {"news": 3, "patents": 2}
        assert thread.said == "5 findings. There are no rumours today."
        owners = {event["subagentRunId"] for event in thread.events if event["type"] == "SUBAGENT_STARTED"}
        assert len(owners) == 3
        assert thread.kinds.count("SUBAGENT_ERROR") == 1
        progress = [message.content for message in thread.replica.messages if message.role == "activity"]
        assert {"source": "news", "done": 3, "of": 3} in progress
        first = [event.get("subagentRunId") for event in thread.events if event["type"] == "TOOL_CALL_START"]
        assert len(set(first)) == 2, "the subagents do not run side by side"


def test_fastapi_mount() -> None:
    with running("fastapi_mount") as client:
        public = Thread(client, "/public").run().run()
        assert public.state == {"visits": 2}
        body = {"threadId": "t", "runId": "r", "messages": []}
        refused = client.post("/private", json=body)
        assert refused.status_code == 401
        assert refused.headers["WWW-Authenticate"] == "Bearer"
        assert client.get("/private").status_code == 401
        private = Thread(client, "/private", Authorization="Bearer grace").run()
        assert private.state == {"owner": "Grace", "balance": 80}
        assert client.get("/public").json()["identity"]["description"] == "Answers everybody."


def test_old_state() -> None:
    with running("old_state") as client:
        thread = Thread(client, state={"todo": ["buy milk", "call Ada"], "done": ["call Ada"]}).say("next")
        tasks = [{"title": "buy milk", "done": True}, {"title": "call Ada", "done": True}]
        assert thread.state == {"version": 2, "tasks": tasks}
        assert thread.say("next").said == "Nothing is left to do."


def test_pydantic_ai_relay() -> None:
    pytest.importorskip("pydantic_ai")
    with running("pydantic_ai_relay") as client:
        thread = Thread(client).say("Where to in Lisbon?")
        assert thread.state == {"found": ["a number 1"], "answers": 1}
        assert thread.said == "Have a look at the places on the left."
        assert thread.kinds.count("RUN_STARTED") == thread.kinds.count("RUN_FINISHED") == 1
        assert thread.events[-1]["usage"][0]["model"] == "test"
        assert thread.say("And then?").state["answers"] == 2


def test_every_example_is_run_here_and_says_how_to_try_it() -> None:
    here = Path(__file__).read_text()
    assert NAMES
    for name in NAMES:
        assert f'running("{name}")' in here
        doc = ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text()))
        assert doc is not None
        assert re.search(rf"Try it.*:\n    python examples/{name}\.py\n", doc), name
