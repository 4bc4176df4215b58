"""Decides about one group: recreate it, or create what its leader pod leads (contract 8.1).

In: `ObservedGroup`, the leader pod and all related objects, as the caches show them. Out: a `Plan`. A group has one key,
that of its leader pod. So all changes of its pods and StatefulSets are handled one reconcile at a time, and several
failures of a group cause one recreation.

Only new groups get workers: a worker StatefulSet that exists is never changed (R-ARC-3).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import SERVICES, STATEFULSETS, Resource
from kuberuntime.plan import Action, Create, Emit, Plan
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.api.leaderworkerset import SubdomainPolicy
from leaderworkerset.core import decisionevents
from leaderworkerset.core.leaderworkerset import groupfacts, revisions, services
from leaderworkerset.core.pod import statefulset
from leaderworkerset.core.policies import exclusive, failures, restartpolicy, startup
from leaderworkerset.core.policies.gang import NO_GANG, Gang, GangGroup
from leaderworkerset.core.policies.policy import LiveGroup, PolicyDecision
from leaderworkerset.core.restarts import lost
from leaderworkerset.core.restarts.lost import Release, Stuck
from leaderworkerset.core.restarts.settings import DEFAULTS, RestartSettings

AWAIT_REVISION: Final = 1.0
"""Seconds until a group whose revision is missing is reconciled again (R-WSTS-1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedGroup:
    """The facts about a group: the pod of its key, and the objects that carry its name and index.

    `gone` are pods deleted since the last reconcile, in their last state; `node` is the leader's, if placement needs it
    (`wants_node`); `record` describes the group's last recreation; `gang_objects` are those of the gang scheduler,
    `gang_kinds` the kinds of them that the API server serves; `lost_nodes` are the nodes of stuck pods, by name
    (`wants_lost_nodes`). `restarts` are the manager's settings.
    """

    leader: JSONObject | None
    leaderworkerset: JSONObject | None = None
    pods: Sequence[JSONObject] = ()
    gone: Sequence[JSONObject] = ()
    statefulsets: Sequence[JSONObject] = ()
    revisions: Sequence[JSONObject] = ()
    has_service: bool = False
    node: JSONObject | None = None
    record: JSONObject | None = None
    gang_objects: Sequence[JSONObject] = ()
    gang_kinds: Collection[Resource] = ()
    lost_nodes: Mapping[str, JSONObject | None] = field(default_factory=dict)
    restarts: RestartSettings = DEFAULTS


def reconcile(observed: ObservedGroup, now: datetime, gang: Gang = NO_GANG) -> Plan:
    """Decide about the group; an unusable object is reported as `Plan.error`."""
    leader, obj = observed.leader, observed.leaderworkerset
    if leader is None:
        return Plan()
    if lacking := lacking_label(leader):
        return _report_stray(leader, obj, f"lacks the label {lacking}")
    if obj is None or meta.is_deleting(obj):
        return Plan()
    try:
        return _decide(_live_group(observed, obj, leader, now), observed, gang)
    except ValueError as error:
        return Plan(error=f"pod {meta.key(leader)}: {error}")


def is_leader(pod: JSONObject) -> bool:
    """Return whether the pod is a leader."""
    return meta.labels(pod).get(labels.WORKER_INDEX) == labels.LEADER_WORKER_INDEX


def lacking_label(pod: JSONObject) -> str:
    """Return the label that identifies a pod and that this one lacks (R-POD-1); empty if it lacks none."""
    return next((label for label in (labels.NAME, labels.WORKER_INDEX) if not meta.labels(pod).get(label)), "")


def wants_node(observed: ObservedGroup) -> str:
    """Return the name of the node that the decision depends on, empty if there is none."""
    leader, obj = observed.leader, observed.leaderworkerset
    if leader is None or obj is None or labels.EXCLUSIVE_TOPOLOGY not in meta.annotations(obj):
        return ""
    return "" if _has_workers(observed, leader) else exclusive.node_name(leader)


def wants_lost_nodes(observed: ObservedGroup, now: datetime) -> set[str]:
    """Return the names of the nodes of stuck pods, if such pods are to be released."""
    if observed.leaderworkerset is None:
        return set()
    stuck = _stuck(observed, observed.leaderworkerset, now)
    return set() if stuck is None else lost.nodes_of(stuck)


def _stuck(observed: ObservedGroup, obj: JSONObject, now: datetime) -> Stuck | None:
    """Return the facts about stuck pods; None if they are waited for, as the Go controller does."""
    grace = observed.restarts.of(meta.annotations(obj)).release_after
    return None if grace is None else Stuck(lws=obj, pods=observed.pods, grace=grace, now=now)


def _live_group(observed: ObservedGroup, obj: JSONObject, leader: JSONObject, now: datetime) -> LiveGroup:
    return LiveGroup(
        obj=obj,
        lws=leaderworkerset.decode(obj),
        leader=leader,
        now=now,
        pods=observed.pods,
        gone=observed.gone,
        statefulsets=observed.statefulsets,
        gang_objects=observed.gang_objects,
        gang_kinds=observed.gang_kinds,
        node=observed.node,
        record=_own_record(observed, obj),
        restarts=observed.restarts.of(meta.annotations(obj)),
    )


def _own_record(observed: ObservedGroup, obj: JSONObject) -> JSONObject | None:
    """Return the record of the group's last recreation; one of an earlier LeaderWorkerSet of this name is ignored."""
    record = observed.record
    return None if record is None or meta.is_of_predecessor(record, obj) else record


def _decide(group: LiveGroup, observed: ObservedGroup, gang: Gang) -> Plan:
    if not is_leader(group.leader):
        return _decide_stray(group)
    stuck = _stuck(observed, group.obj, group.now)
    plan = _decide_leader(group, observed, gang)
    return plan if stuck is None else _after(lost.release(stuck, observed.lost_nodes), plan)


def _decide_leader(group: LiveGroup, observed: ObservedGroup, gang: Gang) -> Plan:
    if meta.is_deleting(group.leader):
        return Plan()
    recreated = restartpolicy.POLICY.decide(group)
    if recreated.holds:
        return Plan(recreated.actions, recreated.requeue_after)
    return _build(group, observed, gang)


def _after(release: Release, plan: Plan) -> Plan:
    """Return the plan, preceded by the released pods; the shorter of both requeue times counts."""
    waits = [wait for wait in (release.requeue_after, plan.requeue_after) if wait is not None]
    return replace(plan, actions=(*release.actions, *plan.actions), requeue_after=min(waits, default=None))


def _decide_stray(group: LiveGroup) -> Plan:
    """Report a failed worker whose name contains no leader's (R-POD-5.3); other workers have their leader's key."""
    if failures.is_active(group.lws) and failures.has_failed(group.leader):
        return _report_stray(group.leader, group.obj, "failed, its name contains no leader's,")
    return Plan()


def _report_stray(pod: JSONObject, obj: JSONObject | None, why: str) -> Plan:
    """Report a pod that belongs to no group, once for each of its changes: to retry would change nothing."""
    return Plan((Emit(events=(decisionevents.ignored(pod, obj, why),)),))


def _build(group: LiveGroup, observed: ObservedGroup, gang: Gang) -> Plan:
    """Create what the leader pod leads: service, gang object and worker StatefulSet (R-POD-6, R-POD-7)."""
    if meta.annotations(group.leader).get(labels.LEADER_NAME):
        return Plan((Emit(events=(decisionevents.failed_create(group.obj, _mistake_note(group), group.leader),)),))
    revision = _find_revision(group, observed)
    scheduled = _decide_gang(group, revision, gang)
    actions = (*_make_service(group, observed), *scheduled.actions)
    is_held = scheduled.holds or startup.POLICY.decide(group).holds
    size = groupfacts.own_size(group.leader) or group.lws.size
    if size == 1 or _has_workers(observed, group.leader) or is_held:
        return Plan(actions, scheduled.requeue_after)
    if revision is None:
        return Plan(actions, requeue_after=AWAIT_REVISION)
    placed = exclusive.POLICY.decide(group)
    return Plan(actions if placed.holds else (*actions, _make_workers(group, revision, placed)))


def _find_revision(group: LiveGroup, observed: ObservedGroup) -> JSONObject | None:
    """Return the revision that the leader pod was created from."""
    known = revisions.owned(observed.revisions, group.obj)
    return revisions.find(known, meta.labels(group.leader).get(labels.TEMPLATE_REVISION_HASH, ""))


def _decide_gang(group: LiveGroup, revision: JSONObject | None, gang: Gang) -> PolicyDecision:
    """Create what the gang scheduler needs for this group, whatever its size (R-GANG-3)."""
    if gang is NO_GANG:
        return PolicyDecision()
    revised = group.lws if revision is None else leaderworkerset.decode(revisions.restore(group.obj, revision))
    return gang.decide(GangGroup(group, revised))


def _make_service(group: LiveGroup, observed: ObservedGroup) -> tuple[Action, ...]:
    """Create the group's own service if it shall have one; the live spec decides (R-SVC-2)."""
    is_shared = group.lws.spec.network_config.subdomain_policy == SubdomainPolicy.SHARED
    if is_shared or observed.has_service:
        return ()
    service = services.build_for_group(group.leader, group.lws.name)
    return (Create(resource=SERVICES, object=service, if_absent=True),)


def _make_workers(group: LiveGroup, revision: JSONObject, placed: PolicyDecision) -> Create:
    """Create the worker StatefulSet from the leader pod's revision (R-WSTS-2, R-WSTS-4)."""
    revised = leaderworkerset.decode(revisions.restore(group.obj, revision))
    name = meta.name(group.leader)
    created = f"Created worker statefulset for leader pod {name}"
    failed = f"Failed to create worker statefulset for leader pod {name}: {{error}}"
    return Create(
        resource=STATEFULSETS,
        object=statefulset.build(group.lws, revised, group.leader, placed.node_selector),
        if_absent=True,
        on_success=(decisionevents.created(group.obj, created, group.leader),),
        on_failure=(decisionevents.failed_create(group.obj, failed, group.leader),),
    )


def _has_workers(observed: ObservedGroup, leader: JSONObject) -> bool:
    return any(meta.name(one) == meta.name(leader) for one in observed.statefulsets)


def _mistake_note(group: LiveGroup) -> str:
    return (
        f"leader pod {meta.key(group.leader)} contains mistake annotation '{labels.LEADER_NAME}': "
        "requires Kubernetes ≥v1.27 or v1.26 with StatefulSetStartOrdinal feature"
    )
