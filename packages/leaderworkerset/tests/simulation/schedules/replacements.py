"""Defines scenarios of leaders with random keys that wait for other groups, or whose Deployment is blocked."""

import asyncio
from typing import Final

from tests.simulation.faults import STATUSES, Fault
from tests.simulation.schedules.play import Play
from tests.simulation.workloads import template

from kuberuntime import timeouts
from kuberuntime.objects import meta
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.groupname import is_leader

STEP: Final = 60.0
"""The virtual time in seconds in which a rollout performs its first step."""


async def fail_beside_surplus(play: Play) -> None:
    """Make a remaining group fail while a group that was removed by a scale-down does not terminate (N-AT-5).

    No object says which of them is replaced. A manager that starts meanwhile lets the replacement wait for both
    (N-GATE-2).
    """
    leaders = {meta.uid(pod) for pod in play.pods() if is_leader(pod)}
    play.world.kubelet.stuck |= {meta.uid(pod) for pod in play.pods()}
    await play.edit("scales", replicas=1)
    await asyncio.sleep(5.0)
    (left,) = (pod for pod in play.pods() if is_leader(pod) and not meta.is_deleting(pod))
    own = groupname.group_label(left)
    play.world.kubelet.stuck -= {meta.uid(pod) for pod in play.pods() if groupname.group_label(pod) == own}
    play.note("machine", "lets fail", f"pod {meta.name(left)}")
    play.checks.excuse(meta.uid(left))
    play.world.kubelet.restart(meta.name(left))
    failed = play.world.clock.monotonic()
    await asyncio.sleep(60.0)
    is_known = not any(at >= failed for wire in play.wires() for at in wire.interruptions)
    if is_known and not [
        pod for pod in play.pods() if is_leader(pod) and meta.uid(pod) not in leaders and meta.spec(pod).get("nodeName")
    ]:
        play.checks.violations.append("a replacement waits for a group that nobody replaces")


async def roll_and_shrink(play: Play) -> None:
    """Change the image, and scale down by one group between the first two steps of the rollout.

    The second step is refused until a manager has had the time to scale the Deployment down.
    """
    await play.edit("rolls", leaderWorkerTemplate={"workerTemplate": template("app:2")})
    async with timeouts.within(STEP):
        while play.checks.facts.sizes() != [0, 1]:  # noqa: ASYNC110 - between two writes of another actor
            await asyncio.sleep(0.001)
    play.world.wire.refuse(r"/replicasets/[^/]*$", STATUSES[Fault.BROKEN], "controllers")
    await play.edit("scales", replicas=1)
    await asyncio.sleep(1.0)
    play.world.wire.permit()


async def end_one_by_one(play: Play) -> None:
    """Replace both groups at once. The group that the youngest leader references terminates first.

    That leader then waits for the other group.
    """
    play.world.kubelet.stuck |= {meta.uid(pod) for pod in play.pods()}
    strategy = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxUnavailable": 2, "maxSurge": 0}}
    changed = {"workerTemplate": template("app:2")}
    await play.edit("rolls all", rolloutStrategy=strategy, leaderWorkerTemplate=changed)
    await asyncio.sleep(5.0)
    leaders = sorted(filter(is_leader, play.pods()), key=meta.by_age)
    former = {meta.name(leader): groupname.group_label(leader) for leader in leaders}
    first = former.get(meta.annotations(leaders[-1]).get(labels.REPLACES, ""))
    play.world.kubelet.unstick({meta.uid(pod) for pod in play.pods() if groupname.group_label(pod) == first})
    await asyncio.sleep(5.0)
    play.world.kubelet.release()
