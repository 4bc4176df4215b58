"""The use of ranks: from metrics of pods to rows, and the bound of each resource."""

import pytest
from msgspec.structs import replace

from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.quantity import parse
from leaderworkerset.diagnosis.loads import bound, by_pod, loads
from leaderworkerset.views.groups import Group, Rank, View


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
