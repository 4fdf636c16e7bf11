"""Where the inspector's page is, and where it is told that the agent is. `tests/browser` looks at it."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount

from live_server import Server, serve
from statecast import Agent, Run

pytest.importorskip("agui_inspector")


class Counter(Agent[dict[str, Any]]):
    async def run(self, run: Run[dict[str, Any]]) -> None:
        run.state["count"] = run.state.get("count", 0) + 1


def told(server: Server, page: str) -> list[tuple[str, str]]:
    """Where the page finds the agent and its capabilities; both are asked for there."""
    reply = server.request("GET", f"{page}/config.json")
    assert reply.status == 200
    assert "script-src 'self'" in reply.headers["content-security-policy"]
    agents = reply.json()["agents"]
    for agent in agents:
        assert server.request("GET", agent["capabilities"]).json()["identity"]["name"] == "Counter"
        assert server.post(path=agent["url"]).status == 200
    return [(agent["url"], agent["capabilities"]) for agent in agents]


@pytest.mark.parametrize("path", ["/", "/agent", "/agents/counter/"])
def test_it_finds_the_agent_where_it_is(path: str) -> None:
    with serve(Counter().app(path=path, inspector=True)) as server:
        assert told(server, "/inspector") == [(path, path)]


@pytest.mark.parametrize("path", ["/", "/agent"])
def test_below_a_mount_it_finds_the_agent_below_it(path: str) -> None:
    app = Counter().app(path=path, inspector=True)
    host = Starlette(routes=[Mount("/{tenant}/tools", app), Mount("/plain", app)])
    with serve(host) as server:
        assert told(server, "/acme/tools/inspector") == [(f"/acme/tools{path}",) * 2]
        assert told(server, "/plain/inspector") == [(f"/plain{path}",) * 2]
        assert server.request("GET", "/inspector").status == 404


def test_behind_a_proxy_that_takes_a_prefix_off_it_finds_the_agent_under_the_prefix() -> None:
    with serve(Counter().app(inspector=True), root_path="/public") as server:
        agents = server.request("GET", "/inspector/config.json").json()["agents"]
        assert [agent["url"] for agent in agents] == ["/public/"]


def test_in_a_fastapi_app() -> None:
    host = FastAPI()
    host.mount("/counter", Counter().app(inspector=True))
    with serve(host) as server:
        assert told(server, "/counter/inspector") == [("/counter/",) * 2]


def test_the_page_is_not_there_unless_it_is_asked_for() -> None:
    with serve(Counter().app()) as server:
        assert server.request("GET", "/inspector").status == 404
        assert server.request("GET", "/inspector/").status == 404
        assert server.request("GET", "/inspector/config.json").status == 404


def test_an_agent_cannot_be_where_the_page_is() -> None:
    with pytest.raises(ValueError, match="/inspector is taken"):
        Counter().app(path="/inspector", inspector=True)
    assert Counter().app(path="/inspector")
