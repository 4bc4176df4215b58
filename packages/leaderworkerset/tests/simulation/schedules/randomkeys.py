"""Provides LeaderWorkerSets with random group keys (`groupIdentity: Hash`) and the Deployment controller.

In: families as `playing.py` has them. Besides the events of every LeaderWorkerSet, the replacement policy changes, and
a user deletes or edits the leader Deployment.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final

from tests.simulation.checks.randomkeys import RandomKeyInvariants
from tests.simulation.schedules import happenings
from tests.simulation.schedules.forking import Send
from tests.simulation.schedules.kubelet import SLOW_PODS
from tests.simulation.schedules.lean import LeanCluster
from tests.simulation.schedules.play import KEY, Happening, Play
from tests.simulation.schedules.playing import (
    Verdict,
    draw_leaderworkerset,
    draw_script,
    play,
    play_branches,
    start_managers,
)

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import DEPLOYMENTS

POLICIES: Final = ("PostTermination", "PostTermination", "Immediate")


async def change_replacement(play: Play) -> None:
    """Change the replacement policy."""
    await play.edit("changes the replacement policy", groupReplacementPolicy=play.random.choice(POLICIES))


async def change_limits(play: Play) -> None:
    """Change the rollout limits."""
    unavailable, surge = play.random.choice(((1, 0), (2, 0), (0, 1), (1, 1), (1, 2)))
    rolling = {"maxUnavailable": unavailable, "maxSurge": surge}
    strategy = {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling}
    await play.edit("changes the limits", rolloutStrategy=strategy)


async def roll_and_scale(play: Play) -> None:
    """Change the image, and shortly afterwards the number of groups."""
    await happenings.roll(play)
    await happenings.scale(play)


async def shrink_and_fail(play: Play) -> None:
    """Request fewer groups, and make a remaining group fail while the others terminate."""
    await play.edit("scales", replicas=1)
    await happenings.restart_container(play)


async def fail_again(play: Play) -> None:
    """Make the groups fail in sequence."""
    for _ in range(3):
        await happenings.restart_container(play)
        await asyncio.sleep(play.random.uniform(0.2, 3.0))


async def delete_deployment(play: Play) -> None:
    """Delete the owner of the leaders."""
    play.note("user", "deletes", "the leader Deployment")
    play.checks.tolerate()
    play.checks.excuse(*(meta.uid(pod) for pod in play.pods()))
    await play.attempt(play.world.delete(KEY.name, DEPLOYMENTS))


async def meddle(play: Play) -> None:
    """Change managed fields of the leader Deployment."""
    play.note("user", "meddles with", "the leader Deployment")
    play.checks.tolerate()
    patch = {"spec": {"replicas": play.random.choice((1, 3))}}
    await play.attempt(play.world.patch(patch, resource=DEPLOYMENTS))


EDITS: Final[Sequence[Happening]] = (
    happenings.scale, happenings.scale, happenings.roll, happenings.roll, happenings.roll_and_return, roll_and_scale,
    happenings.resize, happenings.change_policy, happenings.change_startup, change_limits, change_replacement,
    happenings.replace, shrink_and_fail,
)  # fmt: skip
ACCIDENTS: Final[Sequence[Happening]] = (
    happenings.restart_container, happenings.restart_container, happenings.fail_twice, fail_again, happenings.evict,
    happenings.delete_pod, happenings.delete_pod, happenings.get_stuck, happenings.lose_node, happenings.stop_webhooks,
    happenings.restart_server, happenings.disturb_watches, happenings.kill_manager, happenings.estrange_leader,
    happenings.jump_clock, happenings.delete_object, delete_deployment, meddle, happenings.squat,
)  # fmt: skip


def draw(random: Random) -> JSONObject:
    """Select a LeaderWorkerSet with random keys."""
    lws = draw_leaderworkerset(random)
    spec: dict[str, Any] = dict(meta.spec(lws))
    rolling = spec["rolloutStrategy"]["rollingUpdateConfiguration"]
    spec["groupIdentity"] = "Hash"
    spec["groupReplacementPolicy"] = random.choice(POLICIES)
    spec["rolloutStrategy"] = {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling | {"partition": 0}}
    return lws | {"spec": spec}


async def play_random_keys(world: LeanCluster, name: str, branches: Sequence[int], send: Send) -> None:
    """Play branches of a family, and send every verdict."""
    world.reseed(name)
    random = Random(name)
    lws = draw(random)
    managers = random.choice((1, 1, 2))
    if random.random() < 0.5:
        world.kubelet.pace = SLOW_PODS
    creates = random.random() < 1 / 3
    await world.start_deployments()
    start_managers(world, managers)
    if not creates:
        await world.create(lws)
    await world.at_rest()

    async def one(seed: str) -> Verdict:
        random = Random(seed)
        script = draw_script(random, managers, lws if creates else None)
        picked = happenings.draw(random, EDITS, ACCIDENTS)
        return await play(world, seed, replace(script, picked=picked), RandomKeyInvariants)

    await play_branches(name, branches, send, one)
