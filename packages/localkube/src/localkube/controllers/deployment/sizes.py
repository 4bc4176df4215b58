"""Computes the next size of each ReplicaSet of a Deployment.

Mirrors `rolling.go`, `recreate.go` and `scale` of kube-controller-manager. Functions return the new sizes by ReplicaSet
name. A missing ReplicaSet keeps its size.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from kuberuntime.objects import decimals, intstr, meta
from kuberuntime.objects.meta import JSONObject

DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MOST: Final = "deployment.kubernetes.io/max-replicas"

Sizes: TypeAlias = Mapping[str, int]


def desired_size(replicated: JSONObject) -> int:
    """Return `spec.replicas` of a Deployment or ReplicaSet."""
    return int(meta.spec(replicated)["replicas"])


def available_pods(replicaset: JSONObject) -> int:
    """Return the number of available pods in a ReplicaSet, without pods that it will delete."""
    return min(int(meta.status(replicaset).get("availableReplicas") or 0), desired_size(replicaset))


def by_age(sets: Iterable[JSONObject]) -> list[JSONObject]:
    """Sort ReplicaSets from oldest to newest."""
    return sorted(sets, key=meta.by_age)


def is_rolling(deployment: JSONObject) -> bool:
    """Return whether the Deployment replaces its pods gradually."""
    return bool(meta.spec(deployment)["strategy"]["type"] == "RollingUpdate")


def rolling_limits(deployment: JSONObject) -> tuple[int, int]:
    """Return maxSurge and maxUnavailable in pods. If both are rounded to 0, one pod can be unavailable."""
    if not is_rolling(deployment):
        return 0, 0
    desired = desired_size(deployment)
    rolling = meta.spec(deployment)["strategy"]["rollingUpdate"]
    surge = intstr.scale(rolling["maxSurge"], desired, up=True)
    unavailable = intstr.scale(rolling["maxUnavailable"], desired, up=False)
    return surge, min(unavailable or int(not surge), desired)


def size_annotations(deployment: JSONObject) -> dict[str, str]:
    """Return the annotations of a ReplicaSet that record the Deployment's size."""
    desired = desired_size(deployment)
    return {DESIRED: str(desired), MOST: str(desired + rolling_limits(deployment)[0])}


def is_scaled(deployment: JSONObject, sets: Sequence[JSONObject]) -> bool:
    """Return whether the Deployment's size differs from the size recorded on a ReplicaSet with pods."""
    desired = (_read_size(replicaset, DESIRED) for replicaset in sets if desired_size(replicaset))
    return any(number not in {None, desired_size(deployment)} for number in desired)


def surge_size(deployment: JSONObject, new: JSONObject, old: Sequence[JSONObject]) -> int:
    """Return the maximum size of the new ReplicaSet while the old ReplicaSets retain their pods."""
    free = desired_size(deployment) + rolling_limits(deployment)[0] - sum(map(desired_size, (*old, new)))
    return desired_size(new) + max(0, min(free, desired_size(deployment) - desired_size(new)))


def rolling_sizes(deployment: JSONObject, new: JSONObject, old: Sequence[JSONObject]) -> Sizes:
    """Return the next step of a rolling update: scale up the new ReplicaSet, or scale down the old ReplicaSets."""
    grown = min(surge_size(deployment, new, old), desired_size(deployment))
    return {meta.name(new): grown} if grown != desired_size(new) else _scale_down_old(deployment, new, old)


def _scale_down_old(deployment: JSONObject, new: JSONObject, old: Sequence[JSONObject]) -> Sizes:
    """Scale down the old ReplicaSets. Remove unavailable pods first, and then as many pods as can be unavailable."""
    least = desired_size(deployment) - rolling_limits(deployment)[1]
    may_go = sum(map(desired_size, (*old, new))) - least - (desired_size(new) - available_pods(new))
    if may_go <= 0:
        return {}
    broken = _distribute(may_go, [desired_size(replicaset) - available_pods(replicaset) for replicaset in old])
    spare = sum(map(available_pods, (*old, new))) - least
    healthy = _distribute(
        spare, [desired_size(replicaset) - removed for replicaset, removed in zip(old, broken, strict=True)]
    )
    removals = map(sum, zip(broken, healthy, strict=True))
    return {
        meta.name(replicaset): desired_size(replicaset) - count
        for replicaset, count in zip(old, removals, strict=True)
        if count
    }


def _distribute(count: int, limits: Sequence[int]) -> list[int]:
    """Distribute a count over slots with limits, starting with the first slot.

    >>> _distribute(5, [2, 2, 4])
    [2, 2, 1]
    """
    parts: list[int] = []
    for limit in limits:
        parts.append(max(0, min(count - sum(parts), limit)))
    return parts


def scaled_sizes(deployment: JSONObject, new: JSONObject | None, old: Sequence[JSONObject]) -> Sizes:
    """Return the sizes after the Deployment was scaled. During a rollout, scale all ReplicaSets proportionally."""
    sets = [*old, new] if new is not None else [*old]
    active = [replicaset for replicaset in sets if desired_size(replicaset)]
    desired = desired_size(deployment)
    if len(active) <= 1:
        only = (active or sets)[-1:]
        return {meta.name(replicaset): desired for replicaset in only if desired_size(replicaset) != desired}
    if new is not None and _is_new_at_full_size(deployment, new):
        return {meta.name(replicaset): 0 for replicaset in active if replicaset is not new}
    return _scale_proportionally(deployment, active) if is_rolling(deployment) else {}


def _scale_proportionally(deployment: JSONObject, active: Sequence[JSONObject]) -> Sizes:
    most = desired_size(deployment) + rolling_limits(deployment)[0] if desired_size(deployment) else 0
    change = remaining = most - sum(map(desired_size, active))
    aged = by_age(active)
    by_size = sorted(aged if change < 0 else reversed(aged), key=desired_size, reverse=True)
    sizes = {}
    for replicaset in by_size:
        share = _scaled_share(deployment, replicaset) if change else 0
        share = min(share, remaining) if change > 0 else max(share, remaining)
        sizes[meta.name(replicaset)] = desired_size(replicaset) + share
        remaining -= share
    largest = meta.name(by_size[0])
    return sizes | {largest: max(0, sizes[largest] + remaining)}


def _scaled_share(deployment: JSONObject, replicaset: JSONObject) -> int:
    """Return the number of pods to add to the ReplicaSet, so that its rounded share of the total is unchanged."""
    if not desired_size(deployment):
        return -desired_size(replicaset)
    before = _read_size(replicaset, MOST) or int(meta.status(deployment).get("replicas") or 0)
    most = desired_size(deployment) + rolling_limits(deployment)[0]
    return (2 * desired_size(replicaset) * most + before) // (2 * before) - desired_size(replicaset) if before else 0


def _is_new_at_full_size(deployment: JSONObject, new: JSONObject) -> bool:
    desired = desired_size(deployment)
    return desired_size(new) == available_pods(new) == _read_size(new, DESIRED) == desired


def _read_size(replicaset: JSONObject, annotation: str) -> int | None:
    return decimals.natural(meta.annotations(replicaset).get(annotation, ""))
