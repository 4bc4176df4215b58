"""Defines rollouts with rejected writes, and with groups that are broken before the rollout."""

from collections.abc import Mapping, Sequence
from typing import Final

from tests.simulation.schedules.play import Happening, Play
from tests.simulation.schedules.refusals import roll_refused
from tests.simulation.workloads import template

from kuberuntime.objects import meta

BROKEN: Final = "web-0-1"
"""The worker that is never ready. The partition includes its group last."""


async def roll_broken(play: Play) -> None:
    """Change the template while the first group is broken.

    The update repairs it before it replaces the ready group.
    """
    (worker,) = (pod for pod in play.pods() if meta.name(pod) == BROKEN)
    play.world.kubelet.sicken(BROKEN)
    play.checks.excuse(meta.uid(worker))
    await play.world.at_rest()
    await play.edit("edits", leaderWorkerTemplate={"workerTemplate": template("app:2")})
    await play.world.return_of_managers()
    await play.world.at_rest()
    images = {meta.spec(pod)["containers"][0]["image"] for pod in play.pods()}
    if images != {"app:2"}:
        play.checks.violations.append(f"a broken group holds the rollout: pods run {sorted(images)}")


ROLLOUTS: Final[Mapping[str, Sequence[Happening]]] = {
    "roll refused": (roll_refused,),
    "roll broken": (roll_broken,),
}
"""The scenarios with rejected writes and broken groups."""
