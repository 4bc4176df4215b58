"""Provides scenarios of the LeaderWorkerSet `web`, their clusters, and counters of its leaders."""

from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from tests.fuzz.seeds import seeds
from tests.simulation.cluster import Settings, SimulatedCluster, simulated
from tests.simulation.faults import Schedule
from tests.simulation.workloads import SLOW, template

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels
from leaderworkerset.capabilities import names
from leaderworkerset.capabilities.backoff.backoffsettings import DEFAULTS
from leaderworkerset.core.policies.recreation import RestartSettings
from leaderworkerset.kinds.managedkinds import managed_kinds
from localkube.apiserver.storage.store import Change
from localkube.kubelet.processes.simulatedrunner import Script, run_forever

SEEDS: Final = seeds(1)


@dataclass
class Leaders:
    """Counts how often each leader pod of `web` was created, and the minimum number of ready leaders."""

    births: Counter[str] = field(default_factory=Counter)
    ready: dict[str, bool] = field(default_factory=dict)
    fewest: int | None = None

    def see(self, change: Change) -> None:
        """Record a change to a pod."""
        if meta.labels(change.object).get(labels.WORKER_INDEX) != "0":
            return
        name = change.key.name
        self.births[name] += change.previous is None
        is_there = change.type != "DELETED" and not meta.is_deleting(change.object)
        self.ready[name] = is_there and meta.is_condition_true(change.object, "Ready")
        count = sum(self.ready.values())
        self.fewest = count if self.fewest is None else min(self.fewest, count)


def settings(
    seed: int = 1, manager: Schedule = SLOW, script: Script = run_forever, restarts: RestartSettings = DEFAULTS
) -> Settings:
    """Return a cluster with one manager and a network with delays."""
    kinds = managed_kinds(configured={names.BACKOFF: restarts})
    return Settings(seed=seed, managers=(manager,), others=SLOW, script=script, kinds=kinds)


def played(**chosen: Any) -> Callable[[Callable[..., Coroutine[Any, Any, None]]], Callable[..., None]]:
    """Convert a coroutine to a test with these settings and the parameters of the test."""
    return simulated(partial(settings, **chosen))


def watch(world: SimulatedCluster, *, ready: int = 0) -> Leaders:
    """Start to count leaders, of which `ready` are ready at the start."""
    leaders = Leaders(ready={f"web-{index}": True for index in range(ready)})
    world.observe(PODS, leaders.see)
    return leaders


async def images(world: SimulatedCluster) -> set[str]:
    """Return the images of all pods."""
    return {meta.spec(pod)["containers"][0]["image"] for pod in await world.objects(PODS)}


async def roll(world: SimulatedCluster, image: str) -> None:
    """Change the image of all pods."""
    await world.edit(leaderWorkerTemplate={"workerTemplate": template(image)})


def has_updated(image: str) -> Callable[[list[JSONObject]], bool]:
    """Return whether a pod with this image is ready."""
    return lambda pods: any(
        meta.spec(pod)["containers"][0]["image"] == image and meta.is_condition_true(pod, "Ready") for pod in pods
    )
