"""JSON pointers."""

import pytest

from statecast.state import pointer


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ((), ""),
        (("a", "b"), "/a/b"),
        (("",), "/"),
        (("", ""), "//"),
        (("a/b", "m~n", "~1", "~0"), "/a~1b/m~0n/~01/~00"),
        (("rows", 0, "x y", "%41", "\u00e4"), "/rows/0/x y/%41/\u00e4"),
    ],
)
def test_tokens_are_escaped_and_come_back(tokens: tuple[str | int, ...], text: str) -> None:
    assert pointer.join(*tokens) == text
    assert pointer.split(text) == [str(token) for token in tokens]


@pytest.mark.parametrize("text", ["a", "a/b", "/~", "/a~2b", "/~01~"])
def test_what_is_not_a_pointer_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="not a JSON pointer"):
        pointer.split(text)


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("/a/__proto__", True),
        ("/__proto__/b", True),
        ("/constructor/prototype", True),
        ("/a/constructor/prototype/b", True),
        ("/prototype", False),
        ("/constructor", False),
        ("/constructor/a/prototype", False),
        ("/prototype/constructor", False),
        ("/__proto__x", False),
        ("/protocol/prototypes", False),
        ("", False),
    ],
)
def test_paths_that_consumers_refuse(text: str, refused: bool) -> None:
    assert pointer.refused(text) is refused
