"""Defines the events of a random schedule: user edits, faults, and foreign objects with managed names.

An event is a function of its `Play`; `draw` selects events with a source of randomness. All damage is repaired at the
end (`Play.calm`), so that a schedule has an end that can be compared.
"""

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from tests.attacker import Attacker
from tests.simulation.checks.facts import FOREIGN, restarts_in_place
from tests.simulation.cluster import NAMESPACE
from tests.simulation.schedules.play import KEY, NAME, STANDSTILL, Happening, Play
from tests.simulation.workloads import template

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, NAMESPACES, PODS, SERVICES, STATEFULSETS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS, OF_STATEFULSETS

YEAR: Final = 400 * 86400.0
"""The error in seconds of a clock that was never set."""

ATTACKED: Final = "hostile"
"""The namespace of a hostile tenant."""

HOSTILE: Final = 80
"""The number of objects that the hostile tenant creates."""

CRASH_LOOP: Final = 60.0
"""The time in seconds during which a pod crashes each time it becomes ready."""

IN_PLACE: Final = 0.7
"""The share of container failures that restart all containers of the pod in place, if this is tolerated."""

UNSEEN: Final = 0.3
"""The share of schedules whose last event is a pod deletion while no manager runs.

Later events would hide its effects.
"""


async def scale(play: Play) -> None:
    """Change the number of groups."""
    await play.edit("scales", replicas=play.random.choice((0, 1, 1, 2, 2, 3, 4)))


async def scale_subresource(play: Play) -> None:
    """Scale as an autoscaler does. The other fields are not validated."""
    replicas = play.random.choice((1, 2, 3, 4))
    play.note("autoscaler", "scales", str(replicas))
    scale = {"spec": {"replicas": replicas}}
    await play.attempt(play.world.client.patch(LEADERWORKERSETS, KEY, scale, kind="merge", subresource="scale"))


async def sicken(play: Play) -> None:
    """Make a pod unready until it is replaced."""
    pod = play.victim()
    if pod is not None and play.world.kubelet.sicken(meta.name(pod)):
        play.checks.excuse(meta.uid(pod))
        play.note("machine", "is not ready", f"pod {meta.name(pod)}")


async def sicken_and_roll(play: Play) -> None:
    """Make groups unready, and correct their template."""
    for _ in range(play.random.choice((1, 1, 2))):
        await sicken(play)
    await asyncio.sleep(play.random.choice((0.0, 1.0)))
    await roll(play)


async def roll(play: Play) -> None:
    """Change the image. There are so few images that a change often restores an earlier image."""
    image = play.random.choice(("app:1", "app:2", "app:3"))
    await play.edit("rolls", leaderWorkerTemplate={"workerTemplate": template(image)})


async def roll_and_return(play: Play) -> None:
    """Change the image, and revert the change during the rollout."""
    await play.edit("rolls", leaderWorkerTemplate={"workerTemplate": template("app:9")})
    await asyncio.sleep(play.random.uniform(0.0, 1.5))
    await play.edit("reverts", leaderWorkerTemplate={"workerTemplate": template("app:1")})


async def resize(play: Play) -> None:
    """Change the size of groups."""
    await play.edit("resizes", leaderWorkerTemplate={"size": play.random.choice((1, 2, 3))})


async def change_policy(play: Play) -> None:
    """Change the restart policy."""
    policy = play.random.choice(("None", "RecreateGroupOnPodRestart", "RecreateGroupAfterStart"))
    await play.edit("changes the restart policy", leaderWorkerTemplate={"restartPolicy": policy})


async def change_startup(play: Play) -> None:
    """Change the startup policy."""
    await play.edit("changes the startup", startupPolicy=play.random.choice(("LeaderReady", "LeaderCreated")))


async def change_limits(play: Play) -> None:
    """Change the rollout limits."""
    unavailable, surge = play.random.choice(((1, 0), (2, 0), (0, 1), (1, 1), (1, 2)))
    rolling = {"partition": play.random.choice((0, 0, 0, 1)), "maxUnavailable": unavailable, "maxSurge": surge}
    strategy = {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling}
    await play.edit("changes the limits", rolloutStrategy=strategy)


