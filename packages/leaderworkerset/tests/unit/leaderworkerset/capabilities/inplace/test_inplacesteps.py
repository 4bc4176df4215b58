"""Tests the steps of an in-place group update for each observed state (docs/adr/0024-update-in-place.md)."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests import builders

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, STATEFULSETS
from kuberuntime.plan import Concurrently, Delete, Finally, Patch, flatten
from leaderworkerset.api import labels
from leaderworkerset.capabilities import deciding
from leaderworkerset.capabilities.deciding import reconcile_group as reconcile
from leaderworkerset.capabilities.inplace import inplacegroups, inplacesteps
from leaderworkerset.capabilities.inplace.inplacesteps import STEPS, InPlaceStep, MarkedGroup
from leaderworkerset.core.policies.policy import GroupObjects, LiveGroup

OLD, NEW = builders.leaderworkerset_object(image="app:1"), builders.leaderworkerset_object(image="app:2")
BEFORE, AFTER = builders.key_of(OLD), builders.key_of(NEW)
MARK = {labels.IN_PLACE_REVISION: AFTER, labels.IN_PLACE_STATEFULSET_REVISION: "web-new"}
OWN, HASH = labels.TEMPLATE_REVISION_HASH, labels.STATEFULSET_REVISION


def pod_of_revision(found: JSONObject, *, new: bool, container: str = "runc://a", made_of: str = "") -> JSONObject:
    """Return a pod of either revision. Its container ID is `runc://a` until the container is replaced."""
    revision = {OWN: AFTER if new else BEFORE, HASH: made_of or ("web-new" if new else "web-old")}
    found["metadata"]["labels"] |= revision
    found["spec"]["containers"][0]["image"] = "app:2" if new else "app:1"
    found["status"]["containerStatuses"][0] |= {"containerID": container, "restartCount": int(container != "runc://a")}
    if new:
        found["metadata"]["annotations"][labels.IN_PLACE_BEFORE] = "main=1=runc://a=app:1"
    return found


def group(
    *,
    leader: bool = False,
    worker: bool | None = False,
    held: bool = True,
    key: str = AFTER,
    observed: int = 2,
    mark: str = AFTER,
    **ran: Any,
) -> LiveGroup:
    """Return a marked group with the revisions of its pods and its worker StatefulSet."""
    led = pod_of_revision(
        builders.leader_pod(OLD, annotations=MARK | {labels.IN_PLACE_REVISION: mark, labels.SIZE: "2"}),
        new=leader,
        container=ran.get("leader_ran", "runc://a"),
    )
    workers = builders.worker_statefulset(led, key=key, uid="uid-of-workers-uid-of-web-0")
    workers["metadata"] |= {"generation": 2, "resourceVersion": "5"}
    workers["spec"]["updateStrategy"] = {"type": "OnDelete" if held else "RollingUpdate"}
    workers["status"] |= {"observedGeneration": observed, "updateRevision": "w-new" if key == mark else "w-old"}
    workers["status"]["updatedReplicas"] = ran.get("counted", 1)
    made_of = "w-new" if worker else "w-old"
    members = [] if worker is None else [
        pod_of_revision(builders.worker_pod(led, ready=ran.get("ready", True)), new=worker, container=ran.get("ran", "runc://a"), made_of=made_of)
    ]  # fmt: skip
    return builders.live_group(
        leader=led, obj=NEW, pods=(led, *members), statefulsets=(workers,),
        revisions=(builders.revision(OLD), builders.revision(NEW, number=2)),
    )  # fmt: skip


def resizing(found: LiveGroup, *, spec: str = "1", status: str = "1", reason: str = "") -> LiveGroup:
    """Return a group whose pods should request two CPUs, with the requests in the specs and in the statuses."""
    for one in found.objects.pods:
        one["metadata"]["annotations"][labels.IN_PLACE_RESOURCES] = "main.requests.cpu=2"
        other: JSONObject = {"limits": {"cpu": "4", "memory": "2Gi"}}
        one["spec"]["containers"][0]["resources"] = other | {"requests": {"cpu": spec, "memory": "1Gi"}}
        one["status"]["containerStatuses"][0]["resources"] = other | {"requests": {"cpu": status, "memory": "1Gi"}}
        if reason:
            one["status"]["conditions"].append({"type": "PodResizePending", "status": "True", "reason": reason})
    return found


WALK = {
    InPlaceStep.HOLD: group(key=BEFORE, held=False),
    InPlaceStep.AWAIT_CONTROLLER: group(observed=1),
    InPlaceStep.PATCH_WORKERS: group(),
    InPlaceStep.PATCH_LEADER: group(worker=True),
    InPlaceStep.REFUSE: resizing(group(worker=True, leader=True), spec="2", reason="Infeasible"),
    InPlaceStep.RESIZE: resizing(group(worker=True, leader=True)),
    InPlaceStep.AWAIT_WORKERS: group(worker=True, leader=True),
    InPlaceStep.LET_GO: group(worker=True, leader=True, ran="runc://b"),
    InPlaceStep.AWAIT_LEADER: group(worker=True, leader=True, ran="runc://b", held=False),
    InPlaceStep.DONE: group(worker=True, leader=True, ran="runc://b", leader_ran="runc://b", held=False),
    InPlaceStep.AWAIT_REVISION: replace(group(), revisions=(builders.revision(OLD),)),
}


def taken_back() -> LiveGroup:
    """Return a group that is reverted from an image that cannot be pulled.

    Its container terminated, and has its ID.
    """
    found = group(worker=True, leader=True, key=BEFORE, mark=BEFORE)
    for one in found.objects.pods:
        one["status"]["containerStatuses"][0]["state"] = {"waiting": {"reason": "ImagePullBackOff"}}
    return found


def test_reverted_image_is_patched_and_its_restart_excused() -> None:
    patch = only(taken_back())
    assert (patch.resource, patch.key.name) == (PODS, "web-0-1")
    assert patch.patch["spec"]["containers"] == [{"name": "main", "image": "app:1"}]
    assert patch.patch["metadata"]["annotations"] == {labels.IN_PLACE_BEFORE: "main=1=runc://a=app:1"}


@pytest.mark.parametrize(("step", "observed"), WALK.items(), ids=list(WALK))
def test_each_step_follows_from_the_observed_objects(step: InPlaceStep, observed: LiveGroup) -> None:
    assert inplacesteps.next_step(MarkedGroup(observed)).step is step


def test_every_step_has_a_row_and_an_example() -> None:
    assert {row.step for row in STEPS} == set(InPlaceStep) == set(WALK)


@pytest.mark.parametrize(
    "observed",
    [
        group(worker=None),
        group(worker=True, leader=True, ran="runc://b", ready=False),
        group(worker=None, leader=True),
        group(worker=True, leader=True, ran="runc://b", counted=0),
    ],
    ids=["a worker is missing", "a worker is not ready", "a worker is missing later", "its controller is behind"],
)
def test_step_waits_for_the_workers(observed: LiveGroup) -> None:
    assert inplacesteps.next_step(MarkedGroup(observed)).step is InPlaceStep.AWAIT_WORKERS


def only(observed: LiveGroup) -> Patch:
    (patch,) = flatten(inplacesteps.decide(observed).actions)
    assert isinstance(patch, Patch)
    return patch


def test_worker_statefulset_gets_the_template_without_recreation() -> None:
    patch = only(WALK[InPlaceStep.HOLD])
    own = {"metadata": {"labels": {OWN: AFTER}}}
    images = {"containers": [{"name": "main", "image": "app:2"}]}
    strategy = {"type": "OnDelete", "rollingUpdate": None}
    assert (patch.resource, patch.kind) == (STATEFULSETS, "strategic")
    assert patch.patch["spec"] == {"updateStrategy": strategy, "template": own | {"spec": images}}
    assert patch.patch["metadata"] == own["metadata"] | {"uid": "uid-of-workers-uid-of-web-0", "resourceVersion": "5"}


@pytest.mark.parametrize(
    ("step", "name", "made_of"),
    [(InPlaceStep.PATCH_WORKERS, "web-0-1", "w-new"), (InPlaceStep.PATCH_LEADER, "web-0", "web-new")],
)
def test_pods_get_images_and_labels_of_their_statefulset(step: InPlaceStep, name: str, made_of: str) -> None:
    patch = only(WALK[step])
    assert (patch.resource, patch.kind, patch.key.name) == (PODS, "strategic", name)
    assert patch.patch["spec"] == {"containers": [{"name": "main", "image": "app:2"}]}
    assert patch.patch["metadata"]["labels"] == {OWN: AFTER, HASH: made_of}
    assert patch.patch["metadata"]["annotations"] == {labels.IN_PLACE_BEFORE: "main=1=runc://a=app:1"}
    assert patch.patch["metadata"]["resourceVersion"] == "1"


def test_pod_with_the_new_images_gets_labels_only() -> None:
    observed = group()
    observed.objects.pods[1]["metadata"]["labels"][OWN] = AFTER
    patch = only(observed)
    assert "spec" not in patch.patch
    assert set(patch.patch["metadata"]) == {"uid", "resourceVersion", "labels"}


def test_pod_of_a_lost_revision_gets_all_images() -> None:
    observed = replace(group(), revisions=(builders.revision(NEW),))
    assert only(observed).patch["spec"] == {"containers": [{"name": "main", "image": "app:2"}]}


def test_statefulset_may_replace_pods_again_at_the_end() -> None:
    patch = only(WALK[InPlaceStep.LET_GO])
    assert (patch.resource, patch.kind) == (STATEFULSETS, "merge")
    assert patch.patch["spec"] == {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}}


def sized(image: str, cpu: str) -> JSONObject:
    """Return a LeaderWorkerSet whose pods have these requests."""
    obj = builders.leaderworkerset_object(image=image)
    obj["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": cpu}
    }
    return obj


def test_cpu_and_memory_are_resized_after_the_labels() -> None:
    """The target resources are recorded with the labels, so that they are available after an interruption."""
    old, new = sized("app:1", "1"), sized("app:1", "2")
    observed = resizing(group(key=builders.key_of(new), mark=builders.key_of(new)), status="1")
    for one in (*observed.objects.pods, *observed.objects.statefulsets):
        one["metadata"]["labels"][OWN] = builders.key_of(old if one["kind"] == "Pod" else new)
        one["metadata"].get("annotations", {}).pop(labels.IN_PLACE_RESOURCES, None)
    observed = replace(observed, obj=new, revisions=(builders.revision(old), builders.revision(new, number=2)))
    first, second = flatten(inplacesteps.decide(observed).actions)
    assert isinstance(first, Patch) and isinstance(second, Patch)  # noqa: PT018
    assert first.patch["metadata"]["annotations"] == {labels.IN_PLACE_RESOURCES: "main.requests.cpu=2"}
    assert ("spec" in first.patch, second.subresource, second.kind) == (False, "resize", "strategic")
    resources = {"requests": {"cpu": "2"}}
    assert second.patch["spec"] == {"containers": [{"name": "main", "resources": resources}]}
    assert second.patch["metadata"] == {"uid": observed.objects.pods[1]["metadata"]["uid"]}
    assert "Cannot resize pod web-0-1: {error}" in {event.note for event in second.on_failure}


def test_rejected_resize_is_repeated_only_without_alternative() -> None:
    """After an infeasible request, a quota or a missing permission, the leader is marked.

    The same happens after a report by the kubelet.
    """
    observed = WALK[InPlaceStep.RESIZE]
    (together,) = inplacesteps.decide(observed).actions
    assert isinstance(together, Concurrently)
    (first,), _ = together.sequences
    assert isinstance(first, Finally)
    (mark,) = first.on_rejection
    assert (mark.key.name, mark.patch["metadata"]["annotations"]) == ("web-0", {labels.IN_PLACE_REFUSED: AFTER})
    observed = resizing(group(worker=True, leader=True))
    observed.leader["metadata"]["annotations"][labels.IN_PLACE_REFUSED] = AFTER
    assert inplacesteps.decide(observed).actions == ()
    only_way = NEW | {"metadata": NEW["metadata"] | {"annotations": {labels.IN_PLACE: "Only"}}}
    assert len([*flatten(inplacesteps.decide(replace(observed, obj=only_way)).actions)]) == 2


def test_worker_statefulset_gets_cpu_and_memory() -> None:
    old, new = sized("app:1", "1"), sized("app:1", "2")
    observed = group(key=builders.key_of(old), mark=builders.key_of(new), held=False)
    observed = replace(observed, obj=new, revisions=(builders.revision(old), builders.revision(new, number=2)))
    (container,) = only(observed).patch["spec"]["template"]["spec"]["containers"]
    assert container == {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "2"}}}


def test_missing_resize_of_a_labeled_pod_is_written_again() -> None:
    patches = [one for one in flatten(inplacesteps.decide(WALK[InPlaceStep.RESIZE]).actions) if isinstance(one, Patch)]
    assert [(one.key.name, one.subresource) for one in patches] == [("web-0", "resize"), ("web-0-1", "resize")]


@pytest.mark.parametrize(
    ("way", "said"), [("IfPossible", "its group is recreated"), ("Only", "its group is unchanged")]
)
def test_group_that_cannot_be_resized_is_marked_once(way: str, said: str) -> None:
    observed = resizing(group(worker=True, leader=True), spec="2", reason="Infeasible")
    observed = replace(observed, obj=NEW | {"metadata": NEW["metadata"] | {"annotations": {labels.IN_PLACE: way}}})
    patch = only(observed)
    assert (patch.key.name, patch.patch["metadata"]["annotations"]) == ("web-0", {labels.IN_PLACE_REFUSED: AFTER})
    assert [event.note for event in patch.on_success] == [f"Cannot resize pod web-0, so {said}: Infeasible"]
    observed.leader["metadata"]["annotations"][labels.IN_PLACE_REFUSED] = AFTER
    assert inplacesteps.decide(observed).actions == ()
    assert deciding.describe_group(observed.leader, observed.objects.statefulsets[0]).is_rejected


def test_resource_records_are_removed_at_the_end() -> None:
    observed = resizing(
        group(worker=True, leader=True, ran="runc://b", leader_ran="runc://b", held=False), spec="2", status="2"
    )
    patches = [one for one in flatten(inplacesteps.decide(observed).actions) if isinstance(one, Patch)]
    assert [one.key.name for one in patches] == ["web-0", "web-0-1"]
    gone = {labels.IN_PLACE_RESOURCES: None, labels.IN_PLACE_REFUSED: None}
    assert all(one.patch["metadata"]["annotations"] == gone for one in patches)


@pytest.mark.parametrize(
    "step",
    [
        InPlaceStep.AWAIT_CONTROLLER,
        InPlaceStep.AWAIT_WORKERS,
        InPlaceStep.AWAIT_LEADER,
        InPlaceStep.DONE,
        InPlaceStep.AWAIT_REVISION,
    ],
)
def test_waiting_steps_write_nothing(step: InPlaceStep) -> None:
    assert inplacesteps.decide(WALK[step]).actions == ()


def test_group_without_workers_updates_its_leader_only() -> None:
    alone = group()
    alone.leader["metadata"]["annotations"][labels.SIZE] = "1"
    observed = replace(alone, objects=GroupObjects(pods=(alone.leader,)))
    assert only(observed).key.name == "web-0"
    assert inplacegroups.updating_to(observed.leader, None) == AFTER
    done = pod_of_revision(
        builders.leader_pod(OLD, annotations=MARK | {labels.SIZE: "1"}), new=True, container="runc://b"
    )
    assert inplacegroups.updating_to(done, None) == ""
    assert inplacesteps.decide(replace(observed, leader=done, objects=GroupObjects(pods=(done,)))).actions == ()


def test_step_waits_for_missing_or_earlier_workers() -> None:
    missing = replace(group(), objects=GroupObjects())
    assert inplacesteps.decide(missing).actions == ()
    earlier = group()
    earlier.objects.statefulsets[0]["metadata"]["ownerReferences"][0]["uid"] = "uid-of-another"
    assert inplacesteps.decide(earlier).actions == ()


def test_leader_without_a_mark_is_not_changed() -> None:
    observed = group()
    for name in MARK:
        del observed.leader["metadata"]["annotations"][name]
    assert inplacesteps.decide(observed).actions == ()


@pytest.mark.parametrize(
    ("observed", "is_ready"),
    [
        (WALK[InPlaceStep.DONE], True),
        (WALK[InPlaceStep.AWAIT_LEADER], False),
        (WALK[InPlaceStep.LET_GO], False),
        (group(), False),
    ],
)
def test_group_is_ready_again_when_all_steps_are_done(observed: LiveGroup, is_ready: bool) -> None:
    found = deciding.describe_group(observed.leader, observed.objects.statefulsets[0])
    assert (found.is_leader_ready, found.target_revision) == (is_ready, "" if is_ready else AFTER)


def test_group_is_recreated_when_a_worker_fails_meanwhile() -> None:
    """A second restart is not part of the update (R-POD-4)."""
    observed = WALK[InPlaceStep.AWAIT_LEADER]
    worker = observed.objects.pods[1] | {
        "status": observed.objects.pods[1]["status"] | {"containerStatuses": [{"name": "main", "restartCount": 2}]}
    }
    objects = replace(observed.objects, pods=(observed.leader, worker))
    plan = reconcile(replace(observed, objects=objects))
    assert [str(one.key) for one in plan.actions if isinstance(one, Delete)] == ["default/web-0"]
