"""Tests groups with random keys, whose leaders belong to a Deployment (contract-newest, sections 5 to 7)."""

from typing import Any

import pytest
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State, conditions, is_ready, revision_of, shows

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONFIG_MAPS, PODS, SERVICES
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS

HASH: dict[str, Any] = {"groupIdentity": "Hash"}


def leaders(state: State) -> list[str]:
    """Return the names of the leaders."""
    return [name for name, pod in state.of("web").items() if meta.labels(pod)[labels.WORKER_INDEX] == "0"]


def assert_settled(state: State, replicas: int, size: int) -> None:
    """Check that all groups are complete and ready, have one revision, and are named after their leaders.

    No other object exists.
    """
    obj = state.leaderworkersets["web"]
    assert meta.status(obj).get("observedGeneration") == meta.generation(obj)
    assert conditions(obj)["Available"] == "True"
    assert conditions(obj).get("UpdateInProgress", "False") == "False"
    counts = [meta.status(obj).get(field, 0) for field in ("replicas", "readyReplicas", "updatedReplicas")]
    assert counts == [replicas] * 3
    pods = state.of("web")
    assert len(pods) == replicas * size
    assert all(map(is_ready, pods.values()))
    assert len({revision_of(pod) for pod in pods.values()}) <= 1
    assert len(state.revisions) == 1
    for leader in leaders(state):
        host = meta.spec(pods[leader])["hostname"]
        assert host == f"web-{meta.labels(pods[leader])[labels.GROUP_KEY][:8]}"
        workers = {name for name, pod in pods.items() if meta.annotations(pod).get(labels.LEADER_NAME) == leader}
        assert workers == {f"{host}-{worker}" for worker in range(1, size)}
        assert "schedulingGates" not in meta.spec(pods[leader])


async def settled(space: LiveScenario, replicas: int, size: int, *, limit: float = 20) -> State:
    def is_settled(state: State) -> None:
        assert meta.generation(state.leaderworkersets["web"]) >= space.written
        assert_settled(state, replicas, size)

    return await space.until(is_settled, limit=limit)


async def edit(space: LiveScenario, **spec: Any) -> None:
    space.written = meta.generation(await space.edit(**spec))


def worker_of(state: State, leader: str) -> str:
    return f"{meta.spec(state.pods[leader])['hostname']}-1"


async def test_groups_with_random_keys_are_created_and_scaled(space: LiveScenario) -> None:
    """Groups with random keys are created and scaled (N-HASH-1, N-HASH-2, N-HASH-5, N-HASH-21, N-HASH-22, N-HASH-25)."""
    await space.create(lws(replicas=2, size=3, **HASH))
    before = await settled(space, 2, 3)
    assert before.notes("GroupsProgressing")[0] == "Created leader deployment web"
    assert len(before.statefulsets) == 2
    await edit(space, replicas=4)
    grown = await settled(space, 4, 3)
    assert before.uids("web").items() <= grown.uids("web").items()
    await edit(space, replicas=1)
    await settled(space, 1, 3)
    await edit(space, replicas=0)
    await settled(space, 0, 3)
    await edit(space, replicas=1)
    await settled(space, 1, 3)
    await space.delete("web", LEADERWORKERSETS, propagation="Foreground")
    await space.until(
        shows(
            lambda state: (state.leaderworkersets, state.of("web"), state.statefulsets, state.services),
            ({}, {}, {}, {}),
        )
    )


async def test_new_template_replaces_all_groups(space: LiveScenario) -> None:
    """A new template replaces all groups (N-HASH-3, N-ST-2, N-ST-3, N-AT-1, N-AT-7)."""
    await space.create(lws(replicas=3, size=2, rollout={"maxSurge": 1}, **HASH))
    before = await settled(space, 3, 2)
    space.always(lambda state: assert_bounded(state, 4))
    await edit(space, leaderWorkerTemplate={"workerTemplate": pod_template("app:2")})
    after = await settled(space, 3, 2)
    assert not before.uids("web").items() & after.uids("web").items()


async def test_group_of_one_pod_rolls_and_is_replaced(space: LiveScenario) -> None:
    """The leader does not have a readiness gate, because it has no workers (N-HASH-25)."""
    await space.create(lws(replicas=2, size=1, **HASH))
    state = await settled(space, 2, 1)
    await space.delete(leaders(state)[0], PODS)
    await replaced(space, state, 1, size=1)
    await edit(space, leaderWorkerTemplate={"workerTemplate": pod_template("app:2")})
    await settled(space, 2, 1)


