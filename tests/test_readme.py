"""Every code block of the README runs, and its table of edits is true."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonpatch
import pytest

from live_server import SOURCE, spawn
from statecast.state import Delta, Document

README = (Path(__file__).parent.parent / "README.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
BASH = re.findall(r"```bash\n(.*?)```", README, re.DOTALL)
TABLE = re.findall(r"^\| `(.+)` \| (.+) \|$", README, re.MULTILINE)


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """The blocks run one after the other, as a reader would type them."""
    found: dict[str, Any] = {"__name__": "readme"}
    for block in PYTHON:
        exec(compile(block, "README.md", "exec", dont_inherit=True), found)
    return found


def test_there_are_blocks_to_run() -> None:
    assert len(PYTHON) >= 7
    assert len(BASH) >= 3
    assert len([row for row in TABLE if row[0].startswith(("state", "del", "row"))]) >= 10


@pytest.mark.parametrize(("edit", "patch"), [row for row in TABLE if row[0].startswith(("state", "del", "row"))])
def test_an_edit_gives_the_patch_that_the_table_shows(edit: str, patch: str) -> None:
    start = {"n": 1, "items": ["a", "b"], "note": "x" * 600}
    document: Document[Any] = Document(copy.deepcopy(start), baseline=start)
    exec(edit, {"state": document.value})
    taken = document.take()
    if patch.startswith("nothing"):
        assert taken is None
        return
    assert isinstance(taken, Delta)
    expected = json.loads(patch.strip("`"))
    assert json.dumps(taken.ops) == json.dumps(expected)
    assert jsonpatch.apply_patch(start, taken.ops) == document.value


def test_the_agents_of_the_readme_do_what_it_says(names: dict[str, Any]) -> None:
    from statecast.testing import run_agent

    async def scenario() -> None:
        planned = await run_agent(names["Planner"](), "Porto")
        assert [stop["minutes"] for stop in planned.state["stops"]] == [30, 45, 30]
        old = await run_agent(names["Shop"](), "more", state={"count": 2, "price": 1.0, "cost": 0.0})
        assert old.state == {"itemCount": 3, "price": 9.5, "total": 28.5}
        researched = await run_agent(names["Researcher"](), "ag-ui")
        assert researched.result == {"hits": 2}
        refused = await run_agent(names["Guarded"](), "Porto")
        assert refused.http_status == 401
        known = await run_agent(names["Guarded"](), "Porto", headers={"x-user": "ada"})
        assert known.http_status == 200
        asked = await run_agent(names["Booking"](), "book")
        approved = await asked.resume({"approve": True})
        seated = await approved.resume({"seat": "12A"})
        assert (seated.text, seated.state) == ("Booked.", {"approved": True, "seat": "12A"})
        assert (await asked.resume({"approve": False})).text == "Then not."

    asyncio.run(scenario())


def test_the_test_of_the_readme_passes(names: dict[str, Any]) -> None:
    names["test_planner"]()


def test_the_mounted_apps_of_the_readme_answer(names: dict[str, Any]) -> None:
    import httpx

    async def scenario() -> None:
        for app, path in (
            ("starlette", "/planner"),
            ("fastapi", "/planner"),
            ("mounted", "/planner/"),
            ("single", "/planner"),
        ):
            transport = httpx.ASGITransport(names[app])
            async with (
                names["lifespan"](None),
                httpx.AsyncClient(transport=transport, base_url="http://test") as client,
            ):
                answer = await client.get(path)
                assert answer.status_code == 200, (app, answer.text)
                assert answer.json()["identity"]["name"] == "Planner"

    asyncio.run(scenario())


def test_there_are_exactly_two_commands_for_the_set_up() -> None:
    assert README.count("pip install . && statecast demo") == 1
    assert README.count('pip install -e ".[dev]" && pytest') == 1


def test_the_first_agent_is_served_and_answers_the_curl_line(tmp_path: Path) -> None:
    (tmp_path / "planner.py").write_text(PYTHON[0])
    serve = next(block for block in BASH if block.startswith("statecast serve"))
    curl = next(block for block in BASH if block.startswith("curl"))
    assert serve.split() == [
        "statecast",
        "serve",
        "planner:Planner",
        "--host",
        "0.0.0.0",
        "--port",
        "8000",
        "--workers",
        "4",
    ]
    with spawn("serve", "planner:Planner", cwd=tmp_path) as process:
        command = curl.replace("127.0.0.1:8000", f"127.0.0.1:{process.port}").replace("curl", "curl -s -m 30", 1)
        answer = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=40).stdout
        assert '{"city":"Porto"' in answer
        assert answer.rstrip().splitlines()[-1].startswith('data: {"type":"RUN_FINISHED"')
    shown = subprocess.run(
        [sys.executable, "-m", "statecast.cli", "schema", "planner:Planner"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=40,
    )
    assert json.loads(shown.stdout)["properties"]["city"]["type"] == "string"


def test_the_container_lines_name_what_the_dockerfile_has() -> None:
    dockerfile = (Path(__file__).parent.parent / "Dockerfile").read_text()
    assert "STATECAST_AGENT" in dockerfile
    assert "/app" in dockerfile
    assert "8000" in dockerfile
