"""The replica and the real TypeScript client agree: on the verdict, the state, and the messages."""

import json
from copy import deepcopy
from random import Random
from typing import Any

from interop_support import require_node, run_lines
from statecast.errors import SequenceError
from statecast.replica import ProtocolViolation, Replica
from statecast.stream.chunks import Expander
from statecast.stream.rules import Sequence
from stream_breaks import FATAL, broken
from stream_careless import careless_event
from stream_support import legal_stream

SEEDS = range(300)


def consume(stream: list[dict[str, Any]], *, close: bool = True) -> tuple[Replica, ProtocolViolation | None]:
    replica = Replica()
    try:
        for event in stream:
            replica.apply(event)
        if close:
            replica.close()
    except ProtocolViolation as violation:
        return replica, violation
    return replica, None


def replay(streams: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """What the client makes of the streams, all in one process."""
    return run_lines("replay.mjs", [{"events": stream} for stream in streams])


def same(ours: Any, theirs: Any) -> bool:
    return json.dumps(ours, sort_keys=True) == json.dumps(theirs, sort_keys=True)


def test_legal_streams() -> None:
    require_node()
    streams = [legal_stream(Random(seed)) for seed in SEEDS]
    for seed, stream, client in zip(SEEDS, streams, replay(streams), strict=True):
        replica, violation = consume(stream)
        messages = [message.model_dump(mode="json", by_alias=True) for message in replica.messages]
        assert violation is None, (seed, violation)
        assert client["accepted"], (seed, client["error"])
        assert same(replica.state, client.get("state")), (seed, replica.state, client.get("state"))
        assert same(messages, client["messages"]), (seed, messages, client["messages"])
        assert bool(replica.warnings) == bool(client["warnings"]), (seed, replica.warnings, client["warnings"])


def test_broken_streams() -> None:
    require_node()
    cases = []
    for seed in SEEDS:
        random = Random(seed)
        name = list(FATAL)[seed % len(FATAL)]
        made = broken(legal_stream(random), FATAL[name], random)
        if made is not None:
            cases.append((seed, name, made[0]))
    assert len(cases) > len(SEEDS) / 2
    assert {name for _, name, _ in cases} == set(FATAL)
    for (seed, name, stream), client in zip(cases, replay([stream for _, _, stream in cases]), strict=True):
        assert consume(stream)[1] is not None, (seed, name)
        assert not client["accepted"], (seed, name)


def careless(seed: int) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """What our consumer takes of a careless producer, and an event that it refuses after that, if there was one.

    A refusal for the ids of a run does not count: the client does not look at those.
    """
    random = Random(seed)
    stream: list[dict[str, Any]] = []
    refused = None
    expander, sequence = Expander(), Sequence(None, side="consumer")
    for _ in range(80):
        event = careless_event(random)
        if event["type"] in ("RUN_STARTED", "RUN_FINISHED", "RUN_ERROR") and random.random() < 0.8 and stream:
            continue
        before = deepcopy((expander, sequence))
        try:
            for one in expander.feed(event):
                sequence.advance(one)
        except SequenceError as error:
            expander, sequence = before
            if error.rule != "L2":
                refused = event
                if random.random() < 0.05:
                    break
        else:
            stream.append(event)
            refused = None
    return stream, refused


def test_careless_streams() -> None:
    require_node()
    cases = [careless(seed) for seed in range(200)]
    clients = replay([stream for stream, _ in cases])
    compared = 0
    refusals = replay([[*stream, refused] for stream, refused in cases if refused is not None])
    for seed, ((stream, _), client) in enumerate(zip(cases, clients, strict=True)):
        replica, violation = consume(stream, close=False)
        assert violation is None, (seed, violation)
        messages = [message.model_dump(mode="json", by_alias=True) for message in replica.messages]
        assert client["accepted"], (seed, client["error"])
        assert same(replica.state, client.get("state")), seed
        # A snapshot makes two messages of one id the same object at the client, which then changes in both places.
        if len({message["id"] for message in messages}) == len(messages):
            assert same(messages, client["messages"]), (seed, messages, client["messages"])
            compared += 1
    assert compared > 150
    assert len(refusals) > 50
    assert not any(client["accepted"] for client in refusals)


def test_lone_surrogates() -> None:
    require_node()
    text = "half \ud83d of it"
    stream: list[dict[str, Any]] = [
        {"type": "RUN_STARTED", "threadId": "thread", "runId": "run"},
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": text},
        {"type": "STATE_SNAPSHOT", "snapshot": {text: text}},
        {"type": "RUN_FINISHED", "threadId": "thread", "runId": "run"},
    ]
    replica, violation = consume(stream)
    [client] = replay([stream])
    assert violation is None
    assert client["state"] == replica.state == {text: text}
    assert client["messages"][0]["content"] == replica.messages[0].content == text


RUN = {"type": "RUN_STARTED", "threadId": "thread", "runId": "run"}
FINISHED = {"type": "RUN_FINISHED", "threadId": "thread", "runId": "run"}
QUESTION = {"id": "a", "reason": "x"}

# Where the client 1.0.0 and the protocol differ; the replica keeps to the protocol.
REJECTED_BY_US = {
    "L2-the end of another run": [RUN, {**FINISHED, "runId": "another"}],
    "L2-a run on another thread": [RUN, FINISHED, {**RUN, "threadId": "another"}],
    "P1-an interrupt twice": [RUN, {**FINISHED, "outcome": {"type": "interrupt", "interrupts": [QUESTION] * 2}}],
    "D5-an operation without an op": [RUN, {"type": "STATE_DELTA", "delta": [{"path": "/a"}]}, FINISHED],
    "W4-nothing at all": [],
    "W4-a stream that stops": [RUN],
}
REJECTED_BY_THE_CLIENT = {
    "C1-an unknown role": [RUN, {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "narrator"}],
    "C1-an unknown subtype": [
        RUN,
        {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "part", "entityId": "m", "encryptedValue": "="},
    ],
}


def test_known_differences() -> None:
    require_node()
    clients = replay([*REJECTED_BY_US.values(), *REJECTED_BY_THE_CLIENT.values()])
    for name, stream in REJECTED_BY_US.items():
        assert clients.pop(0)["accepted"], name
        assert consume(stream)[1] is not None, name
    for name, stream in REJECTED_BY_THE_CLIENT.items():
        assert not clients.pop(0)["accepted"], name
        replica, violation = consume(stream, close=False)
        assert violation is None, name
        assert len(replica.warnings) == 1, name
