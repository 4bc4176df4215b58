"""Tests a DisaggregatedSet rollout of three roles in the simulated cluster while managers crash."""

import re
from contextlib import AsyncExitStack

import pytest
from tests.disaggregated import disaggregatedset_object, role, with_image
from tests.simulation import product
from tests.simulation.cluster import NAMESPACE, Outcome, Settings, SimulatedCluster, simulate, simulated
from tests.simulation.faults import STRIDE, Schedule
from tests.simulation.states import differences, with_conditions_that_hold
from tests.simulation.workloads import groups

from kuberuntime import timeouts
from kuberuntime.errors import NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels
from leaderworkerset.api.disaggregatedset import REVISION, ROLE
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS, ROLE_SCALERS
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.kinds.registry import Registry
from localkube.apiserver.storage.store import Change

OWN = re.compile(r"disaggregatedsets/|(POST|PATCH|DELETE) .*/leaderworkersets[^ ]*(?<!/status)$|-prv$")
"""Writes to the set, to its LeaderWorkerSets, and to the services of roles."""

THREE = disaggregatedset_object([role("prefill", 2), role("decode", 1), role("encode", 1)])


async def create(world: SimulatedCluster, obj: JSONObject) -> None:
    metadata = {name: obj["metadata"][name] for name in ("name", "namespace")}
    await world.client.create(DISAGGREGATED_SETS, obj | {"metadata": metadata})


async def edit(world: SimulatedCluster, spec: JSONObject) -> None:
    await world.patch({"spec": spec}, "split", resource=DISAGGREGATED_SETS)


async def available(world: SimulatedCluster) -> None:
    await world.at_rest()
    found = await world.get(DISAGGREGATED_SETS, "split")
    assert meta.is_condition_true(found, "Available"), meta.status(found)


async def rollout(world: SimulatedCluster) -> None:
    await create(world, THREE)
    await available(world)
    await edit(world, with_image(THREE, "app:2"))
    await available(world)


def with_manager(schedule: Schedule) -> Settings:
    return Settings(managers=(schedule,))


@pytest.fixture(name="undisturbed", scope="module")
def _undisturbed() -> Outcome:
    return simulate(rollout, with_manager(Schedule()))


def writes_of_the_rollout(outcome: Outcome) -> list[int]:
    """Return the numbers of the DisaggregatedSet controller's writes after the change, as schedules count them."""
    own = list(outcome.trace.of("manager-0"))
    edited = next(entry.at for entry in outcome.trace if entry.verb == "PATCH" and entry.actor == "scenario")
    return [
        number
        for number, entry in enumerate(own, 1)
        if entry.at >= edited and OWN.search(f"{entry.verb} {entry.object}")
    ]


def test_role_rollout_survives_a_manager_that_dies_any_time(undisturbed: Outcome) -> None:
    """The manager crashes at each write to the set and the LeaderWorkerSets of its three roles (R-DS-64)."""
    numbers = writes_of_the_rollout(undisturbed)
    assert len(numbers) > 20
    for number in numbers[::STRIDE]:
        outcome = simulate(rollout, with_manager(Schedule(crash_after=number)))
        assert any(entry.answer.endswith("manager-0 died") for entry in outcome.trace)
        found = differences(undisturbed.state, outcome.state)
        assert found == [], f"after the death at write {number}: {found}\n{outcome.trace}"


def test_role_rollout_survives_failing_requests(undisturbed: Outcome) -> None:
    """The revisions of StatefulSets retain the annotations with which they were created."""
    outcome = simulate(rollout, Settings(seed=3, managers=(Schedule(rate=0.2, latency=(0.001, 0.05)),)))
    found = differences(with_conditions_that_hold(undisturbed.state), with_conditions_that_hold(outcome.state))
    assert [one for one in found if not (one.startswith("ControllerRevision ") and labels.REPLICAS in one)] == []


@simulated(with_manager(Schedule()))
async def test_role_is_scaled_during_a_rollout(world: SimulatedCluster) -> None:
    """Each role is scaled by its scaler, and the roles keep their ratio (R-DS-98, R-DS-41)."""
    obj = disaggregatedset_object([role("prefill", external=True), role("decode", 3)])
    await create(world, obj)
    await world.until_objects(ROLE_SCALERS, bool)
    await scale(world, 3)
    await available(world)
    counts: list[dict[str, int]] = []
    world.observe(LEADERWORKERSETS, lambda change: note(change, counts))
    await edit(world, with_image(obj, "app:2"))
    await world.until_objects(LEADERWORKERSETS, lambda found: len(found) == 4)
    await scale(world, 5)
    await available(world)
    sizes = {meta.labels(one)[ROLE]: meta.spec(one)["replicas"] for one in await world.objects(LEADERWORKERSETS)}
    assert sizes == {"prefill": 5, "decode": 3}
    assert all(total >= 3 for total in totals(counts, "decode")), "decode was below its target"


async def scale(world: SimulatedCluster, replicas: int) -> None:
    """Write the scale as an autoscaler does."""
    key = ObjectKey(NAMESPACE, "split-prefill")
    await world.client.patch(ROLE_SCALERS, key, {"spec": {"replicas": replicas}}, kind="merge", subresource="scale")


def note(change: Change, counts: list[dict[str, int]]) -> None:
    """Record the sizes of all LeaderWorkerSets after one of them changes."""
    now = dict(counts[-1]) if counts else {}
    own = meta.labels(change.object)
    name = f"{own[REVISION]}-{own[ROLE]}"
    if change.type == "DELETED":
        now.pop(name, None)
    else:
        now[name] = int(meta.spec(change.object)["replicas"])
    counts.append(now)


def totals(counts: list[dict[str, int]], role_name: str) -> list[int]:
    """Return the numbers of groups of a role while two revisions exist."""
    return [
        sum(size for name, size in now.items() if name.endswith(role_name))
        for now in counts
        if sum(name.endswith(role_name) for name in now) == 2
    ]


def test_sets_are_reconciled_before_other_kinds_are_defined() -> None:
    """The controllers are ready before the CRD exists, and reconcile DisaggregatedSets after it is created.

    Rules R-DS-28, R-DS-107.
    """
    only = Registry(tuple(kind for kind in MANAGED.kinds if kind.resource in (LEADERWORKERSETS, PODS)))
    assert only.custom_resources == (LEADERWORKERSETS,)

    async def scenario(world: SimulatedCluster) -> None:
        with pytest.raises(NotFoundError):
            await world.objects(DISAGGREGATED_SETS)
        async with AsyncExitStack() as stack:
            async with timeouts.within(60):
                await stack.enter_async_context(product.controllers(world.client, world.clock))
            await world.bring_up(groups(replicas=1, size=2))
            await product.install(world.client)
            await create(world, disaggregatedset_object([role("prefill", external=True), role("decode", 2)]))
            await available(world)
            assert [meta.name(one) for one in await world.objects(ROLE_SCALERS)] == ["split-prefill"]

    simulate(scenario, Settings(managers=(), installed=only))
