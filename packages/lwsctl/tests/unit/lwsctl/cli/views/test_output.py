"""Tests that tables are aligned, ages have the kubectl format, and documents retain their names."""

from datetime import UTC, datetime

from kuberuntime.objects.quantity import parse
from lwsctl.cli.views import output
from lwsctl.model import groups
from lwsctl.model import leaderworkerset as sets
from lwsctl.views.document import document as build

NOW = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)


def rank(index: int, **changes: object) -> groups.Rank:
    given = {"group": 0, "index": index, "pod": f"web-0-{index}", "state": "Running", "is_ready": True}
    return groups.Rank(**{**given, "created": "2026-01-01T00:00:00Z", **changes})  # type: ignore[arg-type]


def test_reason_column_is_omitted_when_empty() -> None:
    quiet = output.groups([groups.Group(index=0, ranks=(rank(1),))], NOW)
    assert quiet == [
        "GROUP   RANK   POD       STATE     READY   RESTARTS   AGE",
        "0       1      web-0-1   Running   yes     0          60s",
    ]
    telling = output.groups([groups.Group(index=0, ranks=(rank(1, why="no node"), rank(2, is_stub=True)))], NOW)
    assert telling[0].endswith("AGE   WHY")
    assert telling[1].endswith("no node")
    assert "Running (stub)" in telling[2]


def test_wide_table_adds_node_address_and_revision() -> None:
    group = groups.Group(index=0, ranks=(rank(0, node="node-0", address="10.0.0.2"), rank(1)), revision="abc")
    header, leader, worker = output.groups([group], NOW, wide=True)
    assert header.split()[-3:] == ["NODE", "ADDRESS", "REVISION"]
    assert leader.split()[-3:] == ["node-0", "10.0.0.2", "abc"]
    assert worker.split()[-3:] == ["-", "-", "abc"]


def test_wide_table_shows_devices_when_pods_have_any() -> None:
    own = {"metadata": {"annotations": {"localkube.internal/devices": '{"a":["GPU-1","GPU-2"]}'}}}
    group = groups.Group(index=0, ranks=(rank(0, object=own), rank(1)), revision="abc")
    header, leader, worker = output.groups([group], NOW, wide=True)
    assert [line.split()[-1] for line in (header, leader, worker)] == ["DEVICES", "GPU-1,GPU-2", "-"]


def test_wide_table_shows_the_usage_of_measured_ranks() -> None:
    used = {"cpu": groups.Usage(parse("500m")), "nvidia.com/gpu-memory": groups.Usage(parse("3Gi"))}
    group = groups.Group(index=0, ranks=(rank(0, usage=used), rank(1, object={}), rank(2)))
    header, *lines = output.groups([group], NOW, wide=True, usage=["cpu", "nvidia.com/gpu-memory"])
    assert header.endswith("REVISION   CPU    GPU MEMORY")
    assert [line.split()[-2:] for line in lines] == [["0.50", "3Gi"], ["-", "-"], ["-", "-"]]


def test_json_document_has_stable_keys() -> None:
    view = sets.View(
        name="web",
        namespace="default",
        ready=1,
        desired=1,
        up_to_date=1,
        created="2026-01-01T00:00:00Z",
        groups=(groups.Group(index=0, ranks=(rank(0),), revision="abc"),),
        object={"kind": "LeaderWorkerSet"},
    )
    document = build([view])
    assert document["apiVersion"] == "lws/v1"
    (item,) = document["items"]
    assert sorted(item) == ["desired", "groups", "leaderWorkerSet", "ready", "upToDate"]
    assert sorted(item["groups"][0]["ranks"][0]) == sorted(
        ["rank", "pod", "uid", "state", "why", "ready", "restarts", "node", "address", "created", "stub"]
    )
    assert output.sets([view], NOW) == [
        "NAME   READY   DESIRED   UP-TO-DATE   AGE",
        "web    1       1         1            60s",
    ]
    assert output.sets([view], NOW, with_namespace=True)[1].startswith("default     web")
    assert output.as_yaml({"a": [1]}) == "a:\n- 1"
    assert output.as_json({"a": 1}) == '{\n  "a": 1\n}'
