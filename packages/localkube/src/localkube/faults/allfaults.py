"""Composes the faults that a cluster supports."""

import asyncio
from collections.abc import Mapping
from functools import partial

from kuberuntime.clock import Clock
from localkube.faults import leavingnodes, programs
from localkube.faults.effects import Effect, PodsHere
from localkube.faults.fault import FaultKind
from localkube.faults.keeper import FaultKeeper
from localkube.faults.packets import Packets
from localkube.faults.parts import Part, Removing


def keeper(pods: PodsHere, clock: Clock, parts: Mapping[FaultKind, Part], tasks: asyncio.TaskGroup) -> FaultKeeper:
    """Return the keeper of a cluster's faults. `tasks` runs the background work of active faults."""
    packets, removing = Packets(pods), Removing(parts)
    effects: dict[FaultKind, Effect] = {
        FaultKind.KILL: partial(programs.kill, pods),
        FaultKind.STOP: partial(programs.stop, pods),
        FaultKind.STARVE: partial(programs.starve, pods, tasks),
        FaultKind.PARTITION: packets.lose,
        FaultKind.LOSE: packets.lose,
        FaultKind.THROTTLE: packets.lose,
        FaultKind.DELAY: packets.delay,
        FaultKind.FILL: partial(programs.fill, pods),
        FaultKind.DRAIN: partial(leavingnodes.remove, pods.client),
        FaultKind.LOSE_NODE: partial(leavingnodes.remove, pods.client),
        FaultKind.APISERVER: removing.begin,
        FaultKind.WEBHOOKS: removing.begin,
        FaultKind.MANAGER: removing.begin,
    }
    return FaultKeeper(effects, clock)
