"""Determines the pods of a StatefulSet to create, repair and delete next.

In: one `ObservedStatefulSet`. Out: a `Plan`, which performs phases in sequence, always writes the status, and then
truncates the history to its limit. Mirrors `updateStatefulSet` of kube-controller-manager:

1. Wanted ordinals from the lowest: finished pods are deleted, missing ones created, edited ones repaired.
2. Condemned pods (outside the ordinals) from the highest are deleted.
3. RollingUpdate: the highest pod at or above the partition that is not at the update revision is deleted, and nothing
   while a pod above it is unavailable.

OrderedReady stops at the first pod that is not running, ready and available. Parallel performs 1 and 2 concurrently,
stops only after errors, and waits for availability in 3.

A StatefulSet may have two billion replicas, of which the cluster can run a few thousand. So no step depends on
`spec.replicas`. A plan includes the existing pods and the first `AT_ONCE` missing pods. Their creation enqueues the
StatefulSet again.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain, islice
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFULSETS
from kuberuntime.plan import (
    Actions,
    Concurrently,
    Create,
    Delete,
    Emit,
    Event,
    Finally,
    Plan,
    changed_status,
    guarded_delete,
    guarded_patch,
)
from localkube.controllers import eventobjects, podhealth
from localkube.controllers.statefulset import identity, podclaims, revisions, status


class ObservedStatefulSet(Struct, frozen=True, kw_only=True):
    """All inputs of the decision.

    `pods` are the pods of the StatefulSet. `claims` are the claims of its pods by name. `history` is sorted. `revision_actions`
    contains the actions that create or renumber the revision `update` if needed.
    """

    statefulset: JSONObject
    pods: Sequence[JSONObject]
    claims: Mapping[str, JSONObject]
    current: JSONObject
    update: JSONObject
    collisions: int
    now: datetime
    history: Sequence[JSONObject] = ()
    revision_actions: Actions = ()


AT_ONCE: Final = 500
"""The maximum number of missing pods that one plan creates."""

Phase: TypeAlias = tuple[Actions, ...]
"""Sequences of actions that are performed concurrently. A failure stops the plan after the phase."""


class StatefulSetDecision(Struct, frozen=True):
    """The phases for the pods. `status` is the whole new status, which is written even if a phase fails."""

    phases: tuple[Phase, ...]
    status: JSONObject
    requeue_after: float | None = None


class PodActions(NamedTuple):
    """The actions for one pod, and whether OrderedReady must wait for it."""

    actions: Actions
    blocks_next_pod: bool


def plan(observed: ObservedStatefulSet) -> Plan:
    """Return the next actions for a StatefulSet."""
    decision = decide(observed)
    phases = tuple(Concurrently(sequences=phase) for phase in decision.phases)
    after = changed_status(STATEFULSETS, observed.statefulset, decision.status)
    changes = (Finally(actions=phases, after=after),) if phases or after else ()
    return Plan(
        (*observed.revision_actions, *changes, *_delete_old_revisions(observed)), requeue_after=decision.requeue_after
    )


def decide(observed: ObservedStatefulSet) -> StatefulSetDecision:
    """Determine the actions for the pods of a StatefulSet, and the content of its status."""
    phases = () if meta.is_deleting(observed.statefulset) else _phases(observed)
    revisions_in_use = (observed.current, observed.update)
    counts = status.count(observed.statefulset, observed.pods, revisions_in_use, observed.now)
    return StatefulSetDecision(
        phases=tuple(phase for phase in phases if phase),
        status=status.build(observed.statefulset, counts, observed.collisions),
        requeue_after=podhealth.seconds_until_available(
            observed.pods, podhealth.min_ready_seconds(observed.statefulset), observed.now
        ),
    )


def build_pod(observed: ObservedStatefulSet, ordinal: int) -> JSONObject:
    """Build a missing pod from the current revision below the partition, or from the update revision otherwise."""
    statefulset = observed.statefulset
    strategy = meta.spec(statefulset).get("updateStrategy") or {}
    boundary = -1
    if strategy.get("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.get("rollingUpdate")
        keep = int(meta.status(statefulset).get("currentReplicas") or 0) if rolling is None else _partition(rolling)
        boundary = identity.start_ordinal(statefulset) + keep
    revision = observed.current if ordinal < boundary else observed.update
    return identity.build_pod(statefulset, revision, ordinal)


def missing_ordinals(statefulset: JSONObject, pods: Iterable[JSONObject]) -> list[int]:
    """Return the lowest desired ordinals without a pod, at most `AT_ONCE`."""
    present = set(map(identity.pod_ordinal, pods))
    return list(
        islice((ordinal for ordinal in identity.desired_ordinals(statefulset) if ordinal not in present), AT_ONCE)
    )


def _delete_old_revisions(observed: ObservedStatefulSet) -> Actions:
    """Return the deletions of revisions that exceed the history limit."""
    live = {meta.name(observed.current), meta.name(observed.update), *map(identity.pod_revision, observed.pods)}
    return tuple(
        guarded_delete(CONTROLLER_REVISIONS, revision)
        for revision in revisions.obsolete_revisions(observed.statefulset, observed.history, live)
    )


def _phases(observed: ObservedStatefulSet) -> tuple[Phase, ...]:
    desired, condemned = _classify_pods(observed)
    candidates = desired | dict.fromkeys(missing_ordinals(observed.statefulset, desired.values()))
    replicas = (_plan_replica(observed, ordinal, candidates[ordinal]) for ordinal in sorted(candidates))
    retention = (
        PodActions(_claim_actions(observed, pod, is_desired=False), blocks_next_pod=False) for pod in condemned
    )
    removals = _condemned_pod_actions(observed, desired, condemned)
    if _is_ordered(observed.statefulset):
        actions, blocked = _actions_until_blocked(chain(replicas, retention, removals))
        update: Actions = () if blocked else _update_actions(observed, desired)
        return ((actions,) if actions else (), (update,) if update else ())
    burst: list[Phase] = [
        tuple(need.actions for need in needs if need.actions) for needs in (replicas, retention, removals)
    ]
    update = _update_actions(observed, desired)
    return (*burst, (update,) if update else ())


def _classify_pods(observed: ObservedStatefulSet) -> tuple[dict[int, JSONObject], list[JSONObject]]:
    """Return the desired pods in ascending order, and the condemned pods in descending order."""
    ordinals = identity.desired_ordinals(observed.statefulset)
    by_ordinal = {identity.pod_ordinal(pod): pod for pod in observed.pods}
    desired = {ordinal: by_ordinal[ordinal] for ordinal in sorted(by_ordinal) if ordinal in ordinals}
    condemned = [pod for ordinal, pod in by_ordinal.items() if ordinal >= 0 and ordinal not in ordinals]
    return desired, sorted(condemned, key=identity.pod_ordinal, reverse=True)


def _actions_until_blocked(needs: Iterable[PodActions]) -> tuple[Actions, bool]:
    actions: Actions = ()
    for need in needs:
        actions += need.actions
        if need.blocks_next_pod:
            return actions, True
    return actions, False


def _plan_replica(observed: ObservedStatefulSet, ordinal: int, pod: JSONObject | None) -> PodActions:
    if pod is None:
        return PodActions(_create_actions(observed, ordinal), blocks_next_pod=True)
    statefulset = observed.statefulset
    if podstate.has_ended(pod):
        return PodActions(() if meta.is_deleting(pod) else (_delete(statefulset, pod),), blocks_next_pod=True)
    missing = _claim_creations(observed, pod) if podhealth.pod_phase(pod) == "Pending" else ()
    if _is_ordered(statefulset) and (meta.is_deleting(pod) or not _is_available(observed, pod)):
        return PodActions(missing, blocks_next_pod=True)
    return PodActions(missing + _repair_actions(observed, pod), blocks_next_pod=False)


def _create_actions(observed: ObservedStatefulSet, ordinal: int) -> Actions:
    statefulset = observed.statefulset
    pod = build_pod(observed, ordinal)
    if podclaims.is_stale(statefulset, meta.name(pod), observed.claims):
        return ()
    if deleting := podclaims.deleting_claim(statefulset, meta.name(pod), observed.claims):
        reason = f"pvc {deleting} is being deleted"
        return (Emit(events=(pod_failure_event(statefulset, "create", meta.name(pod), reason),)),)
    create = Create(
        resource=PODS,
        object=pod,
        is_silent_if_exists=True,
        on_success=(pod_event(statefulset, "create", meta.name(pod)),),
        on_failure=(pod_failure_event(statefulset, "create", meta.name(pod)),),
    )
    return (*_claim_creations(observed, pod), create, *_claim_actions(observed, pod, is_desired=True))


def _claim_creations(observed: ObservedStatefulSet, pod: JSONObject) -> Actions:
    statefulset, name = observed.statefulset, meta.name(pod)
    return tuple(
        Create(
            resource=PERSISTENT_VOLUME_CLAIMS,
            object=claim,
            if_absent=True,
            on_success=(claim_event(statefulset, meta.name(claim), name),),
            on_failure=(
                claim_failure_event(statefulset, meta.name(claim), name),
                pod_failure_event(statefulset, "create", name),
            ),
        )
        for claim in podclaims.build_claims(statefulset, name)
        if meta.name(claim) not in observed.claims
    )


def _repair_actions(observed: ObservedStatefulSet, pod: JSONObject) -> Actions:
    """Restore the identity labels of a pod, create missing claims, and set the owners of its claims."""
    statefulset = observed.statefulset
    actions: Actions = ()
    if not identity.has_identity(statefulset, pod):
        labels = meta.labels(pod) | identity.identity_labels(statefulset, identity.pod_ordinal(pod))
        actions = (guarded_patch(PODS, pod, {"metadata": {"labels": labels}}),)
    return actions + _claim_actions(observed, pod, is_desired=True)


def _claim_actions(observed: ObservedStatefulSet, pod: JSONObject, *, is_desired: bool) -> Actions:
    return tuple(podclaims.retention_patches(observed.statefulset, pod, is_desired=is_desired, claims=observed.claims))


def _condemned_pod_actions(
    observed: ObservedStatefulSet, desired: Mapping[int, JSONObject], condemned: Sequence[JSONObject]
) -> list[PodActions]:
    first_unhealthy = _first_unhealthy(desired, condemned)
    return [
        PodActions((), blocks_next_pod=True)
        if meta.is_deleting(pod) or _must_wait_for_lower_pod(observed, pod, first_unhealthy)
        else PodActions((_delete(observed.statefulset, pod),), blocks_next_pod=True)
        for pod in condemned
    ]


def _must_wait_for_lower_pod(
    observed: ObservedStatefulSet, pod: JSONObject, first_unhealthy: JSONObject | None
) -> bool:
    """Return whether OrderedReady retains an unavailable condemned pod because a lower pod is unhealthy."""
    waits = pod is not first_unhealthy and not _is_available(observed, pod)
    return waits and _is_ordered(observed.statefulset)


def _first_unhealthy(desired: Mapping[int, JSONObject], condemned: Sequence[JSONObject]) -> JSONObject | None:
    candidates = [*desired.values(), *reversed(condemned)]
    return next((pod for pod in candidates if meta.is_deleting(pod) or not podhealth.is_ready(pod)), None)


def _update_actions(observed: ObservedStatefulSet, desired: Mapping[int, JSONObject]) -> Actions:
    """Delete the highest outdated pod at or above the partition, when all pods above it are available."""
    strategy = meta.spec(observed.statefulset).get("updateStrategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return ()
    partition = _partition(strategy.get("rollingUpdate") or {})
    for ordinal in reversed(identity.desired_ordinals(observed.statefulset)[partition:]):
        pod = desired.get(ordinal)
        if pod is None:
            return ()
        if meta.is_deleting(pod) or podstate.has_ended(pod):
            return ()
        if identity.pod_revision(pod) != meta.name(observed.update):
            return (_delete(observed.statefulset, pod),)
        if not _is_available(observed, pod):
            return ()
    return ()


def _delete(statefulset: JSONObject, pod: JSONObject) -> Delete:
    return Delete(
        resource=PODS,
        key=meta.key(pod),
        propagation="Background",
        uid=meta.uid(pod),
        on_success=(pod_event(statefulset, "delete", meta.name(pod)),),
        on_failure=(pod_failure_event(statefulset, "delete", meta.name(pod)),),
    )


def _is_ordered(statefulset: JSONObject) -> bool:
    return str(meta.spec(statefulset).get("podManagementPolicy") or "OrderedReady") == "OrderedReady"


def _is_available(observed: ObservedStatefulSet, pod: JSONObject) -> bool:
    return podhealth.is_available(pod, podhealth.min_ready_seconds(observed.statefulset), observed.now)


def _partition(rolling: JSONObject) -> int:
    return int(rolling.get("partition") or 0)


def pod_event(statefulset: JSONObject, verb: str, pod: str) -> Event:
    """Build the event for a pod that was created or deleted."""
    note = f"{verb.title()} Pod {pod} in StatefulSet {meta.name(statefulset)} successful"
    return eventobjects.normal_event(statefulset, f"Successful{verb.title()}", verb.title(), note)


def pod_failure_event(statefulset: JSONObject, verb: str, pod: str, error: str = "{error}") -> Event:
    """Build the event for a pod that could not be created or deleted."""
    note = f"{verb.title()} Pod {pod} in StatefulSet {meta.name(statefulset)} failed error: {error}"
    return eventobjects.warning_event(statefulset, f"Failed{verb.title()}", verb.title(), note)


def claim_event(statefulset: JSONObject, claim: str, pod: str) -> Event:
    """Build the event for a volume claim that was created."""
    note = f"Create Claim {claim} Pod {pod} in StatefulSet {meta.name(statefulset)} success"
    return eventobjects.normal_event(statefulset, "SuccessfulCreate", "Create", note)


def claim_failure_event(statefulset: JSONObject, claim: str, pod: str) -> Event:
    """Build the event for a volume claim that could not be created."""
    note = f"Create Claim {claim} for Pod {pod} in StatefulSet {meta.name(statefulset)} failed error: {{error}}"
    return eventobjects.warning_event(statefulset, "FailedCreate", "Create", note)
