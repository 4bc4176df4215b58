"""Tests the conditions of a terminating namespace."""

from collections import Counter

from tests.unit.localkube.controllers.objects import NOW

from kuberuntime.objects.meta import JSONObject
from localkube.controllers.namespaces import with_remaining


def test_remaining_objects_are_counted_and_reported_once() -> None:
    namespace: JSONObject = {"metadata": {"name": "team"}, "status": {"conditions": [{"type": "Other"}]}}
    conditions = with_remaining(namespace, Counter({"pods": 2, "configmaps": 1}), NOW)
    assert conditions == [
        {"type": "Other"},
        {
            "type": "NamespaceContentRemaining",
            "status": "True",
            "reason": "SomeResourcesRemain",
            "message": "Some resources are remaining: configmaps has 1 resource instances, pods has 2 resource instances",
            "lastTransitionTime": "2026-01-01T12:00:00Z",
        },
    ]
    said = namespace | {"status": {"conditions": conditions}}
    assert with_remaining(said, Counter({"pods": 2, "configmaps": 1}), NOW) is None
