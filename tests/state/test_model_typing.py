"""What a type checker says of code that uses `State`."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SAMPLE = """
from typing import Annotated, Any

from pydantic import Field, computed_field

from statecast.state import Document, ReadOnly, State, StateType


class Stop(State):
    title: str = ""


class Trip(State):
    city: str = Field(default="", alias="cityName")
    stops: list[Stop] = []
    owner: Annotated[str, ReadOnly] = ""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def size(self) -> int:
        return len(self.stops)


document = Document(Trip(), type=Trip)
document.value.stops.append(Stop(title="a"))
document.value.city = "Porto"
kind: StateType = StateType(Trip)
copied: Trip = document.value.model_copy()
{line}
"""

LINES = {
    "trip: Trip = document.value": None,
    'document.value.cty = "x"': "attr-defined",
    "document.value.city = 1": "assignment",
    "document.value.stops.append(1)": "arg-type",
    "document.value.size.nope": "attr-defined",
    "document.value = 5": "assignment",
    "Stop(ttle='a')": "call-arg",
}


def test_a_typo_or_a_wrong_type_is_found_by_a_strict_type_checker(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    files = {}
    for index, line in enumerate(LINES):
        files[f"sample{index}"] = line
        (tmp_path / f"sample{index}.py").write_text(textwrap.dedent(SAMPLE).replace("{line}", line))
    source = Path(__file__).parents[2] / "src"
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--follow-imports=silent",
            "--no-error-summary",
            *(f"{name}.py" for name in files),
        ],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(source)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert not run.stderr
    found = {name: [row for row in run.stdout.splitlines() if row.startswith(f"{name}.py")] for name in files}
    for name, line in files.items():
        expected = LINES[line]
        if expected is None:
            assert found[name] == [], line
        else:
            assert len(found[name]) == 1, (line, found[name])
            assert f"[{expected}]" in found[name][0], (line, found[name])
