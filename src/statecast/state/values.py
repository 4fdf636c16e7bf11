"""Which Python values are JSON, and how the others become it.

Not covered by pydantic's own inference, for a reason: sets are written sorted, keys that are not strings and numbers that
are not finite are refused instead of written as something else, and a secret is an error instead of asterisks.
"""

from __future__ import annotations

import dataclasses
import json
from collections import deque
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from math import copysign, isfinite
from pathlib import PurePath
from typing import Any
from uuid import UUID

from pydantic import AnyUrl, BaseModel, SecretBytes, SecretStr
from pydantic_core import MultiHostUrl, Url, from_json, to_json, to_jsonable_python

from ..errors import StateError
from . import pointer
from .tracker import Node

__all__ = ["ATOMS", "DEPTH", "IMMUTABLE", "MAPPING", "NODE", "NUMBER", "OPAQUE", "REFUSED", "SAFE", "SEQUENCE", "TUPLE"]
__all__ += ["check", "decode_json", "encode", "immutable", "jsonable", "kind_of", "register", "same"]

DEPTH = 100
"""How many containers may stand inside each other: what comes back must be read again, below the levels of an input."""

ATOMS: frozenset[type] = frozenset({str, int, bool, type(None)})
"""Types whose values are JSON as they are."""

LEAVES = ATOMS | {float}
"""Types of what hangs in a state and holds nothing."""

SAFE = 2**53 - 1
"""The integers up to which JavaScript holds them exactly."""

ATOM, NUMBER, NODE, MAPPING, SEQUENCE, TUPLE, IMMUTABLE, OPAQUE, REFUSED = range(9)

IMMUTABLES: tuple[type, ...] = (
    *(Enum, str, int, float, bytes, date, time, timedelta, UUID, Decimal, PurePath),
    *(IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network),
    *(AnyUrl, Url, MultiHostUrl),
)
MUTABLES: tuple[type, ...] = (BaseModel, set, frozenset, deque, bytearray)

_kinds: dict[type, int] = {**dict.fromkeys(ATOMS, ATOM), float: NUMBER, dict: MAPPING, list: SEQUENCE, tuple: TUPLE}


def kind_of(cls: type) -> int:
    """What is done with values of this type."""
    kind = _kinds.get(cls)
    if kind is None:
        kind = _kinds[cls] = _find_kind(cls)
    return kind


def register(cls: type, kind: int) -> None:
    """Decides for this type."""
    _kinds[cls] = kind


def _find_kind(cls: type) -> int:
    if issubclass(cls, (SecretStr, SecretBytes)):
        return REFUSED
    bases: list[tuple[Any, int]] = [
        (Node, NODE),
        (IMMUTABLES, IMMUTABLE),
        (dict, MAPPING),
        (list, SEQUENCE),
        (tuple, TUPLE),
    ]
    for base, kind in bases:
        if issubclass(cls, base):
            return kind
    if issubclass(cls, MUTABLES) or dataclasses.is_dataclass(cls):
        return OPAQUE
    return REFUSED


def refusal(value: Any) -> str:
    """Says why a value cannot be part of a state, and what to do."""
    name = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    if isinstance(value, (SecretStr, SecretBytes)):
        return f"a {name} must not leave the server: keep it out of the state, or in an excluded field"
    if isinstance(value, type):
        return f"the class {value.__qualname__} is not JSON"
    if callable(value):
        return f"a {name} is not JSON"
    if hasattr(value, "tolist"):
        return f"a {name} is not JSON: use its .tolist()"
    if hasattr(value, "__iter__") or hasattr(value, "__aiter__"):
        return f"a {name} is not JSON: make it a list or a dict first"
    return f"a {name} is not JSON"


