"""RFC 6902 patches of state and activities: judged by their structure, applied by `jsonpatch`, all or nothing (D4, D5)."""

from __future__ import annotations

import re
from typing import Any

import jsonpatch

__all__ = ["PatchFailed", "apply_patch", "ends_as_object", "malformed"]

_POINTER = re.compile(r"(/([^/~]|~[01])*)*")
_MEMBERS = {"add": "value", "replace": "value", "test": "value", "move": "from", "copy": "from", "remove": "path"}


class PatchFailed(ValueError):
    """A well-formed patch does not fit the document."""


def malformed(ops: Any) -> str | None:
    """Why a patch is not one (D5), or `None`. Members that an operation does not define are legal."""
    if not isinstance(ops, list):
        return "a patch is a list of operations"
    for index, op in enumerate(ops):
        if not isinstance(op, dict) or not isinstance(op.get("op"), str):
            return f"operation {index} is no object with an `op`"
        needed = _MEMBERS.get(op["op"])
        if needed is None:
            return f"operation {index} is unknown to RFC 6902"
        if needed not in op:
            return f"operation {index} ({op['op']}) has no `{needed}`"
        for name in ("path", "from") if needed == "from" else ("path",):
            if not isinstance(op.get(name), str) or not _POINTER.fullmatch(op[name]):
                return f"the `{name}` of operation {index} is no JSON pointer"
    return None


def ends_as_object(ops: list[dict[str, Any]]) -> bool:
    """Whether a patch of an object leaves an object, as far as the patch alone can tell (A2)."""
    for op in reversed(ops):
        if op["path"] == "" and op["op"] in ("add", "replace", "remove"):
            return isinstance(op.get("value"), dict) and op["op"] != "remove"
    return True


def apply_patch(document: Any, ops: list[dict[str, Any]], *, in_place: bool = False) -> Any:
    """The document with a patch applied, all or nothing (D4). Shares nothing with the patch.

    Args:
        in_place: change `document` itself, which costs what the patch costs and not what the document does. Use what is
            returned all the same: the root may be another.

    Raises:
        PatchFailed: an operation does not fit; the document is as it was.
    """
    try:
        return jsonpatch.JsonPatch(ops).apply(document, in_place=in_place, atomic=in_place)
    except Exception as error:
        # Besides its own exceptions the library lets some TypeErrors and others through, for odd documents.
        raise PatchFailed(f"{type(error).__name__}: {error}") from None
