"""Tests the garbage collector with three propagation policies, deleted owners, and blocking owners."""

import pytest
from tests.conformance.controllers.conftest import CheckSame
from tests.conformance.controllers.stage import Stage
from tests.conformance.controllers.test_statefulsets import settled, web

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONFIG_MAPS, PODS, STATEFULSETS


def owned(name: str, *owners: JSONObject, blocking: bool = False) -> JSONObject:
    """Return a ConfigMap with owners."""
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": meta.name(one), "uid": meta.uid(one)}
        | ({"blockOwnerDeletion": True} if blocking else {})
        for one in owners
    ]
    return {"metadata": {"name": name, "ownerReferences": references}}


def names(stage: Stage) -> list[str]:
    """Return the names of the ConfigMaps."""
    return [*stage.objects(CONFIG_MAPS)]


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_dependents_are_deleted_with_their_owner(same: CheckSame, propagation: str) -> None:
    async def scenario(stage: Stage) -> None:
        top = await stage.create(CONFIG_MAPS, {"metadata": {"name": "top"}})
        middle = await stage.create(CONFIG_MAPS, owned("middle", top, blocking=True))
        await stage.create(CONFIG_MAPS, owned("leaf", middle, blocking=True))
        other = await stage.create(CONFIG_MAPS, {"metadata": {"name": "other"}})
        await stage.create(CONFIG_MAPS, owned("shared", top, other))
        await stage.tell("all", lambda one: len(names(one)) == 5)
        await stage.delete(CONFIG_MAPS, "top", propagation)
        await stage.tell(
            "only the other",
            lambda one: (
                names(one) == ["other", "shared"]
                and len(meta.metadata(one.objects(CONFIG_MAPS)["shared"])["ownerReferences"]) == 1
            ),
        )

    same(scenario)


def test_orphans_are_kept(same: CheckSame) -> None:
    async def scenario(stage: Stage) -> None:
        top = await stage.create(CONFIG_MAPS, {"metadata": {"name": "top"}})
        await stage.create(CONFIG_MAPS, owned("leaf", top))
        await stage.delete(CONFIG_MAPS, "top", "Orphan")
        await stage.tell("an orphan", lambda one: names(one) == ["leaf"])

    same(scenario)


def test_dependent_with_a_finalizer_blocks_its_owner(same: CheckSame) -> None:
    async def scenario(stage: Stage) -> None:
        top = await stage.create(CONFIG_MAPS, {"metadata": {"name": "top"}})
        held = owned("leaf", top, blocking=True)
        held["metadata"]["finalizers"] = ["example.com/hold"]
        await stage.create(CONFIG_MAPS, held)
        await stage.delete(CONFIG_MAPS, "top", "Foreground")
        await stage.tell("a held leaf", lambda one: meta.is_deleting(one.objects(CONFIG_MAPS).get("leaf", {})))
        await stage.patch(CONFIG_MAPS, "leaf", {"metadata": {"finalizers": None}})
        await stage.tell("nothing", lambda one: names(one) == [])

    same(scenario)


def test_object_with_an_unknown_owner_is_deleted(same: CheckSame) -> None:
    async def scenario(stage: Stage) -> None:
        top = await stage.create(CONFIG_MAPS, {"metadata": {"name": "top"}})
        stranger = {**top, "metadata": {"name": "top", "uid": "11111111-2222-3333-4444-555555555555"}}
        await stage.create(CONFIG_MAPS, owned("leaf", stranger))
        await stage.tell("the top alone", lambda one: "leaf" in one.seen and names(one) == ["top"])

    same(scenario)


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_statefulset_is_deleted_with_its_pods(same: CheckSame, propagation: str) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.create(STATEFULSETS, web())
        await stage.until("two pods", settled("web-0", "web-1"))
        await stage.delete(STATEFULSETS, "web", propagation)
        await stage.tell("nothing", lambda one: not one.objects(STATEFULSETS) and not one.objects(PODS))

    same(scenario)
