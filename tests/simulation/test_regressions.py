"""Races and storms that controllers of groups were seen to lose, a scenario each.

Every one is played with several seeds: a seed decides who comes first. What is counted are pods at the moment when the
API server commits them, whoever asked for it.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import pytest
from tests.simulation.cluster import NAMESPACE, Settings, World, simulate
from tests.simulation.faults import Schedule
from tests.simulation.workloads import SLOW, groups, template

from kuberuntime.errors import ConflictError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS, STATEFULSETS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.restarts.settings import DEFAULTS, RestartSettings
from leaderworkerset.kinds.managed import managed
from localkube.apiserver.storage.store import Change
from localkube.kubelet.processes.model import Program, Script, run_forever
from localkube.kubelet.processes.runner import ContainerSpec, Exit

SEEDS: Final = (1, 2)

LAGGING: Final = Schedule(latency=(0.5, 1.5))
"""A manager that sees and writes everything late."""

Scenario = Callable[[World], Awaitable[None]]


@dataclass
class Leaders:
    """The leader pods of `web` as they come and go: how often each was created, and the fewest that were ready."""

    births: Counter[str] = field(default_factory=Counter)
    ready: dict[str, bool] = field(default_factory=dict)
    fewest: int | None = None

    def see(self, change: Change) -> None:
        """Take note of one change of a pod."""
        if meta.labels(change.object).get(labels.WORKER_INDEX) != "0":
            return
        name = change.key.name
        self.births[name] += change.previous is None
        is_there = change.type != "DELETED" and not meta.is_deleting(change.object)
        self.ready[name] = is_there and meta.is_condition_true(change.object, "Ready")
        count = sum(self.ready.values())
        self.fewest = count if self.fewest is None else min(self.fewest, count)


def play(
    scenario: Scenario,
    *,
    seed: int = 1,
    manager: Schedule = SLOW,
    script: Script = run_forever,
    restarts: RestartSettings = DEFAULTS,
) -> None:
    """Play a scenario."""
    kinds = managed(restarts=restarts)
    simulate(scenario, Settings(seed=seed, managers=(manager,), others=SLOW, script=script, kinds=kinds))


def watch(world: World, *, ready: int = 0) -> Leaders:
    """Count leaders from now on, of which so many are ready."""
    leaders = Leaders(ready={f"web-{index}": True for index in range(ready)})
    world.observe(PODS, leaders.see)
    return leaders


async def fail(world: World, pod: str) -> None:
    """End the process of a pod with an error."""
    uid = (await world.uids())[pod]
    for key, process in list(world.runner.processes.items()):
        if process.spec.sandbox_id == uid:
            world.runner.end(key, Exit(1))


async def images(world: World) -> set[str]:
    """Return the images of all pods."""
    return {meta.spec(pod)["containers"][0]["image"] for pod in await world.objects(PODS)}


async def roll(world: World, image: str) -> None:
    """Change the image of all pods."""
    await world.edit(leaderWorkerTemplate={"workerTemplate": template(image)})


def has_updated(image: str) -> Callable[[list[JSONObject]], bool]:
    """Return whether a pod of this image is ready."""
    return lambda pods: any(
        meta.spec(pod)["containers"][0]["image"] == image and meta.is_condition_true(pod, "Ready") for pod in pods
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_an_update_creates_every_leader_once(seed: int) -> None:
    """Its old workers end after it, and must not take the new one along (R-POD-10)."""

    async def scenario(world: World) -> None:
        await world.create(groups(replicas=2, size=2))
        await world.ready()
        leaders = watch(world)
        await roll(world, "app:2")
        await world.ready()
        assert leaders.births == {"web-0": 1, "web-1": 1}

    play(scenario, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_group_is_recreated_also_where_its_worker_was_replaced_first(seed: int) -> None:
    """The manager sees the deletion when the new worker is there already (R-POD-11)."""

    async def scenario(world: World) -> None:
        await world.create(groups(replicas=1, size=3))
        await world.ready()
        before = await world.uids()
        leaders = watch(world)
        await world.client.delete(PODS, ObjectKey(NAMESPACE, "web-0-1"), grace_period=0)
        await world.until(PODS, lambda pods: any(is_successor(pod, before) for pod in pods))
        await world.ready()
        assert leaders.births == {"web-0": 1}
        assert not before.items() & (await world.uids()).items()

    def is_successor(pod: JSONObject, before: dict[str, str]) -> bool:
        return meta.name(pod) == "web-0-1" and meta.uid(pod) != before["web-0-1"]

    play(scenario, seed=seed, manager=LAGGING)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_name_deleted_and_created_at_once_is_another_set(seed: int) -> None:
    """Nothing of the old one is taken over, and nothing of it is left."""

    async def scenario(world: World) -> None:
        await world.create(groups(replicas=2, size=2))
        old = await world.ready()
        before = set((await world.uids()).values())
        await world.delete(LEADERWORKERSETS, "web")
        new = groups(replicas=2, size=2)
        new["spec"]["leaderWorkerTemplate"]["workerTemplate"] = template("app:2")
        try:
            await world.create(new)
        except ConflictError:
            await world.until(LEADERWORKERSETS, lambda found: not found)
            await world.create(new)
        created = await world.ready()
        assert meta.uid(created) != meta.uid(old)
        assert not before & set((await world.uids()).values())
        assert await images(world) == {"app:2"}
        owners = {owner["uid"] for one in await world.objects(STATEFULSETS) if (owner := meta.controller_of(one))}
        assert meta.uid(old) not in owners
        revisions = await world.objects(CONTROLLER_REVISIONS)
        assert all((meta.controller_of(one) or {}).get("uid") != meta.uid(old) for one in revisions)

    play(scenario, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_scaling_down_a_set_whose_groups_fail_leaves_no_worker(seed: int) -> None:
    async def scenario(world: World) -> None:
        await world.create(groups(replicas=3, size=3))
        await world.ready()
        await fail(world, "web-2-1")
        await fail(world, "web-1-2")
        await world.edit(replicas=1)
        await world.ready()
        assert set(await world.uids()) == {"web-0", "web-0-1", "web-0-2"}
        assert set(await world.uids(STATEFULSETS)) == {"web", "web-0"}
        left = [name for name in await world.uids(CONTROLLER_REVISIONS) if name.endswith("-recreations")]
        assert left == []

    play(scenario, seed=seed)


def test_workers_without_start_ordinals_do_not_lead_groups_of_their_own() -> None:
    """An API server that knows no start ordinals numbers workers from 0 (R-POD-6)."""

    async def scenario(world: World) -> None:
        await world.create(groups(replicas=1, size=3))
        await world.ready()
        unnumbered = {"spec": {"ordinals": {"start": 0}}}
        await world.client.patch(STATEFULSETS, ObjectKey(NAMESPACE, "web-0"), unnumbered, kind="merge")
        await world.until(PODS, lambda pods: any(meta.name(pod) == "web-0-0" for pod in pods))
        await world.at_rest()
        assert set(await world.uids(STATEFULSETS)) == {"web", "web-0"}

    play(scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_surge_groups_stay_until_the_groups_they_stand_in_for_are_ready(seed: int) -> None:
    """R-ROLL-3: with maxUnavailable 0 there are never fewer ready groups than wanted."""

    async def scenario(world: World) -> None:
        lws = groups(replicas=2, size=2)
        rolling = lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]
        lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"] = rolling | {"maxSurge": 1, "maxUnavailable": 0}
        await world.create(lws)
        await world.ready()
        leaders = watch(world, ready=2)
        await roll(world, "app:2")
        await world.ready()
        assert leaders.fewest == 2
        assert set(await world.uids()) == {"web-0", "web-0-1", "web-1", "web-1-1"}

    play(scenario, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_update_in_the_middle_of_another_ends_with_the_newest(seed: int) -> None:
    """Never more than one group is down for it."""

    async def scenario(world: World) -> None:
        await world.create(groups(replicas=3, size=2))
        await world.ready()
        leaders = watch(world, ready=3)
        await roll(world, "app:2")
        await world.until(PODS, has_updated("app:2"))
        await roll(world, "app:3")
        await world.ready()
        assert await images(world) == {"app:3"}
        assert leaders.fewest == 2
        assert max(leaders.births.values()) <= 2

    play(scenario, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_rapid_changes_of_replicas_roll_nothing(seed: int) -> None:
    """Groups that are wanted all the time stay what they are."""

    async def scenario(world: World) -> None:
        await world.create(groups(replicas=2, size=2))
        await world.ready()
        before = await world.uids()
        for replicas in (4, 2, 3, 5, 2, 4, 3):
            await world.edit(replicas=replicas)
        await world.ready()
        after = await world.uids()
        assert before.items() <= after.items()
        assert {name for name in after if name.count("-") == 1} == {"web-0", "web-1", "web-2"}

    play(scenario, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_update_goes_on_at_a_size_where_its_percentage_is_no_group(seed: int) -> None:
    """An autoscaler writes the scale, whose bounds nobody checks: 30 % of 2 is 0 (R-ROLL-1)."""

    async def scenario(world: World) -> None:
        lws = groups(replicas=4, size=2)
        lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["maxUnavailable"] = "30%"
        await world.create(lws)
        await world.ready()
        await roll(world, "app:2")
        await world.until(PODS, has_updated("app:2"))
        scale = {"spec": {"replicas": 2}}
        key = ObjectKey(NAMESPACE, "web")
        await world.client.patch(LEADERWORKERSETS, key, scale, kind="merge", subresource="scale")
        await world.ready()
        assert await images(world) == {"app:2"}
        assert set(await world.uids()) == {"web-0", "web-0-1", "web-1", "web-1-1"}

    play(scenario, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_old_workers_that_end_late_do_not_cost_the_new_leader(seed: int) -> None:
    """R-POD-8, R-POD-10: they belong to the leader before it."""

    async def scenario(world: World) -> None:
        await world.create(groups(replicas=1, size=3))
        await world.ready()
        leaders = watch(world)
        await world.client.delete(PODS, ObjectKey(NAMESPACE, "web-0"), propagation="Background")
        await world.ready()
        assert leaders.births == {"web-0": 1}
        assert set(await world.uids()) == {"web-0", "web-0-1", "web-0-2"}

    def slow_workers(spec: ContainerSpec) -> Program:
        return Program(term=0.0 if spec.env[labels.ENV_WORKER_INDEX] == "0" else 20.0)

    play(scenario, seed=seed, script=slow_workers)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_new_size_and_a_failure_at_once_end_with_whole_groups(seed: int) -> None:
    async def scenario(world: World) -> None:
        await world.create(groups(replicas=2, size=2))
        await world.ready()
        leaders = watch(world)
        await fail(world, "web-0-1")
        await world.edit(leaderWorkerTemplate={"size": 3})
        await fail(world, "web-1-1")
        await world.ready()
        assert set(await world.uids()) == {f"web-{group}{rank}" for group in (0, 1) for rank in ("", "-1", "-2")}
        assert all(count <= 2 for count in leaders.births.values())

    play(scenario, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_groups_of_one_that_grow_and_lose_a_leader_are_all_replaced(seed: int) -> None:
    """Q-12: the leader that comes back is of the size of before, and there is no group that may go but by a surge."""

    async def scenario(world: World) -> None:
        limits = {"rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": 1}}
        await world.create(groups(replicas=2, size=1, rolloutStrategy=limits))
        await world.ready()
        await world.edit(leaderWorkerTemplate={"size": 3})
        await world.delete(PODS, "web-1")
        await world.ready()
        assert set(await world.uids()) == {f"web-{group}{rank}" for group in (0, 1) for rank in ("", "-1", "-2")}

    play(scenario, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_update_that_is_taken_back_leaves_nothing_of_itself(seed: int) -> None:
    """Groups that it had not reached are never touched."""

    async def scenario(world: World) -> None:
        await world.create(groups(replicas=3, size=2))
        await world.ready()
        before = await world.uids()
        await roll(world, "app:2")
        await world.until(PODS, has_updated("app:2"))
        await roll(world, "app:1")
        await world.ready()
        after = await world.uids()
        assert await images(world) == {"app:1"}
        assert (before["web-0"], before["web-0-1"]) == (after["web-0"], after["web-0-1"])
        assert len([one for one in await world.objects(CONTROLLER_REVISIONS) if is_live(one)]) == 1

    def is_live(revision: JSONObject) -> bool:
        """Return whether groups may be made from a revision of the LeaderWorkerSet: its history has no such label."""
        owner = meta.controller_of(revision)
        is_own = owner is not None and owner["kind"] == "LeaderWorkerSet"
        return is_own and labels.TEMPLATE_REVISION_HASH in meta.labels(revision)

    play(scenario, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_leaders_without_workers_that_are_ready_at_once_are_counted(seed: int) -> None:
    """R-STAT-6: a group of one is ready when its leader is, however late the caches are."""

    async def scenario(world: World) -> None:
        leaders = watch(world)
        await world.create(groups(replicas=3, size=1))
        status = meta.status(await world.ready())
        assert (status["readyReplicas"], status["updatedReplicas"]) == (3, 3)
        await roll(world, "app:2")
        status = meta.status(await world.ready())
        assert (status["readyReplicas"], status["updatedReplicas"]) == (3, 3)
        assert leaders.births == {"web-0": 2, "web-1": 2, "web-2": 2}

    play(scenario, seed=seed, manager=LAGGING)


def crash_at_once(spec: ContainerSpec) -> Program:
    """Model a program whose worker ends with an error after a second."""
    is_worker = spec.env[labels.ENV_WORKER_INDEX] == "1"
    return Program(exits=(1.0, Exit(1)) if is_worker else None)


@pytest.mark.parametrize(
    ("annotations", "restarts", "least", "most"),
    [
        ({}, DEFAULTS, 2, 4),
        ({labels.MAX_GROUP_RESTARTS: "2"}, DEFAULTS, 2, 2),
        ({}, RestartSettings(max_restarts=3), 3, 3),
        ({}, RestartSettings(backs_off=False), 15, 90),
        ({labels.RESTART_BACKOFF: "on"}, RestartSettings(backs_off=False), 2, 4),
    ],
    ids=["default", "budget", "budget of the manager", "off", "on by annotation"],
)
def test_a_program_that_always_crashes_is_no_storm(
    annotations: dict[str, str], restarts: RestartSettings, least: int, most: int
) -> None:
    """In 90 seconds; switched off, it is one, as with the Go controller."""

    async def scenario(world: World) -> None:
        lws = groups(replicas=1, size=2)
        lws["metadata"]["annotations"] = annotations
        leaders = watch(world)
        await world.create(lws)
        await world.until(PODS, lambda pods: len(pods) == 2)
        await asyncio.sleep(90)
        assert least <= leaders.births["web-0"] - 1 <= most

    play(scenario, script=crash_at_once, restarts=restarts)


@pytest.mark.parametrize("kills", [(), (3.0, 15.0, 40.0)], ids=["one manager", "killed again and again"])
def test_a_group_with_a_budget_is_given_up_once_and_for_all(kills: tuple[float, ...]) -> None:
    """The budget is kept whoever counts; then nothing is written any more, and a new text resumes the group."""

    async def scenario(world: World) -> None:
        lws = groups(replicas=1, size=2)
        lws["metadata"]["annotations"] = {labels.MAX_GROUP_RESTARTS: "3"}
        leaders = watch(world)
        await world.create(lws)
        await world.until(PODS, lambda pods: len(pods) == 2)
        for pause in kills:
            await asyncio.sleep(pause)
            await world.kill_manager("manager-0")
            world.start_manager("manager-0", SLOW)
        await world.until(LEADERWORKERSETS, lambda found: given_up(found[0]))
        assert leaders.births["web-0"] == 4
        await asyncio.sleep(600)
        assert leaders.births["web-0"] == 4
        resume = {"metadata": {"annotations": {labels.RESUME_GROUP_RESTARTS: "1"}}}
        await world.client.patch(LEADERWORKERSETS, ObjectKey(NAMESPACE, "web"), resume, kind="merge")
        await world.until(LEADERWORKERSETS, lambda found: not given_up(found[0]))
        await world.until(LEADERWORKERSETS, lambda found: given_up(found[0]))
        assert leaders.births["web-0"] == 8

    def given_up(lws: JSONObject) -> bool:
        return meta.is_condition_true(lws, "Degraded")

    play(scenario, script=crash_at_once)


def test_pods_deleted_from_outside_do_not_climb_the_ladder() -> None:
    """Somebody deletes all pods 22 times in a minute: the group was hardly recreated by us, and waits no minutes."""

    async def scenario(world: World) -> None:
        await world.create(groups(replicas=1, size=2))
        await world.ready()
        for _ in range(22):
            for pod in sorted(await world.uids(), reverse=True):
                with suppress(NotFoundError):  # it may have gone with its leader, or be about to come back
                    await world.client.delete(PODS, ObjectKey(NAMESPACE, pod), grace_period=0)
                await asyncio.sleep(0.2)
            await asyncio.sleep(2.3)
        await world.ready()
        records = [one for one in await world.objects(CONTROLLER_REVISIONS) if meta.name(one) == "web-0-recreations"]
        deleted = [one for one in world.trace.of("manager-0") if one.verb == "DELETE" and one.object.endswith("web-0")]
        count = int(meta.annotations(records[0])[labels.RECREATIONS]) if records else 0
        assert count <= len(deleted) + 1 <= 5

    play(scenario)


def test_a_download_of_ten_minutes_survives_a_leader_that_keeps_restarting() -> None:
    """R-POD-5.2: with RecreateGroupAfterStart failures do not count while the group has pending pods."""
    starts: Counter[str] = Counter()

    def downloading(spec: ContainerSpec) -> Program:
        worker = spec.env[labels.ENV_WORKER_INDEX]
        starts[worker] += 1
        if worker != "0":
            return Program(start_delay=600.0)
        return Program(exits=(30.0, Exit(1)) if starts[worker] <= 5 else None)

    async def scenario(world: World) -> None:
        lws = groups(replicas=1, size=2)
        lws["spec"]["leaderWorkerTemplate"]["restartPolicy"] = "RecreateGroupAfterStart"
        leaders = watch(world)
        await world.create(lws)
        await world.until(PODS, lambda pods: len(pods) == 2)
        first = await world.uids()
        await asyncio.sleep(590)
        assert starts["0"] == 6
        assert await world.uids() == first
        assert leaders.births == {"web-0": 1}

    play(scenario, script=downloading)


@pytest.mark.parametrize("pause", [0.05, 0.5, 2.0])
def test_groups_of_the_template_before_are_built_after_a_moment_without_any(pause: float) -> None:
    """R-REV-14: there are none for a moment, too short for the StatefulSet controller to see its pods gone. The partition then
    has it create two of the template before: their revision must still be there, or the update after it waits for ever.
    """

    async def scenario(world: World) -> None:
        await world.create(groups(replicas=3, size=2))
        await world.ready()
        await world.edit(replicas=0, leaderWorkerTemplate={"size": 1, "workerTemplate": template("app:2")})
        await asyncio.sleep(pause)
        await world.edit(replicas=3, rolloutStrategy={"rollingUpdateConfiguration": {"partition": 2}})
        await world.at_rest()
        released = {"rollingUpdateConfiguration": {"partition": 0}}
        await world.edit(
            rolloutStrategy=released, leaderWorkerTemplate={"size": 1, "workerTemplate": template("app:3")}
        )
        await world.ready()
        assert await images(world) == {"app:3"}

    play(scenario, script=lambda _: Program(term=5.0))