async def replace(play: Play) -> None:
    """Delete the LeaderWorkerSet, and recreate it with the same name, immediately or a little later."""
    play.note("user", "deletes and creates", NAME)
    before = await play.world.get(LEADERWORKERSETS, NAME)
    if not await play.attempt(play.world.delete()):
        return
    await asyncio.sleep(play.random.choice((0.0, 0.0, 0.05, 0.5)))
    kept = {field: before["metadata"].get(field) for field in ("name", "namespace", "labels", "annotations")}
    fresh = before | {"metadata": {field: value for field, value in kept.items() if value}}
    fresh.pop("status", None)
    while not await play.attempt(play.world.create(fresh)):  # noqa: ASYNC110 - as a user tries again
        await asyncio.sleep(1.0)


async def delete_pod(play: Play) -> None:
    """Delete a pod, as a user does."""
    pod = play.victim()
    if pod is not None:
        play.note("user", "deletes", f"pod {meta.name(pod)}")
        play.checks.excuse(meta.uid(pod))
        await play.attempt(play.world.delete(meta.name(pod), PODS))


async def delete_leader(play: Play) -> None:
    """Delete the leader of the first group, as a user does."""
    await delete_pod_named(play, next(pod for pod in play.pods() if meta.name(pod) == f"{NAME}-0"))


async def delete_object(play: Play) -> None:
    """Delete a managed object: a StatefulSet, a revision or a Service."""
    resource = play.random.choice((STATEFULSETS, STATEFULSETS, CONTROLLER_REVISIONS, SERVICES))
    known = play.checks.facts.objects.get(resource.group_resource, {})
    names = sorted(name for name, obj in known.items() if labels.NAME in meta.labels(obj) or name == NAME)
    names = [name for name in names if FOREIGN not in meta.annotations(known[name])]
    if names:
        name = play.random.choice(names)
        play.note("user", "deletes", f"{resource.kind} {name}")
        play.checks.excuse(*(meta.uid(pod) for pod in play.pods()))
        play.checks.has_lost_revision |= is_revision(known[name])
        await play.attempt(play.world.delete(name, resource))


def is_revision(obj: JSONObject) -> bool:
    """Return whether an object is a revision of a LeaderWorkerSet."""
    own = meta.labels(obj)
    return (
        obj["kind"] == CONTROLLER_REVISIONS.kind and OF_STATEFULSETS not in own and labels.TEMPLATE_REVISION_HASH in own
    )


async def meddle(play: Play) -> None:
    """Change managed fields of the leader StatefulSet."""
    play.note("user", "meddles with", "the leader StatefulSet")
    play.checks.tolerate()
    patch = {"spec": {"replicas": play.random.choice((1, 3))}}
    await play.attempt(play.world.patch(patch, resource=STATEFULSETS))


async def restart_container(play: Play) -> None:
    """Make a container exit with an error.

    If the set tolerates it, often restart all containers of the pod in place.
    """
    pod = play.victim()
    if play.checks.facts.has_tolerated and play.random.random() < IN_PLACE:
        restart_all(play, pod)
    elif pod is not None and play.world.kubelet.restart(meta.name(pod)):
        play.checks.excuse(meta.uid(pod))
        play.note("machine", "restarts a container of", f"pod {meta.name(pod)}")


def restart_all(play: Play, pod: JSONObject | None, *, comes_back: bool = True) -> None:
    """Restart all containers of a pod in place. If the pod does not become ready, its group has failed."""
    if pod is not None and play.world.kubelet.restart_all(meta.name(pod), comes_back=comes_back):
        play.checks.excuse(meta.uid(pod))
        play.note("machine", "restarts all containers of", f"pod {meta.name(pod)}")
        if not comes_back:
            play.checks.facts.failed.add(meta.uid(pod))


async def fail_twice(play: Play) -> None:
    """Make containers of two pods exit at the same time."""
    await restart_container(play)
    await restart_container(play)


async def crash_loop(play: Play) -> None:
    """Make one pod crash for a minute each time it becomes ready."""
    pod = play.victim()
    if pod is not None:
        await crash_again_and_again(play, meta.name(pod))
        if play.random.random() < 0.5:
            await asyncio.sleep(CRASH_LOOP)


