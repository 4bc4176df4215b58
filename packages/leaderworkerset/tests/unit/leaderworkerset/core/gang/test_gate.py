"""Tests which gated groups start, in which order, and the resulting writes."""

from collections.abc import Sequence

import pytest

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.quantity import NANOS
from kuberuntime.objects.resources import PODS
from kuberuntime.plan import Concurrently, Patch, Plan
from leaderworkerset.api import labels
from leaderworkerset.core.gang import gate
from leaderworkerset.core.gang.gate import GATE, ObservedCluster

NODE = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4", "pods": "10"}}}


def member(
    group: str, index: int, *, size: int = 2, created: int = 1, gates: Sequence[JSONObject] = (GATE,)
) -> JSONObject:
    """Return a pod that requests one CPU."""
    name = f"{group}-{index}" if index else group
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-of-{name}",
            "creationTimestamp": f"2026-01-01T00:00:0{created}Z",
            "labels": {labels.WORKER_INDEX: str(index)},
            "annotations": {labels.SIZE: str(size), labels.GANG_GROUP: group},
        },
        "spec": {
            "containers": [{"resources": {"requests": {"cpu": "1"}}}],
            **({"schedulingGates": list(gates)} if gates else {}),
        },
    }


def group(name: str, size: int = 2, created: int = 1) -> list[JSONObject]:
    return [member(name, index, size=size, created=created) for index in range(size)]


def decide(members: Sequence[JSONObject], used: int = 0, unbound: Sequence[JSONObject] = ()) -> Plan:
    usage = {"n": {"cpu": used * NANOS}}
    return gate.reconcile(ObservedCluster(nodes=[NODE], used=usage, unbound=[*members, *unbound], members=members))


def started(plan: Plan) -> list[list[str]]:
    """Return the names of the pods whose gates are removed, by group."""
    (action,) = plan.actions or (Concurrently(sequences=()),)
    assert isinstance(action, Concurrently)
    found = []
    for (together,) in action.sequences:
        assert isinstance(together, Concurrently)
        patches = [patch for (patch,) in together.sequences if isinstance(patch, Patch)]
        found.append([patch.key.name for patch in patches])
    return found


def test_group_that_fits_loses_its_gates() -> None:
    plan = decide(group("a"))

    assert started(plan) == [["a", "a-1"]]
    (action,) = plan.actions
    assert isinstance(action, Concurrently)
    ((first,), *_) = action.sequences[0][0].sequences  # type: ignore[union-attr]
    patch = {"metadata": {"uid": "uid-of-a"}, "spec": {"schedulingGates": None}}
    assert first == Patch(resource=PODS, key=first.key, patch=patch, if_present=True)  # type: ignore[union-attr]


def test_group_that_does_not_fit_waits_and_blocks_no_other() -> None:
    assert started(decide([*group("a", 5), *group("b", 2, created=2)])) == [["b", "b-1"]]
    assert decide(group("a"), used=3) == Plan()


def unplaceable(pod: JSONObject) -> JSONObject:
    """Return the pod with a node affinity that API servers store, but that cannot be parsed."""
    term = {"matchExpressions": [{"key": "zone", "operator": "Gt", "values": ["abc"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    pod["spec"]["affinity"] = {"nodeAffinity": required}
    return pod


def test_unreadable_affinity_blocks_its_own_group_only() -> None:
    pending = unplaceable(member("x", 0, gates=()))

    plan = decide([*map(unplaceable, group("a")), *group("b", created=2)], unbound=[pending])

    assert started(plan) == [["b", "b-1"]]


def test_gate_writes_nothing_without_groups() -> None:
    assert decide([]) == Plan()


@pytest.mark.parametrize(
    "members",
    [
        group("a", 3)[:2],
        group("a", 3)[1:],
        [*group("a")[:1], member("a", 1, gates=[{"name": "kueue.x-k8s.io/admission"}, GATE])],
        [member("a", 0, gates=()), member("a", 1, gates=())],
    ],
    ids=["a worker lacks", "the leader lacks", "somebody else's gate", "no gate"],
)
def test_incomplete_group_waits(members: list[JSONObject]) -> None:
    assert decide(members) == Plan()


def test_terminating_pod_is_not_a_member() -> None:
    leader, worker = group("a")
    leaving = worker | {"metadata": worker["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"}}

    assert decide([leader, leaving]) == Plan()


def test_space_of_pending_pods_is_reserved() -> None:
    """These pods have no closed gate, so the scheduler may bind them at any time."""
    others = [member("x", index, gates=()) for index in range(3)]

    assert decide(group("a"), unbound=others) == Plan()
    assert started(decide(group("a"), unbound=others[:2])) == [["a", "a-1"]]


def test_pods_with_other_gates_use_no_space() -> None:
    held = [member("x", index, gates=[{"name": "other"}]) for index in range(4)]

    assert started(decide(group("a"), unbound=held)) == [["a", "a-1"]]


def test_pod_that_fits_nowhere_uses_no_space() -> None:
    huge = member("x", 0, gates=())
    huge["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "64"

    assert started(decide(group("a"), unbound=[huge])) == [["a", "a-1"]]


def test_older_group_starts_first() -> None:
    assert started(decide([*group("a", 3, created=2), *group("b", 3, created=1)])) == [["b", "b-1", "b-2"]]


def test_higher_priority_precedes_age() -> None:
    urgent = group("b", 3, created=2)
    for pod in urgent:
        pod["spec"]["priority"] = 1000

    assert started(decide([*group("a", 3), *urgent])) == [["b", "b-1", "b-2"]]


def test_recreated_pod_of_a_started_group_comes_first() -> None:
    """A manager may also have exited while it removed the gates of one group."""
    begun = [member("b", 0, size=2, created=9, gates=()), member("b", 1, size=2, created=9)]
    begun[0]["spec"]["nodeName"] = "n"
    waiting = group("a", 3)

    plan = gate.reconcile(
        ObservedCluster(
            nodes=[NODE], used={"n": {"cpu": NANOS}}, unbound=[begun[1], *waiting], members=[*waiting, *begun]
        )
    )

    assert started(plan) == [["b-1"]]


def test_groups_of_one_name_in_two_namespaces_are_separate() -> None:
    other = group("a")[1]
    other["metadata"]["namespace"] = "other"

    assert decide([group("a")[0], other]) == Plan()
