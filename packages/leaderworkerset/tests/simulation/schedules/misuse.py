"""Applies modified specs in sequence. Each spec must be rejected with a reason, reconciled, or reported.

In: a LeaderWorkerSet at rest. Bent specs are valid, borderline and invalid (`packages/localkube/tests/fuzz/junk.py`). At the end the good spec
is applied again, and everything must be as if nothing had happened.
"""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any, Final

from tests.fuzz import junk
from tests.fuzz.reviews import LEADERWORKERSET
from tests.simulation.checks import endstate
from tests.simulation.checks.invariants import Invariants
from tests.simulation.schedules.forking import Send
from tests.simulation.schedules.lean import LeanCluster
from tests.simulation.schedules.play import KEY, Play
from tests.simulation.schedules.playing import Verdict, caught, come_to_rest, play_branches, start_managers
from tests.simulation.workloads import groups

from kuberuntime.errors import APIError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.resources import LEADERWORKERSETS

SPECS: Final = 5
"""The number of modified specs in one schedule."""

MOST: Final = 3
"""The upper limit of replicas and sizes.

Larger values are reduced, because these schedules test unusual values, not the number of pods.
"""


async def play_misuse(world: LeanCluster, name: str, branches: Sequence[int], send: Send) -> None:
    """Play branches of a misuse family, and send every verdict."""
    world.reseed(name)
    start_managers(world, 1)
    await world.create(groups(replicas=2, size=2))
    await world.at_rest()
    await play_branches(name, branches, send, lambda seed: _play(world, seed))


async def _play(world: LeanCluster, seed: str) -> Verdict:
    world.reseed(seed)
    world.trace.seed = seed
    random = Random(seed)
    checks = world.wire.witness = Invariants(world.server.backend.store, world.clock)
    checks.tolerate()
    it, writes = Play(world, checks, random), len(world.trace.entries)
    good = meta.spec(await world.get(LEADERWORKERSETS, KEY.name))
    answers: list[str] = []
    with caught(world, checks.violations):
        for _ in range(SPECS):
            answers += [await _apply(it, bent(random, good))]
        await world.client.patch(LEADERWORKERSETS, KEY, _whole(good), kind="json")
        await come_to_rest(it, long=True)
    checks.violations += world.torn.groups()
    return Verdict(
        seed=seed,
        violations=checks.violations,
        writes=len(world.trace.entries) - writes,
        steps=checks.steps,
        happened=answers,
        declared=endstate.encode(endstate.declared(checks.facts)),
        final=endstate.encode(endstate.final(checks.facts)),
        trace=str(world.trace),
    )


def bent(random: Random, good: JSONObject) -> JSONObject:
    """Modify one or several random fields of a spec."""
    whole: Any = groups() | {"spec": good}
    for _ in range(random.choice((1, 1, 2, 3))):
        whole = junk.bent(random, whole, LEADERWORKERSET)
    spec = whole.get("spec") if isinstance(whole, dict) else None
    return _bounded(spec) if isinstance(spec, dict) else {"replicas": "none"}


def _bounded(spec: JSONObject) -> JSONObject:
    template = spec.get("leaderWorkerTemplate")
    kept = {name: _at_most(value) if name == "replicas" else value for name, value in spec.items()}
    if isinstance(template, dict):
        kept["leaderWorkerTemplate"] = {
            name: _at_most(value) if name == "size" else value for name, value in template.items()
        }
    return kept


def _at_most(value: Any) -> Any:
    is_many = isinstance(value, int | float) and not isinstance(value, bool) and MOST < value < 2**31
    return MOST if is_many else value


def _whole(spec: JSONObject) -> Any:
    """Return the patch that replaces the complete spec."""
    return [{"op": "replace", "path": "/spec", "value": spec}]


async def _apply(it: Play, spec: JSONObject) -> str:
    """Apply a spec and return the result. Record a spec that is neither reconciled nor reported."""
    it.note("user", "applies", str(spec)[:200])
    try:
        await it.world.client.patch(LEADERWORKERSETS, KEY, _whole(spec), kind="json")
    except APIError as error:
        it.note("user", "refused", error.message[:200])
        if not error.message or error.code >= 500:
            it.checks.violations.append(f"{spec} was refused with {error.code}: {error.message!r}")
        return "refused"
    warned = len(it.world.wire.warnings)
    await asyncio.sleep(20.0)
    live = await it.world.get(LEADERWORKERSETS, KEY.name)
    if meta.status(live).get("observedGeneration") == meta.generation(live):
        return "reconciled"
    if len(it.world.wire.warnings) > warned:
        return "reported"
    it.checks.violations.append(f"{spec} was accepted, is not reconciled, and nobody says why")
    return "silent"
