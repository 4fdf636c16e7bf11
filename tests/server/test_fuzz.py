"""Whatever is posted, the answer is a stream that obeys the protocol, or a refusal in the form that all refusals have."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette

from live_server import JSON, ThreadServer, serve
from statecast import Agent, Run, State
from statecast.replica import Replica
from statecast.stream.wire import read_input


class Item(State):
    name: str
    amount: float = 1.0


class Basket(State):
    items: list[Item] = []
    notes: dict[str, Any] = {}


class Shop(Agent[Basket]):
    async def run(self, run: Run[Basket]) -> Any:
        run.state.items.append(Item(name=run.user_text[:10]))
        async with run.step("look"):
            await run.say(run.user_text)
        run.state.notes["messages"] = len(run.messages)
        for tool in run.tools[:1]:
            await run.call_frontend(tool.name, {})
        return [context.value for context in run.context]


class Anything(Agent[Any]):
    async def run(self, run: Run[Any]) -> Any:
        run.state = {"was": run.state}
        await run.say("ok")
        return run.forwarded_props


@pytest.fixture(scope="module")
def server() -> Iterator[ThreadServer]:
    app = Starlette(routes=[*Shop().routes("/shop", max_body=50_000), *Anything().routes("/any", max_body=50_000)])
    with serve(app, log_level="critical") as live:
        yield live


COMPLETE: dict[str, Any] = {
    "threadId": "t",
    "runId": "r",
    "parentRunId": "p",
    "protocolVersion": "1.0",
    "state": {"items": [{"name": "tea", "amount": 2.5}], "notes": {"a": [1, None, {"b": True}]}},
    "messages": [
        {"id": "1", "role": "system", "content": "be kind"},
        {"id": "2", "role": "user", "content": [
            {"type": "text", "text": "look"},
            {"type": "image", "source": {"type": "url", "value": "https://a.example/x.png", "mimeType": "image/png"}},
            {"type": "document", "source": {"type": "data", "value": "AAAA", "mimeType": "application/pdf"}},
        ]},
        {"id": "3", "role": "assistant", "content": "yes", "toolCalls": [
            {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}},
        ]},
        {"id": "4", "role": "tool", "toolCallId": "c1", "content": "found"},
        {"id": "5", "role": "reasoning", "content": "hm", "encryptedValue": "xyz"},
        {"id": "6", "role": "user", "content": "and now?"},
    ],
    "tools": [{"name": "show", "description": "shows", "parameters": {"type": "object"}}],
    "context": [{"description": "place", "value": "here"}],
    "forwardedProps": {"deep": [1, {"a": None}]},
    "resume": [{"interruptId": "approve", "status": "resolved", "payload": {"ok": True}}],
}  # fmt: skip

texts = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(
    [
        "",
        "__proto__",
        "constructor",
        "role",
        "type",
        "user",
        "data: x\n\n",
        "\r\n",
        "\u2028",
        "\x00",
        "a/b~c",
        "1.0",
        "9.0",
    ]
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
    | st.sampled_from([2**63, -(2**70), 10**30, 1e308, -0.0, "t", "r", "1", "c1"])
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, inner in members for place in places(inner, (*path, key)))]


PLACES = places(COMPLETE)[1:]


@st.composite
def damaged(draw: st.DrawFn) -> Any:
    """A complete input in which some places hold something else, or nothing, or something more."""
    data = copy.deepcopy(COMPLETE)
    for place in draw(st.lists(st.sampled_from(PLACES), max_size=4)):
        try:
            parent = data
            for key in place[:-1]:
                parent = parent[key]
            match draw(st.sampled_from(["replace", "replace", "remove", "add", "double"])):
                case "replace":
                    parent[place[-1]] = draw(values)
                case "remove":
                    del parent[place[-1]]
                case "add" if isinstance(parent, dict):
                    parent[draw(texts)] = draw(values)
                case "double" if isinstance(parent, list):
                    parent.append(copy.deepcopy(parent[place[-1]]))
        except (KeyError, IndexError, TypeError):
            continue
    return data


def check(server: ThreadServer, path: str, body: bytes, headers: dict[str, str] = JSON) -> None:
    with server.connect() as connection:
        connection.send("POST", path, body, headers)
        connection.read_head()
        if connection.status == 200:
            follow(path, json.loads(body.removeprefix(b"\xef\xbb\xbf")), list(connection.events()))
            assert connection.ended
            return
        assert connection.status in (400, 413, 415, 422), connection.reply()
        problem = connection.reply().problem()
        if connection.status == 422:
            assert problem["errors"]
            for fault in problem["errors"]:
                assert fault["pointer"] == "" or fault["pointer"].startswith("/")
                assert fault["message"]


def follow(path: str, data: dict[str, Any], events: list[dict[str, Any]]) -> None:
    """Reads the stream as a client that holds this input does."""
    state = data.get("state", {})
    replica = Replica(state=copy.deepcopy(state), messages=read_input(data)[0].messages)
    for event in events:
        replica.apply(event)
    replica.close()
    assert events[0]["threadId"] == data["threadId"]
    assert events[-1]["type"] == "RUN_FINISHED", events[-1]
    if path == "/any":
        # Equal JSON text: 1, 1.0 and True are three values.
        assert json.dumps(replica.state) == json.dumps({"was": Anything().initial_state() if state == {} else state})


bounded = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@bounded
@given(damaged())
def test_a_damaged_input(server: ThreadServer, data: Any) -> None:
    for path in ("/shop", "/any"):
        check(server, path, json.dumps(data).encode())


@bounded
@given(values)
def test_any_json(server: ThreadServer, data: Any) -> None:
    check(server, "/any", json.dumps(data).encode())
    check(server, "/any", json.dumps({**COMPLETE, "state": data}, ensure_ascii=False).encode())


@bounded
@given(st.binary(max_size=200), st.integers(0, 1200), st.integers(0, 3))
def test_any_bytes(server: ThreadServer, noise: bytes, place: int, length: int) -> None:
    check(server, "/any", noise)
    body = json.dumps(COMPLETE).encode()
    check(server, "/any", body[:place] + noise[:length] + body[place + length :])


@settings(bounded, max_examples=60)
@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40))
def test_any_content_type(server: ThreadServer, kind: str) -> None:
    check(server, "/any", json.dumps(COMPLETE).encode(), {"Content-Type": kind})
