"""Frames on the wire (W2)."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from statecast.stream.sse import KEEP_ALIVE, frame, json_frame

# Any text, lone surrogates and line separators among them.
texts = st.text(st.characters())
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_W2_a_frame_is_one_line_of_json_that_reads_back(value: Any) -> None:
    encoded = frame({"type": "CUSTOM", "name": "x", "value": value})
    assert encoded.startswith(b"data: ")
    assert encoded.endswith(b"\n\n")
    body = encoded[6:-2]
    assert b"\n" not in body
    assert b"\r" not in body
    # Half a surrogate pair is written as an escape, so every frame is UTF-8.
    assert json.loads(body.decode("utf-8"))["value"] == value


def test_halves_of_a_pair_that_were_split_join_again_in_javascript() -> None:
    high, low = "\U0001f600".encode("utf-16-be", "surrogatepass")[:2], "\U0001f600".encode("utf-16-be")[2:]
    deltas = [half.decode("utf-16-be", "surrogatepass") for half in (high, low)]
    read = [json.loads(frame({"delta": delta})[6:])["delta"] for delta in deltas]
    joined = "".join(read).encode("utf-16-be", "surrogatepass").decode("utf-16-be")
    assert joined == "\U0001f600"


def test_ready_made_json_and_the_keep_alive_use_lf_only() -> None:
    assert json_frame(b'{"type":"X"}') == b'data: {"type":"X"}\n\n'
    assert KEEP_ALIVE == b": keep-alive\n\n"
