"""Defines a requested or active fault, with its kind, targets, amount and duration.

`FORMS` is the table of all faults, with the number and kind of their targets, and the valid amounts.
"""

import math
from enum import StrEnum
from typing import Final

import msgspec

from kuberuntime.objects.meta import ObjectKey

LONGEST: Final = 24 * 3600.0
"""The maximum duration of a fault in seconds, after which it is reverted."""


class FaultKind(StrEnum):
    """The kinds of faults."""

    KILL = "kill"
    STOP = "stop"
    STARVE = "starve"
    PARTITION = "partition"
    LOSE = "lose"
    THROTTLE = "throttle"
    DELAY = "delay"
    FILL = "fill"
    DRAIN = "drain"
    LOSE_NODE = "lose-node"
    APISERVER = "apiserver"
    WEBHOOKS = "webhooks"
    MANAGER = "manager"


class FaultParameters(msgspec.Struct, frozen=True):
    """The parameters of a fault: targets (pods as NAMESPACE/NAME, or nodes), and the limits of the amount."""

    targets_pods: bool = True
    fewest: int = 1
    most: int = 1
    amounts: tuple[float, float] | None = None
    has_path: bool = False


_PAIR: Final = 2
_PART: Final = FaultParameters(fewest=0, most=0)

FORMS: Final = {
    FaultKind.KILL: FaultParameters(),
    FaultKind.STOP: FaultParameters(),
    FaultKind.STARVE: FaultParameters(amounts=(0.01, 0.9)),
    FaultKind.PARTITION: FaultParameters(most=_PAIR),
    FaultKind.LOSE: FaultParameters(most=_PAIR, amounts=(0.0001, 1.0)),
    FaultKind.DELAY: FaultParameters(amounts=(0.001, 60.0)),
    FaultKind.THROTTLE: FaultParameters(most=_PAIR, amounts=(1000.0, 1e9)),
    FaultKind.FILL: FaultParameters(has_path=True),
    FaultKind.DRAIN: FaultParameters(targets_pods=False),
    FaultKind.LOSE_NODE: FaultParameters(targets_pods=False),
    FaultKind.APISERVER: _PART,
    FaultKind.WEBHOOKS: _PART,
    FaultKind.MANAGER: _PART,
}
"""The table of faults. Amounts are a fraction of CPU time or packets, seconds of delay, or bytes per second."""


class FaultError(Exception):
    """The fault is impossible. The message contains the fault, the cluster component and the solution."""


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fault with its duration in seconds.

    A fault for two pods affects the connection between them, and a fault for one pod affects all its connections.
    """

    kind: FaultKind
    seconds: float
    targets: tuple[str, ...] = ()
    amount: float = 0.0
    path: str = ""

    @property
    def pods(self) -> list[ObjectKey]:
        """Return the affected pods.

        >>> Fault(kind=FaultKind.KILL, seconds=1.0, targets=("default/web-0",)).pods
        [ObjectKey(namespace='default', name='web-0')]
        """
        pairs = (target.partition("/") for target in self.targets)
        return [ObjectKey(namespace, name) for namespace, _, name in pairs]


def parse(body: bytes) -> Fault:
    """Parse a requested fault. Raise a `FaultError` that names the first invalid field."""
    try:
        fault = msgspec.json.decode(body, type=Fault)
    except (msgspec.DecodeError, RecursionError) as error:
        raise FaultError(f"invalid fault: {error}") from error
    form = FORMS[fault.kind]
    if not 0 <= fault.seconds <= LONGEST:
        raise FaultError(f"{fault.kind}: seconds: {fault.seconds}: must be between 0 and {LONGEST:.0f}")
    if not form.fewest <= len(fault.targets) <= form.most:
        limits = str(form.most) if form.fewest == form.most else f"{form.fewest} to {form.most}"
        raise FaultError(f"{fault.kind}: targets: must have {limits} elements, but has {len(fault.targets)}")
    if form.targets_pods and any(not key.namespace or not key.name for key in fault.pods):
        raise FaultError(f"{fault.kind}: targets: {', '.join(fault.targets)}: must be pods in the form NAMESPACE/NAME")
    least, most = form.amounts or (0.0, 0.0)
    if not (least <= fault.amount <= most) or math.isnan(fault.amount):
        raise FaultError(f"{fault.kind}: amount: {fault.amount:g}: must be between {least:g} and {most:g}")
    if form.has_path != fault.path.startswith("/") or (fault.path and not form.has_path):
        raise FaultError(f"{fault.kind}: path: {fault.path!r}: " + ("must start with /" if form.has_path else "unused"))
    return fault
