"""What any test makes a run send is kept, and looked at once all tests are over (tests/interop/test_sweep.py)."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator
from typing import BinaryIO

import pytest

from statecast.server import running
from statecast.stream.channel import Channel

_BYTES_OF_ONE_TYPE = 256 * 1024


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "last: runs after all other tests")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("last") is not None)


@pytest.fixture(scope="session", autouse=True)
def sent_frames() -> Iterator[BinaryIO]:
    """A file of the frames that runs have sent so far, of each type the first few thousand.

    A file, as some tests count what is left in memory.
    """
    room: dict[bytes, int] = defaultdict(lambda: _BYTES_OF_ONE_TYPE)
    with tempfile.TemporaryFile() as kept:

        def keep(frame: bytes) -> None:
            kind = frame[:40].partition(b",")[0]
            if len(frame) <= room[kind]:
                room[kind] -= len(frame)
                kept.write(frame)

        class KeptChannel(Channel):
            def put(self, frame: bytes) -> None:
                keep(frame)
                super().put(frame)

            def count(self, frame: bytes) -> None:
                keep(frame)
                super().count(frame)

        assert running.Channel is Channel, "a run takes its channel from elsewhere now"
        running.Channel = KeptChannel  # type: ignore[misc]
        yield kept
        running.Channel = Channel  # type: ignore[misc]
