"""From a request's JSON to what a run starts with: the validated input, and the state with what the client holds of it."""

from __future__ import annotations

import copy
import logging
import marshal
from dataclasses import dataclass
from typing import Any

from ag_ui.core import RunAgentInput
from pydantic import ValidationError

from ..errors import StateError
from ..logs import run_ids
from ..state import Document
from ..stream.wire import Fault, WireError, faults_of, read_input
from .problem import Problem
from .service import Service

__all__ = ["Prepared", "invalid", "prepare"]

logger = logging.getLogger("statecast.server")

_ABSENT: Any = object()


@dataclass(frozen=True)
class Prepared:
    """What a run starts with.

    Attributes:
        input: the input, without what the protocol does not know.
        document: the run's state; its baseline is the state exactly as it arrived (D3).
        warnings: what was dropped from the input, each beginning with a JSON pointer (I2).
    """

    input: RunAgentInput
    document: Document[Any]
    warnings: list[str]


def prepare(service: Service, data: Any, *, debug: bool = False) -> Prepared:
    """Validates an input, already parsed JSON, and makes the state of its run. Takes time with the size of the state.

    An input *carries no state* when `state` is absent or `{}`, which both standard clients send at first, or `null` where
    the type takes no null: then `initial_state` gives the value. What `load_state` returns is taken in the same way, so it
    can drop a state by returning `{}`. It is believed: what a client may not say is taken out before, and `ReadOnly`
    members that are then missing come from `initial_state`.

    Args:
        debug: the document checks itself, and messages of the author's own validators may name what they refused.

    Raises:
        Problem: 422, with a pointer to each fault.
        StateError: `initial_state` returned what cannot be a state.
    """
    try:
        given, warnings = read_input(data, debug=debug)
    except WireError as error:
        raise invalid(error.faults) from None
    token = run_ids.set((given.thread_id, given.run_id))
    try:
        return Prepared(given, _document(service, data.get("state", _ABSENT), debug=debug), warnings)
    finally:
        run_ids.reset(token)


def _document(service: Service, arrived: Any, *, debug: bool) -> Document[Any]:
    """The state of a run, and what its client holds of it."""
    baseline = {} if arrived is _ABSENT else arrived
    kind = service.state_type
    loaded = arrived if _carries_none(service, arrived) else _load(service, kind.strip(arrived), debug=debug)
    if _carries_none(service, loaded):
        return Document(_initial_state(service), type=kind, baseline=baseline, debug=debug)
    if kind.has_read_only:
        loaded = kind.fill(loaded, _initial_state(service))
    try:
        return Document(kind.validate(loaded), type=kind, baseline=baseline, debug=debug)
    except ValidationError as error:
        raise invalid(faults_of(error, loaded, at="/state", debug=debug)) from None
    except StateError as error:
        # A reason that has a cause tells what the author's own code said of the input.
        message = error.reason if debug or error.__cause__ is None else "This cannot be written as JSON"
        raise invalid([Fault(f"/state{error.pointer}", message, "state")]) from None


def invalid(found: list[Fault]) -> Problem:
    """The problem that an input with these faults is."""
    errors = [{"pointer": fault.pointer, "message": fault.message, "type": fault.type} for fault in found]
    return Problem(422, "The run input is not valid.", errors=errors)


def _carries_none(service: Service, state: Any) -> bool:
    if state is None:
        return not service.state_type.accepts_null
    return state is _ABSENT or (isinstance(state, dict) and not state)


def _initial_state(service: Service) -> Any:
    # Copied, as an author may return an object that all runs share.
    value = service.initial_state()
    return type(value)() if type(value) in (dict, list) and not value else copy.deepcopy(value)


def _load(service: Service, state: Any, *, debug: bool) -> Any:
    """What `load_state` makes of a state that the client is believed on. An exception there means that it is refused."""
    if not service.loads_state:
        return state
    try:
        return service.load_state(_copied(state))
    except Exception as error:
        logger.warning("%s.load_state refused a state", service.name, exc_info=error)
        message = f"load_state: {type(error).__name__}: {error}" if debug else "this state cannot be loaded"
        raise invalid([Fault("/state", message, "load_state")]) from None


def _copied(state: Any) -> Any:
    """A copy of plain JSON for `load_state` to edit: the baseline stays what arrived. Far faster than `deepcopy`."""
    return marshal.loads(marshal.dumps(state))
