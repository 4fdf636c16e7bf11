import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statecast.testing.compare import ABSENT, difference

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("one", "other", "pointer"),
    [
        (1, 1.0, ""),
        (1, True, ""),
        (0, False, ""),
        (0.0, -0.0, ""),
        (None, {}, ""),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, "/a/b/1"),
        ({"a/b~c": 1}, {"a/b~c": 2}, "/a~1b~0c"),
        ([1, 2, 3], [1, 3], "/1"),
        ([1], [1, 2], "/1"),
        ([], {}, ""),
    ],
)
def test_the_first_difference_is_named_by_its_pointer(one, other, pointer):
    found = difference(one, other)
    assert found is not None
    assert found[0] == pointer


def test_what_only_one_side_has_is_absent_on_the_other():
    assert difference({"a": None}, {}) == ("/a", None, ABSENT)
    assert difference({}, {"a": None}) == ("/a", ABSENT, None)
    assert difference([1], [1, None]) == ("/1", ABSENT, None)


@given(JSON)
def test_a_value_does_not_differ_from_its_copy_in_another_order(value):
    copied = copy.deepcopy(value)
    assert difference(value, copied) is None
    if isinstance(copied, dict):
        assert difference(value, dict(reversed(copied.items()))) is None


@given(JSON, JSON)
def test_it_agrees_with_the_json_text(one, other):
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (difference(one, other) is None) == same
