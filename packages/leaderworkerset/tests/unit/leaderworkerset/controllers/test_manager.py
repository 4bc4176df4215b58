"""Tests both controllers on the embedded API server, with its StatefulSet controller and garbage collector."""

import pytest
from tests import builders
from tests.unit.leaderworkerset.controllers.cluster import NAMESPACE, NodelessCluster

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS, SERVICES, STATEFULSETS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS

pytestmark = [pytest.mark.slow, pytest.mark.virtual_time]


EDITS: dict[str, JSONObject] = {
    "replicas": {"spec": {"replicas": 1}},
    "template": {"spec": {"template": {"metadata": {"annotations": {labels.SIZE: "7"}}}}},
    "label": {"metadata": {"labels": {"team": "b"}}},
    "no revision": {"metadata": {"labels": {labels.TEMPLATE_REVISION_HASH: None}}},
    "annotation": {"metadata": {"annotations": {labels.REPLICAS: "7"}}},
    "an annotation of their own": {"metadata": {"annotations": {"note": "n"}}},
}


async def test_edited_leader_statefulset_is_corrected_by_one_apply(cluster: NodelessCluster) -> None:
    """Fields of other owners do not change (R-LSTS-1, Q-26)."""
    async with cluster.managed():
        await cluster.bring_up(builders.leaderworkerset_object(metadata={"labels": {"team": "a"}}))
        applied = await cluster.get(STATEFULSETS, "web")
        for edit, change in EDITS.items():
            before = cluster.transport.writes["PATCH"]
            await cluster.patch(change, meta.name(applied), resource=STATEFULSETS)
            await cluster.settle()
            found = await cluster.get(STATEFULSETS, "web")
            assert found["spec"] == applied["spec"], edit
            assert meta.labels(found) == meta.labels(applied), edit
            assert meta.annotations(found).items() >= meta.annotations(applied).items(), edit
            assert cluster.transport.writes["PATCH"] == before + 1, edit
        left = await cluster.get(STATEFULSETS, "web")
        assert meta.annotations(left) == meta.annotations(applied) | {"note": "n"}


async def test_backoff_continues_under_the_next_manager(cluster: NodelessCluster) -> None:
    """The delay and its reason are preserved when the manager restarts and the failed pod is deleted.

    See docs/adr/0003-recreation-backoff.md.
    """
    async with cluster.managed():
        await cluster.bring_up(builders.leaderworkerset_object(replicas=1))
        await cluster.fail("web-0-1")
        await cluster.settle()
        second = await cluster.uids()
        await cluster.fail("web-0-1")
        await cluster.settle(4)
        assert (await cluster.uids())["web-0"] == second["web-0"]
        await cluster.delete("web-0-1", PODS)
        await cluster.settle(1)
        assert "web-0-1" in await cluster.uids()
    async with cluster.managed():
        await cluster.settle(4)
        assert (await cluster.uids())["web-0"] == second["web-0"]
        await cluster.settle(10)
        third = await cluster.uids()
        assert third.keys() == second.keys()
        assert third["web-0"] != second["web-0"]
        note = "Pod web-0-1 failed again. Group 0 is recreated in 10 s (failure 2 in a row)"
        assert note in await cluster.notes()


async def test_deleted_pods_recreate_their_group_at_once(cluster: NodelessCluster) -> None:
    """After five recreations within two minutes, the next one is delayed, even after a restart (docs/adr/0003)."""
    async with cluster.managed():
        await cluster.bring_up(builders.leaderworkerset_object(replicas=1))
        for _ in range(5):
            before = (await cluster.uids())["web-0"]
            await cluster.delete("web-0-1", PODS)
            await cluster.settle(2)
            assert (await cluster.uids())["web-0"] != before
        last = (await cluster.uids())["web-0"]
        await cluster.delete("web-0-1", PODS)
        await cluster.settle(2)
        assert (await cluster.uids())["web-0"] == last
    async with cluster.managed():
        await cluster.settle(100)
        assert (await cluster.uids())["web-0"] == last
        await cluster.settle(10)
        assert (await cluster.uids())["web-0"] != last
    notes = [note for note in await cluster.notes() if "after 5 other deletions" in note]
    assert notes == ["Pod web-0-1 was deleted, after 5 other deletions within 2 minutes. Group 0 is recreated in 110 s"]


async def test_worker_deleted_during_an_error_recreates_its_group(cluster: NodelessCluster) -> None:
    """Until a correction, the restart counts are unreadable, so the `Available` condition is False."""
    async with cluster.managed():
        await cluster.bring_up(builders.leaderworkerset_object(replicas=1, template={"maxGroupRestarts": 3}))
        before = await cluster.uids()
        for text in ("unreadable", None):
            change = {"metadata": {"annotations": {labels.GROUP_RESTART_COUNTS: text}}}
            await cluster.patch(change)
            await cluster.settle(5)
            if text is not None:
                assert not meta.is_condition_true(await cluster.get(LEADERWORKERSETS, "web"), "Available")
                await cluster.delete("web-0-1", PODS)
                await cluster.settle(60)
                assert (await cluster.uids())["web-0"] == before["web-0"]
        await cluster.settle(600)
        after = await cluster.uids()
        assert all(after[name] != before[name] for name in ("web-0", "web-0-1"))
        assert meta.is_condition_true(await cluster.get(LEADERWORKERSETS, "web"), "Available")


async def test_deletions_do_not_change_the_count_of_failures(cluster: NodelessCluster) -> None:
    async with cluster.managed():
        await cluster.bring_up(builders.leaderworkerset_object(replicas=1))
        await cluster.fail("web-0-1")
        await cluster.settle(5)
        for _ in range(3):
            await cluster.delete("web-0-1", PODS)
            await cluster.settle(5)
        await cluster.fail("web-0-1")
        await cluster.settle(5)
    assert "Pod web-0-1 failed again. Group 0 is recreated in 10 s (failure 2 in a row)" in await cluster.notes()


async def test_objects_deleted_by_hand_are_recreated(cluster: NodelessCluster) -> None:
    """A group whose worker StatefulSet was deleted retains its leader (R-SVC-5, R-WSTS-5, R-ARC-7)."""
    async with cluster.managed():
        await cluster.bring_up(builders.leaderworkerset_object(template={"restartPolicy": "None"}))
        leader = (await cluster.uids())["web-1"]
        await cluster.client.delete(SERVICES, ObjectKey(NAMESPACE, "web"))
        await cluster.client.delete(STATEFULSETS, ObjectKey(NAMESPACE, "web-1"))
        await cluster.settle()
        assert list(await cluster.uids(SERVICES)) == ["web"]
        assert sorted(await cluster.uids(STATEFULSETS)) == ["web", "web-0", "web-1"]
        assert (await cluster.uids())["web-1"] == leader
