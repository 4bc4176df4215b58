"""Provides LeaderWorkerSets with in-place updates.

In: families as `playing.py` has them. Beside what happens to every LeaderWorkerSet, images and resources change more often, also while the
update before is under way, pods fail in the middle of it, and users switch the way of updates.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Final

from tests.simulation.checks.inplace import InPlaceInvariants
from tests.simulation.schedules import happenings
from tests.simulation.schedules.forking import Send
from tests.simulation.schedules.kubelet import NO_IMAGE, SLOW_PODS
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
from tests.simulation.workloads import template

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels

MOST_ROLLS: Final = 0.6
"""The share of schedules in which few fields other than images and resources change."""

TOO_MANY: Final = "9k"
"""A CPU request that exceeds the capacity of all nodes (`kubelet.py`)."""


def sized(image: str, cpu: str) -> JSONObject:
    """Return a pod template with this CPU request."""
    found = template(image)
    found["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return found


async def roll(play: Play) -> None:
    """Change the image, the resources, or both. There are so few values that they often return to previous ones."""
    wanted = sized(play.random.choice(("app:1", "app:2", "app:3")), play.random.choice(("1", "1", "2", "3")))
    await play.edit("rolls", leaderWorkerTemplate={"workerTemplate": wanted})


async def roll_and_return(play: Play) -> None:
    """Change the image and the resources, possibly to impossible values, and revert it during the rollout."""
    cpu, image = play.random.choice(("4", TOO_MANY)), play.random.choice(("app:9", NO_IMAGE))
    await play.edit("rolls", leaderWorkerTemplate={"workerTemplate": sized(image, cpu)})
    await asyncio.sleep(play.random.uniform(0.0, 3.0))
    await play.edit("reverts", leaderWorkerTemplate={"workerTemplate": sized("app:1", "1")})


async def roll_again(play: Play) -> None:
    """Change the image twice. The second change occurs while groups are being updated."""
    await roll(play)
    await asyncio.sleep(play.random.uniform(0.0, 3.0))
    await roll(play)


async def roll_and_fail(play: Play) -> None:
    """Change the image, and make a container fail during the update."""
    await roll(play)
    await asyncio.sleep(play.random.uniform(0.0, 2.0))
    await happenings.restart_container(play)


async def switch(play: Play) -> None:
    """Disable and enable in-place updates, possibly during an update."""
    play.note("user", "turns off", "updates in place")
    play.checks.tolerate()
    for value in (None, "IfPossible"):
        patch: JSONObject = {"metadata": {"annotations": {labels.IN_PLACE: value}}}
        await play.attempt(play.world.patch(patch))
        await asyncio.sleep(play.random.uniform(0.0, 4.0))


ROLLS: Final[Sequence[Happening]] = (
    roll, roll, roll_and_return, roll_again, roll_and_fail, happenings.change_limits,
)  # fmt: skip
EDITS: Final[Sequence[Happening]] = (*happenings.EDITS, *ROLLS, switch)


def of_in_place(lws: JSONObject, way: str = "IfPossible") -> JSONObject:
    """Return the LeaderWorkerSet with this mode of in-place updates."""
    annotations = lws["metadata"].get("annotations") or {}
    return lws | {"metadata": lws["metadata"] | {"annotations": annotations | {labels.IN_PLACE: way}}}


async def play_in_place(world: LeanCluster, name: str, branches: Sequence[int], send: Send) -> None:
    """Play branches of a family, and send every verdict."""
    world.reseed(name)
    random = Random(name)
    lws = of_in_place(draw_leaderworkerset(random))
    lws["spec"]["leaderWorkerTemplate"]["workerTemplate"] = sized("app:1", "1")
    managers = random.choice((1, 1, 2))
    if random.random() < 0.5:
        world.kubelet.pace = SLOW_PODS
    start_managers(world, managers)
    await asyncio.sleep(3.0)
    await world.create(lws)
    await world.at_rest()

    async def one(seed: str) -> Verdict:
        random = Random(seed)
        script = draw_script(random, managers, None)
        edits = ROLLS if random.random() < MOST_ROLLS else EDITS
        picked = [(0.0, random.choice(ROLLS)), *happenings.draw(random, edits)]
        return await play(world, seed, replace(script, picked=picked), InPlaceInvariants)

    await play_branches(name, branches, send, one)
