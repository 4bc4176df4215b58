"""Implements faults of packets between pods: loss of all or some packets, rate limits, and delays.

A fault for two pods affects both directions between them. A fault for one pod affects all packets between it and other
pods. A delay affects all packets to a pod.
"""

from itertools import permutations

from kuberuntime.objects import meta
from localkube.faults.effects import LocalPods, Undo
from localkube.faults.fault import Fault, FaultError, FaultKind
from localkube.kubelet.processes.runner import PacketLoss


class NetworkFaults:
    """Drops and delays packets. One table contains all losses, and is replaced when a loss starts or stops."""

    def __init__(self, pods: LocalPods) -> None:
        self._pods = pods
        self._losses: list[list[PacketLoss]] = []
        self._delayed: set[str] = set()

    async def drop_packets(self, fault: Fault) -> Undo:
        """Start to drop packets."""
        addresses = [str(meta.status(await self._pods.pod(key)).get("podIP")) for key in fault.pods]
        own = packet_losses(fault, addresses)

        async def undo() -> None:
            self._losses = [loss for loss in self._losses if loss is not own]
            await self._replace()

        self._losses.append(own)
        try:
            await self._replace()
        except BaseException:
            self._losses.remove(own)
            raise
        return undo

    async def delay_packets(self, fault: Fault) -> Undo:
        """Start to delay all packets to a pod. A pod has at most one delay at a time."""
        uid = meta.uid(await self._pods.pod(fault.pods[0]))
        if uid in self._delayed:
            raise FaultError(f"delay: {fault.targets[0]} is already delayed. Undo that fault first")

        async def undo() -> None:
            self._delayed.discard(uid)
            await self._pods.runner.delay_packets(uid, 0.0)

        await self._pods.runner.delay_packets(uid, fault.amount)
        self._delayed.add(uid)
        return undo

    async def _replace(self) -> None:
        await self._pods.runner.drop_packets([loss for group in self._losses for loss in group])


def packet_losses(fault: Fault, addresses: list[str]) -> list[PacketLoss]:
    """Return the losses between two addresses, or for all packets of one address.

    >>> packet_losses(Fault(kind=FaultKind.LOSE, seconds=1.0, amount=0.5), ["10.88.1.0"])[1]
    PacketLoss(source='', destination='10.88.1.0', share=0.5, rate=0)
    """
    ways = list(permutations(addresses if len(addresses) > 1 else [*addresses, ""]))
    match fault.kind:
        case FaultKind.LOSE:
            return [PacketLoss(source, to, share=fault.amount) for source, to in ways]
        case FaultKind.THROTTLE:
            return [PacketLoss(source, to, rate=round(fault.amount)) for source, to in ways]
        case FaultKind.PARTITION:
            return [PacketLoss(source, to) for source, to in ways]
        case _:
            raise FaultError(f"{fault.kind} does not drop packets")
