"""Everything that users meet has a docstring: `python -m pydoc statecast` leaves nothing unsaid."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import statecast.state

MODULES = [
    "statecast",
    "statecast.author",
    "statecast.conversation",
    "statecast.replica",
    "statecast.scopes",
    "statecast.state",
    "statecast.testing",
    "statecast.usage",
]


def undocumented(module: str) -> Iterator[str]:
    """The public names of a module, and of its classes, that nothing is said of."""
    found = importlib.import_module(module)
    assert found.__doc__
    for name in found.__all__:
        value = getattr(found, name)
        if not callable(value) or not getattr(value, "__module__", "").startswith("statecast"):
            continue
        if not own_doc(value):
            yield name
        if isinstance(value, type):
            yield from (f"{name}.{member}" for member in members(value))


def members(cls: type) -> Iterator[str]:
    """Public methods and properties that this class defines without a docstring; overriding what is documented needs none."""
    for name, value in vars(cls).items():
        if name.startswith("_") or not (
            inspect.isfunction(value) or isinstance(value, (property, classmethod, staticmethod))
        ):
            continue
        if not inspect.getdoc(getattr(cls, name) if not isinstance(value, property) else value):
            above = [vars(base)[name] for base in cls.__mro__[1:] if name in vars(base)]
            if not any(inspect.getdoc(one) for one in above):
                yield name


def own_doc(value: Any) -> str | None:
    """Not the one that a dataclass makes of its fields."""
    doc: str | None = value.__doc__
    return None if doc is None or doc.startswith(f"{getattr(value, '__name__', '')}(") else doc


@pytest.mark.parametrize("module", MODULES)
def test_public_names_are_documented(module: str) -> None:
    assert list(undocumented(module)) == []


def test_what_is_undocumented_would_be_found() -> None:
    class Bare:
        def method(self) -> None: ...

        @property
        def attribute(self) -> None: ...

        def documented(self) -> None:
            """Does it."""

    assert list(members(Bare)) == ["method", "attribute"]


def test_the_example_of_the_state_says_what_happens() -> None:
    given = {"Document": statecast.state.Document}
    code = [line.strip() for line in (statecast.state.__doc__ or "").splitlines() if line.startswith("    ")]
    assert len(code) == 4
    for line in code:
        statement, _, said = line.partition("#")
        expected = said.partition(":")[0].strip() if said.strip().startswith("None") else said.strip()
        if expected:
            assert eval(statement, given) == eval(expected)
        else:
            exec(statement, given)
