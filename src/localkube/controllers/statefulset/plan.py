"""Which pods of a StatefulSet to create, repair and delete next.

In: one `Observed`. Out: a `PodPlan`: phases to perform one after the other, the status to write afterwards, and when to
look again. Mirrors `updateStatefulSet` of kube-controller-manager:

1. Wanted ordinals from the lowest: finished pods are deleted, missing ones created, edited ones repaired.
2. Condemned pods (outside the ordinals) from the highest are deleted.
3. RollingUpdate: the highest pod at or above the partition that is not at the update revision is deleted, and nothing
   while a pod above it is unavailable.

OrderedReady stops at the first pod that is not running, ready and available; Parallel does 1 and 2 all at once, stops
only after errors, and waits for availability in 3.

A set may want two billion pods, of which the cluster can have a few thousand. So nothing here is as long as
`spec.replicas`: pods that exist are planned for, and of the missing ones the first `AT_ONCE`; the pods that come of
them let the set be reconciled again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from typing import Final, NamedTuple, TypeAlias

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from kuberuntime.plan import Create, Delete, Emit
from localkube.controllers.framework.steps import Steps, guarded_patch
from localkube.controllers.statefulset import claims, events, identity, pods, status


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """All that the decision depends on. `pods` are those the set owns; `claims` are the claims of its pods by name."""

    statefulset: JSONObject
    pods: Sequence[JSONObject]
    claims: Mapping[str, JSONObject]
    current: JSONObject
    update: JSONObject
    collisions: int
    now: datetime


AT_ONCE: Final = 500
"""How many missing pods one plan creates at most."""

Phase: TypeAlias = tuple[Steps, ...]
"""Steps that may be performed at the same time; a failure ends the plan after the phase."""


@dataclass(frozen=True, slots=True)
class PodPlan:
    """What to do. `status` is the whole new status, written even where a phase failed."""

    phases: tuple[Phase, ...]
    status: JSONObject
    look_again: float | None = None


class Verdict(NamedTuple):
    """What one pod needs, and whether OrderedReady must not go past it now."""

    steps: Steps
    blocks: bool


def plan(observed: Observed) -> PodPlan:
    """Decide the next steps of a set."""
    phases = () if meta.is_deleting(observed.statefulset) else _phases(observed)
    return PodPlan(
        phases=tuple(phase for phase in phases if phase),
        status=status.build(observed.statefulset, _counts(observed), observed.collisions),
        look_again=status.next_available(observed.statefulset, observed.pods, observed.now),
    )


def build_pod(observed: Observed, ordinal: int) -> JSONObject:
    """Build the missing pod: at the current revision below the partition, at the update revision from there on."""
    statefulset = observed.statefulset
    strategy = meta.spec(statefulset).get("updateStrategy") or {}
    boundary = -1
    if strategy.get("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.get("rollingUpdate")
        keep = int(meta.status(statefulset).get("currentReplicas") or 0) if rolling is None else _partition(rolling)
        boundary = identity.start_ordinal(statefulset) + keep
    revision = observed.current if ordinal < boundary else observed.update
    return identity.build_pod(statefulset, revision, ordinal)


def missing(statefulset: JSONObject, pods: Iterable[JSONObject]) -> list[int]:
    """Return the lowest wanted ordinals without a pod, `AT_ONCE` of them at most."""
    taken = set(map(identity.ordinal_of, pods))
    return list(islice((ordinal for ordinal in identity.ordinals(statefulset) if ordinal not in taken), AT_ONCE))


def _phases(observed: Observed) -> tuple[Phase, ...]:
    wanted, condemned = _sort(observed)
    candidates = wanted | dict.fromkeys(missing(observed.statefulset, wanted.values()))
    replicas = (_replica(observed, ordinal, candidates[ordinal]) for ordinal in sorted(candidates))
    retention = (Verdict(_claim_steps(observed, pod, wanted=False), blocks=False) for pod in condemned)
    removals = _condemned_verdicts(observed, wanted, condemned)
    if _is_ordered(observed.statefulset):
        steps, blocked = _until_blocked(chain(replicas, retention, removals))
        update: Steps = () if blocked else _update_step(observed, wanted)
        return ((steps,) if steps else (), (update,) if update else ())
    burst: list[Phase] = [
        tuple(verdict.steps for verdict in verdicts if verdict.steps) for verdicts in (replicas, retention, removals)
    ]
    update = _update_step(observed, wanted)
    return (*burst, (update,) if update else ())


def _sort(observed: Observed) -> tuple[dict[int, JSONObject], list[JSONObject]]:
    """Return the pods of wanted ordinals, from the lowest, and the condemned pods from the highest ordinal."""
    ordinals = identity.ordinals(observed.statefulset)
    by_ordinal = {identity.ordinal_of(pod): pod for pod in observed.pods}
    wanted = {ordinal: by_ordinal[ordinal] for ordinal in sorted(by_ordinal) if ordinal in ordinals}
    condemned = [pod for ordinal, pod in by_ordinal.items() if ordinal >= 0 and ordinal not in ordinals]
    return wanted, sorted(condemned, key=identity.ordinal_of, reverse=True)


def _until_blocked(verdicts: Iterable[Verdict]) -> tuple[Steps, bool]:
    steps: Steps = ()
    for verdict in verdicts:
        steps += verdict.steps
        if verdict.blocks:
            return steps, True
    return steps, False


def _replica(observed: Observed, ordinal: int, pod: JSONObject | None) -> Verdict:
    if pod is None:
        return Verdict(_create_steps(observed, ordinal), blocks=True)
    statefulset = observed.statefulset
    if pods.is_finished(pod):
        return Verdict(() if meta.is_deleting(pod) else (_delete(statefulset, pod),), blocks=True)
    missing = _claim_creations(observed, pod) if pods.phase(pod) == "Pending" else ()
    if _is_ordered(statefulset) and (meta.is_deleting(pod) or not _is_available(observed, pod)):
        return Verdict(missing, blocks=True)
    return Verdict(missing + _repair_steps(observed, pod), blocks=False)


def _create_steps(observed: Observed, ordinal: int) -> Steps:
    statefulset = observed.statefulset
    pod = build_pod(observed, ordinal)
    if claims.is_stale(statefulset, meta.name(pod), observed.claims):
        return ()
    if deleting := claims.deleting_claim(statefulset, meta.name(pod), observed.claims):
        reason = f"pvc {deleting} is being deleted"
        return (Emit(events=(events.pod_failed(statefulset, "create", meta.name(pod), reason),)),)
    create = Create(
        resource=PODS,
        object=pod,
        on_success=(events.pod_done(statefulset, "create", meta.name(pod)),),
        on_failure=(events.pod_failed(statefulset, "create", meta.name(pod)),),
    )
    return (*_claim_creations(observed, pod), create, *_claim_steps(observed, pod, wanted=True))


def _claim_creations(observed: Observed, pod: JSONObject) -> Steps:
    statefulset, name = observed.statefulset, meta.name(pod)
    return tuple(
        Create(
            resource=PERSISTENT_VOLUME_CLAIMS,
            object=claim,
            if_absent=True,
            on_success=(events.claim_done(statefulset, meta.name(claim), name),),
            on_failure=(
                events.claim_failed(statefulset, meta.name(claim), name),
                events.pod_failed(statefulset, "create", name),
            ),
        )
        for claim in claims.build(statefulset, name)
        if meta.name(claim) not in observed.claims
    )


def _repair_steps(observed: Observed, pod: JSONObject) -> Steps:
    """Give a pod back the labels that say who it is, create claims that vanished, and set the owners of its claims."""
    statefulset = observed.statefulset
    steps: Steps = ()
    if not identity.has_identity(statefulset, pod):
        labels = meta.labels(pod) | identity.identity_labels(statefulset, identity.ordinal_of(pod))
        steps = (guarded_patch(PODS, pod, {"metadata": {"labels": labels}}),)
    return steps + _claim_steps(observed, pod, wanted=True)


def _claim_steps(observed: Observed, pod: JSONObject, *, wanted: bool) -> Steps:
    return tuple(claims.retention_patches(observed.statefulset, pod, wanted=wanted, claims=observed.claims))


def _condemned_verdicts(
    observed: Observed, wanted: Mapping[int, JSONObject], condemned: Sequence[JSONObject]
) -> list[Verdict]:
    first_unhealthy = _first_unhealthy(wanted, condemned)
    return [
        Verdict((), blocks=True)
        if meta.is_deleting(pod) or _waits_its_turn(observed, pod, first_unhealthy)
        else Verdict((_delete(observed.statefulset, pod),), blocks=True)
        for pod in condemned
    ]


def _waits_its_turn(observed: Observed, pod: JSONObject, first_unhealthy: JSONObject | None) -> bool:
    """Return whether OrderedReady keeps an unavailable condemned pod, because a lower one is unhealthy too."""
    held = pod is not first_unhealthy and not _is_available(observed, pod)
    return held and _is_ordered(observed.statefulset)


def _first_unhealthy(wanted: Mapping[int, JSONObject], condemned: Sequence[JSONObject]) -> JSONObject | None:
    candidates = [*wanted.values(), *reversed(condemned)]
    return next((pod for pod in candidates if meta.is_deleting(pod) or not pods.is_ready(pod)), None)


def _update_step(observed: Observed, wanted: Mapping[int, JSONObject]) -> Steps:
    """Delete the highest outdated pod at or above the partition, once all pods above it are available."""
    strategy = meta.spec(observed.statefulset).get("updateStrategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return ()
    partition = _partition(strategy.get("rollingUpdate") or {})
    for ordinal in reversed(identity.ordinals(observed.statefulset)[partition:]):
        pod = wanted.get(ordinal)
        if pod is None:
            return ()
        if meta.is_deleting(pod) or pods.is_finished(pod):
            return ()
        if identity.revision_of(pod) != meta.name(observed.update):
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
        on_success=(events.pod_done(statefulset, "delete", meta.name(pod)),),
        on_failure=(events.pod_failed(statefulset, "delete", meta.name(pod)),),
    )


def _is_ordered(statefulset: JSONObject) -> bool:
    return str(meta.spec(statefulset).get("podManagementPolicy") or "OrderedReady") == "OrderedReady"


def _is_available(observed: Observed, pod: JSONObject) -> bool:
    return pods.is_available(pod, status.min_ready_seconds(observed.statefulset), observed.now)


def _partition(rolling: JSONObject) -> int:
    return int(rolling.get("partition") or 0)


def _counts(observed: Observed) -> status.Counts:
    return status.count(observed.statefulset, observed.pods, (observed.current, observed.update), observed.now)
