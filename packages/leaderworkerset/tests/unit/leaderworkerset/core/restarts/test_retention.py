"""Tests the finalizer and the labels of exhausted groups."""

from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Action, Concurrently, Patch
from leaderworkerset.api import groupname, labels
from leaderworkerset.core.restarts import retention

LWS = builders.leaderworkerset_object()
LEADER = builders.leader_pod(LWS)
WORKER = builders.worker_pod(LEADER)
FINALIZER = "leaderworkerset.sigs.k8s.io/group-restart-budget-cleanup"


def kept(pod: JSONObject, **annotations: str) -> JSONObject:
    added = {labels.PREFIX + name.replace("_", "-"): text for name, text in annotations.items()}
    own = {"finalizers": [FINALIZER, "other"], "annotations": meta.annotations(pod) | added}
    return pod | {"metadata": pod["metadata"] | own}


EXHAUSTED = kept(LEADER, group_restart_budget_exhausted="true")


def patches(actions: tuple[Action, ...]) -> list[list[tuple[str, JSONObject]]]:
    """Return the concurrent patches by pod. Each is a strategic merge patch with the UID of the pod."""
    found = []
    for action in actions:
        assert isinstance(action, Concurrently)
        together = [patch for (patch,) in action.sequences if isinstance(patch, Patch)]
        assert {(patch.kind, patch.if_present) for patch in together} == {("strategic", True)}
        assert [patch.patch["metadata"].pop("uid") for patch in together] == [
            f"uid-of-{one.key.name}" for one in together
        ]
        found.append([(patch.key.name, patch.patch["metadata"]) for patch in together])
    return found


def test_leader_is_marked_and_kept_by_one_patch() -> None:
    """An earlier deletion request of a user is ignored (N-RB-4)."""
    patch = retention.exhaust(LEADER)

    assert patch.kind == "strategic"
    assert patch.patch["metadata"] == {
        "uid": "uid-of-web-0",
        "annotations": {labels.GROUP_RESTART_BUDGET_EXHAUSTED: "true", labels.RECOVER: None},
        "finalizers": [FINALIZER],
    }


def test_each_running_pod_is_kept_once() -> None:
    """A finalizer cannot be added to a pod that is being deleted (N-RB-4)."""
    going = builders.worker_pod(LEADER, 2, deleting=True)

    assert patches(retention.add_finalizer([WORKER, kept(LEADER), going])) == [
        [("web-0-1", {"finalizers": [FINALIZER]})]
    ]
    assert retention.add_finalizer([kept(WORKER), going]) == ()


def test_workers_are_released_before_their_leader() -> None:
    """Workers are released before their leader (N-RB-16)."""
    without = {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}
    marks = {labels.GROUP_RESTART_BUDGET_EXHAUSTED: None, labels.RECOVER: None}

    released = retention.remove_finalizer([EXHAUSTED, kept(WORKER)])

    assert patches(released) == [[("web-0-1", without)], [("web-0", without | {"annotations": marks})]]
    assert retention.remove_finalizer([]) == ()


def test_marks_are_read_from_pods() -> None:
    """A user's annotation takes effect with a single value only (N-RB-5)."""
    assert [groupname.is_exhausted(pod) for pod in (LEADER, kept(LEADER), EXHAUSTED)] == [False, False, True]
    assert [retention.is_retained(pod) for pod in (LEADER, kept(LEADER))] == [False, True]
    texts = ("true", "yes", "")
    assert [retention.is_recovered(kept(LEADER, recover=text)) for text in texts] == [True, False, False]
