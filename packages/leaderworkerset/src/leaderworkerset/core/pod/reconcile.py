"""Decides about one group: recreate it, or create what its leader pod leads (contract 8.1).

In: `LiveGroup`, the leader pod and all related objects, as the caches show them. Out: a `Plan`. A group has one key,
that of its leader pod. So all changes of its pods and StatefulSets are handled one reconcile at a time, and several
failures of a group cause one recreation.

Only new groups get workers: a worker StatefulSet that exists is not changed (R-ARC-3), but for updates in place.
"""

from typing import Final

from msgspec.structs import replace

from kuberuntime.objects import meta, podstate, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, STATEFULSETS
from kuberuntime.plan import Action, Create, Emit, Patch, Plan, identified_patch
from leaderworkerset.api import groupname, labels, leaderworkerset
from leaderworkerset.core import decisionevents
from leaderworkerset.core.leaderworkerset import gatedleaders, groupfacts, revisions, services
from leaderworkerset.core.pod import inplacesteps, statefulset
from leaderworkerset.core.policies import (
    exclusive,
    failures,
    formernodes,
    replacement,
    restartpolicy,
    startup,
    termination,
)
from leaderworkerset.core.policies.gang import NO_GANG, Gang, GangGroup
from leaderworkerset.core.policies.policy import LiveGroup, PolicyDecision
from leaderworkerset.core.restarts import finishing, lost
from leaderworkerset.core.restarts.lost import Release, Stuck

AWAIT_REVISION: Final = 1.0
"""Seconds until a group whose revision is missing is reconciled again (R-WSTS-1)."""


def reconcile(group: LiveGroup, gang: Gang = NO_GANG) -> Plan:
    """Decide about the group; an unusable object is reported as `Plan.error`."""
    if lacking := lacking_label(group.leader):
        return _report_stray(group.leader, group.obj, f"lacks the label {lacking}")
    if not group.obj or meta.is_deleting(group.obj):
        return Plan(termination.end_workers(group))
    try:
        return _decide(group, gang)
    except ValueError as error:
        return Plan(_report_unreadable(group, error), error=f"pod {meta.key(group.leader)}: {error}")


def _report_unreadable(group: LiveGroup, error: ValueError) -> tuple[Emit, ...]:
    """Report a revision that cannot be read. A fault of the LeaderWorkerSet is reported with that; others may pass."""
    if not isinstance(error, revisions.UnreadableRevisionError):
        return ()
    note = f"Cannot reconcile leader pod {meta.name(group.leader)}: {error}"
    return (Emit(events=(decisionevents.unreadable(group.obj, note, group.leader),)),)


def lacking_label(pod: JSONObject) -> str:
    """Return the label that identifies a pod and that this one lacks (R-POD-1); empty if it lacks none."""
    return next((label for label in (labels.NAME, labels.WORKER_INDEX) if not meta.labels(pod).get(label)), "")


def wants_node(group: LiveGroup) -> str:
    """Return the name of the node that the decision depends on, empty if there is none."""
    if labels.EXCLUSIVE_TOPOLOGY not in meta.annotations(group.obj) or _workers(group):
        return ""
    return exclusive.node_name(group.leader)


def wants_lost_nodes(group: LiveGroup) -> set[str]:
    """Return the names of the nodes of stuck pods, if such pods are to be released."""
    stuck = _stuck(group)
    return set() if stuck is None else lost.nodes_of(stuck)


def _stuck(group: LiveGroup) -> Stuck | None:
    """Return the facts about stuck pods; None if they are waited for, as the Go controller does."""
    grace = group.restarts.release_after
    if grace is None or not group.obj:
        return None
    return Stuck(lws=group.obj, pods=group.pods, grace=grace, now=group.now)


def _decide(group: LiveGroup, gang: Gang) -> Plan:
    if not groupname.is_leader(group.leader):
        return _decide_stray(group)
    stuck = _stuck(group)
    plan = _decide_leader(group, gang)
    return plan if stuck is None else _after(lost.release(stuck, group.lost_nodes), plan)


