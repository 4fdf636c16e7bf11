"""What any test makes a run send is kept, and looked at once all tests are over (tests/interop/test_sweep.py)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from statecast.stream.channel import Channel

_BYTES_OF_ONE_TYPE = 256 * 1024


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "last: runs after all other tests")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("last") is not None)


@pytest.fixture(scope="session", autouse=True)
def sent_frames() -> Iterator[dict[bytes, list[bytes]]]:
    """The frames that runs have sent so far, by the beginning that names their type: the first few thousand of each."""
    kept: dict[bytes, list[bytes]] = defaultdict(list)
    room: dict[bytes, int] = defaultdict(lambda: _BYTES_OF_ONE_TYPE)

    def keep(frame: bytes) -> None:
        kind = frame[:40].partition(b",")[0]
        if len(frame) <= room[kind]:
            room[kind] -= len(frame)
            kept[kind].append(frame)

    original: dict[str, Any] = {name: getattr(Channel, name) for name in ("put", "count")}

    def keeping(name: str) -> Any:
        def put(self: Channel, frame: bytes) -> None:
            keep(frame)
            original[name](self, frame)

        return put

    for name in original:
        setattr(Channel, name, keeping(name))
    yield kept
    for name, method in original.items():
        setattr(Channel, name, method)
