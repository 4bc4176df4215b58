"""Reconciles one group by recreating it or creating the objects of its leader pod (contract 8.1).

Input: `LiveGroup`, the cached leader pod and all related objects. Output: a `Plan`. A group has one key, the name of
its leader pod. All changes to its pods and StatefulSets are therefore processed by one reconciliation at a time, and
several failures in a group cause only one recreation.

Only new groups get workers: an existing worker StatefulSet is changed only for updates in place (R-ARC-3).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from kuberuntime.objects import meta, podstate, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, STATEFULSETS
from kuberuntime.plan import Action, Create, Emit, Patch, Plan, identified_patch
from leaderworkerset.api import groupname, labels, leaderworkerset
from leaderworkerset.core import decisionevents
from leaderworkerset.core.extensions import UPSTREAM, Extensions
from leaderworkerset.core.leaderworkerset import gatedleaders, groupstate, revisions, services
from leaderworkerset.core.pod import statefulset
from leaderworkerset.core.policies import exclusive, failures, replacement, restartpolicy, startup
from leaderworkerset.core.policies.gang import NO_GANG, Gang, GangGroup
from leaderworkerset.core.policies.placement import Prefer
from leaderworkerset.core.policies.policy import NOTHING, LiveGroup, PolicyDecision

AWAIT_REVISION: Final = 1.0
"""The requeue delay in seconds for a group with a missing revision (R-WSTS-1)."""


def reconcile(group: LiveGroup, gang: Gang = NO_GANG, extensions: Extensions = UPSTREAM) -> Plan:
    """Reconcile the group. An invalid object is reported as `Plan.error`."""
    if lacking := missing_label(group.leader):
        return _report_stray(group.leader, group.obj, f"does not have the label {lacking}")
    if not group.obj or meta.is_deleting(group.obj):
        return _with_earlier_decisions([extensions.groups.without_set(group)], Plan())
    try:
        return _decide(group, gang, extensions)
    except ValueError as error:
        return Plan(_report_unreadable(group, error), error=f"pod {meta.key(group.leader)}: {error}")


def _report_unreadable(group: LiveGroup, error: ValueError) -> tuple[Emit, ...]:
    """Report an invalid revision. Other errors are temporary or reported for the LeaderWorkerSet."""
    if not isinstance(error, revisions.UnreadableRevisionError):
        return ()
    note = f"Cannot reconcile leader pod {meta.name(group.leader)}: {error}"
    return (Emit(events=(decisionevents.unreadable(group.obj, note, group.leader),)),)


def missing_label(pod: JSONObject) -> str:
    """Return the first missing identity label of the pod (R-POD-1), or an empty string if all are present."""
    return next((label for label in (labels.NAME, labels.WORKER_INDEX) if not meta.labels(pod).get(label)), "")


def required_node(group: LiveGroup) -> str:
    """Return the name of the required node, or an empty string if no node is required."""
    if labels.EXCLUSIVE_TOPOLOGY not in meta.annotations(group.obj) or group.workers:
        return ""
    return exclusive.node_name(group.leader)


def _decide(group: LiveGroup, gang: Gang, extensions: Extensions) -> Plan:
    if not groupname.is_leader(group.leader):
        return _decide_stray(group, extensions)
    decided: list[PolicyDecision] = []
    for decision in _before_building(group, extensions):
        if decision is NOTHING:
            continue
        decided.append(decision)
        if decision.delay_reason:
            waits = decision.requeue_after is not None and not meta.is_deleting(group.leader)
            return _with_earlier_decisions(
                decided, Plan(_update_readiness_gate(group, is_condemned=True) if waits else ())
            )
    plan = _with_earlier_decisions(decided, _build(group, gang, extensions))
    is_in_conflict = group.service.conflict and not _shares_service(group)
    return replace(plan, error=f"pod {meta.key(group.leader)}: {group.service.conflict}") if is_in_conflict else plan


def _before_building(group: LiveGroup, extensions: Extensions) -> Iterator[PolicyDecision]:
    """Yield the decisions that precede object creation, in order. Stop after the first applicable decision."""
    hook = extensions.groups
    yield hook.first(group)
    yield hook.before_evidence(group)
    if groupname.is_exhausted(group.leader):
        yield PolicyDecision(
            delay_reason="the group exhausted its restart budget", actions=restartpolicy.preserve_pods(group)
        )
    yield hook.before_deletion(group)
    if meta.is_deleting(group.leader):
        yield PolicyDecision(delay_reason="the leader is terminating")
    if groupname.has_random_key(group.leader) and podstate.has_ended(group.leader):
        yield PolicyDecision(delay_reason="the leader has terminated", actions=(restartpolicy.replace_finished(group),))
    yield hook.before_restart(group)
    yield restartpolicy.decide(group, hook.restarts(group), extensions.excuses, extensions.fault_finders)


def _with_earlier_decisions(decided: Iterable[PolicyDecision], plan: Plan) -> Plan:
    """Return the plan after the earlier decisions, with the shortest requeue time."""
    decisions = list(decided)
    for decision in decisions:
        plan = plan if decision.requeue_after is None else plan.with_requeue_limit(decision.requeue_after)
    return replace(plan, actions=(*(action for decision in decisions for action in decision.actions), *plan.actions))


def _decide_stray(group: LiveGroup, extensions: Extensions) -> Plan:
    """Report a failed worker whose name does not contain a leader name (R-POD-5.3)."""
    if failures.recreates_groups(group.lws) and failures.has_failed(group.leader, excuses=extensions.excuses):
        return _report_stray(group.leader, group.obj, "has failed and its name does not contain a leader name")
    return Plan()


def _report_stray(pod: JSONObject, obj: JSONObject, why: str) -> Plan:
    """Report a pod without a group once for each change. Do not retry."""
    return Plan((Emit(events=(decisionevents.ignored_event(pod, obj or None, why),)),))


def _build(group: LiveGroup, gang: Gang, extensions: Extensions) -> Plan:
    """Create the Service, gang scheduler object and worker StatefulSet of the leader pod (R-POD-6, R-POD-7)."""
    if meta.annotations(group.leader).get(labels.LEADER_NAME):
        note = (
            f"leader pod {meta.key(group.leader)} contains mistake annotation '{labels.LEADER_NAME}': "
            "requires Kubernetes ≥v1.27 or v1.26 with StatefulSetStartOrdinal feature"
        )
        return Plan((Emit(events=(decisionevents.failed_create(group.obj, note, group.leader),)),))
    if groupname.has_random_key(group.leader) and not (
        meta.spec(group.leader).get("hostname") and groupname.subdomain(group.leader)
    ):
        raise ValueError("does not have a hostname or subdomain, because admission did not add it to a group")
    revision = revisions.find_revision(
        revisions.owned_revisions(group.revisions, group.obj), groupname.revision_key(group.leader)
    )
    scheduled = _decide_gang(group, revision, gang)
    opened = () if scheduled.delay_reason else gate_patches(group, extensions.groups.prefer)
    actions = (
        *_create_service(group),
        *scheduled.actions,
        *opened,
        *_update_readiness_gate(group),
        *extensions.groups.last(group),
    )
    is_unreachable = bool(group.service.conflict) and not _shares_service(group)
    is_held = (
        scheduled.delay_reason
        or startup.decide(group).delay_reason
        or replacement.is_gated(group.leader)
        or is_unreachable
    )
    size = groupstate.original_size(group.leader) or group.lws.size
    if size == 1 or group.workers or is_held or _has_earlier_workers(group):
        return Plan(actions, scheduled.requeue_after)
    if revision is None:
        return Plan(actions, requeue_after=AWAIT_REVISION)
    placed = exclusive.decide(group)
    if placed.delay_reason:
        return Plan(actions)
    own = extensions.groups.worker_annotations(group.obj, group.record)
    return Plan((*actions, _create_workers(group, revision, placed.node_selector, own)))


def gate_patches(group: LiveGroup, prefer: Prefer) -> tuple[Patch, ...]:
    """Return a patch that admits a gated leader with an index, or records the group that it waits for (N-GATE-10)."""
    leader = group.leader
    if groupname.has_random_key(leader) or not replacement.is_gated(leader):
        return ()
    preferences = prefer(group.obj, leader, group.record)
    if group.lws.spec.scheduling is None:
        return (gatedleaders.open_gate(leader, preferences),)
    former_name = meta.annotations(leader).get(labels.REPLACES, "")
    if all(meta.uid(pod) == meta.uid(leader) for pod in group.objects.pods):
        return (gatedleaders.admit(group.obj, leader, former_name, preferences),)
    if former_name:
        return ()
    event = decisionevents.waiting_for_predecessor_event(group.obj, leader)
    return (gatedleaders.record_wait(leader, meta.name(leader), event),)


def _decide_gang(group: LiveGroup, revision: JSONObject | None, gang: Gang) -> PolicyDecision:
    """Create the gang scheduler objects for this group, regardless of its size (R-GANG-3)."""
    if gang is NO_GANG:
        return PolicyDecision()
    revised = group.lws if revision is None else leaderworkerset.decode(revisions.restore(group.obj, revision))
    return gang.decide(GangGroup(group, revised))


def _create_service(group: LiveGroup) -> tuple[Action, ...]:
    """Create the Service of the group if required (R-SVC-2), or report a different owner (N-HASH-24)."""
    if _shares_service(group):
        return ()
    if group.service.conflict:
        note = services.NOT_CREATED.format(error=group.service.conflict)
        return (Emit(events=(decisionevents.failed_create(group.obj, note, group.leader),)),)
    if group.service.is_settled:
        return ()
    service = services.build_for_group(group.leader, group.lws.name)
    return (services.create(service, group.obj, group.leader),)


def _shares_service(group: LiveGroup) -> bool:
    """Return whether the group uses the shared Service.

    The live spec determines this. For groups with a random key, the leader determines it, because an update may have
    changed the policy.
    """
    if groupname.has_random_key(group.leader):
        return groupname.subdomain(group.leader) != groupname.hostname(group.leader)
    return group.lws.spec.network_config.subdomain_policy.is_shared


def _create_workers(
    group: LiveGroup, revision: JSONObject, selector: Mapping[str, str], own: Mapping[str, str]
) -> Create:
    """Create the worker StatefulSet from the leader pod's revision (R-WSTS-2, R-WSTS-4)."""
    revised = leaderworkerset.decode(revisions.restore(group.obj, revision))
    name = meta.name(group.leader)
    failed = f"Failed to create worker statefulset for leader pod {name}: {{error}}"
    return Create(
        resource=STATEFULSETS,
        object=statefulset.build(group.lws, revised, group.leader, selector, own),
        unless_own=True,
        on_success=(decisionevents.created_workers_event(group.obj, group.leader),),
        on_failure=(decisionevents.failed_create(group.obj, failed, group.leader),),
    )


