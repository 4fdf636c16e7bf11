"""W2: what an event stream may look like, to the letter."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statecast.testing.frames import FrameError, Frames

ONE = b'data: {"type":"A"}\n\n'


def read(data: bytes) -> list[dict]:
    frames = Frames()
    events = frames.feed(data)
    frames.close()
    return events


@pytest.mark.parametrize(
    "data",
    [
        ONE,
        b'data:{"type":"A"}\n\n',
        b": keep-alive\n\n" + ONE,
        ONE + b": a\n: b\n\n",
        b':\n\ndata: {"type":"A"}\n\n',
        b': before the frame\ndata: {"type":"A"}\n\n',
        b'data: {"type":"A"}\n: in the frame\n\n',
        'data: {"type":"A","text":"\u2028 \u0085 \\r\\n \U0001f600"}\n\n'.encode(),
    ],
)
def test_W2_legal_frames_are_read(data):
    assert [event["type"] for event in read(data)] == ["A"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'data: {"type":"A"}\r\n\r\n', "LF only"),
        (b'data: {"type":"A"}\r\r', "within frame 1"),
        (b'data: {"type":"A"}\n\r\n', "LF only"),
        (b'event: message\ndata: {"type":"A"}\n\n', "neither data nor a comment"),
        (b'id: 1\ndata: {"type":"A"}\n\n', "neither data nor a comment"),
        (b'retry: 1\ndata: {"type":"A"}\n\n', "neither data nor a comment"),
        (b'data\ndata: {"type":"A"}\n\n', "neither data nor a comment"),
        (b'data: {"type":\ndata: "A"}\n\n', "two data lines"),
        (b'data: {"type":"A"}\ndata: {"type":"B"}\n\n', "two data lines"),
        (ONE + b"\n", "ends no frame"),
        (b"\n" + ONE, "ends no frame"),
        (b"data: [1]\n\n", "not a JSON object"),
        (b"data: null\n\n", "not a JSON object"),
        (b"data: [DONE]\n\n", "not JSON"),
        (b"data:\n\n", "not JSON"),
        (b'data: {"type":"A"} {"type":"B"}\n\n', "not JSON"),
        (b'data: {"type":"A","n":NaN}\n\n', "NaN is not JSON"),
        (b'data: {"type":"A","n":-Infinity}\n\n', "-Infinity is not JSON"),
        (b'data: {"type":"A","t":"\t"}\n\n', "not JSON"),
        (b'data: {"type":"A","t":"\xff"}\n\n', "not UTF-8"),
        (b"data: " + b"[" * 100_000 + b"\n\n", "not JSON"),
        (b"\xef\xbb\xbf" + ONE, "neither data nor a comment"),
    ],
)
def test_W2_anything_else_is_refused(data, said):
    with pytest.raises(FrameError, match=said):
        read(data)


@pytest.mark.parametrize("data", [b'data: {"type":"A"}\n', b'data: {"type":"A"}', b"data", b": comment without an end"])
def test_W4_a_stream_that_ends_within_a_frame_is_truncated(data):
    with pytest.raises(FrameError, match="ends within frame") as caught:
        read(data)
    assert caught.value.rule == "W4"


def test_the_events_before_a_fault_are_kept():
    with pytest.raises(FrameError) as caught:
        Frames().feed(ONE + ONE + b"oops\n")
    assert len(caught.value.events) == 2


@given(
    st.lists(st.dictionaries(st.text(), st.text() | st.integers() | st.none(), max_size=3), min_size=1, max_size=6),
    st.lists(st.integers(1, 40), min_size=1),
)
def test_the_cuts_between_chunks_do_not_matter(events, sizes):
    data = b": hello\n\n" + b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in events)
    frames, found, at, turn = Frames(), [], 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        found += frames.feed(data[at : at + size])
        at, turn = at + size, turn + 1
    frames.close()
    assert found == events
