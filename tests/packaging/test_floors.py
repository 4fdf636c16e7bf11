"""CONTRIBUTING.md says what stands where, what may import what, and which rules there are; the code keeps to it."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from packaging_support import ROOT

PACKAGE = ROOT / "src" / "statecast"
TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
RULE = re.compile(r"\b([WILUSTRDMAPGXC][1-9]\d?)\b")


def floors() -> list[str]:
    """The modules as the page lists them, with the file of a package where its list ends."""
    block = TEXT.split("```\nerrors.py", 1)[1].split("```", 1)[0]
    found: list[str] = []
    package = ""
    for line in f"errors.py{block}".splitlines():
        name, _, said = line.strip().partition(" ")
        assert said.strip(), f"{name} has no description"
        if package and not line.startswith(" "):
            found.append(f"{package}__init__.py")
            package = ""
        if name.endswith("/"):
            package = name
        else:
            found.append(f"{package if line.startswith(' ') else ''}{name}")
    return found


FLOORS = floors()


def test_every_module_is_listed_once() -> None:
    files = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
    assert sorted(FLOORS) == files, "list it in CONTRIBUTING.md, with a line that says what it is"


def imports(file: str) -> Iterator[str]:
    """The files of the package that this one imports from when it runs, also inside functions."""
    folder = file.split("/")[:-1]
    for node in reached(ast.parse((PACKAGE / file).read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            path = (node.module or "").split(".") if node.module else []
            if node.level:
                path = [*folder[: len(folder) - node.level + 1], *path]
            elif path[:1] == ["statecast"]:
                path = path[1:]
            else:
                continue
            for alias in node.names:
                yield file_of([*path, alias.name]) or file_of(path) or "/".join(path)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                top, *path = alias.name.split(".")
                if top == "statecast":
                    yield file_of(path) or alias.name


def reached(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run: not what only a type checker reads."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from (inner for other in node.orelse for inner in reached(other))
            continue
        yield node
        yield from reached(node)


def file_of(path: list[str]) -> str | None:
    for name in ("/".join(path) + ".py", "/".join([*path, "__init__.py"])):
        if (PACKAGE / name).is_file():
            return name
    return None


@pytest.mark.parametrize("file", FLOORS)
def test_it_imports_only_from_above(file: str) -> None:
    above = set(FLOORS[: FLOORS.index(file)])
    assert set(imports(file)) - {file} <= above


def test_imports_are_found_wherever_they_stand() -> None:
    assert {"state/__init__.py", "run.py", "server/app.py"} <= set(imports("agent.py"))
    assert "agent.py" in set(imports("__init__.py"))
    assert "__init__.py" in set(imports("demo.py"))


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The comments and docstrings of a file, and the ids that errors are raised with, by line."""
    source = path.read_text("utf-8")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value
        elif isinstance(node, ast.Call) and "SequenceError" in ast.unparse(node.func):
            for value in node.args[1:]:
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield node.lineno, value.value


def test_every_rule_that_is_cited_is_listed() -> None:
    listed = re.findall(r"^- ([A-Z]\d+): ", TEXT, re.MULTILINE)
    assert len(listed) == len(set(listed))
    unknown = [
        f"{path.relative_to(ROOT)}:{line}: {id}"
        for folder in ("src", "tests", "examples")
        for path in sorted((ROOT / folder).rglob("*.py"))
        # Reports have ids of their own.
        if "node_modules" not in path.parts and "reports" not in path.name
        for line, text in prose(path)
        for id in RULE.findall(text)
        if id not in listed
    ]
    assert unknown == []
