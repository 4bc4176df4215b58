"""Tests dependents whose names are already in use, for all kinds and both identities (docs/adr/0030)."""

from itertools import product

import pytest
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State
from tests.integration.lwsctl.explanations import named, warned

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import DEPLOYMENTS, PODS, SERVICES, STATEFULSETS, Resource
from leaderworkerset.api import labels

HASH = {"groupIdentity": "Hash"}
UNIQUE = {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}
THING = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "other", "uid": "1234", "controller": True}
OTHER = {"app": "other"}
POD = {"metadata": {"labels": OTHER}, "spec": {"containers": [{"name": "main", "image": "app:1"}]}}

CHILDREN: dict[str, tuple[Resource, str, int, JSONObject]] = {
    "workers": (STATEFULSETS, "web-0", 2, {}),
    "leaders": (STATEFULSETS, "web", 2, {}),
    "leaders alone": (STATEFULSETS, "web", 1, {}),
    "keyed leaders": (DEPLOYMENTS, "web", 2, HASH),
    "keyed leaders alone": (DEPLOYMENTS, "web", 1, HASH),
    "service": (SERVICES, "web", 2, {}),
    "service alone": (SERVICES, "web", 1, {}),
    "keyed service": (SERVICES, "web", 2, HASH),
    "own service": (SERVICES, "web-0", 2, UNIQUE),
    "own service alone": (SERVICES, "web-0", 1, UNIQUE),
}

MANNERS = [*product((False, True), repeat=2)]


def foreign(resource: Resource, name: str, *, is_owned: bool, is_labelled: bool) -> JSONObject:
    """Return an unrelated object, with or without a controller, and with or without the project's labels."""
    own: JSONObject = {labels.NAME: "web", labels.GROUP_INDEX: "0"} if is_labelled else {}
    spec: JSONObject = {"ports": [{"port": 80}], "selector": OTHER}
    if resource is not SERVICES:
        spec = {"replicas": 0, "selector": {"matchLabels": OTHER}, "template": POD}
    metadata = {"name": name, "labels": own, "ownerReferences": [THING] if is_owned else []}
    return {**resource.type_meta, "metadata": metadata, "spec": spec}


def available(state: State) -> None:
    assert meta.is_condition_true(state.leaderworkersets["web"], "Available")


def _never_available(state: State) -> None:
    for obj in state.leaderworkersets.values():
        assert not meta.is_condition_true(obj, "Available")


@pytest.mark.parametrize(("is_owned", "is_labelled"), MANNERS, ids=["plain", "labelled", "owned", "owned labelled"])
@pytest.mark.parametrize("child", CHILDREN)
async def test_name_in_use_is_reported(space: LiveScenario, child: str, *, is_owned: bool, is_labelled: bool) -> None:
    resource, name, size, settings = CHILDREN[child]
    has_ready_leader = resource is SERVICES or name == "web-0"
    is_counted = resource is SERVICES and name == "web"  # the groups run, but the set is blocked (docs/adr/0043)

    def reported(state: State) -> None:
        status = meta.status(state.leaderworkersets["web"])
        assert status["observedGeneration"] == 1
        assert not has_ready_leader or any(meta.is_condition_true(pod, "Ready") for pod in state.pods.values())
        assert status.get("readyReplicas", 0) in (0, int(is_counted))

    space.always(_never_available)
    await space.create(foreign(resource, name, is_owned=is_owned, is_labelled=is_labelled), resource)
    await space.create(lws(replicas=1, size=size, **settings))
    await space.until(warned(" Thing other" if is_owned else "has no controller"))
    await space.until(reported)
    told = await named(space, "LWS-E019")
    assert f'"{name}"' in told.sentence or f" {name} " in told.sentence


@pytest.mark.parametrize("is_owned", [False, True], ids=["plain", "owned labelled"])
@pytest.mark.parametrize("name", ["web-0", "web-0-1"], ids=["leader", "worker"])
async def test_pod_with_the_name_of_a_rank_is_reported(space: LiveScenario, name: str, *, is_owned: bool) -> None:
    """The StatefulSet controller retries repeatedly without an event."""
    own = {labels.NAME: "web", labels.GROUP_INDEX: "0", labels.WORKER_INDEX: "1" if name == "web-0-1" else "0"}
    metadata = {"name": name, "labels": own if is_owned else OTHER, "ownerReferences": [THING] if is_owned else []}
    metadata["annotations"] = {labels.SIZE: "2"}
    space.always(_never_available)
    await space.create({**PODS.type_meta, "metadata": metadata, "spec": pod_template()["spec"]}, PODS)
    await space.create(lws(replicas=1, size=2))
    told = await named(space, "LWS-E019", seconds=30)
    owner = "is controlled by Thing other" if is_owned else "has no controller"
    assert told.sentence == f'pod {name} of web cannot be created: pods "{name}" already exists and {owner}'


async def test_orphaned_workers_are_counted(space: LiveScenario) -> None:
    """After `kubectl delete pod web-0 --cascade=orphan`, no object controls the worker StatefulSet."""
    before = (await space.bring_up(lws(replicas=1, size=2))).statefulsets["web-0"]
    await space.delete("web-0", PODS, propagation="Orphan")

    def counted(state: State) -> None:
        assert meta.is_condition_true(state.pods["web-0"], "Ready")
        assert meta.controller_of(state.statefulsets["web-0"]) is None
        assert meta.uid(state.statefulsets["web-0"]) == meta.uid(before)
        assert meta.status(state.leaderworkersets["web"])["readyReplicas"] == 1

    await space.until(counted)


@pytest.mark.parametrize("child", CHILDREN)
async def test_set_gets_ready_when_the_name_is_free(space: LiveScenario, child: str) -> None:
    resource, name, size, settings = CHILDREN[child]
    await space.create(foreign(resource, name, is_owned=False, is_labelled=False), resource)
    await space.create(lws(replicas=1, size=size, **settings))
    await space.until(warned("has no controller"))
    await space.delete(name, resource)
    await space.until(available)
