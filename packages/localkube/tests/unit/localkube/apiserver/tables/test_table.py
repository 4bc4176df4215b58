"""Tests tables in the format that kubectl prints."""

from datetime import UTC, datetime
from typing import Any

import pytest

from localkube.apiserver import builtin
from localkube.apiserver.model.apierrors import StatusError
from localkube.apiserver.tables import table

NOW = datetime(2026, 1, 1, 1, 0, 0, tzinfo=UTC)
KINDS = {kind.resource.group_resource: kind for kind in builtin.kinds()}


def cells(plural: str, obj: dict[str, Any], *, wide: bool = False) -> list[object]:
    metadata = {"name": "a", "creationTimestamp": "2026-01-01T00:57:00Z"} | obj.get("metadata", {})
    kind = KINDS[plural]
    filled = kind.cells(obj | {"metadata": metadata}, NOW)
    return [cell for cell, column in zip(filled, kind.columns, strict=True) if wide or column.priority == 0]


POD = {
    "spec": {"containers": [{"name": "c"}, {"name": "d"}], "nodeName": "n1"},
    "status": {
        "phase": "Running",
        "podIP": "10.0.0.1",
        "containerStatuses": [
            {"name": "c", "ready": True, "restartCount": 2, "state": {"running": {}},
             "lastState": {"terminated": {"finishedAt": "2026-01-01T00:58:20Z"}}},
            {"name": "d", "ready": False, "restartCount": 0, "state": {"running": {}}},
        ],
    },
}  # fmt: skip

ROWS: list[tuple[str, dict[str, Any], list[object]]] = [
    ("pods", POD, ["a", "1/2", "Running", "2 (100s ago)", "3m"]),
    ("statefulsets.apps", {"spec": {"replicas": 3, "template": {"spec": {}}}, "status": {"readyReplicas": 1}}, ["a", "1/3", "3m"]),
    ("services", {"spec": {"type": "ClusterIP", "clusterIP": "None"}}, ["a", "ClusterIP", "None", "<none>", "<none>", "3m"]),
    ("services", {"spec": {"type": "LoadBalancer", "ports": [{"port": 80, "protocol": "TCP"}]}}, ["a", "LoadBalancer", "<none>", "<pending>", "80/TCP", "3m"]),
    ("configmaps", {"data": {"x": ""}, "binaryData": {"y": ""}}, ["a", 2, "3m"]),
    ("secrets", {"type": "Opaque"}, ["a", "Opaque", 0, "3m"]),
    ("namespaces", {"status": {"phase": "Active"}}, ["a", "Active", "3m"]),
    ("nodes", {"metadata": {"labels": {"node-role.kubernetes.io/worker": ""}}, "spec": {"unschedulable": True}, "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"kubeletVersion": "v1"}}}, ["a", "Ready,SchedulingDisabled", "worker", "3m", "v1"]),
    ("events", {"type": "Normal", "reason": "R", "message": " m\n", "involvedObject": {"kind": "Pod", "name": "p"}, "lastTimestamp": "2026-01-01T00:59:00Z"}, ["60s", "Normal", "R", "pod/p", "m"]),
    ("events.events.k8s.io", {"type": "Normal", "reason": "R", "note": "m", "regarding": {"kind": "Pod", "name": "p"}, "eventTime": "2026-01-01T00:59:00.000000Z"}, ["60s", "Normal", "R", "pod/p", "m"]),
    ("persistentvolumeclaims", {"spec": {"accessModes": ["ReadWriteOnce"]}, "status": {"phase": "Pending"}}, ["a", "Pending", "", "", "", "", "<unset>", "3m"]),
    ("persistentvolumeclaims", {"spec": {"volumeName": "v"}, "status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}}, ["a", "Bound", "v", "1Gi", "RWO", "", "<unset>", "3m"]),
    ("controllerrevisions.apps", {"revision": 4, "metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "controller": True}]}}, ["a", "statefulset.apps/web", 4, "3m"]),
    ("leases.coordination.k8s.io", {"spec": {"holderIdentity": "me"}}, ["a", "me", "3m"]),
    ("endpoints", {"subsets": [{"addresses": [{"ip": f"10.0.0.{i}"} for i in range(5)], "ports": [{"port": 80}]}]}, ["a", "10.0.0.0:80,10.0.0.1:80,10.0.0.2:80 + 2 more...", "3m"]),
    ("customresourcedefinitions.apiextensions.k8s.io", {}, ["a", "2026-01-01T00:57:00Z"]),
]  # fmt: skip


@pytest.mark.parametrize(("plural", "obj", "expected"), ROWS, ids=[plural for plural, _, _ in ROWS])
def test_rows_equal_the_output_of_kubectl(plural: str, obj: dict[str, Any], expected: list[object]) -> None:
    assert cells(plural, obj) == expected


def test_every_kind_can_print_an_empty_object() -> None:
    empty: dict[str, Any] = {"spec": {"template": {"spec": {}}}}
    for plural, kind in KINDS.items():
        assert len(cells(plural, empty, wide=True)) == len(kind.columns)


def test_wide_columns_are_appended() -> None:
    assert cells("pods", POD, wide=True)[5:] == ["10.0.0.1", "n1", "<none>", "<none>"]
    names = [column.name for column in KINDS["pods"].columns]
    assert names == ["Name", "Ready", "Status", "Restarts", "Age", "IP", "Node", "Nominated Node", "Readiness Gates"]


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [(None, "<unknown>"), ("soon", "<unknown>"), ("2026-01-01T00:59:59", "1s"), ("2026-01-01T01:00:05", "<invalid>")],
)
def test_age_is_the_time_since_creation(timestamp: str | None, text: str) -> None:
    assert table.age(timestamp, NOW) == text


def test_table_row_includes_the_requested_object_form() -> None:
    obj = {"metadata": {"name": "a", "resourceVersion": "7"}, "data": {"x": "y"}}
    kind = KINDS["configmaps"]
    found = table.render(kind, [obj], NOW)
    assert found["metadata"] == {"resourceVersion": "7"}
    assert [column["name"] for column in found["columnDefinitions"]] == ["Name", "Data", "Age"]
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
    assert found["rows"] == [{"cells": ["a", 1, "<unknown>"], "object": partial}]
    assert table.render(kind, [obj], NOW, "Object")["rows"][0]["object"] == obj
    assert table.render(kind, [obj], NOW, "None")["rows"][0]["object"] is None
    with pytest.raises(StatusError, match="must be 'Metadata', 'Object', 'None', or empty"):
        table.render(kind, [obj], NOW, "Some")
