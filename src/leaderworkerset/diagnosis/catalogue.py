"""The catalogue of causes, in the order of root causes: earlier ones explain later ones. Pure.

A cause belongs to the stage at which a group is stuck: nothing acts on it, its pods are refused, it was given up, their
node is lost, they cannot be scheduled, they cannot be started, they fail, the group does not form, the rollout waits. The meaning of
a code never changes. New causes get new codes, and codes of removed causes are not used again.
"""

from typing import Final

from leaderworkerset.diagnosis.causes import (
    closednodes,
    containers,
    featuregates,
    hangs,
    images,
    inplacerestarts,
    lostnodes,
    pendingmoves,
    refusals,
    resizes,
    rollouts,
    scheduling,
    schedulinggates,
    sets,
    starts,
    unattended,
    volumes,
)
from leaderworkerset.diagnosis.finding import Cause

CATALOGUE: Final[tuple[Cause, ...]] = (
    # Nothing acts on the object.
    unattended.HELD,
    refusals.NAMESPACE_ENDS,
    unattended.DOWN,
    unattended.LEADERLESS,
    unattended.SILENT,
    # Parts of a DisaggregatedSet are refused.
    sets.SCALER_TAKEN,
    sets.PART_REFUSED,
    # Groups cannot be scheduled as such: their objects cannot be made, or a component of Kubernetes does not know them.
    featuregates.NOT_CREATED,
    featuregates.NO_GATE,
    # Pods are refused: specific causes before general ones.
    refusals.WEBHOOK_CERTIFICATE,
    refusals.WEBHOOK_UNREACHABLE,
    refusals.DENIED_BY_WEBHOOK,
    refusals.DENIED_BY_POLICY,
    refusals.QUOTA,
    refusals.QUOTA_INCOMPLETE,
    refusals.LIMIT_RANGE,
    refusals.POD_SECURITY,
    refusals.SECURITY_CONSTRAINTS,
    refusals.NO_SERVICE_ACCOUNT,
    refusals.NO_PRIORITY_CLASS,
    refusals.NO_RUNTIME_CLASS,
    refusals.NOT_ALLOWED,
    refusals.NAME_TOO_LONG,
    refusals.INVALID_TEMPLATE,
    refusals.REFUSED,
    unattended.UNCONTROLLED,
    unattended.NO_REVISION,
    # They were given up.
    starts.BUDGET,
    hangs.LATE,
    # Their node is lost, or they do not terminate.
    lostnodes.GONE,
    lostnodes.NOT_READY,
    lostnodes.FINALIZER,
    lostnodes.ENDLESS,
    # They cannot be scheduled.
    schedulinggates.QUEUED,
    schedulinggates.GATED,
    schedulinggates.UNKNOWN_SCHEDULER,
    schedulinggates.NO_SCHEDULER,
    scheduling.NO_SURGE_ROOM,
    volumes.NO_CLAIM,
    volumes.UNBOUND,
    volumes.VOLUME_ELSEWHERE,
    scheduling.EXCLUSIVE,
    schedulinggates.INCOMPLETE,
    scheduling.ACCELERATORS,
    scheduling.MEMORY,
    scheduling.CPU,
    scheduling.STORAGE,
    scheduling.TOO_MANY_PODS,
    scheduling.SPREAD,
    scheduling.PORTS,
    closednodes.SELECTOR,
    closednodes.TAINTS,
    closednodes.CORDONED,
    scheduling.UNSCHEDULABLE,
    # They cannot be started.
    lostnodes.EVICTED,
    containers.NO_SANDBOX,
    images.BAD_CONFIG,
    volumes.NOT_MOUNTED,
    images.INVALID,
    images.NO_PROGRAM,
    images.DENIED,
    images.UNREACHABLE,
    images.NOT_FOUND,
    images.NEVER_PULLED,
    images.NOT_PULLED,
    images.NO_COMMAND,
    images.NOT_STARTED,
    # They fail.
    containers.OUT_OF_MEMORY,
    containers.INIT_FAILS,
    containers.PROBE_KILLS,
    containers.CRASHES,
    containers.ENDED,
    inplacerestarts.IN_PLACE,
    starts.BACK_OFF,
    # They run, and get no further.
    hangs.HANGS,
    resizes.NOT_RESIZED,
    # The group does not form.
    starts.NO_NAMES,
    containers.GATE_CLOSED,
    starts.AWAITS,
    starts.RENDEZVOUS,
    containers.UNREADY,
    unattended.OUTDATED,
    rollouts.STANDS,
    rollouts.BETWEEN_STEPS,
    rollouts.ONLY_IN_PLACE,
    pendingmoves.NEVER,
    # There is no error yet.
    rollouts.DELETING,
    starts.RECREATED,
    starts.STARTS,
    rollouts.PARTITION,
    rollouts.BLOCKED,
    rollouts.ROLLING,
    pendingmoves.WAITS,
    sets.SET_ROLLING,
)

OF_SETS: Final[tuple[Cause, ...]] = (
    unattended.HELD,
    unattended.DOWN,
    unattended.LEADERLESS,
    unattended.SILENT,
    sets.SCALER_TAKEN,
    sets.PART_REFUSED,
    rollouts.DELETING,
    sets.SET_ROLLING,
)
"""The causes that a DisaggregatedSet itself can have; the others are of its LeaderWorkerSets."""
