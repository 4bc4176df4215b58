"""Tests which keys a change enqueues."""

from typing import Any

import pytest
from tests import builders

from kuberuntime.cache.informer import Change
from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from leaderworkerset.api import groupname, labels
from leaderworkerset.controllers import indexes, leaderworkerset, pod

LWS = builders.leaderworkerset_object()
LEADER = builders.leader_pod(LWS)
WORKER = builders.worker_pod(LEADER)
WORKERS = builders.worker_statefulset(LEADER)
WEB = ObjectKey("default", "web")
GROUP = ObjectKey("default", "web-0")


def owned_by(owner: dict[str, Any], obj: dict[str, Any]) -> dict[str, Any]:
    return obj | {"metadata": obj["metadata"] | {"ownerReferences": [meta.controller_reference(owner)]}}


NOT_READY = builders.leader_pod(LWS, ready=False)
BEHIND = builders.worker_statefulset(LEADER, ready=False)
COUNTED = WORKERS | {"status": WORKERS["status"] | {"readyReplicas": 1}}
UNLABELED: dict[str, Any] = {"metadata": {"name": "x", "namespace": "default"}}


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        (Change(None, LEADER), [WEB]),
        (Change(LEADER, None), [WEB]),
        (Change(NOT_READY, LEADER), [WEB]),
        (Change(LEADER, builders.leader_pod(LWS, node="n1")), []),
        (Change(None, WORKER), []),
    ],
    ids=["added", "deleted", "got ready", "bound", "worker"],
)
def test_changed_leader_pod_enqueues_its_leaderworkerset(change: Change, keys: list[ObjectKey]) -> None:
    """A change to a leader pod enqueues its LeaderWorkerSet (R-ARC-7, Q-25)."""
    assert list(leaderworkerset.keys_of_pod(change)) == keys


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        (Change(None, WORKERS), {WEB}),
        (Change(WORKERS, None), {WEB, GROUP}),
        (Change(BEHIND, WORKERS), {WEB}),
        (Change(WORKERS, COUNTED), set()),
        (Change(None, owned_by(LWS, UNLABELED)), {WEB}),
        (Change(UNLABELED, owned_by(LWS, UNLABELED)), {WEB}),
        (Change(None, UNLABELED), set()),
        (Change(None, owned_by(LWS, WORKERS)), {WEB}),
    ],
    ids=["added", "deleted", "got ready", "as ready", "leader set", "adopted", "foreign", "labeled leader set"],
)
def test_statefulset_enqueues_the_owner_in_its_name(change: Change, keys: set[ObjectKey]) -> None:
    """A StatefulSet enqueues its owner by name (R-ARC-7, Q-22)."""
    assert set(leaderworkerset.keys_of_statefulset(change)) == keys


def test_new_or_deleted_revision_enqueues_its_leaderworkerset() -> None:
    """A revision that is observed late may be unused. A group's recreation record does not enqueue a key."""
    revision = builders.revision(LWS)
    record = revision | {"metadata": revision["metadata"] | {"labels": {labels.NAME: "web"}}}

    assert list(leaderworkerset.keys_of_revision(Change(revision, None))) == [WEB]
    assert list(leaderworkerset.keys_of_revision(Change(None, revision))) == [WEB]
    assert list(leaderworkerset.keys_of_revision(Change(revision, revision))) == []
    assert list(leaderworkerset.keys_of_revision(Change(record, None))) == []


@pytest.mark.parametrize(
    ("found", "key"),
    [
        (LEADER, GROUP),
        (WORKER, GROUP),
        (builders.leader_pod(LWS, extra_labels={labels.WORKER_INDEX: ""}), GROUP),
        (
            builders.worker_pod(LEADER) | {"metadata": WORKER["metadata"] | {"name": "stray"}},
            ObjectKey("default", "stray"),
        ),
    ],
    ids=["leader", "worker", "unlabeled", "stray"],
)
def test_pod_enqueues_its_leader(found: dict[str, Any], key: ObjectKey) -> None:
    """A pod enqueues its leader (R-ARC-8, R-POD-1)."""
    assert list(pod.keys_of_pod(Change(None, found))) == [key]


