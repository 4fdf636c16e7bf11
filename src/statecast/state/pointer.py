"""JSON pointers (RFC 6901)."""

from __future__ import annotations

from itertools import pairwise

__all__ = ["escape", "join", "refused", "split"]


def escape(token: str) -> str:
    """One token, escaped. Uses the value of a `str` subclass, never its `__str__`."""
    if "~" in token or "/" in token:
        return token.replace("~", "~0").replace("/", "~1")
    return str.__str__(token)


def join(*tokens: str | int) -> str:
    """The pointer of these keys and indices, `""` for none."""
    return "".join(["/" + (escape(token) if isinstance(token, str) else str(int(token))) for token in tokens])


def split(pointer: str) -> list[str]:
    """The tokens of a pointer. Raises `ValueError` for text that is not a pointer."""
    if not pointer:
        return []
    if pointer[0] != "/":
        raise ValueError(f"not a JSON pointer, it must begin with '/': {pointer!r}")
    tokens = pointer[1:].split("/")
    for token in tokens:
        if "~" in token.replace("~0", "").replace("~1", ""):
            raise ValueError(f"not a JSON pointer, '~' must be written '~0': {pointer!r}")
    return [token.replace("~1", "/").replace("~0", "~") for token in tokens]


def refused(pointer: str) -> bool:
    """Known consumers refuse this path: it names `__proto__`, or `prototype` right after `constructor`."""
    if "proto" not in pointer:
        return False
    tokens = split(pointer)
    return "__proto__" in tokens or ("constructor", "prototype") in pairwise(tokens)
