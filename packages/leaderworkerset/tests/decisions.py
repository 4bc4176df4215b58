"""Decides about a LeaderWorkerSet as its controller does, without reads from the API server."""

from datetime import datetime

from kuberuntime.plan import Plan
from leaderworkerset.capabilities.enabled import EXTENSIONS
from leaderworkerset.core.extensions import Extensions
from leaderworkerset.core.leaderworkerset import reconcile as of_set
from leaderworkerset.core.leaderworkerset.decision import Decision, ObservedLeaderWorkerSet
from leaderworkerset.core.leaderworkerset.outline import build_outline
from leaderworkerset.core.policies.gang import NO_GANG, Gang


def decide(
    observed: ObservedLeaderWorkerSet, now: datetime, gang: Gang = NO_GANG, extensions: Extensions = EXTENSIONS
) -> Decision:
    """Return the plan, and the results for the next decision."""
    outlined = build_outline(observed, now, gang, extensions)
    if isinstance(outlined, Plan):
        return Decision(outlined)
    return of_set.reconcile(outlined, observed.known, now, extensions)


def reconcile(observed: ObservedLeaderWorkerSet, now: datetime, gang: Gang = NO_GANG) -> Plan:
    """Return only the plan."""
    return decide(observed, now, gang).plan
