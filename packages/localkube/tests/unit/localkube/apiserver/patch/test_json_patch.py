"""Tests JSON patches, and compares their results with the jsonpatch library."""

from typing import Any

import jsonpatch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuberuntime.objects.patch import diff
from localkube.apiserver.model.apierrors import StatusError
from localkube.apiserver.patch import json_patch

KEYS = st.sampled_from(["a", "b", "c/d", "e~f", "0"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=4)
POINTERS = st.lists(KEYS | st.sampled_from(["-", "1", "01"]), min_size=1, max_size=3).map(
    lambda tokens: "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)
)
OPERATIONS = st.one_of(
    st.fixed_dictionaries({"op": st.sampled_from(["add", "replace", "test"]), "path": POINTERS, "value": VALUES}),
    st.fixed_dictionaries({"op": st.just("remove"), "path": POINTERS}),
    st.fixed_dictionaries({"op": st.just("copy"), "path": POINTERS, "from": POINTERS}),
)


@settings(max_examples=40)
@given(DOCUMENTS, DOCUMENTS)
def test_applied_difference_gives_the_new_value(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert json_patch.apply(old, diff(old, new)) == new


@settings(max_examples=40)
@given(DOCUMENTS, OPERATIONS)
def test_result_agrees_with_the_jsonpatch_library(document: dict[str, Any], operation: dict[str, Any]) -> None:
    try:
        expected = jsonpatch.JsonPatch([operation]).apply(document)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError):
        return  # the library fails on some invalid types; the tests below cover this implementation
    try:
        found = json_patch.apply(document, [operation])
    except StatusError:
        # The library accepts `-` and numbers as keys of scalars, and copies beyond the end of a list.
        assert "-" in str(operation) or operation["op"] in {"test", "copy"}
        return
    assert found == expected


def test_apply_leaves_its_input_unchanged() -> None:
    document = {"a": {"b": [1, 2]}}
    json_patch.apply(document, [{"op": "add", "path": "/a/b/-", "value": 3}, {"op": "remove", "path": "/a/b/0"}])
    assert document == {"a": {"b": [1, 2]}}


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "add", "path": "/a/-", "value": 3}, {"a": [1, 2, 3]}),
        ({"op": "add", "path": "", "value": {"x": 1}}, {"x": 1}),
        ({"op": "replace", "path": "/a/1", "value": 5}, {"a": [1, 5]}),
        ({"op": "move", "from": "/a/0", "path": "/b"}, {"a": [2], "b": 1}),
        ({"op": "copy", "from": "/a", "path": "/b"}, {"a": [1, 2], "b": [1, 2]}),
        ({"op": "test", "path": "/a/0", "value": 1}, {"a": [1, 2]}),
    ],
)
def test_operations_change_the_document(operation: dict[str, Any], expected: dict[str, Any]) -> None:
    assert json_patch.apply({"a": [1, 2]}, [operation]) == expected


@pytest.mark.parametrize(
    ("operations", "code", "text"),
    [
        ({"op": "add"}, 400, "a JSON patch must be a list of operations"),
        ([{"op": "add"}], 422, "must have an op and a path"),
        ([{"op": "add", "path": "a", "value": 1}], 422, "does not start with /"),
        ([5], 400, "a JSON patch operation must be an object"),
        ([{"op": "move", "path": "/a"}], 422, "requires a from"),
        ([{"op": "swap", "path": "/a"}], 422, 'unknown JSON patch operation "swap"'),
        ([{"op": "remove", "path": "/x"}], 422, '"x" does not exist'),
        ([{"op": "add", "path": "/a/7", "value": 1}], 422, "index 7 is out of range for a list of 2"),
        ([{"op": "add", "path": "/a/01", "value": 1}], 422, '"01" is not an index of a list'),
        ([{"op": "add", "path": "/a/0/b", "value": 1}], 422, "its parent is 1"),
        ([{"op": "test", "path": "/a/0", "value": True}], 422, "testing /a/0: found 1, expected true"),
        ([{"op": "move", "from": "/a", "path": "/a/0"}], 422, "cannot move /a into itself"),
        ([{"op": "remove", "path": "/a"}] * 10_001, 413, "maximum operations in a JSON patch is 10000"),
    ],
)
def test_inapplicable_operations_are_rejected(operations: Any, code: int, text: str) -> None:
    with pytest.raises(StatusError) as caught:
        json_patch.apply({"a": [1, 2]}, operations)
    assert caught.value.code == code
    assert text in caught.value.message
