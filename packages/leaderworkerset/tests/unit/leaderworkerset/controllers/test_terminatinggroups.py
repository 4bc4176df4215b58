"""Tests terminating groups with random keys, while pods and worker StatefulSets are created and deleted."""

from collections.abc import Callable

from tests import builders

from kuberuntime.cache.informer import Change
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from leaderworkerset.controllers.terminatinggroups import UNKNOWN, TerminatingGroups

LWS = builders.hash_object(size=2)
KEY = ObjectKey(builders.NAMESPACE, "web")
LEADER = builders.hash_leader(LWS, "a")
NAME = meta.name(LEADER)
WORKERS = builders.worker_statefulset(LEADER)


class Source:
    """Publishes changes in the same way as an informer."""

    def subscribe(self, callback: Callable[[Change], None]) -> None:
        self.publish = callback


def follow() -> tuple[TerminatingGroups, Source, Source]:
    pods, statefulsets = Source(), Source()
    return TerminatingGroups(pods, statefulsets), pods, statefulsets  # type: ignore[arg-type]


def deleting(obj: JSONObject) -> JSONObject:
    return obj | {"metadata": obj["metadata"] | {"deletionTimestamp": "2026-03-01T12:00:00Z"}}


def test_group_is_ending_while_it_has_pods_and_no_leader() -> None:
    endings, pods, _ = follow()
    pods.publish(Change(None, LEADER))
    assert endings.end_times(KEY, {NAME}) == {}
    assert endings.end_times(KEY, ()) == {NAME: UNKNOWN}
    pods.publish(Change(LEADER, deleting(LEADER)))
    assert endings.end_times(KEY, ()) == {NAME: "2026-03-01T12:00:00Z"}
    pods.publish(Change(deleting(LEADER), None))
    assert endings.end_times(KEY, ()) == {}


def test_group_is_ending_while_workers_may_be_created() -> None:
    """A delayed StatefulSet controller creates pods for a deleted leader (N-AT-5)."""
    endings, pods, statefulsets = follow()
    pods.publish(Change(None, deleting(LEADER)))
    statefulsets.publish(Change(None, WORKERS))
    pods.publish(Change(deleting(LEADER), None))
    assert endings.end_times(KEY, ()) == {NAME: ""}
    statefulsets.publish(Change(WORKERS, None))
    assert endings.end_times(KEY, ()) == {}


def test_groups_with_an_index_are_not_tracked() -> None:
    endings, pods, statefulsets = follow()
    leader = builders.leader_pod(builders.leaderworkerset_object())
    pods.publish(Change(None, leader))
    statefulsets.publish(Change(None, builders.worker_statefulset(leader)))
    statefulsets.publish(Change(None, {"kind": "StatefulSet", "metadata": {"name": "web", "namespace": "default"}}))
    assert endings.end_times(KEY, ()) == {}
