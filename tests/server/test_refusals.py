"""Every refusal on a real server: its status, its form, its place in the order, and that no run began."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

import pytest
from fastapi import HTTPException as FastAPIHTTPException
from pydantic import ValidationInfo, field_validator
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Mount

from live_server import JSON, Server, ThreadServer, run_input, serve, stretched
from statecast import Agent, Run, State
from statecast.replica import Replica


class Trip(State):
    city: str
    days: int = 1
    secret_code: str = "none"

    @field_validator("secret_code")
    @classmethod
    def check(cls, value: str, info: ValidationInfo) -> str:
        if value.startswith("bad"):
            raise ValueError(f"code {value} is not known")
        return value


runs: list[str] = []


class Recorder(Agent[Any]):
    async def run(self, run: Run[Any]) -> None:
        runs.append(run.run_id)
        await run.say("hello")


class Traveller(Agent[Trip]):
    def initial_state(self) -> Trip:
        return Trip(city="Lisbon")

    async def run(self, run: Run[Trip]) -> None:
        runs.append(run.run_id)
        run.state.days += 1


class Guarded(Recorder):
    """The header `Who` says what happens."""

    async def authorize(self, request: Request) -> str:
        match request.headers.get("who", "nobody"):
            case "nobody":
                raise HTTPException(401, "Who are you?", {"WWW-Authenticate": "Bearer"})
            case "eve":
                raise FastAPIHTTPException(403, {"reason": "not you"})
            case "broken":
                raise RuntimeError("postgres://user:secret@db")
            case who:
                return who


class Waiting(Agent):
    """Runs until the test lets it go."""

    def __init__(self) -> None:
        self.go = threading.Event()

    async def run(self, run: Run) -> None:
        await asyncio.to_thread(self.go.wait, 30)


class Pooled(Agent):
    pool: list[str] | None = None

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        self.pool = ["connection"]
        yield
        self.pool = None

    async def run(self, run: Run) -> None:
        assert self.pool


waiting = Waiting()
pooled = Pooled()


@pytest.fixture(scope="module")
def server() -> Iterator[ThreadServer]:
    app = Starlette(
        routes=[
            *Recorder().routes("/plain"),
            *Traveller().routes("/typed"),
            *Traveller().routes("/debug", debug=True),
            *Guarded().routes("/guarded", max_body=1000),
            *Recorder().routes("/small", max_body=1000),
            *Recorder().routes("/impatient", send_timeout=0.2),
            *waiting.routes("/one", max_runs=1, send_timeout=1),
            *pooled.routes("/pooled"),
            Mount("/app", Recorder().app(path="/agent")),
        ]
    )
    with serve(app) as live:
        yield live


@pytest.fixture(autouse=True)
def no_run_began(request: pytest.FixtureRequest) -> Iterator[None]:
    runs.clear()
    yield
    if "starts" not in request.node.name:
        assert runs == []


def test_a_valid_input_starts_a_run(server: Server) -> None:
    given = run_input()
    events = server.events(given, "/plain")
    assert events[0] == {
        "type": "RUN_STARTED", "threadId": "thread", "runId": given["runId"], "protocolVersion": "1.0",
    }  # fmt: skip
    assert events[-1]["type"] == "RUN_FINISHED"
    assert runs == [given["runId"]]


# 405


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "PROPFIND"])
@pytest.mark.parametrize("path", ["/plain", "/guarded", "/app/agent"])
def test_another_method_is_405_and_says_which_are_allowed(server: Server, method: str, path: str) -> None:
    reply = server.request(method, path, b"{}", JSON)
    assert reply.problem()["status"] == 405
    assert reply.headers["allow"] == "GET, HEAD, OPTIONS, POST"


def test_options_names_the_methods(server: Server) -> None:
    reply = server.request("OPTIONS", "/plain")
    assert reply.status == 204
    assert reply.headers["allow"] == "GET, HEAD, OPTIONS, POST"
    assert reply.body == b""


def test_head_answers_like_get_without_a_body(server: Server) -> None:
    got, head = server.request("GET", "/plain"), server.request("HEAD", "/plain")
    assert head.status == got.status == 200
    assert head.body == b""
    assert head.headers["content-length"] == got.headers["content-length"] == str(len(got.body))


# 404


@pytest.mark.parametrize("path", ["/app/nothing", "/app/agent/deeper", "/app/"])
def test_a_path_that_is_not_there_is_a_problem_too(server: Server, path: str) -> None:
    assert server.post(path=path).problem()["status"] == 404


# 503


def test_one_run_more_than_may_be_is_503_and_names_when_to_come_back(server: Server) -> None:
    waiting.go.clear()
    with server.run(path="/one") as first:
        events = first.events()
        assert next(events)["type"] == "RUN_STARTED"
        refused = server.post(path="/one")
        assert refused.problem()["status"] == 503
        assert int(refused.headers["retry-after"]) >= 1
        assert server.request("GET", "/one").status == 200
        waiting.go.set()
        list(events)
        # The place is free when the client has seen the end: here on the same connection, as fast as can be.
        for _ in range(20):
            first.send("POST", "/one", json.dumps(run_input()).encode(), JSON)
            assert [event["type"] for event in first.events()] == ["RUN_STARTED", "RUN_FINISHED"]


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [(b"[]", JSON, 422), (b"nonsense", JSON, 400), (b"[]", {}, 415), (b"x" * 17 * 2**20, JSON, 413)],
)
def test_a_refused_request_gives_its_place_back(
    server: Server, body: bytes, headers: dict[str, str], status: int
) -> None:
    for _ in range(3):
        assert server.request("POST", "/one", body, headers).status == status
    waiting.go.set()
    assert server.events(path="/one")


def test_a_client_that_leaves_while_it_sends_gives_its_place_back(server: Server) -> None:
    for leave in ("close", "reset"):
        with server.connect() as connection:
            connection.socket.sendall(
                b"POST /one HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n["
            )
            assert_503_until_it_is_gone(server, getattr(connection, leave))


def assert_503_until_it_is_gone(server: Server, leave: Any) -> None:
    began = monotonic()
    while server.post([], "/one").status != 503:
        assert monotonic() - began < stretched(2)
    leave()
    while server.post([], "/one").status == 503:
        assert monotonic() - began < stretched(4)


def test_of_many_requests_at_once_exactly_one_gets_the_last_place(server: Server) -> None:
    waiting.go.clear()
    connections = [server.connect() for _ in range(20)]
    body = json.dumps(run_input()).encode()
    try:
        # All requests are admitted before any of them is read to its end.
        for connection in connections:
            head = f"POST /one HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.socket.sendall(head.encode())
        for connection in connections:
            connection.socket.sendall(body)
        for connection in connections:
            connection.read_head()
        assert sorted(connection.status for connection in connections) == [200] + [503] * 19
    finally:
        waiting.go.set()
        for connection in connections:
            connection.close()


def test_an_agent_whose_lifespan_nobody_opened_is_503_and_the_log_has_the_line_to_add(
    server: ThreadServer, caplog: pytest.LogCaptureFixture
) -> None:
    for method, body in (("POST", b"[]"), ("GET", None)):
        with caplog.at_level(logging.ERROR, "statecast.server"):
            reply = server.request(method, "/pooled", body, JSON)
        assert reply.problem()["status"] == 503
        assert "lifespan" in reply.problem()["detail"]
        assert "async with agent.running():" in caplog.text
        assert "Pooled" in caplog.text
        caplog.clear()


def test_an_agent_whose_lifespan_is_open_starts(server: ThreadServer) -> None:
    async def opened() -> None:
        async with pooled.running():
            assert await asyncio.to_thread(lambda: server.events(path="/pooled"))

    server.call(opened())
    assert server.post(path="/pooled").status == 503


# 401, 403, and what else `authorize` raises


def test_what_authorize_raises_is_the_answer_with_its_headers(server: Server) -> None:
    reply = server.post(path="/guarded")
    assert reply.problem()["status"] == 401
    assert reply.problem()["detail"] == "Who are you?"
    assert reply.headers["www-authenticate"] == "Bearer"


def test_an_exception_of_fastapi_with_a_detail_that_is_no_text(server: Server) -> None:
    reply = server.post(path="/guarded", headers={"Who": "eve"})
    assert reply.problem()["status"] == 403
    assert json.loads(reply.problem()["detail"]) == {"reason": "not you"}


def test_authorize_guards_the_capabilities_too(server: Server) -> None:
    assert server.request("GET", "/guarded").problem()["status"] == 401
    assert server.request("GET", "/guarded", headers={"Who": "ann"}).json()["identity"]["name"] == "Guarded"


def test_a_broken_authorize_is_500_without_its_text(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    reply = server.post(path="/guarded", headers={"Who": "broken"})
    assert reply.problem()["status"] == 500
    assert b"secret" not in reply.body
    assert "postgres://user:secret@db" in caplog.text


# 415


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Type": ""},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/jsonp"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/problem+json"},
        {**JSON, "Content-Encoding": "gzip"},
    ],
)
def test_anything_but_json_is_415(server: Server, headers: dict[str, str]) -> None:
    body = gzip.compress(json.dumps(run_input()).encode())
    assert server.request("POST", "/plain", body, headers).problem()["status"] == 415


@pytest.mark.parametrize(
    "kind", ["application/json; charset=utf-8", "APPLICATION/JSON", "application/json;profile=x", " application/json "]
)
def test_json_in_any_spelling_starts_a_run(server: Server, kind: str) -> None:
    assert server.events(path="/plain", headers={"Content-Type": kind})


# 413 and 408


def test_a_body_that_says_it_is_too_large_is_413_before_it_is_sent(server: Server) -> None:
    with server.connect() as connection:
        connection.socket.sendall(
            b"POST /small HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1001\r\n\r\n"
        )
        assert connection.reply().problem()["status"] == 413


def test_a_body_of_exactly_the_limit_starts(server: Server) -> None:
    body = json.dumps(run_input()).encode().ljust(1000)
    assert server.request("POST", "/small", body, JSON).status == 200
    assert server.request("POST", "/small", body + b" ", JSON).status == 413


def test_a_chunked_body_is_counted_as_it_arrives(server: Server) -> None:
    """413 comes while the client is still sending: it is not read to its end first."""
    with server.connect() as connection:
        connection.socket.sendall(
            b"POST /small HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        for _ in range(11):
            connection.socket.sendall(b"64\r\n" + b" " * 100 + b"\r\n")
        assert connection.reply().problem()["status"] == 413


def test_a_chunked_body_below_the_limit_starts(server: Server) -> None:
    body = json.dumps(run_input()).encode()
    with server.connect() as connection:
        connection.send("POST", "/small", headers=JSON, chunks=[bytes([byte]) for byte in body])
        assert [event["type"] for event in connection.events()][-1] == "RUN_FINISHED"


@pytest.mark.parametrize("chunked", [True, False])
def test_a_body_that_does_not_come_is_408(server: Server, chunked: bool) -> None:
    length = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: 100"
    with server.connect() as connection:
        connection.socket.sendall(
            b"POST /impatient HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n" + length + b"\r\n\r\n"
        )
        connection.socket.sendall(b"1\r\n[\r\n" if chunked else b"[")
        began = monotonic()
        assert connection.reply().problem()["status"] == 408
        assert 0.1 < monotonic() - began < stretched(2)


# 400


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"nonsense",
        b"{",
        b'{"a": 1} 2',
        b"{'a': 1}",
        b'{"threadId": NaN}',
        b'{"threadId": Infinity}',
        b'{"threadId": -Infinity}',
        b"\xff\xfe",
        b'{"threadId": "\xff"}',
        b'{"threadId": "\xed\xa0\x80"}',
        b"\xff\xfe{\x00}\x00",
        '{"threadId": "é"}'.encode("latin-1"),
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"state": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    ],
    ids=lambda body: repr(body[:20]),
)
def test_a_body_that_is_no_json_is_400(server: Server, body: bytes) -> None:
    assert server.request("POST", "/plain", body, JSON).problem()["status"] == 400


# 422


@pytest.mark.parametrize("data", [None, True, 5, "text", [], [run_input()]])
def test_an_input_that_is_no_object_is_422(server: Server, data: Any) -> None:
    body = json.dumps(data).encode()
    problem = server.request("POST", "/plain", body, JSON).problem()
    assert problem["status"] == 422
    assert [fault["pointer"] for fault in problem["errors"]] == [""]


def faults(server: Server, path: str = "/plain", **members: Any) -> dict[str, str]:
    reply = server.post(run_input(**members), path)
    problem = reply.problem()
    assert problem["status"] == 422
    assert all(set(fault) == {"pointer", "message", "type"} for fault in problem["errors"])
    pointers = [fault["pointer"] for fault in problem["errors"]]
    assert len(set(pointers)) == len(pointers)
    return {fault["pointer"]: fault["message"] for fault in problem["errors"]}


def test_there_is_a_pointer_to_each_fault(server: Server) -> None:
    reply = server.request("POST", "/plain", b'{"threadId": 1}', JSON)
    pointers = {fault["pointer"] for fault in reply.problem()["errors"]}
    assert pointers == {"/threadId", "/runId", "/messages"}
    assert set(faults(server, messages={}, tools=[{}])) == {
        "/messages", "/tools/0/name", "/tools/0/description",
    }  # fmt: skip


def test_a_huge_number_is_422_where_it_overflows(server: Server) -> None:
    body = json.dumps(run_input()).replace("{", '{"state": {"n": 1e999}, ', 1).encode()
    problem = server.request("POST", "/plain", body, JSON).problem()
    assert problem["status"] == 422
    assert [fault["pointer"] for fault in problem["errors"]] == ["/state/n"]


def test_a_state_of_another_form_is_422_with_pointers_into_the_body(server: Server) -> None:
    assert set(faults(server, "/typed", state={"days": "many"})) == {"/state/city", "/state/days"}
    assert set(faults(server, "/typed", state=[1])) == {"/state"}


def test_what_the_input_says_is_never_in_the_answer(server: Server) -> None:
    for path in ("/plain", "/typed"):
        reply = server.post(
            run_input(
                state={"city": ["hunter2"], "secret_code": "bad hunter2", "days": "hunter2"},
                messages=[
                    {"id": "m", "role": "user", "content": [{"type": "image", "source": {"type": "hunter2"}}]},
                    {"id": "hunter2", "role": "user", "content": {"hunter2": 1}},
                ],
            ),
            path,
        )
        assert reply.problem()["status"] == 422
        assert b"hunter2" not in reply.body


def test_debug_says_what_the_authors_validators_say(server: Server) -> None:
    state = {"city": "x", "secret_code": "bad hunter2"}
    assert "hunter2" not in faults(server, "/typed", state=state)["/state/secret_code"]
    assert "code bad hunter2 is not known" in faults(server, "/debug", state=state)["/state/secret_code"]


@pytest.mark.parametrize("depth", [101, 150, 190])
def test_a_state_too_deep_to_be_one_is_422(server: Server, depth: int) -> None:
    state: Any = 1
    for _ in range(depth):
        state = [state]
    assert all(pointer.startswith("/state") for pointer in faults(server, state={"deep": state}))


def test_no_state_starts_with_the_initial_one(server: Server) -> None:
    for members in ({}, {"state": {}}, {"state": None}):
        replica = Replica(**members)
        for event in server.events(run_input(**members), "/typed"):
            replica.apply(event)
        assert replica.state == {"city": "Lisbon", "days": 2, "secret_code": "none"}


# The order of refusals


def test_the_first_of_several_reasons_is_the_answer(server: Server) -> None:
    ann = {"Who": "ann"}
    body = b"x" * 1001
    assert server.request("PUT", "/guarded", body).status == 405
    assert server.request("POST", "/guarded", body).status == 401
    assert server.request("POST", "/guarded", body, ann).status == 415
    assert server.request("POST", "/guarded", body, {**ann, **JSON}).status == 413
    assert server.request("POST", "/guarded", body[:1000], {**ann, **JSON}).status == 400
    assert server.request("POST", "/guarded", b"[]", {**ann, **JSON}).status == 422
    assert server.request("PUT", "/pooled", body).status == 405
    assert server.request("POST", "/pooled", body).status == 503


def test_a_refusal_comes_before_the_body_is_read(server: Server) -> None:
    with server.connect() as connection:
        connection.socket.sendall(b"POST /guarded HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n")
        assert connection.reply().status == 401


def test_a_refusal_is_not_cached(server: Server) -> None:
    assert server.request("POST", "/plain", b"", {}).headers["cache-control"] == "no-store"


# What is *not* refused


@pytest.mark.parametrize(
    "accept", ["*/*", "application/json", "text/html", "application/vnd.ag-ui.event+proto", "nonsense", ""]
)
def test_any_accept_starts_a_stream_of_events(server: Server, accept: str) -> None:
    with server.run(path="/plain", headers={"Accept": accept}) as run:
        assert list(run.events())
        assert run.headers["content-type"].startswith("text/event-stream")


def test_a_byte_order_mark_starts(server: Server) -> None:
    body = b"\xef\xbb\xbf" + json.dumps(run_input()).encode()
    assert server.request("POST", "/plain", body, JSON).status == 200


def test_of_duplicate_keys_the_last_starts(server: Server) -> None:
    body = json.dumps(run_input(runId="last")).replace("{", '{"runId": "first", ', 1).encode()
    assert server.request("POST", "/plain", body, JSON).status == 200
    assert runs == ["last"]


@pytest.mark.parametrize("number", [2**53 + 1, -(2**64), 10**400])
def test_a_huge_integer_in_the_state_starts(server: Server, number: int) -> None:
    assert server.events(run_input(state={"n": number}), "/plain")


def test_half_a_surrogate_pair_as_javascript_writes_it_starts(server: Server) -> None:
    body = json.dumps(run_input()).replace("{", r'{"state": {"t": "\ud83d"}, ', 1).encode()
    assert server.request("POST", "/plain", body, JSON).status == 200


@pytest.mark.parametrize("version", ["1.1", "1.99", "2.0", "nonsense", "", "0.9"])
def test_another_protocol_version_starts_and_is_answered_with_ours(server: Server, version: str) -> None:
    assert server.events(run_input(protocolVersion=version), "/plain")[0]["protocolVersion"] == "1.0"


def test_an_input_with_unknown_members_starts_with_a_warning(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    messages = [
        {"id": "a", "role": "user", "content": "hi", "mood": "good"},
        {"id": "b", "role": "oracle", "content": "hi"},
        {"id": "c", "role": "user", "content": [{"type": "smell", "of": "coffee"}, {"type": "text", "text": "x"}]},
    ]
    with caplog.at_level(logging.WARNING, "statecast"):
        assert server.events(run_input(messages=messages, colour="red"), "/plain")
    for pointer in ("/colour", "/messages/0/mood", "/messages/1", "/messages/2/content/0"):
        assert any(f"{pointer}" in record.getMessage() for record in caplog.records), pointer
    assert "coffee" not in caplog.text


def test_a_socket_that_sends_no_http_does_not_matter(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
        connection.settimeout(5)
        connection.recv(100)
    assert server.request("GET", "/plain").status == 200
