"""Composes the faults that a cluster supports."""

import asyncio
from collections.abc import Mapping
from functools import partial

from kuberuntime.clock import Clock
from localkube.faults import containerfaults, nodefaults
from localkube.faults.componentfaults import ComponentFaults, Part
from localkube.faults.effects import Effect, LocalPods
from localkube.faults.fault import FaultKind
from localkube.faults.faultmanager import FaultManager
from localkube.faults.networkfaults import NetworkFaults


def build_manager(
    pods: LocalPods, clock: Clock, parts: Mapping[FaultKind, Part], tasks: asyncio.TaskGroup
) -> FaultManager:
    """Return the fault manager of a cluster. `tasks` runs the background work of active faults."""
    packets, removing = NetworkFaults(pods), ComponentFaults(parts)
    effects: dict[FaultKind, Effect] = {
        FaultKind.KILL: partial(containerfaults.kill, pods),
        FaultKind.STOP: partial(containerfaults.stop, pods),
        FaultKind.STARVE: partial(containerfaults.starve, pods, tasks),
        FaultKind.PARTITION: packets.lose,
        FaultKind.LOSE: packets.lose,
        FaultKind.THROTTLE: packets.lose,
        FaultKind.DELAY: packets.delay,
        FaultKind.FILL: partial(containerfaults.fill, pods),
        FaultKind.DRAIN: partial(nodefaults.remove, pods.client),
        FaultKind.LOSE_NODE: partial(nodefaults.remove, pods.client),
        FaultKind.APISERVER: removing.begin,
        FaultKind.WEBHOOKS: removing.begin,
        FaultKind.MANAGER: removing.begin,
    }
    return FaultManager(effects, clock)
