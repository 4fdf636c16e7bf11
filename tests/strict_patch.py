"""RFC 6902 to the letter, for `add`, `remove` and `replace`: what any other applier may refuse, this one refuses."""

import copy
import re
from typing import Any

INDEX = re.compile(r"0|[1-9][0-9]*")


class Refused(Exception):
    """The operation cannot be applied."""


def apply(document: Any, ops: list[dict[str, Any]]) -> Any:
    """The document after all operations; the given one stays as it is."""
    document = copy.deepcopy(document)
    for op in ops:
        document = _apply_one(document, op)
    return document


def _apply_one(document: Any, op: dict[str, Any]) -> Any:
    kind, path = op["op"], op["path"]
    if kind not in ("add", "remove", "replace") or set(op) != (
        {"op", "path"} | ({"value"} if kind != "remove" else set())
    ):
        raise Refused(f"not an operation: {op}")
    tokens = _split(path)
    if not tokens:
        raise Refused("an operation on the whole document")
    parent = document
    for token in tokens[:-1]:
        parent = _member(parent, token)
    last = tokens[-1]
    value = copy.deepcopy(op.get("value"))
    if isinstance(parent, dict):
        if kind != "add" and last not in parent:
            raise Refused(f"{kind} of a member that is not there: {path!r}")
        if kind == "remove":
            del parent[last]
        else:
            parent[last] = value
    elif isinstance(parent, list):
        index = _index(last, len(parent) + (kind == "add"))
        if kind == "add":
            parent.insert(index, value)
        elif kind == "remove":
            del parent[index]
        else:
            parent[index] = value
    else:
        raise Refused(f"no container at the parent of {path!r}")
    return document


def _split(path: str) -> list[str]:
    if path and path[0] != "/":
        raise Refused(f"not a pointer: {path!r}")
    if re.search("~(?![01])", path):
        raise Refused(f"not a pointer: {path!r}")
    return [token.replace("~1", "/").replace("~0", "~") for token in path.split("/")[1:]]


def _member(value: Any, token: str) -> Any:
    if isinstance(value, dict) and token in value:
        return value[token]
    if isinstance(value, list):
        return value[_index(token, len(value))]
    raise Refused(f"nothing at {token!r}")


def _index(token: str, size: int) -> int:
    if not INDEX.fullmatch(token) or int(token) >= size:
        raise Refused(f"not an index below {size}: {token!r}")
    return int(token)
