"""Tests the objects for each gang scheduler, and the references of pods to them."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.core.gang.coscheduling import COSCHEDULING
from leaderworkerset.core.gang.gate import BUILT_IN
from leaderworkerset.core.gang.native import NATIVE, NATIVE_ALPHA
from leaderworkerset.core.gang.provider import Provider
from leaderworkerset.core.gang.volcano import VOLCANO
from leaderworkerset.core.policies.gang import GangGroup
from leaderworkerset.core.policies.policy import LiveGroup


def requesting(cpu: str, **spec: Any) -> JSONObject:
    """Return a pod template that requests the given amount of CPU."""
    return {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]} | spec}


def group_of(lws: JSONObject, revised: JSONObject | None = None) -> GangGroup:
    """Return the first group of a LeaderWorkerSet."""
    live = LiveGroup(obj=lws, leader=builders.leader_pod(lws, key="rev"), now=builders.NOW)
    return GangGroup(live, leaderworkerset.decode(revised or lws))


def lws_of(size: int = 3, startup: str = "LeaderCreated", annotations: Mapping[str, str] | None = None) -> JSONObject:
    return builders.leaderworkerset_object(
        size=size,
        spec={"startupPolicy": startup},
        template={"workerTemplate": requesting("100m")},
        metadata={"annotations": dict(annotations or {})},
    )


OWNER = {
    "apiVersion": "v1",
    "kind": "Pod",
    "name": "web-0",
    "uid": "uid-of-web-0",
    "controller": True,
    "blockOwnerDeletion": True,
}
LABELS = {labels.NAME: "web", labels.GROUP_INDEX: "0", labels.TEMPLATE_REVISION_HASH: "rev"}


def test_volcano_pod_group_equals_the_contract() -> None:
    """The Volcano PodGroup equals the contract (R-GANG-4, R-GANG-5, R-KQ-111, R-KQ-112)."""
    annotations = {"volcano.sh/task": "a", "scheduling.volcano.sh/queue-name": "q", "other": "b"}

    made = VOLCANO.build(group_of(lws_of(annotations=annotations)), "web-0-rev")

    assert made == {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": "web-0-rev",
            "namespace": "default",
            "labels": LABELS,
            "annotations": {"volcano.sh/task": "a"},
            "ownerReferences": [OWNER],
        },
        "spec": {"minMember": 3, "minResources": {"cpu": "300m"}, "queue": "q"},
    }


@pytest.mark.parametrize(
    ("startup", "annotations", "minimum"),
    [("LeaderCreated", {}, 3), ("LeaderReady", {}, 1), ("LeaderCreated", {labels.EXCLUSIVE_TOPOLOGY: "rack"}, 1)],
    ids=["all at once", "the leader first", "where the leader is"],
)
def test_volcano_minimum_and_resources_cover_existing_pods(
    startup: str, annotations: dict[str, str], minimum: int
) -> None:
    """3 pods with 100m each request 300m in total, under both startup policies (R-KQ-112)."""
    spec = VOLCANO.build(group_of(lws_of(3, startup, annotations)), "g")["spec"]

    assert spec == {"minMember": minimum, "minResources": {"cpu": "300m"}}


def test_leader_template_counts_with_its_own_requests() -> None:
    """The requests of a leader template are counted (R-GANG-5)."""
    lws = builders.leaderworkerset_object(
        size=3, template={"leaderTemplate": requesting("2"), "workerTemplate": requesting("500m")}
    )

    assert VOLCANO.build(group_of(lws), "g")["spec"]["minResources"] == {"cpu": "3"}


def test_older_group_has_the_minimum_of_its_revision() -> None:
    """With the minimum for the new size, a group that is recreated during an update could never start."""
    made = VOLCANO.build(group_of(lws_of(8), lws_of(2)), "g")

    assert made["spec"] == {"minMember": 2, "minResources": {"cpu": "200m"}}


def test_coscheduling_pod_group_equals_the_contract() -> None:
    """The coscheduling PodGroup equals the contract (R-KQ-120)."""
    assert COSCHEDULING.build(group_of(lws_of()), "web-0-a") == {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "web-0-a", "namespace": "default", "labels": LABELS, "ownerReferences": [OWNER]},
        "spec": {"minMember": 3, "minResources": {"cpu": "300m"}},
    }


def test_coscheduling_minimum_is_one_when_workers_wait() -> None:
    """The coscheduling minimum is one if workers wait for their leader (R-KQ-121)."""
    assert COSCHEDULING.build(group_of(lws_of(3, "LeaderReady")), "g")["spec"] == {"minMember": 1}


@pytest.mark.parametrize(
    ("provider", "version", "reference"),
    [
        (NATIVE, "v1beta1", {"workloadRef": {"workloadName": "web-rev-4", "templateName": "group"}}),
        (
            NATIVE_ALPHA,
            "v1alpha2",
            {"podGroupTemplateRef": {"workload": {"workloadName": "web-rev-4", "podGroupTemplateName": "group"}}},
        ),
    ],
    ids=["of Kubernetes 1.37", "of Kubernetes 1.36"],
)
def test_native_objects_equal_the_contract(provider: Provider, version: str, reference: JSONObject) -> None:
    """The controller does not wait for the deletion of a PodGroup that waits for its pods.

    Rules R-KQ-141, R-KQ-142, R-KQ-147, R-KQ-148, N-117-5.
    """
    group = group_of(lws_of(4))
    policy = {"gang": {"minCount": 4}}
    owner = {name: value for name, value in OWNER.items() if name != "blockOwnerDeletion"}

    (workload,) = provider.build_shared(group)

    assert workload == {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": "Workload",
        "metadata": {
            "name": "web-rev-4",
            "namespace": "default",
            "labels": {labels.NAME: "web", labels.TEMPLATE_REVISION_HASH: "rev"},
            "ownerReferences": [meta.controller_reference(group.live.obj)],
        },
        "spec": {
            "controllerRef": {"apiGroup": "leaderworkerset.x-k8s.io", "kind": "LeaderWorkerSet", "name": "web"},
            "podGroupTemplates": [{"name": "group", "schedulingPolicy": policy}],
        },
    }
    assert provider.build(group, "web-0-a") == {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": "PodGroup",
        "metadata": {"name": "web-0-a", "namespace": "default", "labels": LABELS, "ownerReferences": [owner]},
        "spec": {**reference, "schedulingPolicy": policy},
    }


def test_native_groups_have_the_priority_of_their_pods() -> None:
    """The Kubernetes 1.37 scheduler starts a pod only if its priority equals the priority of its PodGroup."""
    group = group_of(
        builders.leaderworkerset_object(template={"workerTemplate": requesting("1", priorityClassName="high")})
    )

    (workload,) = NATIVE.build_shared(group)

    assert NATIVE.build(group, "g")["spec"]["priorityClassName"] == "high"
    assert workload["spec"]["podGroupTemplates"][0]["priorityClassName"] == "high"


@pytest.mark.parametrize(
    ("provider", "link"),
    [
        (VOLCANO, {"metadata": {"annotations": {"scheduling.k8s.io/group-name": "g"}}}),
        (COSCHEDULING, {"metadata": {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}}),
        (NATIVE, {"spec": {"schedulingGroup": {"podGroupName": "g"}}}),
    ],
    ids=lambda one: one.name if isinstance(one, Provider) else "",
)
def test_pods_reference_their_group(provider: Provider, link: JSONObject) -> None:
    """Pods refer to their PodGroup (R-GANG-2, R-KQ-113, R-KQ-120, R-KQ-144)."""
    assert provider.link({}, "g") == link


def test_link_of_the_user_is_kept() -> None:
    """The manager always sets the Volcano annotation, like the Go controller (R-KQ-148, R-GANG-2)."""
    linked = [COSCHEDULING.link({}, "users"), NATIVE.link({}, "users"), VOLCANO.link({}, "users")]

    taken = [one.has_pod_group(pod) for one, pod in zip((COSCHEDULING, NATIVE, VOLCANO), linked, strict=True)]

    assert taken == [True, True, False]
    assert not COSCHEDULING.has_pod_group({})
    assert not NATIVE.has_pod_group({})


@pytest.mark.parametrize("provider", [NATIVE, BUILT_IN], ids=lambda one: one.name)
@pytest.mark.parametrize(
    ("startup", "annotations", "size", "fields"),
    [
        ("LeaderCreated", {}, 2, []),
        ("LeaderReady", {}, 2, ["spec.startupPolicy"]),
        ("LeaderReady", {}, 1, []),
        (
            "LeaderCreated",
            {labels.EXCLUSIVE_TOPOLOGY: "rack"},
            2,
            ["metadata.annotations[leaderworkerset.sigs.k8s.io/exclusive-topology]"],
        ),
    ],
    ids=["all at once", "the leader first", "nobody waits", "where the leader is"],
)
def test_leader_ready_is_rejected_when_all_pods_start_together(
    startup: str, annotations: dict[str, str], size: int, fields: list[str], provider: Provider
) -> None:
    """`LeaderReady` is rejected if all pods must start together (R-KQ-149)."""
    errors = provider.errors(leaderworkerset.decode(lws_of(size, startup, annotations)))

    assert [error.path for error in errors] == fields
    assert all("gang-scheduler: none" in str(error) for error in errors)


@pytest.mark.parametrize(
    ("provider", "field", "is_refused"),
    [
        (COSCHEDULING, "priorityClassName", True),
        (COSCHEDULING, "schedulerName", True),
        (NATIVE, "schedulerName", True),
        (NATIVE, "priorityClassName", True),
        (VOLCANO, "schedulerName", False),
    ],
)
def test_leader_with_a_different_scheduler_is_rejected(provider: Provider, field: str, is_refused: bool) -> None:
    """A leader with a different scheduler or priority is rejected (R-KQ-120, R-KQ-144)."""
    leader = requesting("1", **{field: "other"})
    lws = builders.leaderworkerset_object(template={"leaderTemplate": leader, "workerTemplate": requesting("1")})

    fields = [error.path for error in provider.errors(leaderworkerset.decode(lws))]

    assert fields == ([f"spec.leaderWorkerTemplate.leaderTemplate.spec.{field}"] if is_refused else [])


def test_priority_that_pod_groups_cannot_have_is_rejected() -> None:
    critical = requesting("1", priorityClassName="system-node-critical")
    lws = leaderworkerset.decode(builders.leaderworkerset_object(template={"workerTemplate": critical}))

    (error,) = NATIVE.errors(lws)

    assert error.path == "spec.leaderWorkerTemplate.workerTemplate.spec.priorityClassName"
    assert "system-node-critical" in str(error)
    assert "gang-scheduler: none" in str(error)


def test_volcano_accepts_every_set_and_shares_no_object() -> None:
    assert VOLCANO.errors(leaderworkerset.decode(lws_of())) == ()
    assert VOLCANO.build_shared(group_of(lws_of())) == ()


def test_built_in_gate_builds_no_object() -> None:
    assert BUILT_IN.build(group_of(lws_of()), "g") == {}
    assert BUILT_IN.resources == ()
    assert BUILT_IN.group_objects == ()
    assert BUILT_IN.schedules({})
    assert not BUILT_IN.has_pod_group({})
