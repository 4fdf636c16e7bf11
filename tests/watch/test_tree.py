import io

import pytest

pytest.importorskip("rich")
from rich.console import Console

from statecast.watch.tree import CHANGED, state_tree


def drawn(value, changed=(), **more) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=60).print(state_tree(value, changed, **more))
    return out.getvalue().splitlines()


def marked(value, changed) -> list[str]:
    found, pending = [], [state_tree(value, changed)]
    while pending:
        node = pending.pop(0)
        if node.label.style == CHANGED:
            found.append(node.label.plain)
        pending.extend(node.children)
    return found


def test_a_state_is_a_tree():
    assert drawn({"city": "Faro", "stops": [{"name": "x"}, None], "n": 1.0, "none": {}}) == [
        "state {4}",
        '├── city: "Faro"',
        "├── stops [2]",
        "│   ├── 0 {1}",
        '│   │   └── name: "x"',
        "│   └── 1: null",
        "├── n: 1.0",
        "└── none {}",
    ]
    assert drawn("text") == ['state: "text"']


def test_what_changed_is_marked():
    state = {"a": {"b": [1, 2]}, "x/y": 1, "c": 1}
    assert marked(state, ["/a/b/1"]) == ["1: 2"]
    assert marked(state, ["/x~1y"]) == ["x/y: 1"]
    assert marked(state, [""]) == ["state {3}"]
    assert marked(state, ["/nowhere"]) == []
    assert marked(state, []) == []


def test_a_large_state_fits_and_shows_what_changed():
    state = {"items": [{"n": n} for n in range(10_000)], "last": 1}
    lines = drawn(state, ["/items/7777/n"], lines=15)
    assert len(lines) <= 15
    assert any("7777" in line for line in lines)
    assert any("n: 7777" in line for line in lines)
    assert any("more" in line for line in lines)
    assert any("last" in line for line in lines)


@pytest.mark.parametrize("lines", [1, 2, 3, 7])
def test_a_small_window_is_never_passed(lines):
    state = {str(n): {str(m): [1, 2, 3] for m in range(5)} for n in range(50)}
    assert len(drawn(state, ["/3/2/1"], lines=lines)) <= lines


def test_control_characters_are_written_out():
    assert "\x1b" not in "".join(drawn({"\x1b[31m": "\x1b[2J"}))
