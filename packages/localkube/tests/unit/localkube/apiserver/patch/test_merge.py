"""Tests that merge patches comply with RFC 7386."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from localkube.apiserver.patch import merge

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers(0, 2) | st.lists(st.integers(0, 1), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


@settings(max_examples=40)
@given(OBJECTS, OBJECTS)
def test_merge_patch_is_idempotent(target: dict[str, Any], patch: dict[str, Any]) -> None:
    once = merge.apply(target, patch)
    assert merge.apply(once, patch) == once


@settings(max_examples=40)
@given(OBJECTS)
def test_empty_patch_changes_nothing(target: dict[str, Any]) -> None:
    assert merge.apply(target, {}) == target


def test_examples_of_the_rfc_hold() -> None:
    assert merge.apply({"a": "b"}, {"a": None}) == {}
    assert merge.apply({"a": ["b"]}, {"a": "c"}) == {"a": "c"}
    assert merge.apply({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}) == {"a": {"b": "d"}}
    assert merge.apply({}, {"a": {"bb": {"ccc": None}}}) == {"a": {"bb": {}}}
    assert merge.apply([1], "x") == "x"
