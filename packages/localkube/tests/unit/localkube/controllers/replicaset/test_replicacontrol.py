"""Tests the next step of a ReplicaSet."""

from itertools import count
from typing import Any

from testkit.objects import merge
from tests.unit.localkube.controllers.objects import NOW, build_pod, build_template, seconds_ago

from kuberuntime.objects import meta
from kuberuntime.plan import Concurrently, Create, Delete, Finally, Plan, PutStatus
from localkube.controllers.replicaset import replicacontrol
from localkube.controllers.replicaset.replicacontrol import ObservedReplicaSet


def replica_set(change: Any = None, **spec: Any) -> Any:
    base = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web-1", "namespace": "default", "uid": "u", "generation": 3, "resourceVersion": "7"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": build_template("v1")} | spec,
    }
    return merge(base, change or {})


def running(name: str, seconds: float = 60, **metadata: Any) -> Any:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": seconds_ago(seconds)}
    status = {"phase": "Running", "conditions": [ready]}
    return build_pod(name, {"metadata": {"labels": {"app": "web"}} | metadata, "status": status})


def planned(replicaset: Any, *pods: Any) -> Plan:
    names = (f"web-1-{i}" for i in count())
    return replicacontrol.plan(ObservedReplicaSet(replicaset=replicaset, pods=pods, related=pods, names=names, now=NOW))


def changes(plan: Plan) -> list[Any]:
    batches = [action for action in plan.actions if isinstance(action, Finally)]
    for batch in batches:
        (together,) = batch.actions
        assert isinstance(together, Concurrently)
        return [action for (action,) in together.sequences]
    return []


def status(plan: Plan) -> Any:
    return next(meta.status(action.object) for action in plan.actions if isinstance(action, PutStatus))


def test_missing_pods_are_created_from_the_template() -> None:
    found = changes(planned(replica_set(), build_pod("ended", {"status": {"phase": "Failed"}})))
    assert [type(one) for one in found] == [Create, Create]
    assert [meta.name(one.object) for one in found] == ["web-1-0", "web-1-1"]
    assert found[0].object["spec"] == build_template("v1")["spec"]
    assert meta.labels(found[0].object) == {"app": "web"}
    assert found[0].on_success[0].note == "Created pod: web-1-0"


def test_excess_pods_are_deleted_least_valuable_first() -> None:
    waiting = build_pod("waiting")
    (found,) = changes(planned(replica_set(), running("a"), waiting, running("b")))
    assert isinstance(found, Delete)
    assert (found.key.name, found.uid) == ("waiting", "waiting-uid")


def test_creations_are_limited_to_a_batch() -> None:
    assert len(changes(planned(replica_set(replicas=2_000_000_000)))) == replicacontrol.AT_ONCE


def test_set_being_deleted_creates_nothing() -> None:
    assert changes(planned(replica_set({"metadata": {"deletionTimestamp": seconds_ago(1)}}))) == []


def test_status_counts_pods_by_their_state() -> None:
    leaving = running("leaving", deletionTimestamp=seconds_ago(1))
    young = running("young", seconds=3, labels={})
    plan = planned(replica_set(minReadySeconds=10), running("old"), young, leaving)
    assert status(plan) == {
        "replicas": 2,
        "fullyLabeledReplicas": 1,
        "readyReplicas": 2,
        "availableReplicas": 1,
        "terminatingReplicas": 1,
        "observedGeneration": 3,
    }
    assert plan.requeue_after == 7


def test_unchanged_status_is_not_written() -> None:
    pods = running("a"), running("b")
    right = status(planned(replica_set(), *pods))
    assert planned(replica_set({"status": right}), *pods) == Plan()


def test_failure_condition_stays_until_the_size_is_reached() -> None:
    (batch, _) = planned(replica_set(), running("a")).actions
    assert isinstance(batch, Finally)
    (failed,) = batch.on_failure[0].patch["status"]["conditions"]
    assert (failed["type"], failed["reason"], failed["message"]) == ("ReplicaFailure", "FailedCreate", "{error}")
    failing = replica_set({"status": {"conditions": [failed | {"lastTransitionTime": seconds_ago(9)}]}})
    assert status(planned(failing, running("a")))["conditions"][0]["lastTransitionTime"] == seconds_ago(9)
    assert "conditions" not in status(planned(failing, running("a"), running("b")))
