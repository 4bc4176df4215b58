"""Tests the deletion of a LeaderWorkerSet and its dependents."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.integration.clusters.objects import lws
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State, assert_settled, pod_names

from kuberuntime.errors import APIError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import STATEFULSETS
from kuberuntime.plan import Propagation
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.webhooks.configurations import at_url, build_configurations


def assert_nothing(state: State) -> None:
    """Check that no object remains."""
    kinds = (state.leaderworkersets, state.statefulsets, state.pods, state.services, state.revisions)
    assert [sorted(kind) for kind in kinds] == [[]] * 5


@pytest.mark.parametrize("propagation", [None, "Background", "Foreground"])
async def test_deletion_removes_all_parts(space: LiveScenario, propagation: Propagation | None) -> None:
    """The garbage collector deletes all dependents. No finalizer is needed (R-ARC-5, R-WSTS-7)."""
    await space.bring_up(lws(replicas=2, size=3))
    await space.delete("web", propagation=propagation)
    await space.until(assert_nothing)


async def test_foreground_deletion_removes_the_owner_last(space: LiveScenario) -> None:
    """The owner exists with a deletion timestamp until all of its dependents are deleted (R-ARC-5)."""
    await space.bring_up(lws(replicas=2, size=3))

    def owner_remains(state: State) -> None:
        assert state.leaderworkersets or not state.statefulsets

    space.always(owner_remains)
    await space.delete("web", propagation="Foreground")
    await space.until(assert_nothing)


async def test_differs_from_upstream_foreground_delete_is_unaided(space: LiveScenario) -> None:
    """Foreground deletion of a LeaderWorkerSet succeeds even if the manager's webhooks are unreachable (ADR 29)."""
    await space.bring_up(lws(replicas=2, size=2))
    async with unreachable_webhooks(space):
        await space.delete("web", propagation="Foreground")
        await space.until(assert_nothing)


@asynccontextmanager
async def unreachable_webhooks(space: LiveScenario) -> AsyncIterator[None]:
    """Register the webhooks of the manager for this namespace a second time, with an unreachable address."""
    name, selector = f"unreachable-{space.namespace}", {"kubernetes.io/metadata.name": space.namespace}
    declared = build_configurations(MANAGED.webhooks, at_url("https://127.0.0.1:1", b""))
    built = [(resource, obj | {"metadata": {"name": name}}) for resource, obj in declared]
    for resource, obj in built:
        webhooks = [one | {"namespaceSelector": {"matchLabels": selector}} for one in obj["webhooks"]]
        await space.client.create(resource, obj | {"webhooks": webhooks})

    async def write() -> str:
        try:
            await space.patch({"metadata": {"labels": {"team": "a"}}})
        except APIError as error:
            return error.message
        return ""

    try:
        await space.eventually(write, lambda message: "failed calling webhook" in message)
        yield
    finally:
        for resource, _ in built:
            await space.client.delete(resource, ObjectKey("", name))


async def test_orphaned_pods_are_adopted_by_a_successor(space: LiveScenario) -> None:
    """Pods survive an orphaning deletion.

    The recreated LeaderWorkerSet adopts them unchanged (R-ARC-5, R-LSTS-4, R-REV-10).
    """
    before = (await space.bring_up(lws(replicas=2, size=2))).uids("web")
    await space.delete("web", propagation="Orphan")

    def is_orphaned(state: State) -> None:
        assert not state.leaderworkersets
        assert "ownerReferences" not in meta.metadata(state.statefulsets["web"])

    state = await space.until(is_orphaned)
    assert state.uids("web") == before
    assert state.of("web").keys() == pod_names("web", 2, 2)
    assert (await space.bring_up(lws(replicas=2, size=2))).uids("web") == before


async def test_successor_of_the_same_name_starts_without_history(space: LiveScenario) -> None:
    """Revisions of a deleted LeaderWorkerSet are ignored (R-REV-15)."""
    before = (await space.bring_up(lws(replicas=1, size=2))).uids("web")
    await space.delete("web")
    await space.until(assert_nothing)
    after = (await space.bring_up(lws(replicas=1, size=2))).uids("web")
    assert not set(before.values()) & set(after.values())


async def test_deleted_worker_statefulset_returns_with_its_group(space: LiveScenario) -> None:
    """A deleted worker StatefulSet is recreated with its group (R-WSTS-5, R-POD-5)."""
    before = await space.bring_up(lws(replicas=2, size=2, template={"restartPolicy": "None"}))
    await space.delete("web-1", STATEFULSETS)

    def is_another(state: State) -> None:
        assert_settled(state, "web")
        assert meta.uid(state.statefulsets["web-1"]) != meta.uid(before.statefulsets["web-1"])
        same = before.uids("web").items() & state.uids("web").items()
        assert {pod for pod, _ in same} == {"web-0", "web-0-1", "web-1"}

    await space.until(is_another)
