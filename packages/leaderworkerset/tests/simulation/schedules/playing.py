"""Plays one schedule, from its seed to its verdict, and families of schedules with a common start.

The seed `12.3` is branch 3 of family 12: the family decides the LeaderWorkerSet and the number of managers, the branch
all events. In every third family the creation belongs to the branch, and in every second pods start as slowly as real
ones.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

import msgspec
from tests.simulation.checks import endstate, revisions
from tests.simulation.checks.budgets import exhausted
from tests.simulation.checks.invariants import Invariants
from tests.simulation.faults import Schedule
from tests.simulation.schedules import faultplans, happenings, refusals
from tests.simulation.schedules.forking import Send, branch
from tests.simulation.schedules.kubelet import SLOW_PODS
from tests.simulation.schedules.lean import LeanCluster
from tests.simulation.schedules.play import Happening, Play
from tests.simulation.workloads import groups, template

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels

LONG: Final = 1100.0
"""The virtual time in seconds after which all back-off delays have expired. The maximum delay of a key is 1,000 s."""

HOPS: Final = 8
"""The number of messages between the availability of a group and the last deletion that ignores it.

The pod to the StatefulSet controller, its status, the manager's watch, its patch, the StatefulSet controller's watch, its
revision, its deletion; and one is spare.
"""

ATTACKS: Final = 0.2
"""The share of schedules with a hostile tenant in a different namespace."""

RECOVERED: Final = 0.5
"""The share of schedules with exhausted groups that are recovered at the end.

The other schedules end without recovery.
"""

ROUNDS: Final = 4
"""The number of times exhausted groups are recovered. A group behind a gate may have failed in the meantime."""

LIMITS: Final = (None, None, None, 0, 1, 2)
"""The values of `maxGroupRestarts`."""

PARALLEL: Final = 0.3
"""The share of LeaderWorkerSets whose workers terminate together with their leaders."""

TOLERANT: Final = 0.2
"""The share of LeaderWorkerSets whose pods may restart all their containers in place."""

STAYING: Final = 0.2
"""The share of LeaderWorkerSets whose groups return to their nodes."""

LASTING: Final = {
    "crash_loop", "jump_clock", "fail_twice", "set_clocks", "set_clock_of_manager", "stop_webhooks", "lose_kinds", "refuse_writes",
}  # fmt: skip
"""The events after which a recreation, or a retry of the StatefulSet controller, may be delayed."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one schedule. `declared` and `final` are encoded. Without `declared`, no states are compared."""

    seed: str
    violations: list[str]
    writes: int = 0
    steps: int = 0
    recreations: int = 0
    seconds: float = 0.0
    faults: dict[str, int] = {}
    happened: list[str] = []
    declared: bytes = b""
    final: bytes = b""
    trace: str = ""
    made: int = 0
    """The writes of the first manager, as numbered by its schedule."""


class Reference(msgspec.Struct, frozen=True):
    """The final state of a newly created set."""

    final: bytes


async def play_family(world: LeanCluster, family: int, branches: Sequence[int], send: Send) -> None:
    """Play branches of a family, and send every verdict."""
    world.reseed(f"family {family}")
    random = Random(f"family {family}")
    lws = draw_leaderworkerset(random)
    managers = random.choice((1, 1, 2))
    if family % 2 == 0:
        world.kubelet.pace = SLOW_PODS
    creates = random.random() < 1 / 3
    start_managers(world, managers)
    await asyncio.sleep(3.0)
    if not creates:
        await world.create(lws)
        await world.at_rest()

    async def one(seed: str) -> Verdict:
        script = draw_script(Random(seed), managers, lws if creates else None)
        if Random(f"{seed} tenant").random() < ATTACKS:
            script = replace(script, picked=[(0.0, happenings.attack), *script.picked])
        script = replace(script, picked=refusals.added(seed, script.picked))
        return await play(world, seed, script)

    await play_branches(str(family), branches, send, one)


def start_managers(world: LeanCluster, count: int) -> None:
    """Start the given number of managers without faults. Schedules add faults later."""
    world.settings = replace(world.settings, managers=(faultplans.CALM,) * count)
    for number in range(count):
        world.start_manager(f"manager-{number}", faultplans.CALM)


