import pytest

from statecast.watch.text import clean, one_line, shorten


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 😀\n\ttext", "plain é 😀\n\ttext"),
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("a\rb\x08c", "a\\x0db\\x08c"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202egpj.exe", "\\u202egpj.exe"),
        ("[bold]no markup[/]", "[bold]no markup[/]"),
    ],
)
def test_an_agent_cannot_steer_the_terminal(text, shown):
    assert clean(text) == shown


def test_values_become_one_line():
    assert shorten({"a": "x\ny"}) == '{"a": "x\\ny"}'
    assert one_line("x\ny") == "x⏎y"
    assert len(shorten(["x" * 500], 30)) == 30