async def test_worker_failure_or_leader_deletion_replaces_the_group(space: LiveScenario) -> None:
    """A new group replaces the failed group, and is scheduled after its deletion (N-HASH-6, R-POD-5)."""
    await space.create(lws(replicas=3, size=2, **HASH))
    before = await settled(space, 3, 2)
    space.always(lambda state: assert_bounded(state, 3))
    await space.fail(worker_of(before, leaders(before)[0]))
    between = await replaced(space, before, 1)
    await space.delete(leaders(between)[0], PODS)
    await replaced(space, between, 1)


async def test_groups_with_random_keys_get_their_own_services(space: LiveScenario) -> None:
    """Groups with an older revision retain their Service (N-HASH-23, N-AT-8)."""
    own: dict[str, Any] = {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}
    await space.create(lws(replicas=2, size=2, **HASH, **own))
    state = await settled(space, 2, 2)
    assert state.services.keys() == {meta.spec(state.pods[leader])["hostname"] for leader in leaders(state)}
    await edit(space, networkConfig={"subdomainPolicy": "Shared"})
    await settled(space, 2, 2)


async def test_workers_wait_for_the_containers_of_their_leader(space: LiveScenario) -> None:
    """The leader pod becomes ready after its workers (N-HASH-8)."""
    await space.create(lws(replicas=1, size=2, startupPolicy="LeaderReady", **HASH))
    await settled(space, 1, 2)


@pytest.mark.parametrize("identity", ["Ordinal", "Hash"])
async def test_conflicting_service_is_reported_until_it_is_gone(space: LiveScenario, identity: str) -> None:
    """The groups run, but the set is not available because their names do not resolve (docs/adr/0030) (N-HASH-24)."""
    owner = await space.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}, CONFIG_MAPS)
    own = {labels.NAME: "web"}
    controlled = {"name": "web", "labels": own, "ownerReferences": [meta.controller_reference(owner)]}
    spec = {"clusterIP": "None", "selector": {"app": "theirs"}}
    await space.create({"apiVersion": "v1", "kind": "Service", "metadata": controlled, "spec": spec}, SERVICES)
    await space.create(lws(replicas=1, size=2, groupIdentity=identity))

    def is_told(state: State) -> None:
        found = state.leaderworkersets["web"]
        assert (meta.status(found).get("readyReplicas"), meta.is_condition_true(found, "Available")) == (1, False)
        told = "headless service web has controller owner ConfigMap other; expected LeaderWorkerSet web"
        assert any(told in note for note in state.notes("FailedCreate"))

    await space.until(is_told)
    await space.delete("web", SERVICES)
    await space.until(
        shows(lambda state: (meta.controller_of(state.services["web"]) or {})["kind"], LEADERWORKERSETS.kind)
    )


@pytest.mark.parametrize(("length", "size"), [(43, 2), (54, 1)])
async def test_longest_names_are_supported(space: LiveScenario, length: int, size: int) -> None:
    """The longest names are supported (N-AT-4, N-VAL-8)."""
    name = "n" * length
    await space.create(lws(name, replicas=1, size=size, **HASH))

    def is_available(state: State) -> None:
        assert conditions(state.leaderworkersets[name])["Available"] == "True"
        assert len(state.of(name)) == size

    await space.until(is_available)


async def replaced(space: LiveScenario, before: State, groups: int, *, size: int = 2) -> State:
    """Wait until `count` groups were replaced and all others are unchanged."""
    replicas = len(leaders(before))

    def are_replaced(state: State) -> None:
        assert_settled(state, replicas, size)
        assert len(before.uids("web").items() - state.uids("web").items()) == groups * size

    return await space.until(are_replaced)


def assert_bounded(state: State, most: int) -> None:
    """Check that at most the permitted number of groups uses capacity at any time."""
    holding = {group_of(pod) for pod in state.of("web").values() if "schedulingGates" not in meta.spec(pod)}
    assert len(holding) <= most, holding


def group_of(pod: JSONObject) -> str:
    return meta.labels(pod)[labels.GROUP_INDEX]
