"""Tests headless Services."""

import pytest
from tests import builders, decisions

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Apply, Emit
from leaderworkerset.api import labels
from leaderworkerset.capabilities import deciding
from leaderworkerset.core.leaderworkerset import services
from leaderworkerset.core.leaderworkerset.decision import ObservedLeaderWorkerSet
from leaderworkerset.core.policies.policy import HeadlessService, LiveGroup

LWS = builders.leaderworkerset_object()


def test_shared_service_belongs_to_the_leaderworkerset() -> None:
    """The LeaderWorkerSet owns the shared Service (R-SVC-1, R-SVC-3)."""
    assert services.build_shared(LWS) == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "web",
            "namespace": "default",
            "labels": {labels.NAME: "web"},
            "ownerReferences": [meta.controller_reference(LWS)],
        },
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {labels.NAME: "web"}},
    }


def test_group_service_belongs_to_its_leader() -> None:
    """The leader owns the Service of its group (R-SVC-2, R-SVC-3)."""
    leader = builders.leader_pod(LWS, 3)

    service = services.build_for_group(leader, "web")

    assert meta.name(service) == "web-3"
    assert meta.metadata(service)["ownerReferences"] == [meta.controller_reference(leader)]
    assert meta.labels(service) == {labels.NAME: "web"}
    assert service["spec"]["selector"] == {labels.NAME: "web", labels.GROUP_INDEX: "3"}


def owned_by(kind: str, name: str) -> JSONObject:
    owner = {"apiVersion": "v1", "kind": kind, "name": name, "uid": "other", "controller": True}
    return {"metadata": {"name": "web", "namespace": "default", "ownerReferences": [owner]}}


@pytest.mark.parametrize(
    "service",
    [None, {"metadata": {"name": "web"}}, services.build_shared(LWS), owned_by("LeaderWorkerSet", "web")],
    ids=["none", "without a controller", "its own", "of its predecessor"],
)
def test_service_without_another_owner_is_no_conflict(service: JSONObject | None) -> None:
    assert services.observe(service, LWS).conflict == ""


def test_service_of_a_different_owner_is_named() -> None:
    """The name of a Service with another owner is reported (N-HASH-24)."""
    assert services.observe(owned_by("LeaderWorkerSet", "other"), LWS).conflict == (
        "headless service web has controller owner LeaderWorkerSet other; expected LeaderWorkerSet web:"
        " delete the service, or use a different name"
    )


@pytest.mark.parametrize(
    ("service", "is_settled"),
    [
        (None, False),
        (services.build_shared(LWS), True),
        ({"metadata": {"name": "web"}, "spec": {"clusterIP": "None"}}, True),
        ({"metadata": {"name": "web"}, "spec": {"clusterIP": "10.96.0.7"}}, False),
    ],
    ids=["none", "its own", "headless", "not headless"],
)
def test_service_is_settled_when_it_is_headless(service: JSONObject | None, is_settled: bool) -> None:
    """A user's Service with an address may be suitable, depending on its selector in the API server."""
    assert services.observe(service, LWS).is_settled == is_settled


TEMPLATES = builders.leaderworkerset_object(
    spec={
        "leaderWorkerTemplate": {
            "size": 2,
            "leaderTemplate": {"metadata": {"labels": {"role": "leader"}}, "spec": {}},
            "workerTemplate": {"metadata": {"labels": {"app": "vllm"}}, "spec": {}},
        }
    }
)


@pytest.mark.parametrize(
    ("selector", "is_matching"),
    [
        ({labels.NAME: "web", labels.WORKER_INDEX: "0"}, True),
        ({"role": "leader", labels.GROUP_INDEX: "3"}, True),
        ({"app": "vllm", labels.WORKER_INDEX: "1"}, True),
        ({"role": "leader", labels.WORKER_INDEX: "1"}, False),
        ({labels.NAME: "other"}, False),
        ({"app": "vllm", "role": "leader"}, False),
    ],
    ids=str,
)
def test_service_selects_leaders_or_workers(selector: dict[str, str], is_matching: bool) -> None:
    assert services.selects(selector, TEMPLATES) == is_matching


@pytest.mark.parametrize("policy", ["Shared", "UniquePerReplica"])
def test_service_conflict_is_an_error_of_the_set_or_the_pod(policy: str) -> None:
    """With both identities, groups continue, and the creation is retried (N-HASH-24)."""
    lws = builders.leaderworkerset_object(spec={"networkConfig": {"subdomainPolicy": policy}})
    leader = builders.leader_pod(lws)
    of_set = ObservedLeaderWorkerSet(
        leaderworkerset=lws,
        revisions=[builders.revision(lws)],
        service=HeadlessService(is_settled=True, conflict="taken"),
    )
    of_group = LiveGroup(
        now=builders.NOW,
        leader=leader,
        obj=lws,
        revisions=[builders.revision(lws)],
        service=HeadlessService(conflict="taken"),
    )

    plans = decisions.reconcile(of_set, builders.NOW), deciding.reconcile_group(of_group)

    is_shared = policy == "Shared"
    assert plans[0].error == ("LeaderWorkerSet default/web: taken" if is_shared else None)
    assert any(isinstance(action, Apply) for action in plans[0].actions)
    told = [[event.note for one in plan.actions if isinstance(one, Emit) for event in one.events] for plan in plans]
    note = ["Failed to create headless service for error: taken"]
    assert told == ([note, []] if is_shared else [[], note])
    assert plans[1].error == (None if is_shared else "pod default/web-0: taken")
