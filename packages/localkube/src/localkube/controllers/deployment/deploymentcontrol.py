"""Determines the ReplicaSets of a Deployment to create, scale and delete, and the content of its status.

Mirrors `syncDeployment`. If the Deployment's own size changes, it is scaled before a rollout. While the Deployment is
paused, there is no rollout. A plan performs one step. The next step follows when the ReplicaSets report the result.
"""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import DEPLOYMENTS, REPLICA_SETS
from kuberuntime.plan import Action, Create, Delete, Event, Finally, Plan, PutStatus, guarded_patch
from localkube.controllers import eventobjects
from localkube.controllers.deployment import history, progress, sizes
from localkube.controllers.deployment.sizes import Sizes


class ObservedDeployment(Struct, frozen=True, kw_only=True):
    """All inputs of the decision: the Deployment, its ReplicaSets and their pods.

    `collisions` is the collision count for which the name of a new ReplicaSet is unused.
    """

    deployment: JSONObject
    sets: Sequence[JSONObject]
    pods: Sequence[JSONObject]
    collisions: int
    now: datetime


class _Step(Struct, frozen=True, kw_only=True):
    """The next step: the new ReplicaSet (created if missing), the new sizes, and the ReplicaSets to delete."""

    new: JSONObject | None
    creates_replicaset: bool = False
    sizes: Sizes
    deleted: Sequence[JSONObject] = ()
    is_rollout: bool = False


def plan(observed: ObservedDeployment) -> Plan:
    """Return the next actions for a Deployment."""
    deployment = observed.deployment
    replicaset = history.find_new(deployment, observed.sets)
    old = [candidate for candidate in sizes.by_age(observed.sets) if candidate is not replicaset]
    if meta.is_deleting(deployment):
        return _plan_step(observed, old, replicaset, _Step(new=replicaset, sizes={}))
    new = None if replicaset is None else _update_replicaset(deployment, replicaset, old)
    return _plan_step(observed, old, replicaset, _next_step(observed, new, old))


def _next_step(observed: ObservedDeployment, new: JSONObject | None, old: Sequence[JSONObject]) -> _Step:
    deployment = observed.deployment
    is_paused = bool(meta.spec(deployment).get("paused"))
    if is_paused or sizes.is_scaled(deployment, [*old, new] if new else old):
        deleted = history.obsolete(deployment, old) if is_paused else ()
        return _Step(new=new, sizes=sizes.scaled_sizes(deployment, new, old), deleted=deleted)
    step = _rolling_update(observed, new, old) if sizes.is_rolling(deployment) else _recreate(observed, new, old)
    if step.sizes or not progress.is_complete(deployment, meta.status(deployment)):
        return step
    return replace(step, deleted=history.obsolete(deployment, old))


def _rolling_update(observed: ObservedDeployment, new: JSONObject | None, old: Sequence[JSONObject]) -> _Step:
    deployment = observed.deployment
    if new is not None:
        return _Step(new=new, sizes=sizes.rolling_sizes(deployment, new, old), is_rollout=True)
    replicaset = _new_replicaset(observed, old)
    replicaset = _resize(deployment, replicaset, sizes.surge_size(deployment, replicaset, old))
    return _Step(
        new=replicaset, creates_replicaset=True, sizes=sizes.rolling_sizes(deployment, replicaset, old), is_rollout=True
    )


def _recreate(observed: ObservedDeployment, new: JSONObject | None, old: Sequence[JSONObject]) -> _Step:
    """Stop all old pods. When no old pod is running, create or scale up the new ReplicaSet."""
    deployment = observed.deployment
    leaving = {meta.name(replicaset): 0 for replicaset in old if sizes.desired_size(replicaset)}
    if leaving or _do_old_pods_run(observed, old):
        return _Step(new=new, sizes=leaving, is_rollout=True)
    desired = sizes.desired_size(deployment)
    if new is None:
        replicaset = _resize(deployment, _new_replicaset(observed, old), desired)
        return _Step(new=replicaset, creates_replicaset=True, sizes={}, is_rollout=True)
    grown = {meta.name(new): desired} if sizes.desired_size(new) != desired else {}
    return _Step(new=new, sizes=grown, is_rollout=True)


def _do_old_pods_run(observed: ObservedDeployment, old: Sequence[JSONObject]) -> bool:
    owners = [(meta.controller_of(pod) or {}).get("uid") for pod in observed.pods if not podstate.has_ended(pod)]
    return any(meta.status(replicaset).get("replicas") or meta.uid(replicaset) in owners for replicaset in old)


def _new_replicaset(observed: ObservedDeployment, old: Sequence[JSONObject]) -> JSONObject:
    replicaset = history.build(observed.deployment, observed.collisions)
    return _annotate(replicaset, history.new_annotations(observed.deployment, replicaset, old))