def _decide_leader(group: LiveGroup, gang: Gang) -> Plan:
    if groupname.end_of(group.leader) is not None:
        return Plan(restartpolicy.end_complete(group))
    if groupname.is_exhausted(group.leader):
        return Plan(restartpolicy.keep_evidence(group))
    if meta.is_deleting(group.leader):
        return Plan(termination.end_workers(group))
    if groupname.is_hash(group.leader) and podstate.has_ended(group.leader):
        return Plan((restartpolicy.replace_ended(group),))
    if (end := finishing.end_of(group.lws, group.leader, group.revisions, group.now)) is not None:
        return Plan(restartpolicy.finish(group, end))
    plan = _go_on(group, gang)
    left = finishing.time_left(finishing.settings_of(group.lws), group.leader, group.revisions, group.now)
    return plan if left is None else plan.within(left.total_seconds())


def _go_on(group: LiveGroup, gang: Gang) -> Plan:
    """Recreate the group, or create what its leader leads."""
    recreated = restartpolicy.decide(group)
    if recreated.holds:
        return Plan(recreated.actions, recreated.requeue_after)
    plan = _build(group, gang)
    plan = replace(plan, actions=(*recreated.actions, *plan.actions))
    if recreated.requeue_after is not None:
        plan = plan.within(recreated.requeue_after)
    is_in_conflict = group.service_conflict and not _shares_service(group)
    return replace(plan, error=f"pod {meta.key(group.leader)}: {group.service_conflict}") if is_in_conflict else plan


def _after(release: Release, plan: Plan) -> Plan:
    """Return the plan, preceded by the released pods; the shorter of both requeue times counts."""
    waits = [wait for wait in (release.requeue_after, plan.requeue_after) if wait is not None]
    return replace(plan, actions=(*release.actions, *plan.actions), requeue_after=min(waits, default=None))


def _decide_stray(group: LiveGroup) -> Plan:
    """Report a failed worker whose name contains no leader's (R-POD-5.3); other workers have their leader's key."""
    if failures.is_active(group.lws) and failures.has_failed(group.leader):
        return _report_stray(group.leader, group.obj, "failed, its name contains no leader's,")
    return Plan()


def _report_stray(pod: JSONObject, obj: JSONObject, why: str) -> Plan:
    """Report a pod that belongs to no group, once for each of its changes: to retry would change nothing."""
    return Plan((Emit(events=(decisionevents.ignored(pod, obj or None, why),)),))


def _build(group: LiveGroup, gang: Gang) -> Plan:
    """Create what the leader pod leads: service, gang object and worker StatefulSet (R-POD-6, R-POD-7)."""
    if meta.annotations(group.leader).get(labels.LEADER_NAME):
        return Plan((Emit(events=(decisionevents.failed_create(group.obj, _mistake_note(group), group.leader),)),))
    if groupname.is_hash(group.leader) and not (
        meta.spec(group.leader).get("hostname") and groupname.subdomain(group.leader)
    ):
        raise ValueError("has no hostname or subdomain: admission did not name its group")
    revision = _find_revision(group)
    scheduled = _decide_gang(group, revision, gang)
    opened = () if scheduled.holds else gate_patches(group)
    actions = (*_make_service(group), *scheduled.actions, *opened, *inplacesteps.decide(group), *_report_ready(group))
    is_unreachable = bool(group.service_conflict) and not _shares_service(group)
    is_held = scheduled.holds or startup.decide(group).holds or replacement.is_gated(group.leader) or is_unreachable
    size = groupfacts.own_size(group.leader) or group.lws.size
    actions = (*actions, *formernodes.remember(group, size))
    if size == 1 or _workers(group) or is_held:
        return Plan(actions, scheduled.requeue_after)
    if revision is None:
        return Plan(actions, requeue_after=AWAIT_REVISION)
    placed = exclusive.decide(group)
    return Plan(actions if placed.holds else (*actions, _make_workers(group, revision, placed)))


def gate_patches(group: LiveGroup) -> tuple[Patch, ...]:
    """Return the patch of a gated leader with an index: it goes ahead, or names the group that it waits for, once (N-GATE-10)."""
    leader = group.leader
    if groupname.is_hash(leader) or not replacement.is_gated(leader):
        return ()
    found = formernodes.of(group.obj, group.record)
    if group.lws.spec.scheduling is None:
        return (gatedleaders.open_gate(leader, found),)
    named = meta.annotations(leader).get(labels.REPLACES, "")
    if all(meta.uid(pod) == meta.uid(leader) for pod in group.pods):
        return (gatedleaders.admit(group.obj, leader, named, found),)
    if named:
        return ()
    event = decisionevents.predecessor_awaited(group.obj, leader)
    return (gatedleaders.wait_for(leader, meta.name(leader), event),)


