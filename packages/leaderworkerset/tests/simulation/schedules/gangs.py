"""Provides LeaderWorkerSets with `spec.scheduling`, whose pods wait for each other (`podgroups.py`).

In: families as `playing.py` and `randomkeys.py` have them, of either identity. Besides what happens to every
LeaderWorkerSet, strangers delete PodGroups and Workloads, users try to change the level, and feature gates go missing.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final

from tests.simulation.checks.gangs import GangInvariants, KeyedGangInvariants
from tests.simulation.schedules import happenings, randomkeys
from tests.simulation.schedules.forking import Send
from tests.simulation.schedules.kubelet import SLOW_PODS
from tests.simulation.schedules.lean import LeanCluster
from tests.simulation.schedules.play import Happening, Play
from tests.simulation.schedules.playing import (
    Verdict,
    draw_leaderworkerset,
    draw_script,
    play,
    play_branches,
    start_managers,
)
from tests.simulation.schedules.podgroups import POD_GROUPS, WORKLOADS

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, Resource
from leaderworkerset.api.resources import LEADERWORKERSETS

WHOLE: Final[JSONObject] = {"schedulingPolicy": {"gang": {}}}
ROLES: Final[JSONObject] = {"replica": {"leader": WHOLE, "worker": WHOLE}}
LEVELS: Final[Sequence[JSONObject]] = ({}, {}, WHOLE, ROLES)
API: Final = f"/apis/{WORKLOADS.api_version}/"


async def switch_level(play: Play) -> None:
    """Request a different level, which must be rejected (N-SCH-VAL-10)."""
    (lws,) = play.checks.facts.objects.get(LEADERWORKERSETS.group_resource, {}).values() or (None,)
    if lws is None:
        return
    other = play.random.choice([one for one in LEVELS if one != meta.spec(lws)["scheduling"]])
    play.note("user", "switches the level", str(other))
    patch: list[JSONObject] = [{"op": "replace", "path": "/spec/scheduling", "value": other}]
    if await play.attempt(play.world.client.patch(LEADERWORKERSETS, meta.key(lws), patch, kind="json")):
        play.checks.violations.append(f"the level of {meta.name(lws)} was switched")


async def delete_pod_group(play: Play) -> None:
    """Delete a PodGroup. The PodGroup of the complete set is recreated after the set was scaled to zero."""
    name = await _delete_any(play, POD_GROUPS)
    (lws,) = play.checks.facts.objects.get(LEADERWORKERSETS.group_resource, {}).values() or (None,)
    if lws is not None and name.endswith("-lws"):
        play.checks.excuse(*(meta.uid(pod) for pod in play.pods()))
        await asyncio.sleep(play.random.choice((0.0, 5.0)))
        await play.edit("scales", replicas=0)
        while play.checks.facts.objects.get(PODS.group_resource, {}):  # noqa: ASYNC110 - as a user looks now and then
            await asyncio.sleep(1.0)
        await play.edit("scales", replicas=meta.spec(lws)["replicas"])


async def delete_workload(play: Play) -> None:
    """Delete the Workload."""
    await _delete_any(play, WORKLOADS)


async def _delete_any(play: Play, resource: Resource) -> str:
    names = sorted(play.checks.facts.objects.get(resource.group_resource, {}))
    name = play.random.choice(names) if names else ""
    if name:
        play.note("somebody", "deletes", f"{resource.kind} {name}")
        await play.attempt(play.world.delete(name, resource))
    return name


async def lose_gate(play: Play) -> None:
    """Restart managers without their feature gate. Existing objects are still reconciled (N-K8S-18)."""
    play.note("machine", "turns off", "the feature gate of managers")
    play.world.follow_scheduling(is_enabled=False)
    happenings.kill_all_managers(play, 1.0)
    await _edit_meanwhile(play)
    play.note("machine", "turns on", "the feature gate of managers")
    play.world.follow_scheduling(is_enabled=True)
    happenings.kill_all_managers(play, 1.0)


async def lose_kinds(play: Play) -> None:
    """Temporarily hide the kinds of the scheduler from managers (N-K8S-9)."""
    play.note("machine", "does not serve", API)
    play.world.wire.unserved = API
    for wire in play.transports():
        wire.cut_watches()
    await _edit_meanwhile(play)
    play.note("machine", "serves", API)
    play.world.wire.unserved = ""


async def _edit_meanwhile(play: Play) -> None:
    await asyncio.sleep(play.random.choice((0.0, 2.0, 8.0)))
    await play.random.choice((happenings.scale, happenings.roll, happenings.restart_container))(play)
    await asyncio.sleep(play.random.choice((0.0, 2.0, 20.0)))


ORDINAL: Final[tuple[Sequence[Happening], Sequence[Happening]]] = (happenings.EDITS, happenings.ACCIDENTS)
KEYED: Final[tuple[Sequence[Happening], Sequence[Happening]]] = (randomkeys.EDITS, randomkeys.ACCIDENTS)
EDITS: Final[Sequence[Happening]] = (switch_level,)
ACCIDENTS: Final[Sequence[Happening]] = (delete_pod_group, delete_pod_group, delete_workload, lose_gate, lose_kinds)


def draw(random: Random) -> JSONObject:
    """Select a LeaderWorkerSet with `spec.scheduling`. Roles need groups of at least two pods."""
    lws = random.choice((draw_leaderworkerset, randomkeys.draw))(random)
    spec: dict[str, Any] = dict(meta.spec(lws)) | {"scheduling": random.choice(LEVELS)}
    if spec["scheduling"] is ROLES:
        spec["leaderWorkerTemplate"]["size"] = max(spec["leaderWorkerTemplate"]["size"], 2)
    else:
        spec["startupPolicy"] = "LeaderCreated"
    return lws | {"spec": spec}


async def play_gangs(world: LeanCluster, name: str, branches: Sequence[int], send: Send) -> None:
    """Play branches of a family, and send every verdict."""
    world.reseed(name)
    random = Random(name)
    lws = draw(random)
    is_keyed = meta.spec(lws).get("groupIdentity") == "Hash"
    managers = random.choice((1, 1, 2))
    if random.random() < 0.5:
        world.kubelet.pace = SLOW_PODS
    creates = random.random() < 1 / 3
    await world.start_gangs()
    if is_keyed:
        await world.start_deployments()
    start_managers(world, managers)
    await asyncio.sleep(3.0)
    if not creates:
        await world.create(lws)
    await world.at_rest()
    edits, accidents = KEYED if is_keyed else ORDINAL
    checks = KeyedGangInvariants if is_keyed else GangInvariants

    async def one(seed: str) -> Verdict:
        random = Random(seed)
        script = draw_script(random, managers, lws if creates else None)
        picked = happenings.draw(random, (*edits, *EDITS), (*accidents, *ACCIDENTS, *ACCIDENTS))
        return await play(world, seed, replace(script, picked=picked), checks)

    await play_branches(name, branches, send, one)