def _update_replicaset(deployment: JSONObject, new: JSONObject, old: Sequence[JSONObject]) -> JSONObject:
    """Return the new ReplicaSet with the current fields of the Deployment."""
    spec = meta.spec(new) | {"minReadySeconds": meta.spec(deployment).get("minReadySeconds") or 0}
    return _annotate(new, history.new_annotations(deployment, new, old)) | {"spec": spec}


def _resize(deployment: JSONObject, replicaset: JSONObject, size: int) -> JSONObject:
    resized = replicaset | {"spec": meta.spec(replicaset) | {"replicas": size}}
    return _annotate(resized, sizes.size_annotations(deployment))


def _annotate(replicaset: JSONObject, annotations: dict[str, str]) -> JSONObject:
    metadata = meta.metadata(replicaset)
    return replicaset | {"metadata": metadata | {"annotations": meta.annotations(replicaset) | annotations}}


def _plan_step(
    observed: ObservedDeployment, old: Sequence[JSONObject], existing: JSONObject | None, step: _Step
) -> Plan:
    """Return the actions for a step, which write the changed ReplicaSets before the status."""
    deployment = observed.deployment

    def after(replicaset: JSONObject) -> JSONObject:
        size = step.sizes.get(meta.name(replicaset))
        return replicaset if size is None else _resize(deployment, replicaset, size)

    new = after(step.new) if step.new else None
    situation = progress.RolloutState(
        deployment=deployment,
        sets=[*map(after, old), new] if new else [*map(after, old)],
        new=new,
        creates_replicaset=step.creates_replicaset,
        is_rollout=step.is_rollout,
        collisions=observed.collisions,
        now=observed.now,
    )
    created: list[Action] = [_create_action(situation, new)] if new and step.creates_replicaset else []
    before = [*old, existing] if existing else old
    changed = [
        _update_action(deployment, *pair) for pair in zip(before, situation.sets, strict=False) if pair[0] != pair[1]
    ]
    deleted = [
        Delete(resource=REPLICA_SETS, key=meta.key(replicaset), uid=meta.uid(replicaset)) for replicaset in step.deleted
    ]
    status = progress.build(situation)
    noted = _with_revision(deployment, new) if not meta.is_deleting(deployment) else deployment
    status_writes: list[Action] = []
    if noted != deployment or status != {
        name: value for name, value in meta.status(deployment).items() if value is not None
    }:
        version = meta.resource_version(deployment)
        put = noted | {"status": status}
        status_writes = [PutStatus(resource=DEPLOYMENTS, object=put, resource_version=version, if_present=True)]
    check = progress.next_check(deployment, status, observed.now) if step.is_rollout else None
    return Plan((*created, *changed, *deleted, *status_writes), requeue_after=check)


def _with_revision(deployment: JSONObject, new: JSONObject | None) -> JSONObject:
    """Return the Deployment with the revision number of its new ReplicaSet."""
    number = meta.annotations(new).get(history.REVISION) if new else None
    return _annotate(deployment, {history.REVISION: number}) if number else deployment


def _create_action(situation: progress.RolloutState, new: JSONObject) -> Action:
    deployment = situation.deployment
    message = f'Failed to create new replica set "{meta.name(new)}": {{error}}'
    failure_event = eventobjects.warning_event(deployment, progress.CREATE_ERROR, "Create", message)
    events = (_scaling_event(deployment, new, 0),) if sizes.desired_size(new) else ()
    create = Create(resource=REPLICA_SETS, object=new, if_absent=True, on_success=events, on_failure=(failure_event,))
    change = {"status": progress.failed_status(situation, message)}
    report = guarded_patch(DEPLOYMENTS, deployment, change, subresource="status")
    return Finally(actions=(create,), after=(), on_failure=(report,))


def _update_action(deployment: JSONObject, before: JSONObject, after: JSONObject) -> Action:
    change = {
        "metadata": {"annotations": meta.annotations(after)},
        "spec": {name: meta.spec(after)[name] for name in ("replicas", "minReadySeconds") if name in meta.spec(after)},
    }
    patch = guarded_patch(REPLICA_SETS, before, change)
    is_resized = sizes.desired_size(before) != sizes.desired_size(after)
    return replace(
        patch, on_success=(_scaling_event(deployment, after, sizes.desired_size(before)),) if is_resized else ()
    )


def _scaling_event(deployment: JSONObject, replicaset: JSONObject, before: int) -> Event:
    size = sizes.desired_size(replicaset)
    note = f"Scaled {'up' if size > before else 'down'} replica set {meta.name(replicaset)} from {before} to {size}"
    return eventobjects.normal_event(deployment, "ScalingReplicaSet", "Scale", note)
