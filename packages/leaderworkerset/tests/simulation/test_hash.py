"""Tests the replacement gate of groups with random keys in a simulated cluster."""

from collections.abc import Iterable
from random import Random

import pytest
from tests.fuzz.seeds import seeds
from tests.simulation.cluster import Settings, SimulatedCluster, simulate, simulated
from tests.simulation.faults import Schedule
from tests.simulation.workloads import SLOW, groups, template

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import DEPLOYMENTS, PODS, STATEFULSETS
from leaderworkerset.api import labels
from leaderworkerset.core.policies.replacement import is_gated
from localkube.apiserver.storage.store import Change

STEPS = 6
MOST = 5
"""The maximum number of replicas. A schedule selects fewer."""


class Held:
    """Checks the number of groups that use capacity against the permitted number, at every write."""

    def __init__(self, surge: int) -> None:
        self._pods: dict[str, JSONObject] = {}
        self._surge = surge
        self.allowed = 0
        self.broken: list[str] = []

    def pod_changed(self, change: Change) -> None:
        """Count the groups after a pod was written."""
        self._pods.pop(change.key.name, None)
        if change.type != "DELETED":
            self._pods[change.key.name] = change.object
        if (now := len(self.groups())) > self.allowed:
            self.broken.append(f"{now} groups hold capacity, and {self.allowed} may")

    def groups(self) -> set[str]:
        """Return the groups that have an ungated pod."""
        return {meta.labels(pod)[labels.GROUP_INDEX] for pod in self._pods.values() if not is_gated(pod)}

    def scaled(self, replicas: int) -> None:
        """Permit the current number of groups until the surplus groups are deleted."""
        self.allowed = max(replicas + self._surge, len(self.groups()), self.allowed)

    def settled(self, replicas: int) -> None:
        """Permit the number of groups in the spec."""
        self.allowed = replicas + self._surge


def leaders(pods: Iterable[JSONObject]) -> list[JSONObject]:
    return [pod for pod in pods if meta.labels(pod).get(labels.WORKER_INDEX) == labels.LEADER_WORKER_INDEX]


async def schedule(world: SimulatedCluster, held: Held, random: Random) -> None:
    """Change, fail, delete and kill in random order and partly concurrently. At the end, the set is stable."""
    replicas = 3
    held.settled(replicas)
    spec = {"groupIdentity": "Hash", "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": {}}}
    spec["rolloutStrategy"]["rollingUpdateConfiguration"] = {"maxUnavailable": 1, "maxSurge": held._surge}  # type: ignore[index]
    await world.create(groups(replicas, 2, **spec))
    for step in range(STEPS):
        if random.random() < 0.6:
            await world.ready()
            held.settled(replicas)
        match random.choice(["scale", "roll", "fail", "delete", "kill"]):
            case "scale":
                replicas = random.randrange(1, MOST)
                held.scaled(replicas)
                await world.edit(replicas=replicas)
            case "roll":
                await world.edit(leaderWorkerTemplate={"workerTemplate": template(f"app:{step}")})
            case "fail":
                await world.fail_any(random)
            case "delete":
                found = leaders(await world.objects(PODS))
                if found:
                    await world.delete(meta.name(random.choice(found)), PODS)
            case "kill":
                await world.kill_manager("manager-0")
                world.start_manager("manager-0", SLOW)
    await world.ready()
    pods = await world.objects(PODS)
    assert [meta.name(pod) for pod in pods if is_gated(pod)] == []
    assert len(pods) == 2 * replicas


@pytest.mark.parametrize("surge", [0, 1])
@pytest.mark.parametrize("seed", [*seeds(1), 149])  # with seed 149, a rollout was blocked
def test_replacement_gate_keeps_capacity_and_every_group_starts(seed: int, surge: int) -> None:
    """The replacement gate limits the used capacity, and every group starts (N-AT-5)."""
    held = Held(surge)

    async def scenario(world: SimulatedCluster) -> None:
        world.observe(PODS, held.pod_changed)
        await schedule(world, held, Random(f"{seed} {surge}"))

    simulate(scenario, Settings(seed=seed, managers=(SLOW,), others=SLOW))
    assert held.broken == []


@pytest.mark.long
def test_groups_are_complete_although_managers_die_at_any_write() -> None:
    async def creation(world: SimulatedCluster) -> None:
        await world.bring_up(groups(2, 2, groupIdentity="Hash"))
        assert len(await world.objects(PODS)) == 4

    writes = len(simulate(creation, Settings(managers=(Schedule(),))).trace.of("manager-0"))
    for last in range(1, writes + 1):
        simulate(creation, Settings(managers=(Schedule(crash_after=last),)))


@simulated(Settings(managers=(SLOW,), others=SLOW))
async def test_deletion_leaves_nothing(world: SimulatedCluster) -> None:
    await world.bring_up(groups(2, 2, groupIdentity="Hash"))
    await world.delete()
    await world.at_rest()
    for resource in (DEPLOYMENTS, STATEFULSETS, PODS):
        assert await world.objects(resource) == []
