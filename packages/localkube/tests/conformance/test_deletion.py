"""Tests deletion with options, preconditions, finalizers, grace periods, collections, and dry runs."""

import pytest
from testkit.customkind import LEADERWORKERSETS
from tests.conformance.conftest import CheckSame
from tests.conformance.objects import lws, named, pod, service, statefulset
from tests.conformance.transcript import Session

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONFIG_MAPS, NAMESPACES, PODS, SERVICES, STATEFULSETS

OPTIONS: tuple[JSONObject, ...] = (
    {}, {"propagationPolicy": "Background"}, {"propagationPolicy": "Foreground"}, {"propagationPolicy": "Orphan"},
    {"propagationPolicy": "Odd"}, {"orphanDependents": True}, {"orphanDependents": False},
    {"orphanDependents": True, "propagationPolicy": "Orphan"}, {"gracePeriodSeconds": -1}, {"gracePeriodSeconds": 10},
    {"preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}}, {"preconditions": {"resourceVersion": "1"}},
    {"dryRun": ["All"]}, {"dryRun": ["Some"]}, {"kind": "DeleteOptions", "apiVersion": "v1"}, {"kind": "Odd"},
    {"kind": "DeleteOptions", "apiVersion": "apps/v1"}, {"gracePeriodSeconds": "x"}, {"unknown": 1},
    {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "propagationPolicy": "Foreground"},
)  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_deletion_options_are_validated(same: CheckSame, options: JSONObject) -> None:
    async def sequence(session: Session) -> None:
        for resource, obj in (
            (CONFIG_MAPS, named("one")), (STATEFULSETS, statefulset("one")), (LEADERWORKERSETS, lws("one")),
            (SERVICES, service("one", clusterIP="None")), (PODS, pod("one", nodeName="n")), (PODS, pod("two")),
        ):  # fmt: skip
            name = obj["metadata"]["name"]
            await session.create(resource, obj)
            await session.delete(resource, name, options)
            await session.get(resource, name)

    same(sequence)


def test_finalizers_keep_an_object(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        for resource, obj in ((CONFIG_MAPS, named("one")), (LEADERWORKERSETS, lws("one"))):
            held = {**obj, "metadata": {**obj["metadata"], "finalizers": ["example.com/a", "example.com/b"]}}
            await session.create(resource, held)
            await session.delete(resource, "one")
            await session.delete(resource, "one")
            await session.create(resource, obj)
            await session.patch(resource, "one", {"metadata": {"labels": {"a": "b"}}})
            await session.patch(resource, "one", {"metadata": {"finalizers": ["example.com/a", "example.com/c"]}})
            await session.patch(resource, "one", {"metadata": {"finalizers": ["example.com/a"]}})
            await session.delete(resource, "one", {"propagationPolicy": "Foreground"})
            await session.patch(resource, "one", {"metadata": {"finalizers": ["example.com/a"]}})
            await session.patch(resource, "one", {"metadata": {"finalizers": None}})
            await session.get(resource, "one")

    same(sequence)


def test_pods_are_deleted_after_their_grace_period(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        await session.create(PODS, pod("one", nodeName="n"))
        await session.delete(PODS, "one")
        await session.delete(PODS, "one", {"gracePeriodSeconds": 5})
        await session.delete(PODS, "one", {"gracePeriodSeconds": 60})
        await session.patch(PODS, "one", {"status": {"phase": "Failed"}}, subresource="status")
        await session.delete(PODS, "one", {"gracePeriodSeconds": 0})
        await session.get(PODS, "one")
        await session.create(PODS, pod("two", nodeName="n", terminationGracePeriodSeconds=0))
        await session.delete(PODS, "two")
        await session.create(PODS, pod("three", nodeName="n"))
        await session.patch(PODS, "three", {"status": {"phase": "Succeeded"}}, subresource="status")
        await session.delete(PODS, "three")
        await session.create(PODS, pod("four"))
        await session.delete(PODS, "four", {"gracePeriodSeconds": 20})
        await session.create(
            PODS, {**pod("five", nodeName="n"), "metadata": {"name": "five", "finalizers": ["example.com/a"]}}
        )
        await session.delete(PODS, "five", {"gracePeriodSeconds": 0})
        await session.patch(PODS, "five", {"metadata": {"finalizers": None}})
        await session.get(PODS)

    same(sequence)


def test_collections_are_deleted(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        for name in "abc":
            await session.create(CONFIG_MAPS, named(name))
            await session.create(PODS, pod(name, nodeName="n"))
        await session.delete(CONFIG_MAPS, fieldSelector="metadata.name=b")
        await session.delete(CONFIG_MAPS, dryRun="All")
        await session.delete(CONFIG_MAPS, "", {"propagationPolicy": "Foreground"})
        await session.delete(PODS, "", {"gracePeriodSeconds": 0})
        await session.get(CONFIG_MAPS)
        await session.get(PODS)
        await session.delete(SERVICES)

    same(sequence)


def test_dry_runs_store_nothing(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        await session.create(CONFIG_MAPS, named("one"), dryRun="All")
        await session.get(CONFIG_MAPS, "one")
        made = await session.create(CONFIG_MAPS, named("one"))
        await session.create(CONFIG_MAPS, named("one"), dryRun="All")
        await session.update(CONFIG_MAPS, {**made, "data": {"a": "1"}}, dryRun="All")
        await session.patch(CONFIG_MAPS, "one", {"data": {"a": "1"}}, dryRun="All")
        await session.delete(CONFIG_MAPS, "one", dryRun="All")
        await session.get(CONFIG_MAPS, "one")
        await session.create(CONFIG_MAPS, named("two"), dryRun="Some")
        await session.create(LEADERWORKERSETS, lws("one"), dryRun="All")
        await session.create(CONFIG_MAPS, {"metadata": {"generateName": "x-"}}, dryRun="All")

    same(sequence)


def test_namespaces_are_terminated(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        await session.send("POST", "/api/v1/namespaces", {"metadata": {"name": "test-deletion-ending"}})
        await session.delete(NAMESPACES, "test-deletion-ending")
        await session.send("POST", "/api/v1/namespaces/test-deletion-ending/configmaps", {"metadata": {"name": "a"}})
        await session.delete(NAMESPACES, "test-deletion-ending")
        await session.send("PUT", "/api/v1/namespaces/test-deletion-ending/finalize", {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "test-deletion-ending"}, "spec": {"finalizers": []}})  # fmt: skip
        await session.get(NAMESPACES, "test-deletion-ending")

    same(sequence)
