"""The distributions, built once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from packaging_support import ROOT


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what `python -m build` makes: an sdist, and a wheel from that sdist."""
    folder = tmp_path_factory.mktemp("dist")
    # Without isolation: the backend is a development dependency, and the network is not asked.
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="session")
def wheel(distributions: Path) -> Path:
    (found,) = distributions.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def sdist(distributions: Path) -> Path:
    (found,) = distributions.glob("*.tar.gz")
    return found
