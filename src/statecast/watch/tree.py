"""A JSON state as a tree that fits a terminal, with what just changed marked."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from typing import Any

from rich.text import Text
from rich.tree import Tree

from .text import one_line, shorten

__all__ = ["state_tree"]

CHANGED = "bold black on yellow"
CHILDREN = 20
"""How many members of one container are shown; those that changed come before others."""


def state_tree(value: Any, changed: Collection[str] = (), *, lines: int = 40, name: str = "state") -> Tree:
    """The tree of a value.

    Args:
        changed: JSON pointers of what to mark. A pointer to a container marks it, not all that is in it.
        lines: how many lines the tree may have.
    """
    marked = set(changed)
    # Container -> names of the members in which, or below which, something changed.
    ways: dict[str, set[str]] = {}
    for pointer in marked:
        while pointer:
            pointer, _, token = pointer.rpartition("/")
            ways.setdefault(pointer, set()).add(token.replace("~1", "/").replace("~0", "~"))
    tree = Tree(_label(name, value, "" in marked))
    _grow(tree, value, "", marked, ways, [max(lines - 1, 0)])
    return tree


def _grow(tree: Tree, value: Any, pointer: str, marked: set[str], ways: dict[str, set[str]], budget: list[int]) -> None:
    if not isinstance(value, (dict, list)) or not value or budget[0] <= 0:
        return
    names = ways.get(pointer, set())
    # Some lines stay for what leads on to a change.
    room = min(CHILDREN, max(budget[0] * 2 // 3, 1) if names else budget[0])
    keys: list[Any]
    if len(value) <= room:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    else:
        # Never all of them: a list may have a million. One line says how many are left out.
        wanted = _wanted(value, names)[: room - 1]
        first = islice(value if isinstance(value, dict) else range(len(value)), room - 1)
        keys = [key for key in first if key not in wanted][: room - 1 - len(wanted)] + wanted
    # A level is charged as a whole before the levels below it: what stands above is worth more.
    budget[0] -= len(keys) + (len(keys) < len(value))
    children = []
    for key in keys if isinstance(value, dict) else sorted(keys):
        at = f"{pointer}/{_escaped(str(key))}"
        children.append((tree.add(_label(str(key), value[key], at in marked)), value[key], at, str(key) in names))
    if len(keys) < len(value):
        tree.add(Text(f"… {len(value) - len(keys)} more", style="dim"))
    # The way to a change is drawn before anything else uses up the lines.
    for child, item, at, _ in sorted(children, key=lambda one: not one[3]):
        _grow(child, item, at, marked, ways, budget)


def _wanted(value: dict[str, Any] | list[Any], names: set[str]) -> list[Any]:
    if isinstance(value, dict):
        return [name for name in sorted(names) if name in value]
    return sorted(int(name) for name in names if name.isdecimal() and int(name) < len(value))


def _label(name: str, value: Any, changed: bool) -> Text:
    label = Text(one_line(name, 40), style=CHANGED if changed else "cyan", no_wrap=True, overflow="ellipsis")
    if isinstance(value, dict):
        label.append(f" {{{len(value)}}}" if value else " {}", style="dim")
    elif isinstance(value, list):
        label.append(f" [{len(value)}]" if value else " []", style="dim")
    else:
        shown = shorten(value)
        label.append(": ", style="dim").append(shown, style=CHANGED if changed else "")
    return label


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
