"""The bounded buffer between a run and its response."""

from __future__ import annotations

import asyncio

import pytest

from statecast.stream.channel import HIGH_WATER, TURN_FRAMES, Channel


async def waiting_writer(channel: Channel) -> asyncio.Task[None]:
    """A writer that waits, as more is buffered than may be."""
    channel.put(bytes(HIGH_WATER + 1))
    assert channel.due
    writer = asyncio.create_task(channel.turn())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not writer.done()
    return writer


def test_a_take_gives_all_frames_that_are_ready_as_one_chunk() -> None:
    channel = Channel()
    for frame in (b"a", b"b", b"c"):
        channel.put(frame)
    assert channel.take() == b"abc"
    assert channel.take() == b""
    assert (channel.event_count, channel.byte_count) == (3, 3)


def test_what_the_reader_passes_on_comes_after_what_is_ready_and_lets_writers_go() -> None:
    async def scenario() -> None:
        channel = Channel()
        assert channel.pass_on(b"a", 0.0) == b"a"
        assert channel.take() == b""
        channel.put(b"b")
        assert channel.pass_on(b"c", 0.0) == b"bc"
        writer = await waiting_writer(channel)
        assert channel.pass_on(b"d", 0.0) == bytes(HIGH_WATER + 1) + b"d"
        await asyncio.wait_for(writer, 1)
        assert (channel.event_count, channel.byte_count) == (5, HIGH_WATER + 5)

    asyncio.run(scenario())


def test_the_first_frame_is_due_at_once_and_later_ones_after_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("statecast.stream.channel.monotonic", lambda: 0.0)

    async def scenario() -> list[int]:
        channel = Channel()
        turns = []
        for index in range(3 * TURN_FRAMES):
            channel.put(b"x")
            if channel.due:
                turns.append(index)
                await channel.turn()
        return turns

    assert asyncio.run(scenario()) == [0, TURN_FRAMES, 2 * TURN_FRAMES]


def test_a_frame_is_due_when_the_writer_computed_for_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("statecast.stream.channel.monotonic", lambda: now)

    async def scenario() -> None:
        nonlocal now
        channel = Channel()
        channel.put(b"x")
        await channel.turn()
        channel.put(b"x")
        assert not channel.due
        now += 0.004
        assert channel.due

    asyncio.run(scenario())


def test_a_writer_waits_above_the_high_water_mark_until_a_take() -> None:
    async def scenario() -> None:
        channel = Channel()
        writer = await waiting_writer(channel)
        assert len(channel.take()) == HIGH_WATER + 1
        await asyncio.wait_for(writer, 1)

    asyncio.run(scenario())


def test_closing_lets_writers_and_the_reader_go() -> None:
    async def scenario() -> None:
        channel = Channel()
        writer = await waiting_writer(channel)
        channel.close()
        await asyncio.wait_for(writer, 1)
        channel.take()
        await asyncio.wait_for(channel.wait(None), 1)

    asyncio.run(scenario())


@pytest.mark.parametrize("how", ["put", "close", "wake", "timeout"])
def test_the_reader_wakes(how: str) -> None:
    async def scenario() -> None:
        channel = Channel()
        reader = asyncio.create_task(channel.wait(0.01 if how == "timeout" else None))
        await asyncio.sleep(0)
        assert not reader.done()
        match how:
            case "put":
                channel.put(b"x")
            case "close":
                channel.close()
            case "wake":
                channel.wake()
        await asyncio.wait_for(reader, 1)

    asyncio.run(scenario())


def test_a_cancelled_writer_leaves_the_queue_of_writers() -> None:
    async def scenario() -> None:
        channel = Channel()
        writer = await waiting_writer(channel)
        writer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writer
        assert channel._writers == []

    asyncio.run(scenario())
