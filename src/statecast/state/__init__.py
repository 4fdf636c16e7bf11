"""Tracked JSON values and the RFC 6902 patches that say what changed in them.

Usable alone, without runs or HTTP:

    document = Document({"items": ["a"]}, baseline={"items": ["a"]})
    document.value["items"].append("b")
    document.take().ops     # [{"op": "add", "path": "/items/1", "value": "b"}]
    document.take()         # None: nothing changed since
"""

from __future__ import annotations

from .containers import TrackedDict, TrackedList
from .document import Document
from .merging import update
from .model import State
from .readonly import ReadOnly
from .schema import StateType
from .taken import Delta, Snapshot
from .tracker import MISSING
from .values import decode_json, encode_json

__all__ = [
    "MISSING",
    "Delta",
    "Document",
    "ReadOnly",
    "Snapshot",
    "State",
    "StateType",
    "TrackedDict",
    "TrackedList",
    "decode_json",
    "encode_json",
    "update",
]