async def crash_again_and_again(play: Play, name: str) -> None:
    """Make the pod with this name crash each time it becomes ready."""
    play.note("machine", "lets crash again and again", f"pod {name}")

    async def crash() -> None:
        end = play.world.clock.monotonic() + CRASH_LOOP
        while play.world.clock.monotonic() < end:
            pod = play.checks.facts.objects.get(PODS.group_resource, {}).get(name)
            if pod is not None and play.world.kubelet.restart(name):
                play.checks.excuse(meta.uid(pod))
            await asyncio.sleep(1.0)

    play.loops.append(asyncio.create_task(crash()))


async def evict(play: Play) -> None:
    """Evict a pod, and delete it a little later as the pod garbage collector does."""
    pod = play.victim()
    if pod is not None and play.world.kubelet.evict(meta.name(pod)):
        play.checks.excuse(meta.uid(pod))
        play.note("machine", "evicts", f"pod {meta.name(pod)}")


async def get_stuck(play: Play) -> None:
    """Delete a pod that does not terminate."""
    pod = play.victim()
    if pod is not None:
        play.world.kubelet.stuck.add(meta.uid(pod))
        play.note("machine", "never ends", f"pod {meta.name(pod)}")
        await delete_pod_named(play, pod)


async def delete_pod_named(play: Play, pod: JSONObject) -> None:
    """Delete this pod."""
    play.checks.excuse(meta.uid(pod))
    await play.attempt(play.world.delete(meta.name(pod), PODS))


async def lose_node(play: Play) -> None:
    """Remove a node. Its pods are deleted, but do not terminate until the node returns."""
    node = play.random.choice(("node-0", "node-1"))
    play.note("machine", "loses", node)
    lost = [pod for pod in play.pods() if meta.spec(pod).get("nodeName") == node]
    play.checks.excuse(*(meta.uid(pod) for pod in lost))
    play.world.kubelet.lose(node)
    await asyncio.sleep(play.random.choice((0.0, 2.0)))
    for pod in lost:
        await play.attempt(play.world.client.delete(PODS, meta.key(pod), uid=meta.uid(pod)))


async def stop_webhooks(play: Play) -> None:
    """Make the webhooks time out for a number of seconds."""
    play.note("machine", "stops", "webhooks")
    play.world.webhooks.is_down = True
    play.loops.append(asyncio.create_task(_after(8.0, lambda: setattr(play.world.webhooks, "is_down", False))))


async def restart_server(play: Play) -> None:
    """Stop the API server for a number of seconds. It restarts without its history."""
    play.note("machine", "restarts", "the API server")
    wires = [*play.transports(), *([play.world.others] if play.world.others else [])]
    for wire in wires:
        wire.is_down = True
        wire.expire()

    def come_back() -> None:
        for wire in wires:
            wire.is_down = False

    play.loops.append(asyncio.create_task(_after(play.random.uniform(0.5, 6.0), come_back)))


async def disturb_watches(play: Play) -> None:
    """Close, delay or expire the watches of the managers."""
    how = play.random.choice(("cut", "freeze", "expire"))
    play.note("machine", how, "watches")
    for wire in play.transports():
        if how == "freeze":
            wire.freeze(play.random.uniform(1.0, 12.0))
        else:
            (wire.cut_watches if how == "cut" else wire.expire)()


async def kill_manager(play: Play) -> None:
    """Stop a manager between two arbitrary steps."""
    names = sorted(play.world.managers)
    name = play.random.choice(names)
    play.note("machine", "kills", name)
    play.world.managers[name].crashed.set()


async def lose_unseen(play: Play) -> None:
    """Stop all managers, and delete a pod before a manager restarts.

    The restart follows immediately, or when the last status is old enough.
    """
    seconds = play.random.choice((2.0, 100.0, 100.0))
    kill_all_managers(play, seconds)
    await asyncio.sleep(seconds * play.random.uniform(0.7, 0.95))
    await delete_pod(play)


def kill_all_managers(play: Play, seconds: float) -> None:
    """Stop all managers for `seconds`."""
    play.note("machine", "kills", f"all managers for {seconds:.0f} s")
    play.world.away_until = play.world.clock.monotonic() + seconds
    for wire in play.transports():
        wire.crashed.set()


async def estrange_leader(play: Play) -> None:
    """Pause a manager, or prevent it from renewing its lease.

    Another manager may become leader before the first manager detects this.
    """
    name = play.random.choice(sorted(play.world.managers))
    how = play.random.choice(("pause", "isolate"))
    play.note("machine", f"{how}s", name)
    wire = play.world.managers[name]
    (wire.pause if how == "pause" else wire.isolate)(play.random.uniform(2.0, STANDSTILL))


