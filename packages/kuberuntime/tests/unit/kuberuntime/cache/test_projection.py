"""Tests that projections keep the declared paths, share strings, and retain values of unexpected types."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testkit.examples import examples

from kuberuntime.cache.projection import (
    DEPTH,
    LARGE,
    LONGEST_PART,
    LONGEST_STRING,
    SHORT_KEY,
    Projection,
    Values,
    build_decoder,
    parse,
)

texts = st.text(max_size=3)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(texts, below, max_size=3),
    max_leaves=20,
)


def test_projection_keeps_declared_paths_and_drops_others() -> None:
    projection = Projection("metadata.labels", "spec.nodeName", "status.conditions[].type")
    obj = {
        "kind": "Pod",
        "metadata": {"name": "a", "labels": {"x": "y"}, "managedFields": [{}], "annotations": {"z": ""}},
        "spec": {"nodeName": "n", "containers": []},
        "status": {"conditions": [{"type": "Ready", "message": "m"}, {}], "hostIP": "1"},
    }

    assert projection(obj) == {
        "kind": "Pod",
        "metadata": {"name": "a", "labels": {"x": "y"}},
        "spec": {"nodeName": "n"},
        "status": {"conditions": [{"type": "Ready"}, {}]},
    }


def test_identifying_metadata_is_always_kept() -> None:
    metadata = {
        "name": "a",
        "namespace": "b",
        "uid": "u",
        "resourceVersion": "7",
        "generation": 2,
        "deletionTimestamp": "t",
        "ownerReferences": [{"kind": "Pod", "uid": "v", "controller": True}],
    }
    obj = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    assert Projection()(obj) == obj


def test_key_with_dots_is_one_step() -> None:
    projection = Projection("metadata.annotations['example.com/a']")
    kept = projection({"metadata": {"annotations": {"example.com/a": "1", "example": {"com/a": "2"}}}})
    assert kept == {"metadata": {"annotations": {"example.com/a": "1"}}}


@pytest.mark.parametrize("value", [None, "text", 3, [], {}])
def test_value_of_a_different_shape_is_kept_unchanged(value: Any) -> None:
    """The error contains the value from the server, so that users can report it."""
    projection = Projection("status.conditions[].type", "spec.a.b")
    assert projection({"status": {"conditions": value}}) == {"status": {"conditions": value}}
    assert projection({"spec": value}) == {"spec": value}


def test_path_above_others_keeps_all_of_them() -> None:
    for paths in (("spec", "spec.a"), ("spec.a", "spec")):
        assert Projection(*paths)({"spec": {"a": 1, "b": 2}}) == {"spec": {"a": 1, "b": 2}}


@pytest.mark.parametrize("text", ["spec.", "spec.containers[0]", "metadata.annotations['']", "a b"])
def test_malformed_path_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="must be a field"):
        parse(text)


@given(st.dictionaries(st.sampled_from(["spec", "status", "metadata"]), values))
@settings(max_examples=examples(20))
def test_decoding_with_a_projection_equals_projecting(obj: dict[str, Any]) -> None:
    projection = Projection("spec.a", "spec['b c'].d", "status.conditions[].type", "status.whole")
    assert projection.decode(msgspec.json.encode(obj)) == projection(obj)


@pytest.mark.parametrize(
    "status", [None, {"conditions": None}, {"conditions": [None]}, {"conditions": {}}, {"conditions": [{"type": 1}]}]
)
def test_decoding_keeps_values_of_a_different_shape(status: Any) -> None:
    projection = Projection("status.conditions[].type")
    assert projection.decode(msgspec.json.encode({"status": status, "spec": 1})) == {"status": status}


def test_projection_is_selected_by_the_identity_of_an_object() -> None:
    decode = build_decoder(lambda obj: Projection("spec") if obj["kind"] == "Pod" else Projection("status"))
    assert decode(b'{"kind": "Pod", "spec": 1, "status": 2}') == {"kind": "Pod", "spec": 1}
    assert decode(b'{"kind": "Node", "spec": 1, "status": 2}') == {"kind": "Node", "status": 2}


@given(values, values)
@settings(max_examples=examples(20))
def test_sharing_with_a_previous_version_changes_no_value(value: Any, last: Any) -> None:
    assert Values().deduplicate({"a": value, "b": 1}, {"a": last, "b": 1}) == {"a": value, "b": 1}


def test_parts_of_a_previous_version_are_reused() -> None:
    last: dict[str, Any] = {"metadata": {"labels": {"a": "b"}, "resourceVersion": "1"}, "status": {"phase": "Pending"}}
    new = {"metadata": {"labels": {"a": "b"}, "resourceVersion": "2"}, "status": {"phase": "Running"}}
    shared = Values().deduplicate(new, last)
    assert shared == new
    assert shared["metadata"]["labels"] is last["metadata"]["labels"]


@given(values)
@settings(max_examples=examples(20))
def test_sharing_texts_changes_no_value(value: Any) -> None:
    assert Values().deduplicate(value) == value


@given(st.dictionaries(st.sampled_from(["spec", "status", "metadata"]), values))
@settings(max_examples=examples(20))
def test_projection_is_idempotent(obj: dict[str, Any]) -> None:
    projection = Projection("spec.a", "status.conditions[].type")
    once = projection(obj)
    assert projection(once) == once


def test_projection_leaves_its_input_unchanged() -> None:
    obj = {"metadata": {"labels": {"a": "b"}}, "spec": {"x": 1}}
    Values().deduplicate(Projection("metadata.labels")(obj))
    assert obj == {"metadata": {"labels": {"a": "b"}}, "spec": {"x": 1}}


def test_deeply_nested_values_are_returned_unchanged() -> None:
    value: Any = "text"
    for _ in range(20 * DEPTH):
        value = [value]
    assert Values().deduplicate(value) == value


def fresh(text: str) -> str:
    """Return an equal string that is a different object, like each string that is decoded from a response."""
    return text.encode().decode()


def test_equal_texts_of_different_objects_are_shared() -> None:
    values = Values()
    objects = [{"metadata": {"labels": {fresh("key" * SHORT_KEY): fresh("value"), "a": str(i)}}} for i in range(2)]
    (one, _), (other, _) = (values.deduplicate(obj)["metadata"]["labels"].items() for obj in objects)
    assert one[0] is other[0]
    assert one[1] is other[1]


def test_equal_short_keys_of_different_objects_are_shared() -> None:
    text = b'{"metadata": {"labels": {"app.kubernetes.io/name": 1}}}'
    (one,), (other,) = (Projection("metadata.labels").decode(text)["metadata"]["labels"] for _ in range(2))
    assert one is other


def test_texts_that_do_not_recur_are_forgotten() -> None:
    values = Values(strings=10)
    for number in range(1000):
        values.share(f"uid-{number}")
        values.share("label")
    assert len(values) <= 20


def test_recurring_text_stays_shared() -> None:
    values = Values(strings=10)
    first = values.share(fresh("label"))
    for number in range(1000):
        values.share(f"uid-{number}")
        assert values.share(fresh("label")) is first


def test_long_texts_are_not_kept() -> None:
    values = Values()
    values.share("x" * (LONGEST_STRING + 1))
    assert len(values) == 0


def test_equal_parts_of_different_objects_are_one() -> None:
    values, ready = Values(), {"conditions": [{"type": "Ready", "status": "True"}]}
    one, other = (values.deduplicate({"metadata": {"name": name}, "status": ready}) for name in "ab")
    assert one["status"]["conditions"] is other["status"]["conditions"]


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), (0, -0.0), ("1", 1), ([], {}), (None, {})])
def test_parts_of_other_types_stay_apart(one: Any, other: Any) -> None:
    values = Values()
    kept = [values.deduplicate({"spec": {"containers": [{"value": value}]}}) for value in (one, other)]
    assert [repr(obj["spec"]["containers"][0]["value"]) for obj in kept] == [repr(one), repr(other)]


@pytest.mark.parametrize("length", [LONGEST_PART + 1, LARGE])
def test_long_parts_are_equal_and_not_held(length: int) -> None:
    part = ["x" * length]
    values = Values()
    assert values.deduplicate({"spec": {"command": part}}) == {"spec": {"command": part}}
    assert len(values) == 0


def test_a_large_part_stays_the_same_object() -> None:
    part = ["x"] * LARGE
    assert Values().deduplicate({"spec": {"command": part}})["spec"]["command"] is part
