"""A JSON state as a tree that fits a terminal, with what just changed marked."""

from __future__ import annotations

from collections.abc import Collection
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
    towards = {pointer[:at] for pointer in marked for at, char in enumerate(pointer) if char == "/"} | marked
    tree = Tree(_label(name, value, "" in marked))
    budget = [max(lines - 1, 0)]
    _grow(tree, value, "", marked, towards, budget)
    return tree


def _grow(tree: Tree, value: Any, pointer: str, marked: set[str], towards: set[str], budget: list[int]) -> None:
    members: list[tuple[str, Any, str]] = []
    if isinstance(value, dict):
        members = [(key, item, f"{pointer}/{_escaped(key)}") for key, item in value.items()]
    elif isinstance(value, list):
        members = [(str(at), item, f"{pointer}/{at}") for at, item in enumerate(value)]
    if not members or budget[0] <= 0:
        return
    room = min(CHILDREN, budget[0])
    if len(members) > room:
        # One line says how many are left out.
        kept = {at for at, member in enumerate(members) if member[2] in towards}
        chosen = sorted([*sorted(kept)[-room + 1 :], *(at for at in range(len(members)) if at not in kept)][: room - 1])
        shown = [members[at] for at in chosen]
    else:
        shown = members
    # A level is charged as a whole before the levels below it: what stands above is worth more.
    budget[0] -= len(shown) + (len(shown) < len(members))
    children = [(tree.add(_label(name, item, at in marked)), item, at) for name, item, at in shown]
    if len(shown) < len(members):
        tree.add(Text(f"… {len(members) - len(shown)} more", style="dim"))
    # The way to a change is drawn before anything else uses up the lines.
    for child, item, at in sorted(children, key=lambda one: one[2] not in towards):
        _grow(child, item, at, marked, towards, budget)


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