async def jump_clock(play: Play) -> None:
    """Set the wall clock, so that the time limit of in-place restarts expires."""
    seconds = play.random.choice((-120.0, -5.0, 5.0, 600.0, -YEAR, YEAR))
    play.note("machine", "moves the clock by", f"{seconds:.0f} s")
    play.world.clock.jump += seconds
    pods = play.checks.facts.objects.get(PODS.group_resource, {}).values()
    late = [pod for pod in pods if restarts_in_place(pod) and not meta.is_condition_true(pod, "Ready")]
    play.checks.facts.failed.update(map(meta.uid, late))


async def attack(play: Play) -> None:
    """Create hostile objects in a different namespace until the cluster is stable."""
    play.note("tenant", "stores", f"hostile objects in {ATTACKED}")
    namespace: JSONObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ATTACKED}}
    await play.attempt(play.world.client.create(NAMESPACES, namespace))
    hostile = Attacker(play.world.client, ATTACKED, play.world.random("tenant"), kept=10, pause=0.05)
    play.loops.append(asyncio.create_task(hostile.attack(HOSTILE, at_once=2)))


PRETENDED: Final = {labels.NAME: NAME, labels.GROUP_INDEX: "1", labels.WORKER_INDEX: "0"}
THING: Final = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "other", "uid": "1234", "controller": True}
"""A controller of a different owner."""


async def squat(play: Play) -> None:
    """Create an object of a different owner with a name that the manager uses."""
    kind, name, api = play.random.choice(
        (("Service", NAME, "v1"), ("Service", f"{NAME}-0", "v1"), ("Pod", f"{NAME}-1", "v1"),
         ("StatefulSet", f"{NAME}-1", "apps/v1"))
    )  # fmt: skip
    resource = {"Service": SERVICES, "Pod": PODS, "StatefulSet": STATEFULSETS}[kind]
    obj: JSONObject = {"apiVersion": api, "kind": kind, "metadata": {"name": name, "annotations": {FOREIGN: "true"}}}
    selector, pod = {"app": "theirs"}, template()["spec"]
    if kind == "StatefulSet":
        labeled = {"metadata": {"labels": selector}, "spec": pod}
        obj["spec"] = {"replicas": 0, "selector": {"matchLabels": selector}, "serviceName": "x", "template": labeled}
    else:
        if kind == "Pod":  # created with the labels of a leader
            obj["metadata"] |= {"labels": PRETENDED, "ownerReferences": [THING]}
        obj["spec"] = pod if kind == "Pod" else {"selector": selector, "clusterIP": "None"}
    obj["metadata"]["namespace"] = NAMESPACE
    if await play.attempt(play.world.client.create(resource, obj)):
        play.note("somebody", "creates a foreign", f"{kind} {name}")
        play.foreign.append((resource, name))


async def _after(seconds: float, step: Callable[[], None]) -> None:
    await asyncio.sleep(seconds)
    step()


EDITS: Final[Sequence[Happening]] = (
    scale, scale_subresource, roll, roll, roll_and_return, sicken_and_roll, resize, change_policy, change_startup, change_limits, replace,
)  # fmt: skip
ACCIDENTS: Final[Sequence[Happening]] = (
    restart_container, restart_container, sicken, fail_twice, crash_loop, evict, delete_pod, get_stuck, lose_node,
    stop_webhooks, restart_server, disturb_watches, kill_manager,
    estrange_leader, jump_clock, delete_object, meddle, squat,
)  # fmt: skip
"""Faults. Later faults in the list occur less often if they make the limits unverifiable."""


def draw(
    random: Random, edits: Sequence[Happening] = EDITS, accidents: Sequence[Happening] = ACCIDENTS
) -> list[tuple[float, Happening]]:
    """Select the events, each with the delay before it in seconds."""
    picked: list[tuple[float, Happening]] = []
    for _ in range(random.choice((1, 2, 2, 3, 4))):
        kind = edits if random.random() < 0.5 else accidents
        before = random.choice((0.0, 0.0, random.uniform(0.0, 0.3), random.uniform(0.3, 2.0), 8.0))
        picked.append((before, random.choice(kind)))
    if random.random() < UNSEEN:
        picked.append((random.choice((0.0, 2.0, 8.0, 8.0)), lose_unseen))
    return picked
