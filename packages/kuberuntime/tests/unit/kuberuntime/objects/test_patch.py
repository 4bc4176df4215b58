"""Tests JSON patches."""

import json
from typing import Any

import jsonpatch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testkit.examples import examples

from kuberuntime.objects.patch import diff, equal

SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", "b/c", "d~e", "~1", "é"])
KEYS = st.sampled_from(["a", "b", "b/c", "d~e", "~1", ""])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=20
)


def strictly(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@given(old=VALUES, new=VALUES)
@settings(max_examples=examples(50))
def test_applied_diff_gives_the_new_value(old: Any, new: Any) -> None:
    patched = jsonpatch.apply_patch(json.loads(json.dumps({"root": old})), diff({"root": old}, {"root": new}))
    assert strictly(patched["root"]) == strictly(new)


def test_removals_follow_the_order_of_the_object() -> None:
    names = [f"name-{number}" for number in range(20)]
    assert [operation["path"] for operation in diff(dict.fromkeys(names), {})] == [f"/{name}" for name in names]


@given(value=VALUES)
@settings(max_examples=50, deadline=None)
def test_equal_values_need_no_patch(value: Any) -> None:
    assert diff(value, json.loads(json.dumps(value))) == []


@pytest.mark.parametrize(
    ("old", "new", "operations"),
    [
        pytest.param({"a": 1}, {"a": 1, "b": 2}, [{"op": "add", "path": "/b", "value": 2}], id="add"),
        pytest.param({"a": 1}, {}, [{"op": "remove", "path": "/a"}], id="remove"),
        pytest.param({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}], id="true is not 1"),
        pytest.param({"a": 1}, {"a": 1.0}, [{"op": "replace", "path": "/a", "value": 1.0}], id="1.0 is not 1"),
        pytest.param({"a/b~c": 1}, {}, [{"op": "remove", "path": "/a~1b~0c"}], id="escaped names"),
        pytest.param(
            [1, 2, 3, 4],
            [1, 9, 4],
            [{"op": "replace", "path": "/1", "value": 9}, {"op": "remove", "path": "/2"}],
            id="the middle of a list",
        ),
        pytest.param(
            {"env": [{"name": "X"}]},
            {"env": [{"name": "A"}, {"name": "X"}]},
            [{"op": "add", "path": "/env/0", "value": {"name": "A"}}],
            id="an entry before others",
        ),
        pytest.param(1, {}, [{"op": "replace", "path": "", "value": {}}], id="the whole document"),
    ],
)
def test_diff_is_minimal(old: Any, new: Any, operations: list[dict[str, Any]]) -> None:
    assert diff(old, new) == operations


def test_equality_compares_types_at_any_depth() -> None:
    assert equal({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]})
    assert not equal({"a": [1]}, {"a": [True]})
    assert not equal([1], [1, 2])
    assert not equal({"a": 1}, {"b": 1})
