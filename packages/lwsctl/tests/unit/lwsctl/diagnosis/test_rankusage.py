"""Tests the resource usage of ranks from pod metrics to table cells, and the limit of each resource."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.quantity import parse
from lwsctl.diagnosis.rankusage import RankLoad, bound, by_pod, cells, columns, loads, measured, sums
from lwsctl.model.groups import Group, Rank
from lwsctl.model.leaderworkerset import View
from lwsctl.views.devices import DEVICES, IDLE


def metrics(name: str, *usages: JSONObject) -> JSONObject:
    containers = [{"name": f"c{at}", "usage": usage} for at, usage in enumerate(usages)]
    return {"metadata": {"name": name, "namespace": "prod"}, "containers": containers}


def pod(*resources: JSONObject) -> JSONObject:
    return {"spec": {"containers": [{"name": f"c{at}", "resources": one} for at, one in enumerate(resources)]}}


def test_usage_of_a_pod_is_the_sum_of_its_containers() -> None:
    used = by_pod([metrics("web-0", {"cpu": "250m", "memory": "1Gi"}, {"cpu": "1", "memory": "512Mi"})])
    assert used == {ObjectKey("prod", "web-0"): {"cpu": parse("1250m"), "memory": parse("1536Mi")}}


def test_loads_leave_out_ranks_without_a_pod() -> None:
    ranks = tuple(Rank(group=0, index=at, pod=f"web-0-{at}", state="Running", object={}) for at in range(3))
    group = Group(index=0, ranks=(*ranks[:2], replace(ranks[2], object=None)))
    view = View(name="web", namespace="prod", ready=0, desired=1, up_to_date=0, created="", groups=(group,), object={})
    rows = loads([view], by_pod([metrics("web-0-1", {"cpu": "1"})]))
    assert [(row.rank.place, row.used) for row in rows] == [("0/0", None), ("0/1", {"cpu": parse("1")})]


def row(used: JSONObject | None, **annotations: str) -> RankLoad:
    limited = pod({"limits": {"memory": "2Gi"}}) | {"metadata": {"annotations": annotations}}
    view = View(name="web", namespace="prod", ready=0, desired=1, up_to_date=0, created="", groups=(), object={})
    rank = Rank(group=0, index=0, pod="web-0", state="Running", object=limited)
    return RankLoad(view, rank, None if used is None else by_pod([metrics("web-0", used)])[ObjectKey("prod", "web-0")])


def test_measured_resources_are_those_with_a_value() -> None:
    processors = row({"cpu": "1", "memory": "1Gi"})
    assert measured([]) == measured([row(None)]) == ()
    assert measured([row(None), processors]) == ("cpu", "memory")
    assert len(measured([processors, row({"nvidia.com/gpu-memory": "1Gi"})])) == 4


def test_cells_show_the_bound_and_how_long_gpus_are_idle() -> None:
    notes = {DEVICES: '{"main": ["GPU-1", "GPU-2"]}', IDLE: '{"GPU-1": "2026-01-01T00:00:00Z"}'}
    used = {"cpu": "1250m", "memory": "1Gi", "nvidia.com/gpu": "870m", "nvidia.com/gpu-memory": "3Gi"}
    busy = row(used, **notes)
    names, now = measured([busy]), datetime(2026, 1, 1, 0, 5, tzinfo=UTC)
    assert cells(busy, names, now) == ["1.25", "1Gi of 2Gi", "44% of 2 (1 of 2 GPUs idle for 5m)", "3Gi"]
    assert cells(row(None), names, now) == ["-"] * 4
    assert sums([busy, busy], names) == ["2.50", "2Gi", "1.74", "6Gi"]


def test_columns_have_the_cells_of_each_pod() -> None:
    ranks = tuple(Rank(group=0, index=at, pod=f"web-0-{at}", state="Running", object=named(at)) for at in range(2))
    group = Group(index=0, ranks=(*ranks, Rank(group=0, index=2, pod="web-0-2", state="Missing")))
    view = View(name="web", namespace="prod", ready=0, desired=1, up_to_date=0, created="", groups=(group,), object={})
    usage = columns([view], by_pod([metrics("web-0-1", {"cpu": "1", "memory": "1Gi"})]), datetime.now(UTC))
    assert usage.titles == ["CPU", "memory"]
    assert [usage.of(rank) for rank in group.ranks] == [["-", "-"], ["1.00", "1Gi"], ["-", "-"]]


def named(index: int) -> JSONObject:
    return {"metadata": {"name": f"web-0-{index}", "namespace": "prod"}}


@pytest.mark.parametrize(
    ("resources", "most"),
    [
        (({"limits": {"cpu": "2"}}, {"limits": {"cpu": "500m"}}), "2500m"),
        (({"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}, {"requests": {"cpu": "1"}}), "3"),
        (({}, {}), None),
    ],
)
def test_bound_is_the_limit_or_the_request(resources: tuple[JSONObject, ...], most: str | None) -> None:
    assert bound(pod(*resources), "cpu") == (parse(most) if most else None)
