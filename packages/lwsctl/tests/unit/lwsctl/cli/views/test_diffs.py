"""Tests which changes a diff of objects contains, and which it omits."""

from lwsctl.cli.views import diffs


def test_equivalent_values_are_not_a_difference() -> None:
    """A revision contains `metadata: {}` and `resources: {}`, which the applied manifest did not contain."""
    said = {"metadata": {"name": "web", "uid": "1"}, "spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}}
    container = {"name": "a", "resources": {}}
    held = {"metadata": {"name": "web"}, "spec": {"template": {"metadata": {}, "spec": {"containers": [container]}}}}
    assert diffs.unified_diff(diffs.comparable(said), diffs.comparable(held), ("now", "then")) == []


def test_empty_volume_is_a_difference() -> None:
    volumes = [{"name": "cache", "emptyDir": {}}]
    before, after = ({"metadata": {}, "spec": spec} for spec in ({}, {"volumes": volumes}))
    assert "+  - emptyDir: {}" in diffs.unified_diff(
        diffs.comparable(before), diffs.comparable(after), ("before", "after")
    )


def test_diff_ignores_status_and_server_fields() -> None:
    metadata = {"name": "web", "resourceVersion": "7", "managedFields": [], "labels": {"a": "b"}}
    assert diffs.comparable({"metadata": metadata, "status": {"replicas": 1}}) == {
        "metadata": {"name": "web", "labels": {"a": "b"}}
    }
    assert diffs.comparable(None) is None
