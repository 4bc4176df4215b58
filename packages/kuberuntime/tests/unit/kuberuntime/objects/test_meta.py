"""Tests the owners of objects."""

from typing import Any

import pytest

from kuberuntime.objects import meta

OWNER: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0", "uid": "now"}}


@pytest.mark.parametrize(
    ("controller", "expected"),
    [
        (None, False),
        ({}, False),
        ({"uid": "before"}, True),
        ({"uid": "before", "kind": "StatefulSet"}, False),
        ({"uid": "before", "name": "web-1"}, False),
        ({"uid": "before", "controller": False}, False),
    ],
    ids=["nobody's", "its own", "its predecessor's", "another kind's", "another one's", "not controlled"],
)
def test_predecessor_is_recognized_by_name_and_uid(controller: dict[str, Any] | None, *, expected: bool) -> None:
    references = [] if controller is None else [{**meta.controller_reference(OWNER), **controller}]
    obj = {"metadata": {"name": "x", "ownerReferences": references}}

    assert meta.is_of_predecessor(obj, OWNER) is expected


def test_status_is_observed_when_the_generations_are_equal() -> None:
    assert meta.is_observed({"metadata": {"generation": 2}, "status": {"observedGeneration": 2}})
    assert not meta.is_observed({"metadata": {"generation": 2}, "status": {"observedGeneration": 1}})
    assert not meta.is_observed({"metadata": {"generation": 2}})


def test_objects_are_sorted_by_age_and_uncreated_ones_first() -> None:
    found = [
        {"metadata": {"name": name} | ({"creationTimestamp": time} if time else {})}
        for name, time in (
            ("c", "2026-01-01T00:00:01Z"),
            ("b", "2026-01-01T00:00:00Z"),
            ("a", "2026-01-01T00:00:01Z"),
            ("d", ""),
        )
    ]
    assert [meta.name(one) for one in sorted(found, key=meta.by_age)] == ["d", "b", "a", "c"]
    assert meta.creation_timestamp(found[1]) == "2026-01-01T00:00:00Z"
