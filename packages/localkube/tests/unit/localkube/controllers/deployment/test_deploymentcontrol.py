"""Tests the next step of a Deployment."""

from typing import Any

import pytest
from testkit.objects import merge
from tests.unit.localkube.controllers.deployment.model import Model, build_deployment, image_of, later, rolling, size_of
from tests.unit.localkube.controllers.objects import build_pod, build_template, seconds_ago

from kuberuntime.objects import meta
from kuberuntime.plan import Create, Finally, Patch, Plan
from localkube.controllers.deployment import history


def none_of(image: str) -> Any:
    """Return a function that makes all pods available except pods with one image."""
    return lambda one: 0 if image_of(one) == image else size_of(one)


def annotations(model: Model, image: str) -> dict[str, str]:
    prefix = "deployment.kubernetes.io/"
    (found,) = [meta.annotations(one) for one in model.sets.values() if image_of(one) == image]
    return {name.removeprefix(prefix): value for name, value in found.items()}


def settled(**spec: Any) -> Model:
    model = Model(build_deployment(**spec))
    model.settle()
    return model


def test_new_deployment_creates_a_set_with_all_pods() -> None:
    model = Model(build_deployment({"metadata": {"annotations": {"team": "a", history.REVISION: "7"}}}))
    model.step()
    ((name, replicaset),) = model.sets.items()
    assert model.events == [f"Scaled up replica set {name} from 0 to 4"]
    assert meta.labels(replicaset) == meta.labels(replicaset["spec"]["template"])
    assert meta.labels(replicaset) == replicaset["spec"]["selector"]["matchLabels"]
    assert name == f"web-{meta.labels(replicaset)['pod-template-hash']}"
    assert annotations(model, "v1") == {"desired-replicas": "4", "max-replicas": "5", "revision": "1", "team": "a"}
    assert model.condition("Progressing") == ("True", "NewReplicaSetCreated")
    assert model.condition("Available") == ("False", "MinimumReplicasUnavailable")
    model.settle()
    assert meta.annotations(model.deployment)[history.REVISION] == "1"
    assert model.condition("Progressing") == ("True", "NewReplicaSetAvailable")
    assert model.plan() == Plan()


def test_failed_set_creation_causes_a_condition_and_an_event() -> None:
    (batch, _) = Model(build_deployment()).plan().actions
    assert isinstance(batch, Finally)
    (create,), (report,) = batch.actions, batch.on_failure
    assert isinstance(create, Create)
    assert create.on_failure[0].reason == "ReplicaSetCreateError"
    (failed,) = report.patch["status"]["conditions"]
    assert (failed["status"], failed["reason"]) == ("False", "ReplicaSetCreateError")
    assert failed["message"] == f'Failed to create new replica set "{meta.name(create.object)}": {{error}}'


def test_hash_collision_creates_a_different_name() -> None:
    plain, other = Model(build_deployment()), Model(build_deployment(), collisions=1)
    plain.step()
    other.step()
    assert [*plain.sets] != [*other.sets]
    assert meta.status(other.deployment)["collisionCount"] == 1


def test_unready_pods_of_the_old_set_are_deleted_first() -> None:
    model = settled(strategy=rolling(1, 1))
    model.run_pods(lambda _: 2)
    model.change(template=build_template("v2"))
    model.settle(lambda one: 2 if image_of(one) == "v1" else 0)
    assert model.sizes() == {"v1": 3, "v2": 2}


def test_rollback_reuses_the_set_with_a_new_revision() -> None:
    model = settled()
    for image in ("v2", "v1", "v2", "v1"):
        model.change(template=build_template(image))
        model.settle()
    assert annotations(model, "v1") == {
        "desired-replicas": "4",
        "max-replicas": "5",
        "revision": "5",
        "revision-history": "1,3",
    }
    assert meta.annotations(model.deployment)[history.REVISION] == "5"


def test_revision_history_annotation_is_bounded() -> None:
    model = settled()
    (name,) = model.sets
    former = {history.FORMER: ",".join(["1000000"] * 300)}
    model.sets[name] = merge(model.sets[name], {"metadata": {"annotations": former}})
    model.change(template=build_template("v2"))
    model.settle()
    model.change(template=build_template("v1"))
    model.settle()
    kept = annotations(model, "v1")["revision-history"]
    assert kept.endswith("1000000,1")
    assert len(kept) <= history.FORMER_LIMIT < len(kept) + 8


def test_malformed_revision_is_left_unchanged() -> None:
    model = settled()
    (name,) = model.sets
    model.sets[name] = merge(model.sets[name], {"metadata": {"annotations": {history.REVISION: "first"}}})
    model.settle()
    assert annotations(model, "v1")["revision"] == "first"


@pytest.mark.parametrize(("replicas", "old", "new"), [(15, 11, 7), (6, 4, 5), (0, 0, 0)])
def test_scaling_during_a_rollout_is_proportional(replicas: int, old: int, new: int) -> None:
    model = settled(replicas=10, strategy=rolling(3, 2))
    model.change(template=build_template("v2"))
    model.settle(none_of("v2"))
    assert model.sizes() == {"v1": 8, "v2": 5}
    model.change(replicas=replicas)
    model.settle(none_of("v2"))
    assert model.sizes() == {"v1": old, "v2": new}


def test_proportional_scaling_needs_no_desired_annotation() -> None:
    model = settled(replicas=10, strategy=rolling(3, 2))
    model.change(template=build_template("v2"))
    model.settle(none_of("v2"))
    for name, one in model.sets.items():
        without = {"deployment.kubernetes.io/max-replicas": "many"}
        model.sets[name] = merge(one, {"metadata": {"annotations": without}})
    model.change(replicas=15)
    model.settle(none_of("v2"))
    assert model.sizes() == {"v1": 11, "v2": 7}


