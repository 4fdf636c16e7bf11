"""`MODULE:AGENT`, as the command line takes it, and what is wrong with it when it cannot be had."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Any

from starlette.applications import Starlette

from .agent import Agent

__all__ = ["LoadError", "load_agent", "read_env_file"]


class LoadError(Exception):
    """`MODULE:AGENT` names nothing that can be served. The text is for whoever typed it."""


def load_agent(target: str) -> Agent[Any]:
    """The agent that `MODULE:AGENT` names: an instance, a class (made without arguments), or a callable that returns one.

    The working directory comes first on `sys.path`, as for `python -m`.

    Raises:
        LoadError: it cannot be had; when the module cannot be imported, the text names the line of the author's code.
    """
    module_name, colon, names = target.partition(":")
    if not module_name or not names:
        raise LoadError(f"{target!r} must be MODULE:AGENT, such as planner:Planner" + ("" if colon else " (no colon)"))
    here = os.getcwd()
    if sys.path[:1] != [here]:
        sys.path.insert(0, here)
    module = _import(module_name)
    try:
        found = reduce(getattr, names.split("."), module)
    except AttributeError:
        agents = sorted(
            name
            for name, value in vars(module).items()
            if isinstance(value, Agent) or (_is_agent_class(value) and value.__module__ == module.__name__)
        )
        raise LoadError(f"{module_name} has no {names!r}; its agents: {', '.join(agents) or 'none'}") from None
    if isinstance(found, Agent):
        return found
    if isinstance(found, Starlette):
        raise LoadError(f"{target} is an app: serve it with `uvicorn {target}`, or name the agent that it serves")
    if not callable(found) or (isinstance(found, type) and not _is_agent_class(found)):
        raise LoadError(f"{target} is {_a(found)}: name an Agent class, an Agent, or a function that returns one")
    try:
        made = found()
    except Exception as error:
        raise LoadError(f"{target} could not be made without arguments: {_describe(error)}") from error
    if not isinstance(made, Agent):
        raise LoadError(f"{target} returned {_a(made)}, not an Agent")
    return made


def read_env_file(path: str) -> None:
    """Puts the `NAME=value` lines of a file in the environment, where it does not have the name yet.

    Empty lines and lines that begin with `#` say nothing; `export ` before a name and quotes around a value are taken off.

    Raises:
        OSError: the file cannot be read.
        LoadError: a line is not of that form.
    """
    for number, line in enumerate(Path(path).read_text("utf-8").splitlines(), 1):
        text = line.strip().removeprefix("export ")
        if not text or text.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name.isidentifier():
            raise LoadError(f"{path}, line {number}: not NAME=value")
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        os.environ.setdefault(name, value)


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise LoadError(
                f"there is no module {error.name!r} in {os.getcwd()} or among the installed packages"
                + (f": name the module {name[:-3]!r}, not its file" if name.endswith(".py") else "")
            ) from None
        raise LoadError(f"{name} could not be imported: {_describe(error)}") from error
    except (Exception, SystemExit) as error:
        raise LoadError(f"{name} could not be imported: {_describe(error)}") from error


def _describe(error: BaseException) -> str:
    """The error and the line of the author's code, which is the last one outside installed packages, that led to it."""
    said = traceback.format_exception_only(error)[-1].strip()
    if isinstance(error, SyntaxError) and error.filename:
        return f"{said} ({_shown(error.filename)}, line {error.lineno}: {(error.text or '').strip()})"
    ours = os.path.dirname(__file__)
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith((ours, "<frozen"))
    ]
    own = [frame for frame in frames if not _is_installed(frame.filename)] or frames
    if not own:
        return said
    return f"{said} ({_shown(own[-1].filename)}, line {own[-1].lineno}: {own[-1].line})"


def _is_installed(filename: str) -> bool:
    return "site-packages" in filename or filename.startswith(os.path.dirname(os.__file__))


def _shown(filename: str) -> str:
    relative = os.path.relpath(filename)
    return filename if relative.startswith("..") else relative


def _is_agent_class(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Agent) and value is not Agent


def _a(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"of type {type(value).__name__}"
