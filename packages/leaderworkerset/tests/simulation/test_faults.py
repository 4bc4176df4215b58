"""Tests that faults between a manager and the API server do not change the final state."""

import pytest
from tests.fuzz.seeds import seeds
from tests.simulation.cluster import NAMESPACE, Outcome, Settings, SimulatedCluster, simulate, simulated
from tests.simulation.faults import Fault, Schedule
from tests.simulation.states import differences, with_conditions_that_hold
from tests.simulation.workloads import SLOW, groups

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONFIG_MAPS, LEASES, PODS
from leaderworkerset.api.resources import LEADERWORKERSETS
from localkube.apiserver.storage.store import StoreKey


async def creation(world: SimulatedCluster) -> None:
    await world.bring_up(groups(replicas=2, size=2))


def with_managers(*managers: Schedule, seed: int = 1, remembered: int = 10_000) -> Settings:
    return Settings(seed=seed, managers=managers, remembered=remembered)


@pytest.fixture(name="undisturbed", scope="module")
def _undisturbed() -> Outcome:
    return simulate(creation, with_managers(Schedule()))


def writes_of(outcome: Outcome) -> list[int]:
    """Return the numbers of the manager's writes, without events, as schedules count them."""
    return [number for number, _ in enumerate(outcome.trace.of("manager-0"), 1)]


def test_manager_that_dies_at_any_write_changes_no_result(undisturbed: Outcome) -> None:
    numbers = writes_of(undisturbed)
    assert len(numbers) >= 6
    for last in numbers:
        outcome = simulate(creation, with_managers(Schedule(crash_after=last)))
        deaths = [entry for entry in outcome.trace if entry.answer.endswith("manager-0 died")]
        assert len(deaths) == 1, f"no death after write {last}\n{outcome.trace}"
        found = differences(undisturbed.state, outcome.state)
        assert found == [], f"after the death at write {last}: {found}\n{outcome.trace}"


@pytest.mark.parametrize("fault", Fault)
def test_failed_write_is_repeated(fault: Fault, undisturbed: Outcome) -> None:
    every_second = dict.fromkeys(range(1, 20, 2), fault)
    outcome = simulate(creation, with_managers(Schedule(faults=every_second)))
    assert differences(with_conditions_that_hold(undisturbed.state), with_conditions_that_hold(outcome.state)) == []


@pytest.mark.parametrize("seed", seeds(1))
def test_failing_requests_change_no_result(seed: int, undisturbed: Outcome) -> None:
    """A manager that observes ready groups at its first status never reports progress."""
    outcome = simulate(creation, with_managers(Schedule(rate=0.2, latency=(0.001, 0.05)), seed=seed))
    assert differences(with_conditions_that_hold(undisturbed.state), with_conditions_that_hold(outcome.state)) == []


def test_interrupted_watches_are_opened_again(undisturbed: Outcome) -> None:
    cuts = tuple(index / 20 for index in range(1, 60))
    outcome = simulate(creation, with_managers(Schedule(cuts=cuts, latency=(0.001, 0.02))))
    assert differences(undisturbed.state, outcome.state) == []


@simulated(with_managers(SLOW, SLOW))
async def test_second_manager_takes_over_when_the_first_dies(world: SimulatedCluster) -> None:
    await world.until_objects(LEASES, lambda leases: any(meta.spec(lease).get("holderIdentity") for lease in leases))
    first = await holder(world)
    await world.bring_up(groups(replicas=1, size=2))
    await world.kill_manager(first)
    killed = world.clock.monotonic()
    await world.edit(replicas=2)
    await world.until_objects(PODS, lambda pods: len(pods) == 4)
    assert world.clock.monotonic() - killed >= 10, "the lease of the dead was not waited for"
    assert await holder(world) != first
    await world.ready()
    later = {entry.actor for entry in world.trace if entry.at > killed and entry.actor.startswith("manager")}
    assert first not in later


@simulated(with_managers(SLOW, SLOW))
async def test_stopped_manager_hands_over_immediately(world: SimulatedCluster) -> None:
    await world.until_objects(LEASES, lambda leases: any(meta.spec(lease).get("holderIdentity") for lease in leases))
    first = await holder(world)
    await world.stop_manager(first)
    stopped = world.clock.monotonic()
    await world.create(groups(replicas=1, size=2))
    await world.until_objects(PODS, lambda pods: len(pods) == 2)
    assert world.clock.monotonic() - stopped < 5


async def holder(world: SimulatedCluster) -> str:
    (lease,) = await world.objects(LEASES)
    return str(meta.spec(lease)["holderIdentity"])


@simulated(with_managers(Schedule(), remembered=10))
async def test_watch_lists_again_when_its_history_has_expired(world: SimulatedCluster) -> None:
    await world.bring_up(groups(replicas=1, size=2))
    manager = world.managers["manager-0"]
    manager.blind()
    await world.edit(replicas=2)
    await forget(world)
    manager.see()
    await world.ready()
    assert len(await world.uids()) == 4
    assert meta.status(await world.get(LEADERWORKERSETS, "web"))["readyReplicas"] == 2


async def forget(world: SimulatedCluster) -> None:
    """Write directly to the store until it drops its history."""
    store = world.server.backend.store
    key, compacted = StoreKey(CONFIG_MAPS.group_resource, NAMESPACE, "noise"), store.compacted
    obj: JSONObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": key.name, "namespace": NAMESPACE}}
    obj = store.create(key, obj)
    while store.compacted <= compacted:
        for _ in range(100):
            obj = store.update(key, obj, obj)
        await store.wait_committed()


@simulated(with_managers(Schedule()))
async def test_unavailable_webhook_delays_pods(world: SimulatedCluster) -> None:
    world.webhooks.is_down = True
    with pytest.raises(Exception, match=r"failed calling webhook .* connection refused"):
        await world.create(groups(replicas=1, size=2))
    world.webhooks.is_down = False
    await world.create(groups(replicas=1, size=2))
    world.webhooks.delay = 11.0
    await world.at_rest()
    assert await world.uids() == {}, "a pod came without its webhook"
    world.webhooks.delay = 0.0
    await world.until_objects(PODS, lambda pods: len(pods) == 2)
    await world.ready()
