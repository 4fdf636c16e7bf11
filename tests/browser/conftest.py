"""A real browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")

# It is shown pages of this machine only, and has nothing to tell its makers.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def executable() -> str:
    """The browser. Skips the test where there is none, or no Playwright; fails it where they must be there."""
    found = os.environ.get("STATECAST_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    missing = [] if found else ["no Chromium is installed"]
    if importlib.util.find_spec("playwright") is None:
        missing.append("Playwright is not installed")
    if importlib.util.find_spec("agui_inspector") is None:
        missing.append("the extra inspector is not installed")
    if missing and os.environ.get("STATECAST_REQUIRE_BROWSER") == "1":
        pytest.fail("; ".join(missing), pytrace=False)
    if found is None or missing:
        pytest.skip("; ".join(missing))
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = executable()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Each launch has a new, empty profile.
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=60_000)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A tab. Afterwards: the page logged no error, and asked nobody but the server that it came from."""
    with browser.new_context(viewport={"width": 1280, "height": 800}) as context:
        context.set_default_timeout(20_000)
        page = context.new_page()
        errors: list[str] = []
        hosts: set[str] = set()
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: hosts.add(request.url.split("/")[2]) if "://" in request.url else None)
        yield page
        assert errors == []
        assert len(hosts) == 1
