"""What to do about one group now: recreate it, or build what its leader pod leads (contract 8.1).

In: `Observed`, the leader pod and everything around it, as the caches show it. Out: a `Plan`. A group has one key, that
of its leader pod: whatever happens to its pods and StatefulSets is decided in one place, one decision at a time, so
that several failures of a group are one recreation.

Only new groups are built: a worker StatefulSet that exists is never changed (R-ARC-3).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS, SERVICES, STATEFULSETS
from kuberuntime.plan import Action, Apply, Create, Delete, Emit, Plan
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet, StartupPolicy, SubdomainPolicy
from leaderworkerset.core.leaderworkerset import events, revisions, services
from leaderworkerset.core.pod import placement, recreation, restart, statefulset
from leaderworkerset.core.pod.recreation import Recreation
from leaderworkerset.core.pod.restart import Members

AWAIT_REVISION: Final = 1.0
"""Seconds until a missing revision is looked for again (R-WSTS-1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What is known about a group: the pod of its key, and the objects that carry its name and index.

    `gone` are pods deleted since the last look, in their last state; `node` is the leader's, where placement asks for
    it (`wants_node`); `record` tells of the group's last recreation.
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


@dataclass(frozen=True, slots=True)
class _Group:
    """A live group whose LeaderWorkerSet has been read."""

    observed: Observed
    obj: JSONObject
    lws: LeaderWorkerSet
    leader: JSONObject


def reconcile(observed: Observed, now: datetime) -> Plan:
    """Decide what to do about the group; an object that cannot be used ends in `Plan.error`."""
    leader, obj = observed.leader, observed.leaderworkerset
    if leader is None:
        return Plan()
    try:
        require_labels(leader)
        if obj is None or meta.is_deleting(obj):
            return Plan()
        return _decide(_Group(observed, obj, leaderworkerset.decode(obj), leader), now)
    except ValueError as error:
        return Plan(error=f"pod {meta.key(leader)}: {error}")


def is_leader(pod: JSONObject) -> bool:
    """Return whether the pod is a leader."""
    return meta.labels(pod).get(labels.WORKER_INDEX) == labels.LEADER_WORKER_INDEX


def require_labels(pod: JSONObject) -> None:
    """Raise ValueError where the pod lacks a label that says what it is (R-POD-1)."""
    for label in (labels.NAME, labels.WORKER_INDEX):
        if not meta.labels(pod).get(label):
            raise ValueError(f"{label} label is unexpected missing")


def wants_node(observed: Observed) -> str:
    """Return the name of the node that the decision depends on, empty where it depends on none."""
    leader, obj = observed.leader, observed.leaderworkerset
    if leader is None or obj is None or labels.EXCLUSIVE_TOPOLOGY not in meta.annotations(obj):
        return ""
    return "" if _has_workers(observed, leader) else placement.node_name(leader)


def _decide(group: _Group, now: datetime) -> Plan:
    if not is_leader(group.leader):
        return _refuse_stray(group)
    if meta.is_deleting(group.leader):
        return Plan()
    return _recreate(group, now) or _build(group)


def _refuse_stray(group: _Group) -> Plan:
    """Complain of a failed worker whose name tells no leader (R-POD-5.3); any other worker has its leader's key."""
    if restart.is_active(group.lws) and restart.has_failed(group.leader):
        raise ValueError(f"parsing pod name for pod {meta.name(group.leader)}")
    return Plan()


def _recreate(group: _Group, now: datetime) -> Plan | None:
    """Delete the leader where a pod of the group failed, or wait until its time has come (R-POD-5)."""
    if not restart.is_active(group.lws):
        return None
    observed = group.observed
    previous = recreation.read(observed.record)
    if previous is not None and previous.leader == meta.uid(group.leader):
        return _carry_out(group, previous, now)
    members = Members(group.leader, observed.pods, observed.gone, observed.statefulsets)
    failed = restart.failed_pod(group.lws, members)
    if failed is None:
        return None
    new = recreation.following(previous, group.leader, failed, now)
    plan = _carry_out(group, new, now)
    return Plan((*plan.actions, _record(group, new, now)), plan.requeue_after)


def _carry_out(group: _Group, due: Recreation, now: datetime) -> Plan:
    wait = (due.due - now).total_seconds()
    if wait > 0:
        return Plan(requeue_after=wait)
    name, index = meta.name(group.leader), meta.labels(group.leader).get(labels.GROUP_INDEX, "")
    note = f"Worker pod {due.failed_pod} failed, deleted leader pod {name} to recreate group {index}"
    return Plan(
        (
            Delete(
                resource=PODS,
                key=meta.key(group.leader),
                propagation="Foreground",
                uid=meta.uid(group.leader),
                on_success=(events.recreating_group(group.obj, group.leader, note),),
            ),
        )
    )


def _record(group: _Group, new: Recreation, now: datetime) -> Apply:
    """Write down the recreation: what is due now is done first, what is due later must not be forgotten."""
    wait = int((new.due - now).total_seconds())
    note = f"Pod {new.failed_pod} failed again, group is recreated in {wait} s (number {new.count} in a row)"
    return Apply(
        resource=CONTROLLER_REVISIONS,
        object=recreation.build(group.obj, group.leader, new),
        manager=labels.FIELD_MANAGER,
        on_success=(events.backing_off(group.obj, group.leader, note),) if wait else (),
    )


def _build(group: _Group) -> Plan:
    """Make what the leader pod leads: its service and its worker StatefulSet (R-POD-6, R-POD-7)."""
    if meta.annotations(group.leader).get(labels.LEADER_NAME):
        return Plan((Emit(events=(events.failed_create(group.obj, _mistake_note(group), group.leader),)),))
    actions = _make_service(group)
    if group.lws.size == 1 or _has_workers(group.observed, group.leader) or _awaits_leader(group):
        return Plan(actions)
    known = revisions.owned(group.observed.revisions, group.obj)
    revision = revisions.find(known, meta.labels(group.leader).get(labels.TEMPLATE_REVISION_HASH, ""))
    if revision is None:
        return Plan(actions, requeue_after=AWAIT_REVISION)
    if placement.is_exclusive(group.lws) and not placement.node_name(group.leader):
        return Plan(actions)
    return Plan((*actions, _make_workers(group, revision)))


def _make_service(group: _Group) -> tuple[Action, ...]:
    """Create the group's own service where there shall be one; the live spec decides (R-SVC-2)."""
    is_shared = group.lws.spec.network_config.subdomain_policy == SubdomainPolicy.SHARED
    if is_shared or group.observed.has_service:
        return ()
    service = services.build_for_group(group.leader, group.lws.name)
    return (Create(resource=SERVICES, object=service, if_absent=True),)


def _awaits_leader(group: _Group) -> bool:
    is_gated = group.lws.spec.startup_policy == StartupPolicy.LEADER_READY
    return is_gated and not meta.is_condition_true(group.leader, "Ready")


def _make_workers(group: _Group, revision: JSONObject) -> Create:
    """Create the worker StatefulSet from the leader pod's revision (R-WSTS-2, R-WSTS-4)."""
    revised = leaderworkerset.decode(revisions.restore(group.obj, revision))
    selector = placement.node_selector(group.lws, group.leader, group.observed.node)
    name = meta.name(group.leader)
    created = f"Created worker statefulset for leader pod {name}"
    failed = f"Failed to create worker statefulset for leader pod {name}: {{error}}"
    return Create(
        resource=STATEFULSETS,
        object=statefulset.build(group.lws, revised, group.leader, selector),
        if_absent=True,
        on_success=(events.created(group.obj, created, group.leader),),
        on_failure=(events.failed_create(group.obj, failed, group.leader),),
    )


def _has_workers(observed: Observed, leader: JSONObject) -> bool:
    return any(meta.name(one) == meta.name(leader) for one in observed.statefulsets)


def _mistake_note(group: _Group) -> str:
    return (
        f"leader pod {meta.key(group.leader)} contains mistake annotation '{labels.LEADER_NAME}': "
        "requires Kubernetes ≥v1.27 or v1.26 with StatefulSetStartOrdinal feature"
    )
