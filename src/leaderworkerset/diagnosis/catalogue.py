"""The catalogue of causes, in the order of root causes: what comes first explains what comes later. Pure.

A cause is named by the stage at which a group stands still: nothing acts on it, its pods are refused, their node is lost,
they have no place, they cannot be started, they fail, the group does not come together, the rollout waits. Codes keep
their meaning for ever; new causes get new codes, and codes of causes that are removed are not used again.
"""

from typing import Final

from leaderworkerset.diagnosis.causes import (
    containers,
    gangs,
    images,
    nodes,
    refusals,
    rollouts,
    scheduling,
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
    # Pods are refused: what is specific before what is general.
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
    # Their node is lost, or they do not go away.
    nodes.GONE,
    nodes.NOT_READY,
    nodes.FINALIZER,
    nodes.ENDLESS,
    # They have no place.
    gangs.QUEUED,
    gangs.GATED,
    gangs.UNKNOWN_SCHEDULER,
    gangs.NO_SCHEDULER,
    scheduling.NO_SURGE_ROOM,
    volumes.NO_CLAIM,
    volumes.UNBOUND,
    volumes.VOLUME_ELSEWHERE,
    scheduling.EXCLUSIVE,
    gangs.INCOMPLETE,
    scheduling.ACCELERATORS,
    scheduling.MEMORY,
    scheduling.CPU,
    scheduling.STORAGE,
    scheduling.TOO_MANY_PODS,
    scheduling.SPREAD,
    scheduling.PORTS,
    scheduling.SELECTOR,
    scheduling.TAINTS,
    scheduling.CORDONED,
    scheduling.UNSCHEDULABLE,
    # They cannot be started.
    nodes.EVICTED,
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
    starts.BUDGET,
    containers.OUT_OF_MEMORY,
    containers.INIT_FAILS,
    containers.PROBE_KILLS,
    containers.CRASHES,
    containers.ENDED,
    starts.BACK_OFF,
    # The group does not come together.
    starts.NO_NAMES,
    containers.GATE_CLOSED,
    starts.AWAITS,
    starts.RENDEZVOUS,
    containers.UNREADY,
    unattended.OUTDATED,
    # Nothing is wrong yet.
    rollouts.DELETING,
    starts.RECREATED,
    starts.STARTS,
    rollouts.PARTITION,
    rollouts.BLOCKED,
    rollouts.ROLLING,
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
"""Those that a DisaggregatedSet itself can have; the others are of its LeaderWorkerSets."""