def _find_revision(group: LiveGroup) -> JSONObject | None:
    known = revisions.owned(group.revisions, group.obj)
    return revisions.find(known, groupname.revision(group.leader))


def _decide_gang(group: LiveGroup, revision: JSONObject | None, gang: Gang) -> PolicyDecision:
    """Create what the gang scheduler needs for this group, whatever its size (R-GANG-3)."""
    if gang is NO_GANG:
        return PolicyDecision()
    revised = group.lws if revision is None else leaderworkerset.decode(revisions.restore(group.obj, revision))
    return gang.decide(GangGroup(group, revised))


def _make_service(group: LiveGroup) -> tuple[Action, ...]:
    """Create the group's own service if it shall have one (R-SVC-2), or report whose the one of this name is (N-HASH-24)."""
    if _shares_service(group):
        return ()
    if group.service_conflict:
        note = services.NOT_CREATED.format(error=group.service_conflict)
        return (Emit(events=(decisionevents.failed_create(group.obj, note, group.leader),)),)
    if group.has_service:
        return ()
    service = services.build_for_group(group.leader, group.lws.name)
    return (services.create(service, group.obj, group.leader),)


def _shares_service(group: LiveGroup) -> bool:
    """Return whether the group has no service of its own.

    The live spec decides, for groups with a random key their leader: an update may have changed the policy since.
    """
    if groupname.is_hash(group.leader):
        return groupname.subdomain(group.leader) != groupname.host(group.leader)
    return group.lws.spec.network_config.subdomain_policy.is_shared


def _make_workers(group: LiveGroup, revision: JSONObject, placed: PolicyDecision) -> Create:
    """Create the worker StatefulSet from the leader pod's revision (R-WSTS-2, R-WSTS-4)."""
    revised = leaderworkerset.decode(revisions.restore(group.obj, revision))
    name, found = meta.name(group.leader), formernodes.of(group.obj, group.record)
    failed = f"Failed to create worker statefulset for leader pod {name}: {{error}}"
    return Create(
        resource=STATEFULSETS,
        object=statefulset.build(group.lws, revised, group.leader, placed.node_selector, found),
        unless_own=True,
        on_success=(decisionevents.created_workers(group.obj, group.leader),),
        on_failure=(decisionevents.failed_create(group.obj, failed, group.leader),),
    )


def _workers(group: LiveGroup) -> JSONObject | None:
    """Return the StatefulSet of the group's workers, or one that has its name still."""
    return groupname.find_workers(group.leader, group.statefulsets)


def _report_ready(group: LiveGroup) -> tuple[Action, ...]:
    """Write to a leader whether its workers are ready, for its readiness gate, if that changed (N-HASH-25)."""
    gates = meta.spec(group.leader).get("readinessGates") or []
    if {"conditionType": labels.GROUP_READY} not in gates:
        return ()
    workers = _workers(group)
    is_ready = workers is not None and groupfacts.is_statefulset_ready(workers)
    status, reason = ("True", "WorkerStatefulSetReady") if is_ready else ("False", "WorkerStatefulSetNotReady")
    known = meta.find_condition(group.leader, labels.GROUP_READY)
    if workers is None if known is None else known.get("status") == status:
        return ()
    moment = timestamps.render(group.now)
    condition = {"type": labels.GROUP_READY, "status": status, "reason": reason, "lastTransitionTime": moment}
    change = {"status": {"conditions": [condition]}}
    return (identified_patch(PODS, group.leader, change, subresource="status", kind="strategic", if_present=True),)


def _mistake_note(group: LiveGroup) -> str:
    return (
        f"leader pod {meta.key(group.leader)} contains mistake annotation '{labels.LEADER_NAME}': "
        "requires Kubernetes ≥v1.27 or v1.26 with StatefulSetStartOrdinal feature"
    )