async def play_branches(
    name: str, branches: Sequence[int], send: Send, one: Callable[[str], Awaitable[Verdict]]
) -> None:
    """Play branches of a family by seed, each in a forked process, and send every verdict."""
    for number in branches:
        seed = f"{name}.{number}"

        async def work(send: Send, seed: str = seed) -> None:
            send(msgspec.json.encode(await one(seed)))

        await branch(work, send)


@dataclass(frozen=True)
class Script:
    """The events of a schedule, and the faults of each manager and of other actors.

    `lws` is created first if it is set.
    """

    picked: Sequence[tuple[float, Happening]]
    managers: Sequence[Schedule]
    others: Schedule
    lws: JSONObject | None = None


def draw_script(random: Random, managers: int, lws: JSONObject | None) -> Script:
    """Select the events of a random schedule."""
    faults = [faultplans.draw_manager(random) for _ in range(managers)]
    others = faultplans.draw_others(random)
    return Script(happenings.draw(random), faults, others, lws)


async def play(world: LeanCluster, seed: str, script: Script, invariants: type[Invariants] = Invariants) -> Verdict:
    """Play one schedule in a separate cluster."""
    world.reseed(seed)
    random = Random(f"{seed} script")
    world.trace.seed = seed
    checks = world.wire.witness = invariants(world.server.backend.store, world.clock)
    checks.events = world.wire.replacements
    it = Play(world, checks, random)
    checks.lost, checks.interrupted, checks.refused = it.lost, it.interrupted, it.refused
    checks.lag = HOPS * max(schedule.latency[1] for schedule in (*script.managers, script.others))
    checks.releases.lag, checks.releases.is_disturbed = checks.lag, it.disturbed
    begin, writes = world.clock.monotonic(), len(world.trace.entries)
    for name, schedule in zip(sorted(world.managers), script.managers, strict=True):
        world.managers[name].arm(schedule)
    assert world.others is not None
    world.others.arm(script.others)
    with caught(world, checks.violations):
        if script.lws is not None:
            await it.attempt(world.create(script.lws))
        await _happen(it, script.picked)
        await come_to_rest(it, long=any(happening.__name__ in LASTING for _, happening in script.picked))
        checks.violations += checks.budgets.at_rest()
        if exhausted(checks.facts) and random.random() < RECOVERED:
            await recover(it)
    checks.violations += [
        *checks.unanswered_failures(),
        *checks.closed_gates(),
        *checks.wrong_notes(),
        *revisions.misnumbered(checks.facts),
        *world.torn.groups(),
    ]
    checks.violations += [f"a warning of what is ours: {one}" for one in world.wire.warnings_of_own_objects()]
    wanted = None if exhausted(checks.facts) or checks.is_ambiguous else endstate.declared(checks.facts)
    final = endstate.final(checks.facts)
    if not checks.violations and random.random() < 0.25:
        checks.violations += await _end(it)
    faults = sum((wire.counts for wire in it.wires()), world.others.counts.copy())
    return Verdict(
        seed=seed,
        violations=checks.violations,
        writes=len(world.trace.entries) - writes,
        steps=checks.steps,
        recreations=checks.recreations,
        seconds=world.clock.monotonic() - begin,
        faults=dict(faults),
        happened=[happening.__name__ for _, happening in script.picked],
        declared=endstate.encode(wanted) if wanted and not checks.facts.has_stayed else b"",
        final=endstate.encode(final),
        trace=str(world.trace),
        made=sum(1 for entry in world.trace.entries[writes:] if entry.actor == "manager-0" and not entry.is_background),
    )


@contextmanager
def caught(world: LeanCluster, violations: list[str]) -> Iterator[None]:
    """Add errors in the `with` block to the violations.

    This includes a failed actor, which cancels all the others.
    """
    try:
        yield
    except asyncio.CancelledError:
        if not world.errors():
            raise
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the verdict
        violations.append(f"{type(error).__name__}: {error}")
    violations += [f"an actor broke: {error!r}" for error in world.errors()]


