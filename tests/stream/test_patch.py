"""Patches are applied as `jsonpatch` applies them, all or nothing (D4)."""

import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statecast.stream.patch import PatchFailed, apply_patch

KEYS = st.sampled_from(["a", "b", "0", "1", "", "x/y", "~", "é"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "s"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=10,
)
TOKENS = st.sampled_from(["a", "b", "0", "1", "2", "-", "", "x~1y", "~0", "01", "é"])
PATHS = st.lists(TOKENS, max_size=4).map(lambda tokens: "".join(f"/{token}" for token in tokens))
WITH_VALUE, WITH_FROM = st.sampled_from(["add", "replace", "test"]), st.sampled_from(["move", "copy"])
OPS = st.one_of(
    st.builds(lambda op, path, value: {"op": op, "path": path, "value": value}, WITH_VALUE, PATHS, JSON),
    st.builds(lambda path: {"op": "remove", "path": path}, PATHS),
    st.builds(lambda op, path, source: {"op": op, "path": path, "from": source}, WITH_FROM, PATHS, PATHS),
)


def reference(document: Any, ops: list[dict[str, Any]]) -> Any:
    try:
        return jsonpatch.apply_patch(document, copy.deepcopy(ops), in_place=False)
    except Exception:
        return PatchFailed


@given(JSON, st.lists(OPS, max_size=5), st.booleans())
def test_D4_a_patch_does_what_jsonpatch_does_or_nothing(document, ops, in_place):
    before, given_ops = copy.deepcopy(document), copy.deepcopy(ops)
    try:
        after = apply_patch(document, ops, in_place=in_place)
    except PatchFailed:
        after = PatchFailed
    assert repr(after) == repr(reference(before, given_ops))
    if after is PatchFailed or not in_place:
        assert repr(document) == repr(before)
    assert ops == given_ops


@pytest.mark.parametrize("in_place", [True, False])
def test_the_event_and_the_document_share_nothing(in_place):
    ops = [{"op": "add", "path": "/a", "value": {"k": 1}}, {"op": "add", "path": "/a/z", "value": 2}]
    after = apply_patch({}, ops, in_place=in_place)
    assert ops[0]["value"] == {"k": 1}
    after["a"]["k"] = 3
    assert ops[0]["value"] == {"k": 1}
