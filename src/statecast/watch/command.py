"""The command: one run after the other, until nobody asks any more."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Any

import click

from ..testing import BrokenStream, RunResult
from ..testing.inputs import make_input, next_input, resume_entries
from ..testing.live import open_input
from .questions import ask
from .views import View, make_view

__all__ = ["BROKEN", "CANCELLED", "FAILED", "INTERRUPTED", "REFUSED", "STOPPED", "SUCCESS", "command"]

SUCCESS = 0
FAILED = 1
USAGE = 2
INTERRUPTED = 3
CANCELLED = 4
REFUSED = 5
BROKEN = 6
STOPPED = 130

REFRESH_SECONDS = 1 / 12


class MissingExtra(click.ClickException):
    exit_code = USAGE


def _read_headers(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    headers = {}
    for one in given:
        name, colon, value = one.partition(":")
        if not colon or not name.strip():
            raise click.BadParameter(f"{one!r} is not NAME:VALUE")
        headers[name.strip()] = value.strip()
    return headers


def _read_state(context: click.Context, option: click.Parameter, path: str | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        with click.open_file(path, encoding="utf-8") as file:
            return {"state": json.load(file)}
    except OSError as error:
        raise click.BadParameter(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"{path} is not JSON: {error}") from None


@click.command("watch")
@click.argument("url")
@click.argument("message", required=False)
@click.option(
    "--state",
    callback=_read_state,
    metavar="FILE",
    help="A JSON file with the state that the run begins with; - reads it from the standard input.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the events, one JSON object a line, and nothing else.")
@click.option(
    "--header", "headers", multiple=True, callback=_read_headers, metavar="NAME:VALUE", help="Sent with the request."
)
def command(url: str, message: str | None, state: dict[str, Any], as_json: bool, headers: dict[str, str]) -> None:
    """Run the agent at URL and show its state and messages live.

    MESSAGE is what the user says. Questions of the agent are asked on the terminal, and the run goes on with the answers.
    Ctrl-C stops the run.

    \b
    Exit status:
      0    the run succeeded
      1    it failed (RUN_ERROR)
      2    the command line is wrong
      3    it waits for an answer that nobody gave
      4    it was cancelled on the server
      5    the request was refused, or the server cannot be reached
      6    the stream was truncated, or breaks the protocol
      130  stopped by Ctrl-C
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        import httpx  # noqa: F401
        import rich  # noqa: F401
    except ImportError as error:
        raise MissingExtra(f'{error.name} is missing: pip install "statecast[client]"') from None
    if "://" not in url:
        url = f"http://{url}"
    view = make_view(as_json)
    try:
        code = watch(url, make_input(message, **state), view, headers)
    except KeyboardInterrupt:
        view.note("stopped")
        code = STOPPED
    sys.exit(code)


def watch(url: str, sent: dict[str, Any], view: View, headers: Mapping[str, str]) -> int:
    """Runs the agent, asks its questions, and runs it again with the answers. Returns the exit status."""
    import httpx

    held = sent["messages"]
    while True:
        try:
            result = asyncio.run(_run(url, sent, held, view, headers))
        except BrokenStream as error:
            view.note(f"the stream is broken: {error.reason}")
            return BROKEN
        except (httpx.TransportError, httpx.InvalidURL, httpx.TooManyRedirects) as error:
            view.note(f"{url} cannot be reached: {error or type(error).__name__}")
            return REFUSED
        if result.http_status != 200:
            view.note(f"refused with HTTP {result.http_status}: {_problem(result.problem)}")
            return REFUSED
        view.conclude(result)
        if result.outcome != "interrupt":
            return _status(result)
        answers = ask(result.interrupts) if view.can_ask else None
        if answers is None:
            view.note("the run waits for an answer")
            return INTERRUPTED
        resolved, abandoned = answers
        held, sent = next_input(
            messages=result.messages,
            state=result.state,
            resume=resume_entries(resolved, abandoned),
            thread_id=sent["threadId"],
        )


async def _run(
    url: str, sent: dict[str, Any], held: list[dict[str, Any]], view: View, headers: Mapping[str, str]
) -> RunResult:
    async with open_input(url, sent, held, headers=headers) as live:
        if live.http_status != 200:
            return live.result()
        with view.showing(live):
            ticker = asyncio.create_task(_tick(view))
            try:
                async for _ in live:
                    view.payloads(live.payloads)
                    view.events(live.applied)
                    live.forget()
            finally:
                # What nothing was made of: what is unknown, and what broke the stream.
                view.payloads(live.payloads)
                ticker.cancel()
                await asyncio.wait({ticker})
            if not ticker.cancelled():
                ticker.result()
    return live.result()


async def _tick(view: View) -> None:
    while True:
        view.refresh()
        await asyncio.sleep(REFRESH_SECONDS)


def _status(result: RunResult) -> int:
    if result.outcome is None:
        return FAILED
    return CANCELLED if result.outcome == "cancelled" else SUCCESS


def _problem(problem: Any) -> str:
    if not isinstance(problem, dict):
        return str(problem)[:500]
    told = [str(problem.get("detail") or problem.get("title") or "no reason given")]
    errors = problem.get("errors")
    if isinstance(errors, list):
        told += [f"{one.get('pointer')}: {one.get('message')}" for one in errors if isinstance(one, dict)]
    return "\n  ".join(told)
