"""Tests the order in which a ReplicaSet deletes pods."""

import random
from typing import Any

import pytest
from tests.unit.localkube.controllers.objects import NOW, build_pod, seconds_ago

from kuberuntime.objects import meta
from localkube.controllers.replicaset import replicacontrol


def pod(name: str, *, node: str = "node-0", ready: float | None = 64, phase: str = "Running", **other: Any) -> Any:
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": seconds_ago(ready)}] if ready else []
    metadata = {"creationTimestamp": seconds_ago(other.get("age", 100)), "annotations": {}}
    if "cost" in other:
        metadata["annotations"] = {replicacontrol.DELETION_COST: other["cost"]}
    status = {"phase": phase, "conditions": conditions}
    status["containerStatuses"] = [{"restartCount": other.get("restarts", 0)}]
    return build_pod(name, {"metadata": metadata, "spec": {"nodeName": node}, "status": status})


@pytest.mark.parametrize(
    ("victim", "kept"),
    [
        (pod("z", node=""), pod("a", phase="Pending", ready=None)),
        (pod("z", phase="Pending", ready=None), pod("a", phase="Unknown", ready=None)),
        (pod("z", phase="Unknown", ready=None), pod("a", ready=None, restarts=9)),
        (pod("z", ready=None), pod("a", cost="-5")),
        (pod("z", cost="-1", ready=9999), pod("a", ready=1)),
        (pod("z"), pod("a", cost="1")),
        (pod("z", ready=1), pod("a", ready=9999, restarts=9)),
        (pod("z", restarts=2, age=9999), pod("a", restarts=1, age=1)),
        (pod("z", age=1), pod("a", age=9999)),
        (pod("a", ready=60), pod("z", ready=61)),
        (pod("a", cost="many"), pod("z", cost=str(2**31))),
    ],
    ids=[
        "unassigned", "pending", "unknown", "not ready", "cheap", "not dear", "ready for less time", "more restarts",
        "younger", "of one magnitude: by UID", "a cost that is none counts as 0",
    ],
)  # fmt: skip
def test_least_valuable_pod_is_deleted_first(victim: Any, kept: Any) -> None:
    for pods in ([victim, kept], [kept, victim]):
        assert [meta.name(one) for one in replicacontrol.rank_for_deletion(pods, (), NOW)] == [
            meta.name(victim),
            meta.name(kept),
        ]


def test_pod_that_shares_its_node_is_deleted_first() -> None:
    doubled, alone, sibling = pod("z", ready=9999), pod("a", node="node-1", ready=1), pod("s")
    assert replicacontrol.rank_for_deletion([alone, doubled], [alone, doubled, sibling], NOW)[0] is doubled


def test_order_does_not_depend_on_the_order_of_the_list() -> None:
    pods = [pod(f"p-{i}", ready=None if i % 3 else 64, age=2.0**i, restarts=i % 2) for i in range(12)]
    wanted = replicacontrol.rank_for_deletion(pods, pods, NOW)
    for seed in range(20):
        mixed = random.Random(seed).sample(pods, len(pods))
        assert replicacontrol.rank_for_deletion(mixed, pods, NOW) == wanted
