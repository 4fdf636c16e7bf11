"""What is in the wheel and in the sdist."""

from __future__ import annotations

import email
import re
import tarfile
import tomllib
import zipfile
from pathlib import Path

from packaging_support import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def files_of(folder: str) -> set[str]:
    """The files of a folder of the checkout, without what running it leaves behind."""
    left = {"__pycache__", "node_modules"}
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and not left & set(path.parts)
    }


def name_of(requirement: str) -> str:
    found = re.match(r"[\w-]+", requirement)
    assert found
    return found[0]


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    metadata = {name for name in names if name.startswith(f"statecast-{PROJECT['version']}.dist-info/")}
    assert names - metadata == {name.removeprefix("src/") for name in files_of("src/statecast")}
    assert "statecast/py.typed" in names


def test_the_wheel_says_what_it_needs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode()
        commands = archive.read(name.replace("METADATA", "entry_points.txt")).decode()
    metadata = email.message_from_string(text)
    assert metadata["Requires-Python"] == ">=3.11"
    needed = [one for one in metadata.get_all("Requires-Dist", []) if "extra ==" not in one]
    assert {name_of(one) for one in needed} == {name_of(one) for one in PROJECT["dependencies"]}
    assert set(metadata.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])
    assert "statecast = statecast.cli:main" in commands
    assert metadata["License-Expression"] == "MIT"
    assert text.partition("\n\n")[2] == (ROOT / "README.md").read_text("utf-8")


def test_the_sdist_can_be_checked_as_the_checkout_can(sdist: Path) -> None:
    prefix = f"statecast-{PROJECT['version']}/"
    with tarfile.open(sdist) as archive:
        names = {name.removeprefix(prefix) for name in archive.getnames()}
    needed = files_of("src") | files_of("tests") | files_of("examples") | files_of(".ci")
    needed |= {
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "LICENSE",
        "pyproject.toml",
        "Dockerfile",
        ".dockerignore",
    }
    assert needed <= names
    strays = {name for name in names - needed if not name.startswith(("src/", "tests/", "examples/", ".ci/"))}
    assert strays <= {"PKG-INFO", ".gitignore"}
