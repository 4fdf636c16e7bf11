"""Reading what arrives: bytes to JSON, an input or an event to what the protocol describes, faults with JSON pointers.

Unknown material is removed with a warning, at every depth; a known member with a wrong value is a fault (I2, W6). An object
that names a member twice is read as every JSON parser reads it: the last one counts.
"""

from __future__ import annotations

import json
import math
import re
from contextlib import suppress
from typing import Any, get_args

from ag_ui.core import Event, RunAgentInput
from pydantic import TypeAdapter, ValidationError
from pydantic_core import core_schema, from_json

from .shapes import EVENTS, INPUT, MAX_NOTES, UNKNOWN, Fault, Notes, Path, TooMany, pointer_of, printable

__all__ = [
    "PROTOCOL_VERSION",
    "Fault",
    "NotJSON",
    "WireError",
    "faults_of",
    "model_of",
    "read_event",
    "read_input",
    "read_json",
    "version_warning",
]

PROTOCOL_VERSION = "1.0"
MAX_DEPTH = 200
"""Levels of nesting in a body; what is deeper is not read (pydantic's parser has the same limit)."""


class NotJSON(ValueError):
    """The body is not UTF-8, not JSON, or nested too deep to be read."""


class WireError(ValueError):
    """The body is JSON, but not what the protocol describes.

    Attributes:
        faults: what is wrong and where; at most one for each place, never with the values found there.
    """

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(f"{one.pointer or 'the body'}: {one.message}" for one in faults[:5]))
        self.faults = faults


# Bytes to JSON

# Only a number with a long exponent, or with very many digits, can be out of range. In this alphabet each looks the same, and
# looking for it costs a fraction of the parsing.
_DIGITS = bytes.maketrans(b"123456789E", b"000000000e")
_LARGE = (b"e000", b"e+000", b"0" * 200)


def read_json(body: bytes) -> Any:
    """The JSON value of a request body, in UTF-8, with or without a byte order mark.

    Escapes of lone surrogates, which JavaScript writes for half an emoji, are kept as they are.

    Raises:
        NotJSON: the body is not UTF-8, not JSON (`NaN` and `Infinity` included), or too deeply nested.
        WireError: a number is too large.
    """
    body = body.removeprefix(b"\xef\xbb\xbf")
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError:
        value = _read_slowly(body)
    digits = body.translate(_DIGITS)
    if any(large in digits for large in _LARGE):
        faults = [Fault(pointer, "Number is out of range", "finite_number") for pointer in _infinities(value)]
        if faults:
            raise WireError(faults[:MAX_NOTES])
    return value


def _read_slowly(body: bytes) -> Any:
    """Python's own parser, for what pydantic's refuses although it is JSON: escapes of lone surrogates."""
    try:
        value = json.loads(body.decode(), parse_constant=_refuse)
    except RecursionError:
        raise NotJSON(f"nested deeper than {MAX_DEPTH} levels") from None
    except UnicodeDecodeError:
        raise NotJSON("not UTF-8") from None
    except json.JSONDecodeError as error:
        raise NotJSON(f"not JSON: {error.msg} at line {error.lineno} column {error.colno}") from None
    except ValueError as error:
        # An integer with more digits than Python converts, or a constant that JSON does not have.
        raise NotJSON(f"not JSON: {error}") from None
    level, depth = [value], 0
    while level := [inner for one in level for inner in _children(one)]:
        depth += 1
        if depth > MAX_DEPTH:
            raise NotJSON(f"nested deeper than {MAX_DEPTH} levels")
    return value


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _children(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _infinities(value: Any) -> list[str]:
    found: list[str] = []
    stack: list[tuple[Any, Path]] = [(value, None)]
    while stack:
        one, path = stack.pop()
        if isinstance(one, float) and math.isinf(one):
            found.append(pointer_of(path))
        elif isinstance(one, dict):
            stack += [(inner, (path, key)) for key, inner in one.items()]
        elif isinstance(one, list):
            stack += [(inner, (path, index)) for index, inner in enumerate(one)]
    return sorted(found)


# Inputs and events

_event = TypeAdapter[Event](Event)


def read_input(data: Any, *, debug: bool = False) -> tuple[RunAgentInput, list[str]]:
    """A run's input, without what the protocol does not describe (I1 to I3).

    A `null` in an optional place is read as absent; only `state` keeps it (`"state" in input.model_fields_set` tells
    whether there was one). Names are the wire's: `thread_id` is unknown.

    Args:
        data: parsed JSON.
        debug: the faults of an application's own validators are told in full.

    Returns:
        The input, and a warning for everything that was removed, each beginning with a JSON pointer.

    Raises:
        WireError: a required member is missing, or a known one has a wrong value.
    """
    notes = Notes(sent=False)
    clean = _read(INPUT, data, notes)
    try:
        read = RunAgentInput.model_validate(clean, by_alias=True, by_name=False)
    except ValidationError as error:
        raise WireError(faults_of(error, clean, debug=debug, notes=notes)) from None
    warnings = notes.all_warnings()
    if (warning := version_warning(read.protocol_version)) is not None:
        warnings.append(f"/protocolVersion: the client {warning}")
    return read, warnings


def read_event(data: Any) -> tuple[dict[str, Any] | None, list[str]]:
    """An event in wire form, without what the protocol does not describe.

    Args:
        data: parsed JSON.

    Returns:
        The event, or `None` if nothing of it is left; and warnings, each beginning with a JSON pointer or the event type.

    Raises:
        WireError: the event is malformed.
    """
    notes = Notes(sent=True)
    clean = _read(EVENTS, data, notes)
    if clean is UNKNOWN:
        kind = data["type"]
        if not kind:
            raise WireError([Fault("/type", "Input should be the name of an event type", "string_too_short")])
        unknown = kind not in EVENTS.objects
        reason = "the protocol does not describe this event type" if unknown else "it holds a value of an unknown kind"
        return None, [*notes.all_warnings(), f"{printable(kind)}: dropped, {reason}"]
    try:
        _event.validate_python(clean, by_alias=True, by_name=False)
    except ValidationError as error:
        raise WireError(faults_of(error, clean, notes=notes)) from None
    return clean, notes.all_warnings()


def _read(shape: Any, data: Any, notes: Notes) -> Any:
    with suppress(TooMany):
        clean = shape.read(data, notes, None)
    if notes.faults:
        raise WireError(notes.faults)
    return clean


def model_of(event: dict[str, Any]) -> Event:
    """The `ag_ui` model of an event in wire form that `read_event` has read."""
    return _event.validate_python(event, by_alias=True, by_name=False)


_VERSION = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})", re.ASCII)