def test_old_pods_are_deleted_when_the_new_set_is_complete() -> None:
    model = settled(paused=True)
    assert model.sizes() == {}
    model = settled()
    model.change(template=build_template("v2"))
    model.settle()
    model.sets = {
        name: merge(one, {"spec": {"replicas": 4}}) if image_of(one) == "v1" else one
        for name, one in model.sets.items()
    }
    model.change(paused=True)
    model.settle()
    assert model.sizes() == {"v1": 0, "v2": 4}


def test_recreate_waits_until_old_pods_have_ended() -> None:
    model = settled(strategy={"type": "Recreate"})
    ((name, old),) = model.sets.items()
    owner = {"ownerReferences": [{"controller": True, "uid": meta.uid(old), "kind": "ReplicaSet", "name": name}]}
    model.pods = [build_pod("a", {"metadata": owner, "status": {"phase": "Running"}})]
    model.change(template=build_template("v2"))
    model.settle()
    assert model.sizes() == {"v1": 0}
    model.pods = [build_pod("a", {"metadata": owner, "status": {"phase": "Failed"}})]
    model.settle()
    assert model.sizes() == {"v1": 0, "v2": 4}
    model.change(template=build_template("v1"))
    model.settle()
    assert model.sizes() == {"v1": 4, "v2": 0}


def test_old_sets_are_deleted_after_the_rollout() -> None:
    model = settled(revisionHistoryLimit=1)
    for image in ("v2", "v3"):
        model.change(template=build_template(image))
        model.settle(none_of("v3"))
    assert [*model.sizes()] == ["v1", "v2", "v3"]
    model.settle()
    assert [*model.sizes()] == ["v2", "v3"]


def test_set_with_pods_or_being_deleted_is_kept() -> None:
    model = settled()
    model.change(template=build_template("v2"))
    model.settle()
    old = next(one for one in model.sets.values() if image_of(one) == "v1")
    for change in (
        {"status": {"replicas": 1}},
        {"metadata": {"generation": 9}},
        {"metadata": {"deletionTimestamp": seconds_ago(1)}},
    ):
        assert history.obsolete(build_deployment(revisionHistoryLimit=0), [merge(old, change)]) == []
    assert history.obsolete(build_deployment(revisionHistoryLimit=0), [old]) == [old]
    assert history.obsolete(build_deployment(revisionHistoryLimit=2**31 - 1), [old]) == []


def test_rollout_without_progress_times_out_at_its_deadline() -> None:
    model = settled(progressDeadlineSeconds=60)
    model.change(template=build_template("v2"))
    model.settle(none_of("v2"))
    assert model.condition("Progressing") == ("True", "ReplicaSetUpdated")
    assert model.plan() == Plan(requeue_after=61)
    model = later(model, 61)
    model.settle(none_of("v2"))
    assert model.condition("Progressing") == ("False", "ProgressDeadlineExceeded")
    assert model.plan() == Plan()
    model.settle()
    assert model.condition("Progressing") == ("True", "NewReplicaSetAvailable")


def test_complete_rollout_does_not_time_out_for_a_lost_pod() -> None:
    model = settled(progressDeadlineSeconds=60)
    model = later(model, 1000)
    model.run_pods(lambda _: 1)
    model.step()
    assert model.condition("Available")[0] == "False"
    assert model.condition("Progressing") == ("True", "NewReplicaSetAvailable")
    assert model.plan() == Plan()


def test_progress_condition_requires_a_deadline() -> None:
    model = settled()
    model.change(progressDeadlineSeconds=2**31 - 1)
    model.settle()
    assert model.condition("Progressing") == ("None", "None")
    (batch, _) = Model(build_deployment(progressDeadlineSeconds=2**31 - 1)).plan().actions
    assert isinstance(batch, Finally)
    assert batch.on_failure[0].patch["status"] == {"conditions": []}


def test_existing_set_is_reported_without_a_progress_condition() -> None:
    model = settled()
    model.deployment = merge(model.deployment, {"status": {"conditions": []}})
    model.run_pods(lambda _: 0)
    model.step()
    assert model.condition("Progressing") == ("True", "FoundNewReplicaSet")


def test_replica_failure_of_a_set_is_reported_until_it_ends() -> None:
    model = settled()
    (name,) = model.sets
    failure = {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": "no",
        "lastTransitionTime": "x",
    }
    model.sets[name] = merge(model.sets[name], {"status": {"conditions": [failure]}})
    model.step()
    assert meta.find_condition(model.deployment, "ReplicaFailure") == failure | {"lastUpdateTime": "x"}
    assert model.plan() == Plan()
    model.sets[name] = merge(model.sets[name], {"status": {"conditions": []}})
    model.step()
    assert model.condition("ReplicaFailure") == ("None", "None")


def test_deployment_being_deleted_only_updates_its_status() -> None:
    model = settled()
    model.deployment = merge(model.deployment, {"metadata": {"deletionTimestamp": seconds_ago(1)}})
    model.change(replicas=9, template=build_template("v2"))
    model.settle()
    assert model.sizes() == {"v1": 4}
    assert meta.is_observed(model.deployment)


def test_changed_fields_of_a_set_are_written_in_one_patch() -> None:
    model = settled()
    model.change(replicas=5, minReadySeconds=3)
    (patch, _) = model.plan().actions
    assert isinstance(patch, Patch)
    assert patch.patch["spec"] == {"replicas": 5, "minReadySeconds": 3}