def test_worker_statefulset_enqueues_its_leader() -> None:
    """A worker StatefulSet enqueues its leader (R-ARC-8, R-WSTS-5)."""
    assert list(pod.keys_of_controlled(Change(WORKERS, None))) == [GROUP]
    assert list(pod.keys_of_controlled(Change(None, owned_by(LWS, UNLABELED)))) == []
    assert list(pod.keys_of_controlled(Change(None, UNLABELED))) == []


def test_differs_from_upstream_deleted_service_enqueues_group() -> None:
    """If a Service is deleted, the group with the same name is reconciled.

    The owner of the Service does not matter (R-SVC-5).
    """
    own = {"metadata": {"name": "web-0", "namespace": "default"}}
    service = owned_by(builders.leader_pod(LWS, uid="earlier"), own)

    assert list(pod.keys_of_lost_service(Change(service, None))) == [GROUP]
    assert list(pod.keys_of_lost_service(Change(None, service))) == []
    assert list(pod.keys_of_lost_service(Change(service, service))) == []
    assert list(pod.keys_of_lost_service(Change(owned_by(LWS, own), None))) == [GROUP]


@pytest.mark.parametrize(
    ("kind", "name", "is_ours"),
    [
        ("StatefulSet", "web", True),
        ("ReplicaSet", "web-6bf8", True),
        ("StatefulSet", "api", False),
        ("Job", "web", False),
    ],
)
def test_leader_of_a_foreign_controller_is_not_ours(kind: str, name: str, *, is_ours: bool) -> None:
    """The manager deletes outdated leaders, so the pod labels are not sufficient (docs/adr/0030)."""
    owner = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "uid": "u"}}
    leader = owned_by(owner, LEADER)
    assert list(indexes.leader_values(leader)) == ["default/web"] * is_ours
    assert (groupname.group_and_rank(leader) is not None) == is_ours


def test_objects_are_indexed_by_leaderworkerset_and_group() -> None:
    """StatefulSet revisions have the labels of the pods (R-REV-3). Recreation records have no key."""
    revision = builders.revision(LWS)
    bare = {name: value for name, value in revision["metadata"].items() if name != "ownerReferences"}

    assert list(indexes.group_values(WORKER)) == ["default/web/0"]
    assert list(indexes.group_values(UNLABELED)) == []
    assert list(indexes.leader_values(LEADER)) == ["default/web"]
    assert list(indexes.leader_values(WORKER)) == []
    assert list(indexes.revision_values(revision)) == ["default/web"]
    assert list(indexes.revision_values(revision | {"metadata": bare})) == ["default/web"]
    assert list(indexes.revision_values(owned_by(WORKERS, revision))) == []
    assert list(indexes.revision_values(UNLABELED)) == []


def test_deleted_pod_with_a_random_key_enqueues_its_set() -> None:
    """A gated leader may be waiting for the deleted leader (N-HASH-4, N-GATE-4)."""
    lws = builders.hash_object()
    leader = builders.hash_leader(lws)
    worker = builders.worker_pod(leader)
    own = worker | {"metadata": worker["metadata"] | {"annotations": {labels.GROUP_IDENTITY: "Hash"}}}

    assert list(leaderworkerset.keys_of_pod(Change(own, None))) == [WEB]
    assert list(leaderworkerset.keys_of_pod(Change(None, own))) == []
    assert list(leaderworkerset.keys_of_pod(Change(None, leader))) == [WEB]


def test_worker_with_a_random_key_enqueues_its_leader() -> None:
    worker = builders.worker_pod(builders.hash_leader(builders.hash_object()))
    named = {labels.GROUP_IDENTITY: "Hash", labels.LEADER_NAME: "web-7d9f8b6c4-aaaaa"}
    found = worker | {"metadata": worker["metadata"] | {"name": "web-aaaaaaaa-1", "annotations": named}}

    assert list(pod.keys_of_pod(Change(None, found))) == [ObjectKey("default", "web-7d9f8b6c4-aaaaa")]