def version_warning(declared: str | None, ours: str = PROTOCOL_VERSION) -> str | None:
    """What to say of a peer's `protocolVersion`: nothing, unless it is newer than ours or cannot be read (I3)."""
    if declared is None or declared == ours:
        return None
    match = _VERSION.fullmatch(declared)
    if match is None:
        return f"declares a protocol version that cannot be read: {printable(declared)[:40]!r}"
    if tuple(map(int, match.groups())) > tuple(map(int, ours.split("."))):
        return f"speaks protocol {declared}, newer than {ours}: what is new in it is removed"
    return None


# Faults

# Kinds of error whose messages are pydantic's own and hold nothing of the value that was found.
_SAFE = set(get_args(core_schema.ErrorType)) - {
    "value_error",
    "assertion_error",
    "union_tag_invalid",
    "json_invalid",
    "get_attribute_error",
    "iteration_error",
    "mapping_type",
    "bytes_invalid_encoding",
    "date_parsing",
    "date_from_datetime_parsing",
    "time_parsing",
    "datetime_parsing",
    "datetime_object_invalid",
    "datetime_from_date_parsing",
    "time_delta_parsing",
    "timezone_offset",
    "url_parsing",
    "url_syntax_violation",
    "uuid_parsing",
}


def faults_of(
    error: ValidationError, data: Any, *, debug: bool = False, notes: Notes | None = None, at: str = ""
) -> list[Fault]:
    """The faults of a pydantic error, one for each place, named by JSON pointers into `data`.

    Args:
        data: what was validated, as parsed JSON.
        debug: messages that may hold a piece of the input, or that an application's validator wrote, are told in full.
        notes: what stripping changed, so that pointers name places of the body before it.
        at: the pointer of `data` in the body.
    """
    faults = []
    for one in error.errors(include_url=False, include_context=False, include_input=False):
        kind = one["type"]
        message = one["msg"] if debug or kind in _SAFE else "Invalid value"
        faults.append(Fault(at + _pointer(one["loc"], data, kind, notes), message, kind))
    return _merge(faults)


def _pointer(loc: tuple[str | int, ...], data: Any, kind: str, notes: Notes | None) -> str:
    """Walks the data beside `loc`, which also names the branches of unions; those are in no place of the data."""
    path: Path = None
    for position, key in enumerate(loc):
        if isinstance(data, dict) and key in data:
            path, data = (path, key), data[key]
        elif isinstance(data, list) and isinstance(key, int) and key < len(data):
            indexes = notes.indexes.get(id(data)) if notes is not None else None
            path, data = (path, indexes[key] if indexes else key), data[key]
        elif kind == "missing" and position == len(loc) - 1:
            path = (path, key)
    return pointer_of(path)


def _merge(*lists: list[Fault]) -> list[Fault]:
    """One fault for each place, the first that was found.

    Of a value that fits no branch of a union (`str | list[…]`) every branch has something to say: that the whole is of a
    wrong type is noise where a branch found the fault inside it.
    """
    merged: dict[str, Fault] = {}
    for faults in lists:
        for fault in faults:
            merged.setdefault(fault.pointer, fault)
    inside = {pointer[:end] for pointer in merged for end, char in enumerate(pointer) if char == "/"}
    kept = [fault for fault in merged.values() if fault.pointer not in inside or not fault.type.endswith("_type")]
    return kept[:MAX_NOTES]
