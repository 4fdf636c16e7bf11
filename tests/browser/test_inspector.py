"""The inspector in a browser: what a newcomer sees who starts the demo and opens the page.

`STATECAST_SCREENSHOT=examples/inspector.png` takes the README's picture anew.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from interop_support import serving
from packaging_support import ROOT, Served, process
from statecast import Agent, Run
from statecast.demo import STOPS_A_DAY, Planner

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

MESSAGE = Planner.suggestions[0]


@pytest.fixture(scope="module")
def demo(browser: object) -> Iterator[Served]:
    """`statecast demo`, in a process of its own. It needs the browser first: where that is missing nothing starts."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "STATECAST_PORT": "0"}
    with process([sys.executable, "-m", "statecast.cli", "demo"], env=env) as served:
        yield served


@pytest.fixture(scope="module")
def quick(browser: object) -> Iterator[str]:
    """The same agent, in a hurry."""
    with serving(Planner(pace=0.002).app(inspector=True)) as url:
        yield url


def tab(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def state(page: Page) -> Locator:
    return page.get_by_role("region", name="Current state")


def shown_state(page: Page) -> Any:
    return json.loads(state(page).inner_text())


def send(page: Page, text: str) -> None:
    page.get_by_placeholder("Message the agent").fill(text)
    page.get_by_role("button", name="Send message").click()


def wait_for_end(page: Page, runs: int = 1) -> None:
    from playwright.sync_api import expect

    expect(page.get_by_text("Finished", exact=True)).to_have_count(runs, timeout=30_000)


class Stepwise(Agent[dict[str, Any]]):
    """Goes on when it is told to."""

    def __init__(self) -> None:
        self.gates = [threading.Event(), threading.Event()]

    async def run(self, run: Run[dict[str, Any]]) -> None:
        run.state["status"] = "searching"
        await asyncio.to_thread(self.gates[0].wait, 60)
        async with run.text() as text:
            run.state["status"] = "found"
            await text.write("Two of")
            await asyncio.to_thread(self.gates[1].wait, 60)
            await text.write(" them.")


def test_state_and_words_arrive_while_the_run_goes_on(page: Page) -> None:
    from playwright.sync_api import expect

    agent = Stepwise()
    with serving(agent.app(inspector=True)) as url:
        try:
            page.goto(f"{url}inspector")
            tab(page, "State")
            send(page, "Search")
            expect(state(page)).to_contain_text('"status": "searching"')
            expect(page.get_by_text("Streaming", exact=True)).to_be_visible()
            agent.gates[0].set()
            expect(page.get_by_text("Two of", exact=True)).to_be_visible()
            expect(state(page)).to_contain_text('"status": "found"')
            expect(page.get_by_text("Streaming", exact=True)).to_be_visible()
            agent.gates[1].set()
            expect(page.get_by_text("Two of them.", exact=True)).to_be_visible()
            wait_for_end(page)
        finally:
            for gate in agent.gates:
                gate.set()


def test_the_demo_is_a_click_away(page: Page, demo: Served) -> None:
    from playwright.sync_api import expect

    page.goto(f"{demo.url}/inspector")
    tab(page, "State")
    page.get_by_role("button", name=MESSAGE).click()
    expect(state(page)).to_contain_text('"booked": true')
    if picture := os.environ.get("STATECAST_SCREENSHOT"):
        page.screenshot(path=picture)
    wait_for_end(page)

    trip = shown_state(page)
    assert trip["status"] == "ready"
    hours = [stop["hour"] for stop in trip["days"][0]["stops"]]
    assert len(hours) == STOPS_A_DAY
    assert hours == sorted(hours)
    # The state that was sent, and one that each state event made of it.
    events = int((page.locator("[data-family-chip=state]").text_content() or "").removeprefix("State"))
    assert events > STOPS_A_DAY
    expect(page.get_by_role("listbox", name="State history").get_by_role("option")).to_have_count(events + 1)


def test_the_next_message_goes_on_from_the_state_that_the_page_has(page: Page, quick: str) -> None:
    page.goto(f"{quick}inspector")
    tab(page, "State")
    send(page, "Two days in Kyoto")
    wait_for_end(page)
    send(page, "One more day, please")
    wait_for_end(page, 2)
    trip = shown_state(page)
    assert trip["city"] == "Kyoto"
    assert [day["title"] for day in trip["days"]] == ["Day 1", "Day 2"]


def test_the_page_finds_nothing_wrong_with_the_stream(page: Page, quick: str) -> None:
    from playwright.sync_api import expect

    page.goto(f"{quick}inspector")
    send(page, MESSAGE)
    wait_for_end(page)
    expect(page.locator("[data-family-chip=state]")).not_to_have_text("State0")
    expect(page.locator("[data-issues-chip]")).to_have_text("Issues0")


def test_stop_reaches_the_server(page: Page, demo: Served) -> None:
    from playwright.sync_api import expect

    page.goto(f"{demo.url}/inspector")
    tab(page, "State")
    send(page, MESSAGE)
    expect(state(page)).to_contain_text('"status": "searching"')
    before = demo.output.count("Planner: disconnected")
    page.get_by_role("button", name="Stop", exact=True).click()
    demo.wait_for_line("Planner: disconnected", before + 1)


class Counter(Agent[dict[str, Any]]):
    async def run(self, run: Run[dict[str, Any]]) -> None:
        run.state["count"] = run.state.get("count", 0) + 1


def test_below_a_mount_it_talks_to_its_own_agent(page: Page) -> None:
    host = Starlette(
        routes=[
            Mount("/one", Planner().app()),
            Mount("/two", Counter().app(path="/agent", inspector=True)),
        ]
    )
    with serving(host) as url:
        page.goto(f"{url}two/inspector")
        tab(page, "State")
        send(page, "Count")
        wait_for_end(page)
        assert shown_state(page) == {"count": 1}
