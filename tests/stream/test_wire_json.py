"""The bytes of a body become JSON, or are refused."""

import json
import math
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statecast.stream.wire import (
    NotJSON,
    WireError,
    read_json,
)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'{"a": [1, 1.5, true, null, "x"]}', {"a": [1, 1.5, True, None, "x"]}),
        (b"\xef\xbb\xbf[]", []),
        ('"é日🧭"'.encode(), "é日🧭"),
        (b'"\\ud83e\\udded"', "🧭"),
        (b'"half \\ud83d"', "half \ud83d"),
        (b'{"\\udded": "\\udded\\ud83e"}', {"\udded": "\udded\ud83e"}),
        (b'{"a": 1, "a": 2}', {"a": 2}),
        (b'{"a": "\\ud83d", "a": 2}', {"a": 2}),
        (b"1e308", 1e308),
        (b"-0.0", -0.0),
        (b"9007199254740993", 9007199254740993),
        (b'"e999 and 1e999"', "e999 and 1e999"),
        (b" \n[ ]\t", []),
    ],
)
def test_json_is_read(body: bytes, value: Any) -> None:
    read = read_json(body)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"  ",
        b"{",
        b"{'a': 1}",
        b"[1,]",
        b"NaN",
        b"[Infinity]",
        b'{"a": -Infinity}',
        b'["\\ud83d", NaN]',
        b'"\xff"',
        b'"\xed\xa0\xbd"',
        b'\xff\xfe"\x00a\x00"\x00',
        b"{} {}",
        b'"a\nb"',
        b'["\\ud83d", "\xff"]',
        b"9" * 5000,
        b'"\\ud83d" 9',
        b"\xef\xbb\xbf\xef\xbb\xbf[]",
    ],
)
def test_what_is_not_json(body: bytes) -> None:
    with pytest.raises(NotJSON):
        read_json(body)


@pytest.mark.parametrize("escape", [b"", b'"\\ud83d",'], ids=["quick", "slow"])
@pytest.mark.parametrize("brackets", [(b"[", b"]"), (b'{"a":', b"}")], ids=["lists", "objects"])
def test_nesting_has_a_limit_that_both_parsers_keep(escape: bytes, brackets: tuple[bytes, bytes]) -> None:
    def nested(levels: int) -> bytes:
        return b"[" + escape + brackets[0] * levels + b"1" + brackets[1] * levels + b"]"

    read_json(nested(190))
    for levels in (201, 5000, 200_000):
        with pytest.raises(NotJSON):
            read_json(nested(levels))


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        (b"1e999", [""]),
        (b'{"a": [0, -1E+0999]}', ["/a/1"]),
        (b'{"a/b": {"~": 1e400}, "c": 1e400}', ["/a~1b/~0", "/c"]),
        (b"[" + b"1" * 400 + b".0]", ["/0"]),
        (b'["\\ud83d", 1e999]', ["/1"]),
        (b"[" + b"9" * 250 + b"e99]", ["/0"]),
    ],
)
def test_numbers_out_of_range_are_faults(body: bytes, pointers: list[str]) -> None:
    with pytest.raises(WireError) as raised:
        read_json(body)
    assert [fault.pointer for fault in raised.value.faults] == pointers


def test_large_integers_are_read() -> None:
    assert read_json(b"1" * 400) == int("1" * 400)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ANYTHING)
def test_what_json_dumps_writes_is_read_as_it_was(value: Any) -> None:
    body = json.dumps(value).encode()
    if re.search(rb"NaN|Infinity", re.sub(rb'"(\\.|[^"\\])*"', b"", body)):
        with pytest.raises(NotJSON):
            read_json(body)
    else:
        assert json.dumps(read_json(body)) == json.dumps(value)


def test_nothing_infinite_is_left_after_reading() -> None:
    value = read_json(b'{"a": 1e308, "b": [0.1, -1e308]}')
    assert all(math.isfinite(number) for number in (value["a"], *value["b"]))
