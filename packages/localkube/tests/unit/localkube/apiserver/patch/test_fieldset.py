"""Tests set operations on field sets, and the field sets of objects."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localkube.apiserver.model.kind import Schema
from localkube.apiserver.patch import fieldset, objectfields
from localkube.apiserver.patch.fieldset import FieldSet, difference, intersection, union
from localkube.apiserver.patch.objectfields import Difference, compare
from localkube.apiserver.types import schemas

POD = schemas.struct_schema("Pod")
FREE = Schema("any")

OBJECTS: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    st.sampled_from("abc"),
    st.recursive(
        st.integers(0, 2), lambda inner: st.dictionaries(st.sampled_from("xyz"), inner, max_size=3), max_leaves=6
    ),
    max_size=3,
)
SETS = OBJECTS.map(lambda obj: fieldset.children(objectfields.all_fields(FREE, obj))) | OBJECTS.map(
    lambda obj: objectfields.applied_fields(POD, {"spec": {"securityContext": obj}})
)


@settings(max_examples=40)
@given(SETS, SETS, SETS)
@pytest.mark.slow
def test_field_sets_obey_the_laws_of_sets(left: FieldSet, right: FieldSet, third: FieldSet) -> None:
    assert union(left, left) == left
    assert union(left, right) == union(right, left)
    assert union(union(left, right), third) == union(left, union(right, third))
    assert intersection(left, right) == intersection(right, left)
    assert difference(left, left) == {}
    assert union(difference(left, right), intersection(left, right)) == left
    assert intersection(difference(left, right), right) == {}


@settings(max_examples=40)
@given(OBJECTS, OBJECTS)
def test_difference_contains_exactly_the_changes(old: dict[str, Any], new: dict[str, Any]) -> None:
    found = compare(FREE, old, new)
    assert (found.added, found.modified, found.removed) == ({}, {}, {}) if old == new else found != Difference()
    back = compare(FREE, new, old)
    assert (back.added, back.removed) == (found.removed, found.added)
    assert intersection(found.added, found.removed) == {}
