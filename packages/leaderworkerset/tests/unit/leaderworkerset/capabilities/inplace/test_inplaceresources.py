"""Tests the record of in-place resource changes, and the reports of the kubelet (ADR 24)."""

from typing import Any

import pytest
from tests import builders

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.capabilities.inplace import inplacepods, inplaceresources
from leaderworkerset.capabilities.inplace.inplaceresources import ResourceField

CPU, MEMORY = ResourceField("main", "requests", "cpu"), ResourceField("main", "requests", "memory")
LIMIT = ResourceField("main", "limits", "cpu")


def template(**resources: Any) -> JSONObject:
    return {"spec": {"containers": [{"name": "main", "image": "app:1", "resources": resources}]}}


def resized_leader(
    record: str = "", *, spec: str = "1", status: str | None = "1", reason: str = "", ready: bool = True
) -> JSONObject:
    """Return a leader with its requests, the resources in its status, and the reason of a pending resize."""
    annotations = {labels.IN_PLACE_RESOURCES: record} if record else {}
    found = builders.leader_pod(builders.leaderworkerset_object(), annotations=annotations, ready=ready)
    found["spec"]["containers"][0]["resources"] = {"requests": {"cpu": spec}}
    if status is not None:
        found["status"]["containerStatuses"][0]["resources"] = {"requests": {"cpu": status}}
    if reason:
        found["status"]["conditions"].append({"type": "PodResizePending", "status": "True", "reason": reason})
    return found


def test_missing_request_equals_the_limit() -> None:
    before, after = template(limits={"cpu": "1"}), template(limits={"cpu": "2"})
    assert inplaceresources.changed_quantities(before, after) == {LIMIT: "2", CPU: "2"}


def test_other_resources_are_not_a_change() -> None:
    before = template(requests={"cpu": "1000m", "memory": "1Gi"}, limits={"example.com/gpu": "1"})
    assert inplaceresources.changed_quantities(before, template(requests={"cpu": "1", "memory": "2Gi"})) == {
        MEMORY: "2Gi"
    }
    assert inplaceresources.changed_quantities(before, before) == {}


def test_pod_of_a_lost_revision_gets_all_amounts() -> None:
    assert inplaceresources.changed_quantities(None, template(requests={"cpu": "1"})) == {CPU: "1"}


def test_resource_record_round_trips() -> None:
    amounts = {CPU: "2", LIMIT: "3"}
    assert inplaceresources.record(amounts) == "main.limits.cpu=3,main.requests.cpu=2"
    assert inplaceresources.read(resized_leader(inplaceresources.record(amounts))) == amounts


@pytest.mark.parametrize(
    ("found", "due", "settled", "refusal"),
    [
        (resized_leader(), {}, True, ""),
        (resized_leader("main.requests.cpu=2"), {CPU: "2"}, False, ""),
        (resized_leader("main.requests.cpu=2", spec="2"), {}, False, ""),
        (resized_leader("main.requests.cpu=2", spec="2000m", status="2"), {}, True, ""),
        (resized_leader("main.requests.cpu=2", spec="2", reason="Deferred"), {}, False, ""),
        (resized_leader("main.requests.cpu=2", spec="2", reason="Infeasible"), {}, False, "Infeasible"),
        (resized_leader("main.requests.cpu=2", reason="Infeasible"), {CPU: "2"}, False, ""),
        (resized_leader("main.requests.cpu=2", spec="2", status="2", reason="Infeasible"), {}, True, ""),
        (resized_leader("main.requests.cpu=1", spec="9k", reason="Infeasible"), {CPU: "1"}, False, ""),
        (resized_leader("main.requests.cpu=2", status=None), {}, False, inplaceresources.UNSUPPORTED),
        (resized_leader("main.requests.cpu=2", status=None, ready=False), {CPU: "2"}, False, ""),
    ],
    ids=[
        "nothing is recorded", "not written", "not done", "done", "deferred", "infeasible", "infeasible before",
        "it was infeasible", "an infeasible one is taken back", "an older kubelet", "not running yet",
    ],
)  # fmt: skip
def test_pod_is_settled_when_the_kubelet_reports_the_amounts(
    found: JSONObject, due: dict[ResourceField, str], settled: bool, refusal: str
) -> None:
    assert inplaceresources.missing_quantities(found, inplaceresources.read(found)) == due
    assert inplacepods.is_update_complete(found) is inplaceresources.is_resize_complete(found) is settled
    assert inplaceresources.rejection(found) == refusal


def of(template_of_workers: JSONObject, **leader: JSONObject) -> JSONObject:
    return {"leaderWorkerTemplate": {"workerTemplate": template_of_workers} | leader}


WORKERS = "spec.leaderWorkerTemplate.workerTemplate.spec"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (of(template()), of(template()), ""),
        (of(template(requests={"cpu": "1"})), of(template(requests={"cpu": "2", "memory": "1Gi"})), ""),
        (
            of(template(requests={"cpu": "1", "memory": "1"})),
            of(template(requests={"cpu": "1"})),
            f"{WORKERS}.containers[0].resources.requests.memory",
        ),
        (
            of(template()),
            of(template(requests={"cpu": "1"})),
            f"{WORKERS}.containers[0].resources (the quality of service class)",
        ),
        (
            of(template(requests={"cpu": "1"}), leaderTemplate=template(limits={"cpu": "1", "memory": "1Gi"})),
            of(template(requests={"cpu": "1"}), leaderTemplate=template(limits={"cpu": "2", "memory": "1Gi"})),
            "",
        ),
        (
            of(template(requests={"cpu": "1"}), leaderTemplate=template(limits={"cpu": "1", "memory": "1Gi"})),
            of(template(requests={"cpu": "1"}), leaderTemplate=template(limits={"cpu": "2"}, requests={"memory": "1"})),
            "spec.leaderWorkerTemplate.leaderTemplate.spec.containers[0].resources.limits.memory",
        ),
    ],
    ids=["nothing", "more of it", "removed", "another class", "of leaders", "removed from leaders"],
)
def test_resize_that_the_api_server_rejects_is_an_obstacle(old: JSONObject, new: JSONObject, why: str) -> None:
    assert inplaceresources.obstacle(old, new) == why


def test_restart_on_resize_and_pod_level_amounts_are_obstacles() -> None:
    restarted = [template(requests={"cpu": cpu}) for cpu in "12"]
    for one in restarted:
        one["spec"]["containers"][0]["resizePolicy"] = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    assert inplaceresources.obstacle(*map(of, restarted)) == f"{WORKERS}.containers[0].resizePolicy"
    whole = [template(requests={"cpu": cpu}) for cpu in "12"]
    for one in whole:
        one["spec"]["resources"] = {"requests": {"cpu": "4"}}
    assert inplaceresources.obstacle(*map(of, whole)) == f"{WORKERS}.resources"


def test_removing_cpu_and_memory_keeps_the_other_fields() -> None:
    found = template(limits={"cpu": "1", "example.com/gpu": "1"}, requests={"memory": "1Gi"}, claims=[{"name": "a"}])
    bare = {"limits": {"example.com/gpu": "1"}, "requests": {}, "claims": [{"name": "a"}]}
    assert inplaceresources.without_compute_resources(found) == template(**bare)