async def play_reference(world: LeanCluster, declared: bytes, send: Send) -> None:
    """Create the declared objects in a cluster without faults, and send the final state."""
    world.reseed("reference")
    lws = msgspec.json.decode(declared)
    if meta.spec(lws).get("groupIdentity") == "Hash":
        await world.start_deployments()
    if meta.spec(lws).get("scheduling") is not None:
        await world.start_gangs()
    start_managers(world, 1)
    checks = Invariants(world.server.backend.store, world.clock)
    await world.create(lws)
    await world.at_rest()
    send(endstate.encode(endstate.final(checks.facts)))


def draw_leaderworkerset(random: Random) -> JSONObject:
    """Select a LeaderWorkerSet."""
    policy = random.choice(
        ("RecreateGroupOnPodRestart", "RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "None")
    )
    unavailable, surge = random.choice(((1, 0), (1, 0), (2, 0), (0, 1), (1, 1)))
    rolling = {"partition": 0, "maxUnavailable": unavailable, "maxSurge": surge}
    limit = _draw_limit(random)
    spec: dict[str, Any] = {
        "replicas": random.choice((1, 2, 2, 3)),
        "leaderWorkerTemplate": {
            "size": random.choice((1, 2, 2, 3)),
            "workerTemplate": template(),
            "restartPolicy": policy,
        },
        "startupPolicy": random.choice(("LeaderCreated", "LeaderCreated", "LeaderReady")),
        "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling},
        "networkConfig": {"subdomainPolicy": random.choice(("Shared", "Shared", "UniquePerReplica"))},
    }
    if limit is not None and policy != "None":
        spec["leaderWorkerTemplate"]["maxGroupRestarts"] = limit
    lws = groups() | {"spec": spec}
    if (end := _beside(random, "ends").random()) < PARALLEL / 2:
        lws["metadata"] = lws["metadata"] | {"annotations": {labels.POD_TERMINATION_POLICY: "Parallel"}}
    elif end < PARALLEL:
        spec["podTerminationPolicy"] = "Parallel"
    if _beside(random, "places").random() < STAYING:
        annotations = meta.annotations(lws) | {labels.STAY_ON_NODES: "Preferred"}
        lws["metadata"] = lws["metadata"] | {"annotations": annotations}
    if policy != "None" and _beside(random, "restarts").random() < TOLERANT:
        lws["metadata"] = lws["metadata"] | {"annotations": meta.annotations(lws) | {labels.IN_PLACE_RESTARTS: "30s"}}
    return lws


def _draw_limit(random: Random) -> int | None:
    """Select a restart limit for groups."""
    return _beside(random, "limit").choice(LIMITS)


def _beside(random: Random, what: str) -> Random:
    """Return an independent random number generator, so that known seeds select the same schedules."""
    beside = Random()
    beside.setstate(random.getstate())
    return Random(f"{what} {beside.random()}")


async def _happen(it: Play, picked: Sequence[tuple[float, Happening]]) -> None:
    for before, happening in picked:
        await asyncio.sleep(before)
        await happening(it)
    await it.world.return_of_managers()
    await asyncio.sleep(it.random.choice((0.0, 1.0, 10.0)))


async def come_to_rest(it: Play, *, long: bool) -> None:
    """Repair all damage, and wait until there are no more writes."""
    await it.calm()
    world = it.world
    for wire in (*it.transports(), *((world.others,) if world.others else ())):
        wire.arm(faultplans.CALM)
    await world.at_rest()
    while long:
        before = world.trace.settled_at()
        await asyncio.sleep(LONG)
        await world.at_rest()
        long = world.trace.settled_at() > before


async def recover(it: Play) -> None:
    """Recover exhausted groups until none is left."""
    for _ in range(ROUNDS):
        for leader in exhausted(it.checks.facts):
            it.note("user", "recovers", f"the group of {meta.name(leader)}")
            patch: JSONObject = {"metadata": {"annotations": {labels.RECOVER: "true"}}}
            await it.attempt(it.world.patch(patch, meta.name(leader), resource=PODS))
        await come_to_rest(it, long=False)
        if not exhausted(it.checks.facts):
            return
    it.checks.violations.append("evidence stays, however often it is recovered")


async def _end(it: Play) -> list[str]:
    """Delete the LeaderWorkerSet, and return the remaining objects."""
    world = it.world
    it.note("user", "deletes", "LeaderWorkerSet web")
    await world.delete()
    await world.at_rest()
    return [f"left over: {left}" for left in endstate.leftovers(it.checks.facts)] + it.checks.violations
