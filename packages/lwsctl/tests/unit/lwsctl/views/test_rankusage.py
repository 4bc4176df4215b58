"""Tests the resource usage of ranks from pod metrics to table cells, and the limit of each resource."""

from datetime import UTC, datetime

import pytest
from testkit import objects

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.quantity import parse
from lwsctl.model.groups import Group, Rank, Usage
from lwsctl.model.leaderworkerset import View
from lwsctl.model.usage import limit_of, measured_rank, with_usage
from lwsctl.views.devices import DEVICES, IDLE
from lwsctl.views.rankusage import resources, usage_cells, usage_totals


def metrics(name: str, *usages: JSONObject) -> JSONObject:
    containers = [{"name": f"c{at}", "usage": usage} for at, usage in enumerate(usages)]
    return {"metadata": {"name": name, "namespace": "prod"}, "containers": containers}


def rank(used: JSONObject | None, **annotations: str) -> Rank:
    containers = [{"name": "c0", "resources": {"limits": {"memory": "2Gi"}}}]
    limited = objects.pod(metadata={"annotations": annotations}, spec={"containers": containers})
    unmeasured = Rank(group=0, index=0, pod="web-0", state="Running", object=limited)
    return measured_rank(unmeasured, None if used is None else metrics("web-0", used))


def test_usage_of_a_pod_is_the_sum_of_its_containers() -> None:
    two = metrics("web-0", {"cpu": "250m", "memory": "1Gi"}, {"cpu": "1", "memory": "512Mi"})
    measured = measured_rank(rank(None), two)
    assert measured.usage == {"cpu": Usage(parse("1250m")), "memory": Usage(parse("1536Mi"), parse("2Gi"))}


def test_usage_belongs_to_the_rank_of_each_measured_pod() -> None:
    pods = [{"metadata": {"name": f"web-0-{index}", "namespace": "prod"}} for index in range(2)]
    ranks = [Rank(group=0, index=at, pod=f"web-0-{at}", state="", object=obj) for at, obj in enumerate([*pods, None])]
    group = Group(index=0, ranks=tuple(ranks))
    view = View(name="web", namespace="prod", ready=0, desired=1, up_to_date=0, created="", groups=(group,), object={})
    foreign = metrics("web-0-0", {"cpu": "9"}) | {"metadata": {"name": "web-0-0", "namespace": "test"}}
    (measured,) = with_usage([view], [foreign, metrics("web-0-1", {"cpu": "1"}), metrics("web-0-2", {"cpu": "1"})])
    assert [rank.usage for rank in measured.ranks] == [None, {"cpu": Usage(parse("1"))}, None]


def test_resources_are_those_with_a_value() -> None:
    processors = rank({"cpu": "1", "memory": "1Gi"})
    assert resources([]) == resources([rank(None)]) == ()
    assert resources([rank(None), processors]) == ("cpu", "memory")
    assert len(resources([processors, rank({"nvidia.com/gpu-memory": "1Gi"})])) == 4


def test_cells_show_the_limit_and_how_long_gpus_are_idle() -> None:
    notes = {DEVICES: '{"main": ["GPU-1", "GPU-2"]}', IDLE: '{"GPU-1": "2026-01-01T00:00:00Z"}'}
    used = {"cpu": "1250m", "memory": "1Gi", "nvidia.com/gpu": "870m", "nvidia.com/gpu-memory": "3Gi"}
    busy = rank(used, **notes)
    names, now = resources([busy]), datetime(2026, 1, 1, 0, 5, tzinfo=UTC)
    assert usage_cells(busy, names, now) == ["1.25", "1Gi of 2Gi", "44% of 2 (1 of 2 GPUs idle for 5m)", "3Gi"]
    assert usage_cells(rank(None), names, now) == ["-"] * 4
    assert usage_totals([busy, busy], names) == ["2.50", "2Gi", "1.74", "6Gi"]


@pytest.mark.parametrize(
    ("resources", "most"),
    [
        (({"limits": {"cpu": "2"}}, {"limits": {"cpu": "500m"}}), "2500m"),
        (({"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}, {"requests": {"cpu": "1"}}), "3"),
        (({}, {}), None),
    ],
)
def test_limit_of_a_pod_is_its_limit_or_request(resources: tuple[JSONObject, ...], most: str | None) -> None:
    containers = [{"name": f"c{at}", "resources": one} for at, one in enumerate(resources)]
    assert limit_of(objects.pod(spec={"containers": containers}), "cpu") == (parse(most) if most else None)
