"""The command `statecast`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
from pydantic import PydanticUserError

from .demo import Planner
from .loading import LoadError, load_agent, read_env_file
from .server import inspector
from .serving import Serving, serve, serve_agent
from .watch import command as watch_command

__all__ = ["main"]

# `--port` of every command is also STATECAST_PORT, and so on.
_ENVIRONMENT = {"auto_envvar_prefix": "STATECAST", "show_default": True}


def _read_env_file(context: click.Context, option: click.Parameter, path: str | None) -> None:
    if path is not None:
        try:
            read_env_file(path)
        except (OSError, LoadError) as error:
            raise click.ClickException(str(error)) from error


_agent = click.argument("agent", metavar="MODULE:AGENT", envvar="STATECAST_AGENT")
_host = click.option("--host", default="127.0.0.1", help="Address to listen on; 0.0.0.0 for all.")
_port = click.option(
    "--port",
    default=8000,
    type=click.IntRange(0, 65535),
    # The second is what platforms that run containers set.
    envvar=["STATECAST_PORT", "PORT"],
    help="Port; 0 takes a free one. From STATECAST_PORT, else PORT.",
)


@click.group()
@click.version_option(package_name="statecast")
def main() -> None:
    """Serve agents whose state streams itself.

    Every option can be given by an environment variable: --max-runs is STATECAST_MAX_RUNS.
    """


@main.command("serve", context_settings=_ENVIRONMENT)
@_agent
@_host
@_port
@click.option("--path", default="/", help="Where the agent is served.")
@click.option("--workers", default=1, type=click.IntRange(1), help="Processes. --max-runs is for each of them.")
@click.option(
    "--reload", is_flag=True, help="Start again when a file in the working directory changes. For development."
)
@click.option(
    "--debug",
    is_flag=True,
    help="Exception texts reach the client, and the state is checked against a copy at every event: that costs time "
    "proportional to the size of the state for each event, and keeps the state twice.",
)
@click.option(
    "--grace",
    default=5.0,
    type=click.FloatRange(0),
    help="Seconds that a cancelled run has to clean up: the client left, the time limit, shutdown.",
)
@click.option(
    "--timeout", type=click.FloatRange(0, min_open=True), help="Seconds after which a run is cancelled.  [none]"
)
@click.option("--max-runs", type=click.IntRange(1), help="Concurrent runs; more get 503.  [no limit]")
@click.option("--cors", multiple=True, help="An origin whose pages may call the agent. Can be given more than once.")
@click.option(
    "--inspector",
    "with_inspector",
    is_flag=True,
    envvar="STATECAST_INSPECTOR",
    help="Serve a page at /inspector that shows runs live. It has no authentication: for development.",
)
@click.option(
    "--env-file",
    is_eager=True,
    expose_value=False,
    callback=_read_env_file,
    type=click.Path(exists=True, dir_okay=False),
    help="NAME=value lines for the environment; what is set already stays.",
)
def serve_command(with_inspector: bool, **options: Any) -> None:
    """Serve the agent MODULE:AGENT.

    AGENT is an Agent class, an Agent, or a function that returns one. The working directory is searched first. The
    variable STATECAST_AGENT can name it.
    """
    serving = Serving(inspector=with_inspector, **options)

    def announce(address: str) -> None:
        if with_inspector:
            click.echo(f"Inspector: {address}{inspector.PATH}")

    with _one_line():
        serve(serving, announce)


@main.command("demo", context_settings=_ENVIRONMENT)
@_host
@_port
def demo_command(host: str, port: int) -> None:
    """Serve an example agent that plans a city trip. It needs no key and no network."""
    with_inspector = inspector.is_installed()

    def announce(address: str) -> None:
        click.echo(f"\nThe demo agent plans a city trip at {address}\n")
        if with_inspector:
            click.echo(f"Look at it:   {address}{inspector.PATH}")
        else:
            click.echo("Look at it:   pip install 'statecast[inspector]' for a page that shows state and events live")
        body = {
            "threadId": "t1",
            "runId": "r1",
            "protocolVersion": "1.0",
            "messages": [{"id": "m1", "role": "user", "content": Planner.suggestions[0]}],
        }
        click.echo(
            f"Or by hand:   curl -N {address} -H 'Content-Type: application/json' -d '{json.dumps(body)}'\n"
            "Its source:   python -c 'import statecast.demo as d; print(d.__file__)'\n"
        )

    serving = Serving(host=host, port=port, inspector=with_inspector)
    with _one_line():
        serve_agent(Planner(), serving, announce)


@main.command("schema")
@_agent
def schema_command(agent: str) -> None:
    """Print the JSON Schema of the state of MODULE:AGENT, with the names that clients see."""
    with _one_line():
        found = load_agent(agent)
        try:
            schema = found.state_type.json_schema()
        except (TypeError, PydanticUserError) as error:
            raise LoadError(f"the state of {agent} has no JSON Schema: {error}") from error
    click.echo(json.dumps(schema, indent=2, ensure_ascii=False))


main.add_command(watch_command)


@contextmanager
def _one_line() -> Iterator[None]:
    """What is wrong with the agent or an option is one line, not a traceback."""
    try:
        yield
    except LoadError as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main()
