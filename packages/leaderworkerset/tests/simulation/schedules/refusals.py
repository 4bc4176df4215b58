"""Simulates policies and quotas that temporarily reject the managers' writes to one kind of object.

Meanwhile the template is edited, reverted and edited again, so that the same revision is requested repeatedly.
"""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Final

from tests.simulation.schedules.play import NAME, Happening, Play
from tests.simulation.workloads import template

from kuberuntime.objects import meta
from leaderworkerset.api.resources import LEADERWORKERSETS

SHARE: Final = 0.15
"""The share of random schedules with rejected writes."""

PATHS: Final = (
    r"/statefulsets(/[^/]*)?$",
    rf"/statefulsets/{NAME}$",
    r"/controllerrevisions(/[^/]*)?$",
    r"/services(/[^/]*)?$",
    r"/pods(/[^/]*)?$",
    r"/leaderworkersets/[^/]*/status$",
)
"""The paths of writes, by kind. Writes to the leader StatefulSet are also rejected alone."""

ANSWERS: Final = (
    (403, "Forbidden", "exceeded quota"),
    (403, "Forbidden", "denied by a policy"),
    (422, "Invalid", "a policy does not allow the object"),
    (429, "TooManyRequests", "the server has received too many requests"),
    (500, "InternalError", "an error on the server has prevented the request from succeeding"),
)

WAITS: Final = (0.0, 0.2, 1.0, 4.0, 4.0, 30.0)
"""The time in seconds between two changes."""


async def refuse_writes(play: Play) -> None:
    """Reject writes to one kind while the template is changed, reverted and changed another time."""
    before = await _image(play)
    other = play.random.choice([image for image in ("app:1", "app:7", "app:8") if image != before])
    path, answer = play.random.choice(PATHS), play.random.choice(ANSWERS)
    end = play.random.choice((1, 1, 2, 3))
    for number, image in enumerate((other, before, other, *play.random.choice(((), (), (before,))))):
        if number == 0:
            play.note("policy", f"refuses with {answer[0]}", path)
            play.world.wire.refuse(path, answer)
        if number == end:
            play.note("policy", "permits", path)
            play.world.wire.permit()
        await _edit(play, image)
        await asyncio.sleep(play.random.choice(WAITS))
    play.world.wire.permit()


async def _image(play: Play) -> str:
    lws = await play.world.get(LEADERWORKERSETS, NAME)
    containers = meta.spec(lws)["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"]
    return str(containers[0]["image"])


def added(seed: str, picked: Sequence[tuple[float, Happening]]) -> list[tuple[float, Happening]]:
    """Return the events. In some of the schedules, they include rejected writes."""
    random, events = Random(f"{seed} refusals"), list(picked)
    if random.random() < SHARE:
        events.insert(random.randint(0, len(events)), (random.choice((0.0, 1.0, 20.0)), refuse_writes))
    return events


async def roll_refused(play: Play) -> None:
    """Change the template, revert it while writes to the leader StatefulSet fail, and change it another time."""
    play.world.wire.refuse(PATHS[1], ANSWERS[1])
    await _edit(play, "app:2")
    await play.world.at_rest()
    await _edit(play, "app:1")
    play.world.wire.permit()
    await play.world.return_of_managers()
    await play.world.at_rest()
    await _edit(play, "app:2")


async def _edit(play: Play, image: str) -> None:
    await play.edit("edits", leaderWorkerTemplate={"workerTemplate": template(image)})
