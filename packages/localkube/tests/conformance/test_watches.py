"""Tests the order of watch events and the initial resource version."""

from testkit.customkind import LEADERWORKERSETS
from tests.conformance.conftest import CheckSame
from tests.conformance.objects import labeled, lws, named, pod
from tests.conformance.transcript import Session

from kuberuntime.objects.resources import CONFIG_MAPS, PODS


def test_changes_arrive_in_order(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        first = await session.create(CONFIG_MAPS, labeled("a", {"x": "1"}))
        version = first["metadata"]["resourceVersion"]
        await session.create(CONFIG_MAPS, named("b"))
        await session.patch(CONFIG_MAPS, "a", {"data": {"k": "1"}})
        await session.patch(CONFIG_MAPS, "a", {"metadata": {"labels": {"x": "2"}}})
        await session.patch(CONFIG_MAPS, "a", {"metadata": {"labels": {"x": "1"}}})
        await session.delete(CONFIG_MAPS, "b")
        await session.delete(CONFIG_MAPS, "a")
        await session.create(CONFIG_MAPS, labeled("c", {"x": "1"}))
        await session.create(CONFIG_MAPS, named("a"))  # the last event of the watch, so that no earlier event is missed
        await session.watch(CONFIG_MAPS, 8, resourceVersion=version)
        await session.watch(CONFIG_MAPS, 5, resourceVersion=version, labelSelector="x=1")
        await session.watch(CONFIG_MAPS, 5, resourceVersion=version, fieldSelector="metadata.name=a")
        await session.watch(CONFIG_MAPS, 1)
        await session.watch(CONFIG_MAPS, 1, resourceVersion="0")
        await session.watch(CONFIG_MAPS, 2, resourceVersion="0", sendInitialEvents="true", resourceVersionMatch="NotOlderThan", allowWatchBookmarks="true")  # fmt: skip

    same(sequence)


def test_pods_and_custom_resources_are_watched(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        first = await session.create(PODS, pod("a", nodeName="n"))
        version = first["metadata"]["resourceVersion"]
        await session.patch(PODS, "a", {"status": {"phase": "Running"}}, subresource="status")
        await session.delete(PODS, "a")
        await session.delete(PODS, "a", {"gracePeriodSeconds": 0})
        await session.create(PODS, pod("b", nodeName="n"))
        await session.delete(PODS, "b", {"gracePeriodSeconds": 0})
        await session.watch(PODS, 6, resourceVersion=version)
        made = await session.create(LEADERWORKERSETS, lws("a"))
        await session.patch(LEADERWORKERSETS, "a", {"spec": {"replicas": 4}})
        await session.patch(LEADERWORKERSETS, "a", {"status": {"replicas": 4}}, subresource="status")
        await session.delete(LEADERWORKERSETS, "a", {"propagationPolicy": "Foreground"})
        await session.patch(LEADERWORKERSETS, "a", {"metadata": {"finalizers": None}})
        await session.watch(LEADERWORKERSETS, 4, resourceVersion=made["metadata"]["resourceVersion"])

    same(sequence)


def test_malformed_watches_are_refused(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        await session.watch(CONFIG_MAPS, 1, resourceVersionMatch="Exact")
        await session.watch(CONFIG_MAPS, 1, sendInitialEvents="true")
        await session.watch(CONFIG_MAPS, 1, labelSelector="a in")
        await session.watch(CONFIG_MAPS, 1, resourceVersion="999999999999")

    same(sequence)
