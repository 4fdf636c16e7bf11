"""The scripts of this folder do what the other tests take for granted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from interop_events import every_event
from interop_support import CLIENTS, FOLDER, apply_patches, compare_patches, run_client, schema_faults, serving


def _sse(*events: object) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def _app(*runs: bytes) -> tuple[Starlette, list[dict[str, object]]]:
    bodies: list[dict[str, object]] = []

    async def answer(request: Request) -> Response:
        bodies.append(await request.json())
        return StreamingResponse(iter([runs[len(bodies) - 1]]), media_type="text/event-stream")

    return Starlette(routes=[Route("/", answer, methods=["POST"])]), bodies


START = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
END = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}


@pytest.mark.parametrize("client", CLIENTS)
def test_the_client_carries_state_and_messages_over(client: str) -> None:
    text = [
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "hello"},
        {"type": "TEXT_MESSAGE_END", "messageId": "m"},
    ]
    app, bodies = _app(_sse(START, {"type": "STATE_SNAPSHOT", "snapshot": {"n": 1}}, *text, END), _sse(START, END))
    with serving(app) as url:
        first, second = run_client(url, {"say": "hi"}, {"say": "again"}, client=client, threadId="t")
    assert first["resolved"]
    assert first["state"] == second["state"] == {"n": 1}
    assert [message["content"] for message in first["messages"]] == ["hi", "hello"]
    assert bodies[1]["state"] == {"n": 1}
    assert [message["content"] for message in bodies[1]["messages"]] == ["hi", "hello", "again"]  # type: ignore[attr-defined]
    assert ("protocolVersion" in bodies[0]) == (client == "1.0.0")


@pytest.mark.parametrize("client", CLIENTS)
def test_a_rejected_stream_and_a_warning_are_reported(client: str) -> None:
    patch = {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/no", "value": 1}]}
    app, _ = _app(_sse(START, patch, END), _sse(END))
    with serving(app) as url:
        warned, rejected = run_client(url, {}, {}, client=client)
    assert warned["resolved"]
    assert "Failed to apply state patch" in warned["warnings"][0]
    assert not rejected["resolved"]
    assert "First event must be" in rejected["error"]


def test_the_schemas_tell_the_versions_apart() -> None:
    cancelled = {**END, "outcome": {"type": "cancelled"}}
    assert schema_faults([END, cancelled]) == [{"faults": [], "stripped": False}] * 2
    good, bad = schema_faults([END, cancelled], schema="0.0.59")
    assert not good["faults"]
    assert bad["faults"]
    assert schema_faults([{"type": "RUN_STARTED"}])[0]["faults"]


def test_the_samples_of_events_are_what_the_protocol_describes() -> None:
    events = every_event()
    assert [(event, found) for event, found in zip(events, schema_faults(events), strict=True) if found["faults"]] == []


def test_patches_are_applied_and_compared() -> None:
    good, bad = apply_patches(
        [
            ({"a": [1]}, [{"op": "add", "path": "/a/1", "value": "é"}]),
            ({}, [{"op": "remove", "path": "/a"}]),
        ]
    )
    assert good["result"] == {"a": [1, "é"]}
    assert "error" in bad
    (found,) = compare_patches([({"a": 1}, {"a": 2})])
    assert found["patch"] == [{"op": "replace", "path": "/a", "value": 2}]
    assert found["bytes"] == len('[{"op":"replace","path":"/a","value":2}]')


def test_the_lock_file_holds_no_download_address() -> None:
    lock = json.loads((FOLDER / "package-lock.json").read_text())
    assert [name for name, package in lock["packages"].items() if "resolved" in package] == []
    assert Path(FOLDER / "package.json").read_text().count("1.0.0") == 1