def immutable(value: Any) -> Any:
    """JSON of an immutable value that is not JSON itself. Raises `StateError`."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, str):
        # The string's value, not `str(x)`: that is "E.A" for a member of a `str` enumeration.
        return str.__str__(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int.__pos__(value)
    if isinstance(value, float):
        if not isfinite(value):
            raise StateError(f"{float.__repr__(value)} is not JSON")
        return float.__pos__(value)
    if isinstance(value, tuple):
        return [item if type(item) in ATOMS else immutable(item) for item in value]
    if isinstance(value, PurePath):
        return PurePath.__str__(value)
    if kind_of(type(value)) != IMMUTABLE:
        raise StateError(refusal(value))
    try:
        return to_jsonable_python(value)
    except Exception as error:
        raise StateError(f"a {type(value).__qualname__} that pydantic cannot write: {error}") from error


def jsonable(value: Any, path: list[str | int] | None = None) -> Any:
    """JSON of any value that may stand in a state, built anew.

    Args:
        path: where the value stands, for the pointer of errors.

    Raises:
        StateError: it is not JSON, or nested too deeply (so is a cycle).
    """
    path = [] if path is None else path
    cls = type(value)
    if cls in ATOMS:
        return value
    kind = kind_of(cls)
    if len(path) > DEPTH:
        raise _error(f"nested deeper than {DEPTH} levels, or in itself", path)
    if isinstance(value, dict):
        return _object(value, path)
    if isinstance(value, (list, tuple, deque)):
        return _array(value, path)
    if kind in (NUMBER, IMMUTABLE):
        try:
            return immutable(value)
        except StateError as error:
            raise _error(error.reason, path) from error.__cause__
    if isinstance(value, (set, frozenset)):
        return sorted(_array(value, path), key=encode)
    if isinstance(value, Node):
        return _node(value, path)
    if kind != OPAQUE:
        raise _error(refusal(value), path)
    if dataclasses.is_dataclass(value) and not hasattr(value, "__pydantic_serializer__"):
        return _object(_fields(value, path), path)
    return serialized(value, path)


def serialized(value: Any, path: list[str | int]) -> Any:
    """JSON of a pydantic model, dataclass or other object by its own serializer."""
    try:
        serializer = getattr(value, "__pydantic_serializer__", None)
        if serializer is None:
            plain = to_jsonable_python(value)
        else:
            plain = serializer.to_python(value, mode="json", by_alias=True, warnings=False)
    except Exception as error:
        raise _error(f"a {type(value).__qualname__} that pydantic cannot write: {error}", path) from error
    check(plain, path)
    return plain


def check(value: Any, path: list[str | int]) -> None:
    """Raises `StateError` if what a serializer gave is not JSON: not finite, other keys than strings, other types."""
    cls = type(value)
    if cls in ATOMS:
        return
    if len(path) > DEPTH:
        raise _error(f"nested deeper than {DEPTH} levels, or in itself", path)
    if cls is float:
        if not isfinite(value):
            raise _error(f"{value!r} is not JSON", path)
    elif isinstance(value, dict):
        for key, member in value.items():
            path.append(key)
            if not isinstance(key, str):
                raise _error("a key must be a string", path)
            check(member, path)
            path.pop()
    elif isinstance(value, (list, tuple)):
        for index, member in enumerate(value):
            path.append(index)
            check(member, path)
            path.pop()
    else:
        raise _error(refusal(value), path)


def _object(value: dict[Any, Any], path: list[str | int]) -> dict[str, Any]:
    plain = {}
    for key, member in list(value.items()):
        path.append(key)
        if type(key) is not str:
            if not isinstance(key, str):
                raise _error(f"a key must be a string, not {type(key).__qualname__}", path)
            key = str.__str__(key)
        plain[key] = member if type(member) in ATOMS else jsonable(member, path)
        path.pop()
    return plain


def _array(value: Any, path: list[str | int]) -> list[Any]:
    plain = []
    for index, member in enumerate(list(value)):
        path.append(index)
        plain.append(member if type(member) in ATOMS else jsonable(member, path))
        path.pop()
    return plain


def _fields(value: Any, path: list[str | int]) -> dict[str, Any]:
    try:
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    except Exception as error:
        # A field that was never set.
        raise _error(f"a {type(value).__qualname__} that cannot be written: {error}", path) from error


def _node(value: Node, path: list[str | int]) -> Any:
    plain = {}
    raw = dict(value._raw())
    for key, name in (value._names or {}).items():
        if key in raw:
            path.append(name)
            plain[name] = jsonable(raw[key], path)
            path.pop()
    if value._derives:
        plain.update(value._derive())
    return plain


def _error(reason: str, path: list[Any]) -> StateError:
    return StateError(reason, pointer.join(*[key if isinstance(key, (str, int)) else repr(key) for key in path]))


def encode(plain: Any) -> bytes:
    """The JSON text of JSON. ASCII if it holds a lone surrogate, which has no UTF-8 but has an escape."""
    try:
        return to_json(plain)
    except Exception:
        text = json.dumps(plain, ensure_ascii=True, allow_nan=False, check_circular=False, separators=(",", ":"))
        return text.encode()


def decode_json(text: bytes) -> Any:
    """The value of a JSON text that `encode` wrote. pydantic's parser refuses escapes of lone surrogates."""
    try:
        return from_json(text)
    except ValueError:
        return json.loads(text)


def encode_json(value: Any) -> bytes:
    """The JSON text of any value that may stand in a state, tracked or plain.

    Args:
        value: JSON; containers of a state; what pydantic writes as JSON: datetime, UUID, Enum, models, dataclasses, sets, …

    Raises:
        StateError: the value, or something in it at `.pointer`, is not JSON.
    """
    return encode(jsonable(value))


def same(one: Any, two: Any) -> bool:
    """Whether two plain values have the same JSON: `1`, `1.0` and `True` differ, and so do `0.0` and `-0.0`."""
    if one is two:
        return True
    cls = type(one)
    if cls is not type(two):
        return False
    if cls is dict:
        return len(one) == len(two) and all(key in two and same(member, two[key]) for key, member in one.items())
    if cls is list:
        return len(one) == len(two) and all(map(same, one, two))
    if cls is float:
        return bool(one == two) and (one != 0.0 or copysign(1.0, one) == copysign(1.0, two))
    return bool(one == two)
