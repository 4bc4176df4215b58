"""Tests updates in place.

Existing pods receive the new images, and the StatefulSet controller does not delete them (ADR 24).
"""

import pytest
from tests.controlplane import build
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State, revision_of
from tests.integration.clusters.versions import skip_without
from tests.integration.lws.test_rollout import at_least, images, new_worker
from tests.integration.lwsctl.explanations import follow, named, remedy

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import kubernetesfeatures, labels


def in_place(way: str, replicas: int, size: int) -> JSONObject:
    """Return a LeaderWorkerSet that is updated in place."""
    made = lws(replicas=replicas, size=size)
    return made | {"metadata": made["metadata"] | {"annotations": {labels.IN_PLACE: way}}}


def none_is_deleted(state: State) -> None:
    """Assert that no pod is being deleted."""
    assert not [name for name, pod in state.pods.items() if meta.is_deleting(pod)]


@pytest.mark.parametrize("running", ["embedded", *build.CLUSTERS], indirect=True)
async def test_images_change_without_recreating_pods(space: LiveScenario) -> None:
    """At most `maxUnavailable` groups change at a time, and pods match their StatefulSets (R-ARC-4)."""
    before = (await space.bring_up(in_place("Only", replicas=3, size=3))).uids("web")
    space.always(none_is_deleted)
    space.always(at_least(2))
    await space.edit_template(**new_worker())
    state = await space.settled()
    assert state.uids("web") == before
    assert set(images(state).values()) == {"app:2"}
    assert len({revision_of(pod) for pod in state.of("web").values()}) == 1
    for one in state.statefulsets.values():
        status = meta.status(one)
        assert status["currentRevision"] == status["updateRevision"]
        assert status["updatedReplicas"] == status["replicas"] == meta.spec(one)["replicas"]
        rolling = meta.spec(one)["updateStrategy"]
        assert (rolling["type"], rolling["rollingUpdate"].get("partition", 0)) == ("RollingUpdate", 0)
    assert "Updating the group of leader pod web-2 in place" in " ".join(state.notes("GroupsUpdating"))


def sized(cpu: str, image: str = "app:1") -> JSONObject:
    """Return a pod template with these resource requests."""
    template = pod_template(image)
    (container,) = template["spec"]["containers"]
    resources = {"requests": {"cpu": cpu, "memory": "64Mi"}, "limits": {"memory": "128Mi"}}
    return {"spec": template["spec"] | {"containers": [container | {"resources": resources}]}}


def in_place_of(cpu: str, way: str, replicas: int = 2, size: int = 2) -> JSONObject:
    """Return a LeaderWorkerSet that is updated in place, whose pods have these resource requests."""
    return lws(
        replicas=replicas, size=size, annotations={labels.IN_PLACE: way}, template={"workerTemplate": sized(cpu)}
    )


def cpus(state: State) -> set[str]:
    """Return the resource requests of the pods, and the amounts that their kubelets report."""
    pods = state.of("web").values()
    asked = {meta.spec(pod)["containers"][0]["resources"]["requests"]["cpu"] for pod in pods}
    return asked | {meta.status(pod)["containerStatuses"][0]["resources"]["requests"]["cpu"] for pod in pods}


def told_of_resizes(state: State) -> str:
    """Return resize messages from the kubelet or the API server."""
    return " ".join([*state.notes("GroupsUpdating"), *state.notes("FailedUpdate")])


@pytest.mark.parametrize("running", ["embedded", *build.CLUSTERS], indirect=True)
@pytest.mark.parametrize("image", ["app:1", "app:2"], ids=["alone", "with another image"])
async def test_cpu_and_memory_change_without_recreating_pods(space: LiveScenario, image: str) -> None:
    """No pod is deleted, pods match their StatefulSets, and no record remains (R-ARC-4)."""
    before = await space.bring_up(in_place_of("100m", "Only", replicas=3, size=3))
    space.always(none_is_deleted)
    space.always(at_least(2))
    await space.edit_template(workerTemplate=sized("200m", image))
    state = await space.settled()
    assert state.uids("web") == before.uids("web")
    assert (cpus(state), set(images(state).values())) == ({"200m"}, {image})
    for one in state.statefulsets.values():
        status, (container,) = meta.status(one), meta.spec(one)["template"]["spec"]["containers"]
        assert status["currentRevision"] == status["updateRevision"]
        assert container["resources"]["requests"]["cpu"] == "200m"

    def is_forgotten(state: State) -> None:
        assert not [pod for pod in state.pods.values() if labels.IN_PLACE_RESOURCES in meta.annotations(pod)]

    await space.until(is_forgotten)


async def test_group_is_recreated_when_no_node_can_resize_its_pods(
    space: LiveScenario, request: pytest.FixtureRequest
) -> None:
    """The group is recreated as in any other rollout, and the next group waits for it.

    kube-apiserver rejects more than the node has; otherwise the kubelet would call the resize infeasible.
    """
    skip_without(request, kubernetesfeatures.RESIZE_CHECK)
    before = (await space.bring_up(in_place_of("100m", "IfPossible"))).uids("web")
    await space.edit_template(workerTemplate=sized("2k"))

    def is_recreated(state: State) -> None:
        assert "Cannot resize pod web-1" in told_of_resizes(state)
        assert state.uids("web")["web-1"] != before["web-1"]
        assert meta.spec(state.pods["web-1"])["containers"][0]["resources"]["requests"]["cpu"] == "2k"

    assert (await space.until(is_recreated)).uids("web")["web-0"] == before["web-0"]


@remedy("LWS-E097")
async def test_group_keeps_its_pods_when_only_in_place_is_permitted(
    space: LiveScenario, request: pytest.FixtureRequest, code: str
) -> None:
    """An infeasible resize is reported with its pod. The same pods accept different amounts."""
    skip_without(request, kubernetesfeatures.RESIZE_CHECK)
    before = (await space.bring_up(in_place_of("100m", "Only"))).uids("web")
    space.always(none_is_deleted)
    await space.edit_template(workerTemplate=sized("2k"))

    def is_told(state: State) -> None:
        assert "Cannot resize pod web-1" in told_of_resizes(state)

    await space.until(is_told)
    assert (
        "apply different values or the previous values to web; the pods are not recreated"
        in (await named(space, code)).steps
    )
    await space.edit_template(workerTemplate=sized("200m"))
    state = await space.settled()
    assert (state.uids("web"), cpus(state)) == (before, {"200m"})


@remedy("LWS-E096")
async def test_other_changes_recreate_groups_or_hold_the_rollout(space: LiveScenario, code: str) -> None:
    """The error contains the first changed field that is not an image. After a revert, no object differs."""
    before = (await space.bring_up(in_place("Only", replicas=2, size=2))).uids("web")
    await space.edit_template(size=3)
    why = "Cannot update groups in place, so {}: spec.leaderWorkerTemplate.size cannot be changed in a running pod"

    def is_told(state: State) -> None:
        assert why.format("the rollout is blocked") in state.notes("GroupsUpdating")

    assert (await space.until(is_told)).uids("web") == before
    told = await named(space, code)
    assert "stops at group 0, because spec.leaderWorkerTemplate.size changed" in told.sentence
    await follow(space, told, "to recreate such groups")
    state = await space.settled()
    assert not set(state.uids("web").values()) & set(before.values())
    assert len(state.of("web")) == 6