def _has_earlier_workers(group: LiveGroup) -> bool:
    """Return whether pods of a previous worker StatefulSet still use the pod names (docs/adr/0045).

    The StatefulSet controller would fail to create the new pods, and retry with increasing delays. The deletion of the
    last pod enqueues this group.
    """
    workload = (STATEFULSETS.kind, groupname.hostname(group.leader))
    owners = (meta.controller_of(pod) for pod in group.objects.pods)
    return any(owner is not None and (owner["kind"], owner["name"]) == workload for owner in owners)


def _update_readiness_gate(group: LiveGroup, *, is_condemned: bool = False) -> tuple[Action, ...]:
    """Update the readiness gate of a leader if the readiness of its workers changed (N-HASH-25).

    A group that waits for its recreation is not ready.
    """
    gates = meta.spec(group.leader).get("readinessGates") or []
    if {"conditionType": labels.GROUP_READY} not in gates:
        return ()
    workers = group.workers
    is_ready = workers is not None and not is_condemned and groupstate.is_statefulset_ready(workers)
    status, reason = ("True", "WorkerStatefulSetReady") if is_ready else ("False", "WorkerStatefulSetNotReady")
    known = meta.find_condition(group.leader, labels.GROUP_READY)
    if workers is None if known is None else known.get("status") == status:
        return ()
    moment = timestamps.render(group.now)
    condition = {"type": labels.GROUP_READY, "status": status, "reason": reason, "lastTransitionTime": moment}
    change = {"status": {"conditions": [condition]}}
    return (identified_patch(PODS, group.leader, change, subresource="status", kind="strategic", if_present=True),)
