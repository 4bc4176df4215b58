"""Defines scenarios in which a manager crashes at its first write, its second write, and so on.

It dies before the write, or after the API server performed it and before it gets the response. (A death after the
response equals a death before the next write.) The next manager completes what is undone, and nothing is done twice.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import msgspec
from tests.simulation.checks.budgets import exhausted
from tests.simulation.checks.gangs import GangInvariants
from tests.simulation.checks.inplace import InPlaceInvariants
from tests.simulation.checks.invariants import Invariants
from tests.simulation.checks.randomkeys import RandomKeyInvariants
from tests.simulation.faults import Death, Schedule
from tests.simulation.schedules import faultplans, happenings, rollouts
from tests.simulation.schedules.forking import Send, branch
from tests.simulation.schedules.inplace import TOO_MANY, of_in_place, sized
from tests.simulation.schedules.kubelet import SLOW_PODS
from tests.simulation.schedules.lean import LeanCluster
from tests.simulation.schedules.play import Happening, Play
from tests.simulation.schedules.playing import Script, Verdict, play, recover, start_managers
from tests.simulation.schedules.replacements import end_one_by_one, fail_beside_surplus, roll_and_shrink
from tests.simulation.workloads import groups, template

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels
from leaderworkerset.api.groupname import is_leader
from leaderworkerset.core.restarts.retention import is_retained

UNSEEN: Final = "fail unseen"
"""The scenario in which no manager observes the deletion of a worker."""

RESIZED: Final = "resize by key"
"""The scenario in which groups without workers are scaled to groups with workers."""

DEATHS: Final = (Death.BEFORE, Death.UNANSWERED)


async def create(_play: Play) -> None:
    """Only create the set."""


async def roll(play: Play) -> None:
    """Change the image."""
    await play.edit("rolls", leaderWorkerTemplate={"workerTemplate": template("app:2")})


async def grow(play: Play) -> None:
    """Scale up by one group."""
    await play.edit("scales", replicas=3)


async def shrink(play: Play) -> None:
    """Scale down by one group."""
    await play.edit("scales", replicas=1)


async def resize(play: Play) -> None:
    """Request larger groups."""
    await play.edit("resizes", leaderWorkerTemplate={"size": 3})


async def resize_and_touch(play: Play) -> None:
    """Request larger groups, and trigger a new reconcile of the unchanged groups (N-AT-8)."""
    await resize(play)
    await asyncio.sleep(0.2)
    await play.touch()


async def fail(play: Play) -> None:
    """Make a worker of the last group fail."""
    _fail(play, "web-1-1")


async def fail_outdated(play: Play) -> None:
    """Make a worker of the first group fail. This group is updated last."""
    _fail(play, "web-0-1")


def _fail(play: Play, name: str) -> None:
    (worker,) = (pod for pod in play.pods() if meta.name(pod) == name)
    play.world.kubelet.restart(name)
    play.checks.excuse(meta.uid(worker))


async def fail_unseen(play: Play) -> None:
    """Delete a worker of the last group while no manager is running, long after all groups became ready."""
    happenings.kill_all_managers(play, 80.0)
    await asyncio.sleep(70.0)
    await play.world.delete("web-1-1", PODS)
    await play.world.return_of_managers()
    await asyncio.sleep(10.0)


async def surge(play: Play) -> None:
    """Run a rollout with one surge group."""
    rolling = {"partition": 0, "maxUnavailable": 0, "maxSurge": 1}
    strategy = {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling}
    changed = {"workerTemplate": template("app:2")}
    await play.edit("rolls with a surge", rolloutStrategy=strategy, leaderWorkerTemplate=changed)


async def surge_by_key(play: Play) -> None:
    """Run a rollout with one surge group for a set without a partition."""
    strategy = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": 1}}
    changed = {"workerTemplate": template("app:2")}
    await play.edit("rolls with a surge", rolloutStrategy=strategy, leaderWorkerTemplate=changed)


async def crash_loop(play: Play) -> None:
    """Make a worker crash for a minute each time it becomes ready."""
    await happenings.crash_again_and_again(play, "web-1-1")


async def fail_by_key(play: Play) -> None:
    """Make the worker of a group fail."""
    _fail(play, min(meta.name(pod) for pod in play.pods() if not is_leader(pod)))


async def exhaust(play: Play) -> None:
    """Make a group exceed its restart limit, and check that both of its pods are kept (N-RB-4)."""
    for _ in range(2):
        await play.world.return_of_managers()
        await play.world.at_rest()
        youngest = max((_born(pod), meta.name(pod)) for pod in play.pods() if not is_leader(pod))
        _fail(play, youngest[1])
    await play.world.return_of_managers()
    await play.world.at_rest()
    kept = [meta.name(pod) for pod in play.pods() if is_retained(pod)]
    if len(exhausted(play.checks.facts)) != 1 or len(kept) != 2:
        play.checks.violations.append(f"a group has used up its restarts, and {kept} are kept of it")


def _born(pod: JSONObject) -> str:
    return str(meta.metadata(pod)["creationTimestamp"])


async def resize_above_a_partition(play: Play) -> None:
    """Increase the size with a partition of 1, and make the first group fail (N-AT-25).

    This group retains its size.
    """
    rolling = {"partition": 1, "maxUnavailable": 1, "maxSurge": 0}
    strategy = {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling}
    await play.edit("resizes", rolloutStrategy=strategy, leaderWorkerTemplate={"size": 3})
    await play.world.at_rest()
    _fail(play, "web-0-1")


async def replace_beside_slow_controllers(play: Play) -> None:
    """Delete the set, and recreate it while its old leaders still exist."""
    assert play.world.others is not None
    play.world.others.arm(replace(faultplans.CALM, latency=(0.5, 1.5)))
    await happenings.replace(play)
    await asyncio.sleep(5.0)


KEYED: Final[Mapping[str, Sequence[Happening]]] = {
    "create by key": (create,),
    "roll by key": (roll,),
    "surge by key": (surge_by_key,),
    RESIZED: (resize_and_touch,),
    "fail by key": (fail_by_key,),
    "fail beside surplus": (fail_beside_surplus,),
    "roll and shrink": (roll_and_shrink,),
    "end one by one": (end_one_by_one,),
    "exhaust by key": (exhaust, recover),
}
"""The scenarios of groups with random keys."""


async def roll_in_place(play: Play) -> None:
    """Change the image of groups with in-place updates, and check that their pods are kept (ADR 24)."""
    before = {meta.name(pod): meta.uid(pod) for pod in play.pods()}
    await roll(play)
    await _have_stayed(play, before)


async def resize_in_place(play: Play) -> None:
    """Also change the resources."""
    before = {meta.name(pod): meta.uid(pod) for pod in play.pods()}
    await play.edit("resizes", leaderWorkerTemplate={"workerTemplate": sized("app:2", "2")})
    await _have_stayed(play, before)
    running = [meta.status(pod)["containerStatuses"][0]["resources"] for pod in play.pods()]
    if any(one != {"requests": {"cpu": "2"}} for one in running):
        play.checks.violations.append(f"pods have other resources: {running}")


async def grow_beyond_the_nodes(play: Play) -> None:
    """Request resources that no node can add to a running pod. The groups are recreated one after another."""
    before = {meta.uid(pod) for pod in play.pods()}
    await play.edit("resizes", leaderWorkerTemplate={"workerTemplate": sized("app:1", TOO_MANY)})
    await play.world.return_of_managers()
    await play.world.at_rest()
    if before & {meta.uid(pod) for pod in play.pods()}:
        play.checks.violations.append("groups that no node can resize were not recreated")


async def _have_stayed(play: Play, before: Mapping[str, str]) -> None:
    await play.world.return_of_managers()
    await play.world.at_rest()
    after = {meta.name(pod): meta.uid(pod) for pod in play.pods()}
    if before != after or {meta.spec(pod)["containers"][0]["image"] for pod in play.pods()} != {"app:2"}:
        play.checks.violations.append(f"pods did not stay, or do not run the new image: {before}, then {after}")


SIZED: Final = "resize in place"
"""The scenario of changed CPU and memory requests."""

BEYOND: Final = "grow beyond the nodes"
"""The scenario of CPU and memory requests that exceed the capacity of all nodes."""

IN_PLACE: Final[Mapping[str, Sequence[Happening]]] = {
    "roll in place": (roll_in_place,),
    SIZED: (resize_in_place,),
    BEYOND: (grow_beyond_the_nodes,),
    "revert in place": (happenings.roll_and_return,),
    "fail in place": (roll, fail),
}
"""The scenarios of in-place updates."""

DEADLINE: Final = 30.0
"""The time in seconds in which a pod must become ready after it restarted all its containers in place."""


async def restart_in_place(play: Play) -> None:
    """Restart all containers of a worker twice, and check that its group is kept (ADR 27)."""
    before = {meta.name(pod): meta.uid(pod) for pod in play.pods()}
    for _ in range(2):
        happenings.restart_all(play, _named(play, "web-1-1"))
        await play.world.return_of_managers()
        await play.world.at_rest()
    if before != {meta.name(pod): meta.uid(pod) for pod in play.pods()}:
        play.checks.violations.append("pods did not stay, though one restarted in place only")


async def restart_in_vain(play: Play) -> None:
    """Restart all containers of a worker and keep it unready. Check that its group is recreated in time."""
    worker = _named(play, "web-1-1")
    happenings.restart_all(play, worker, comes_back=False)
    await play.world.return_of_managers()
    await asyncio.sleep(2 * DEADLINE)
    if meta.uid(_named(play, "web-1-1")) == meta.uid(worker):
        play.checks.violations.append("a pod is late, and its group was not recreated")


def _named(play: Play, name: str) -> JSONObject:
    return next((pod for pod in play.pods() if meta.name(pod) == name), {})


TOLERANT: Final[Mapping[str, Sequence[Happening]]] = {
    "restart in place": (restart_in_place,),
    "restart in vain": (restart_in_vain,),
}
"""The scenarios of pods that restart all their containers in place."""

WHOLE: Final = "resize the whole"
"""The scenario of groups that are scheduled together."""

GANGED: Final[Mapping[str, Sequence[Happening]]] = {
    "create gangs": (create,),
    "fail in gangs": (fail,),
    "resize gangs": (resize_above_a_partition,),
    WHOLE: (resize,),
    "replace gangs": (replace_beside_slow_controllers,),
}
"""The scenarios with `spec.scheduling`."""

TOGETHER: Final = "end together"
"""The scenario of workers that complete together with their leaders."""

PLACED: Final = "come back"
"""The scenario of groups that return to their nodes."""

SCENARIOS: Final[Mapping[str, Sequence[Happening]]] = {
    "create": (create,),
    "roll": (roll,),
    "surge": (surge,),
    "grow": (grow,),
    "shrink": (shrink,),
    TOGETHER: (shrink, happenings.delete_leader),
    PLACED: (fail, roll),
    "resize": (resize,),
    "fail": (fail,),
    UNSEEN: (fail_unseen,),
    "fail in a rollout": (roll, fail),
    "fail before the update": (roll, fail_outdated),
    "revert": (happenings.roll_and_return,),
    **rollouts.ROLLOUTS,
    "replace": (happenings.replace,),
    "crash loop": (crash_loop,),
    "exhaust": (exhaust, recover),
    **KEYED,
    **GANGED,
    **IN_PLACE,
    **TOLERANT,
}


def keyed_groups(size: int) -> JSONObject:
    """Return a LeaderWorkerSet with two groups, random keys and containers that request TPUs."""
    lws = groups(2, size, groupIdentity="Hash", groupReplacementPolicy="PostTermination")
    (container,) = meta.spec(lws)["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"]
    container["resources"] = {"limits": {"google.com/tpu": "4"}}
    return lws


def _subject(name: str) -> tuple[JSONObject, type[Invariants]]:
    """Return the LeaderWorkerSet of a scenario, and its checks."""
    lws, invariants = groups(replicas=2, size=2), Invariants
    if name in KEYED:
        lws, invariants = keyed_groups(size=1 if name == RESIZED else 2), RandomKeyInvariants
    if name in GANGED:
        lws["spec"]["scheduling"] = {"schedulingPolicy": {"gang": {}}} if name == WHOLE else {}
        invariants = GangInvariants
    if name in IN_PLACE:
        lws, invariants = of_in_place(lws), InPlaceInvariants
    if name in {SIZED, BEYOND}:
        lws["spec"]["leaderWorkerTemplate"]["workerTemplate"] = sized("app:1", "1")
    if name in TOLERANT:
        lws["metadata"]["annotations"] = {labels.IN_PLACE_RESTARTS: f"{DEADLINE:.0f}s"}
    if exhaust in SCENARIOS[name]:
        lws["spec"]["leaderWorkerTemplate"]["maxGroupRestarts"] = 1
    if name == TOGETHER:
        lws["metadata"]["annotations"] = {labels.POD_TERMINATION_POLICY: "Parallel"}
    if name == PLACED:
        lws["metadata"]["annotations"] = {labels.STAY_ON_NODES: "Preferred"}
    return lws, invariants


async def play_crashes(world: LeanCluster, name: str, send: Send, *, deaths: bool) -> None:
    """Play a scenario without faults and send the verdict.

    If requested, also play it with a crash at each of its writes.
    """
    world.reseed(f"crashes {name}")
    if name == UNSEEN:
        world.kubelet.pace = SLOW_PODS
    if name in GANGED:
        await world.start_gangs()
    start_managers(world, 1)
    if name in KEYED:
        await world.start_deployments()
    lws, invariants = _subject(name)
    creates = SCENARIOS[name] == (create,)
    if not creates:
        await world.create(lws)
    await world.at_rest()
    script = Script([(0.0, one) for one in SCENARIOS[name]], (), faultplans.CALM, lws if creates else None)

    async def one(schedule: Schedule, seed: str) -> Verdict:
        found: list[bytes] = []

        async def work(send: Send) -> None:
            send(msgspec.json.encode(await play(world, seed, replace(script, managers=(schedule,)), invariants)))

        await branch(work, found.append)
        send(found[0])
        return msgspec.json.decode(found[0], type=Verdict)

    undisturbed = await one(faultplans.CALM, f"{name}.0")
    for number in range(1, undisturbed.made + 1) if deaths else ():
        for death in DEATHS:
            await one(replace(faultplans.CALM, crash_after=number, death=death), f"{name}.{number}.{death.name}")
