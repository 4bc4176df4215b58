"""Tests used names, rejected objects and unreadable fields on both clusters (docs/adr/0030)."""

import pytest
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State
from tests.integration.lwsctl.explanations import named, remedy, typed, unreachable_webhook, warned

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, SERVICES, Resource
from leaderworkerset.api import labels
from leaderworkerset.core import reconcilefailure

UNIQUE = {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}


def is_available(state: State, name: str = "web") -> bool:
    return meta.is_condition_true(state.leaderworkersets[name], "Available")


def assert_unavailable(state: State, name: str, ready: int) -> None:
    status = meta.status(state.leaderworkersets[name])
    assert status["observedGeneration"] == meta.generation(state.leaderworkersets[name])
    assert (status.get("readyReplicas", 0), is_available(state, name)) == (ready, False)


@remedy("LWS-E019")
async def test_group_with_a_name_of_a_different_set_is_not_counted(space: LiveScenario, code: str) -> None:
    """`meet-1` is created first. Then `meet` is scaled up to a group with that name."""
    other = (await space.bring_up(lws("meet-1", replicas=1, size=2))).uids("meet-1")
    await space.bring_up(lws("meet", replicas=1, size=2))
    await space.scale(2, "meet")
    await space.until(warned("it is controlled by LeaderWorkerSet meet-1"))
    state = await space.until(lambda state: assert_unavailable(state, "meet", 1))
    assert is_available(state, "meet-1")
    assert state.uids("meet-1") == other
    found = await named(space, code, "meet")
    assert "LeaderWorkerSet meet-1" in found.sentence
    assert found.steps[1].startswith("delete the other object")
    await space.delete("meet-1")
    await space.settled("meet")


async def test_set_with_the_name_of_a_group_is_not_created(space: LiveScenario) -> None:
    before = (await space.bring_up(lws("meet", replicas=2, size=2))).uids("meet")
    await space.create(lws("meet-1", replicas=1, size=2))
    await space.until(warned("StatefulSet meet-1 is controlled by Pod meet-1"))
    state = await space.until(lambda state: assert_unavailable(state, "meet-1", 0))
    assert state.uids("meet") == before
    assert is_available(state, "meet")
    await named(space, "LWS-E019", "meet-1")


@pytest.mark.parametrize("policy", [{}, UNIQUE], ids=["shared", "of a group"])
async def test_explain_names_a_user_service_that_is_not_headless(space: LiveScenario, policy: JSONObject) -> None:
    name = "web-0" if policy else "web"
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}}
    await space.create(service, SERVICES)
    await space.create(lws(replicas=1, size=2, **policy))
    await space.until(warned("its spec.clusterIP is not None"))
    await space.until(lambda state: assert_unavailable(state, "web", 0 if policy else 1))
    await named(space, "LWS-E019")


@pytest.mark.parametrize("policy", [{}, UNIQUE], ids=["shared", "of a group"])
async def test_user_service_that_selects_the_pods_is_used(space: LiveScenario, policy: JSONObject) -> None:
    """This matches the Go controller (R-SVC-4). Published manifests contain a Service for clients of the leaders."""
    name = "web-0" if policy else "web"
    spec = {"ports": [{"port": 80}], "selector": {labels.NAME: "web", labels.WORKER_INDEX: "0"}}
    await space.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}, SERVICES)
    await space.create(lws(replicas=1, size=2, **policy))
    await space.until(_assert_available)
    await space.until(warned(f"Service {name} is not headless"))
    if not policy:
        note = f"note: Service {space.namespace}/web is not headless, so pod names"
        assert note in await typed(space, "-n", space.namespace, "explain", "web")


async def test_headless_user_service_is_used(space: LiveScenario) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"clusterIP": "None"}}
    await space.create(service, SERVICES)
    await space.create(lws(replicas=1, size=2))
    await space.until(_assert_available)


def _assert_available(state: State) -> None:
    assert is_available(state)


@remedy("LWS-E028")
@pytest.mark.parametrize(("resource", "ready"), [(SERVICES, 1), (CONTROLLER_REVISIONS, 0)], ids=["service", "revision"])
async def test_rejected_object_is_explained_and_status_written(
    space: LiveScenario, code: str, resource: Resource, ready: int
) -> None:
    async with unreachable_webhook(space, resource):
        await space.create(lws(replicas=1, size=2))
        await space.until(warned("unreachable.example.com"))
        await space.until(lambda state: assert_unavailable(state, "web", ready))
        found = await named(space, code)
        assert "unreachable.example.com" in found.sentence
    await space.settled()


async def test_set_whose_deletion_is_rejected_is_not_available(space: LiveScenario) -> None:
    """All groups are ready, but the reconciliation fails (docs/adr/0030)."""
    obj = lws(replicas=1, size=2)
    await space.bring_up(obj | {"metadata": obj["metadata"] | {"annotations": {labels.REVISION_HISTORY_LIMIT: "0"}}})
    async with unreachable_webhook(space, CONTROLLER_REVISIONS, operation="DELETE"):
        await space.edit_template(workerTemplate=pod_template("app:2"))
        await space.until(lambda state: assert_failing(state, "web"))
        await space.until(lambda state: assert_unavailable(state, "web", 1))
        found = await named(space, "LWS-E028")
        assert "ReconcileFailed" in "".join(found.evidence)
    state = await space.settled()
    assert is_available(state)


def assert_failing(state: State, name: str) -> None:
    assert reconcilefailure.is_failing(state.leaderworkersets[name])


@remedy("LWS-E056")
async def test_explain_names_unreadable_restart_counts(space: LiveScenario, code: str) -> None:
    """The LeaderWorkerSet is not reconciled although all groups are ready (N-RB-10)."""
    await space.bring_up(lws(replicas=1, size=2))
    await space.patch({"metadata": {"annotations": {labels.GROUP_RESTART_COUNTS: "many"}}})
    await space.until(warned(f"Cannot reconcile: annotation {labels.GROUP_RESTART_COUNTS}: many"))
    await space.until(lambda state: assert_unavailable(state, "web", 1))
    found = await named(space, code)
    assert "many" in found.sentence
    assert found.steps == ("correct the field, or remove the annotation",)
    await space.patch({"metadata": {"annotations": {labels.GROUP_RESTART_COUNTS: None}}})
    await space.edit(replicas=2)
    await space.settled()


async def test_orphans_are_adopted_by_a_set_of_the_same_name(space: LiveScenario) -> None:
    """After `kubectl delete --cascade=orphan`, the pods remain, and an update of the new set can be undone."""
    before = (await space.bring_up(lws(replicas=1, size=2))).uids("web")
    await space.delete("web", propagation="Orphan")
    await space.until(_assert_gone)
    assert (await space.bring_up(lws(replicas=1, size=2))).uids("web") == before
    await space.until(_assert_owned)
    await space.edit_template(workerTemplate=pod_template("app:2"))
    await space.settled()
    await typed(space, "-n", space.namespace, "rollout", "undo", "web")
    state = await space.settled()
    assert {pod["spec"]["containers"][0]["image"] for pod in state.of("web").values()} == {"app:1"}


def _assert_gone(state: State) -> None:
    assert not state.leaderworkersets


def _assert_owned(state: State) -> None:
    owner = state.leaderworkersets["web"]
    owned = [*state.services.values(), *state.revisions.values(), *state.statefulsets.values()]
    assert all(meta.is_controlled(one, owner) for one in owned if meta.name(one) != "web-0")
