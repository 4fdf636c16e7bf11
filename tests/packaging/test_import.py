"""`import statecast` brings what it needs and nothing that only some use. `tests/benchmarks/import_time.py` measures it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

DEPENDENCIES = "import ag_ui.core, jsonpatch, pydantic, sse_starlette, starlette.applications"

# Submodules of what is needed, and the interface of OpenTelemetry, which does nothing until an SDK is set up.
NEEDED = {"statecast", "ag_ui", "pydantic", "starlette", "opentelemetry"}
# Servers, clients, terminals, the page, what writes spans: each is imported where it is used.
OPTIONAL = {"agui_inspector", "fastapi", "httpx", "opentelemetry.sdk", "rich", "sqlite3", "statecast.cli"}
OPTIONAL |= {"statecast.demo", "statecast.loading", "statecast.serving", "statecast.testing"}


def modules_after(statement: str) -> set[str]:
    """What a fresh interpreter has imported after a statement."""
    code = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return set(json.loads(done.stdout))


def under(names: set[str], loaded: set[str]) -> set[str]:
    return {module for module in loaded if any(module == name or module.startswith(f"{name}.") for name in names)}


def test_nothing_is_imported_that_the_dependencies_do_not_bring() -> None:
    loaded = modules_after("import statecast")
    added = loaded - modules_after(DEPENDENCIES)
    assert "statecast.agent" in added
    assert {module.partition(".")[0] for module in added} - set(sys.stdlib_module_names) <= NEEDED
    assert under(OPTIONAL, loaded) == set()


@pytest.mark.parametrize("name", sorted(OPTIONAL))
def test_what_must_not_be_imported_would_be_seen(name: str) -> None:
    pytest.importorskip(name)
    assert under({name}, modules_after(f"import statecast, {name}"))
