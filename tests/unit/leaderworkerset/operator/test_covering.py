"""Drift: what counts as a difference."""

import pytest

from kuberuntime.objects.meta import JSON
from leaderworkerset.operator import covering
from leaderworkerset.operator.operatornames import SPEC_HASH


@pytest.mark.parametrize(
    ("live", "desired", "expected"),
    [
        ({"a": 1, "more": 2}, {"a": 1}, True),
        ({"a": 2}, {"a": 1}, False),
        ({}, {"a": 1}, False),
        ({"a": [{"b": 1, "default": 2}]}, {"a": [{"b": 1}]}, True),
        ({"a": [1, 2]}, {"a": [1]}, False),
        ({"a": [2, 1]}, {"a": [1, 2]}, False),
        ({}, {"a": {}, "b": []}, True),
        ({"a": [{"key": "b"}]}, {"a": [{"key": "b", "value": ""}]}, True),
        ({"a": None}, {"a": {"b": 1}}, False),
        ({"a": True}, {"a": False}, False),
    ],
)
def test_a_live_object_covers_what_is_desired(live: JSON, desired: JSON, expected: bool) -> None:
    assert covering.covers(live, desired) is expected


@pytest.mark.parametrize(
    ("live", "desired", "expected"),
    [
        ([{"name": "a"}, {"name": "b"}], [{"name": "a"}], True),
        ([{"name": "a", "default": 1}], [{"name": "a"}], False),
        ([{"name": "a", "value": 1}], [{"name": "a", "value": 2}], True),
        ([{"verbs": ["get"]}, {"verbs": []}], [{"verbs": ["get"]}], False),
        (["a", "b"], ["a"], False),
    ],
    ids=["foreign", "defaulted", "changed", "rules", "scalars"],
)
def test_lists_that_apply_would_merge_are_replaced(live: list[JSON], desired: list[JSON], expected: bool) -> None:
    """R-OP-25: only lists whose members have keys; apply replaces the others itself."""
    found = covering.replaced({"list": live, "x": 1}, {"list": desired, "x": 2})
    assert found == ({"list": desired} if expected else {})


def test_the_hash_does_not_depend_on_the_order_of_fields() -> None:
    assert covering.digest({"a": 1, "b": 2}) == covering.digest({"b": 2, "a": 1}) != covering.digest({"a": 1})


def test_a_field_that_is_not_desired_any_more_shows_in_the_hash() -> None:
    obj = {"metadata": {"name": "x"}, "spec": {"a": 1, "b": 2}}
    less = covering.stamped({"metadata": {"name": "x"}, "spec": {"a": 1}})
    assert not covering.covers(covering.stamped(obj), less)
    assert SPEC_HASH in less["metadata"]["annotations"]
