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


def size(replicated: JSONObject) -> int:
    """Return `spec.replicas` of a Deployment or ReplicaSet."""
    return int(meta.spec(replicated)["replicas"])


def available(replicaset: JSONObject) -> int:
    """Return the number of available pods in a ReplicaSet, without pods that it will delete."""
    return min(int(meta.status(replicaset).get("availableReplicas") or 0), size(replicaset))


def by_age(sets: Iterable[JSONObject]) -> list[JSONObject]:
    """Sort ReplicaSets from oldest to newest."""
    return sorted(sets, key=meta.by_age)


def is_rolling(deployment: JSONObject) -> bool:
    """Return whether the Deployment replaces its pods gradually."""
    return bool(meta.spec(deployment)["strategy"]["type"] == "RollingUpdate")


def bounds(deployment: JSONObject) -> tuple[int, int]:
    """Return maxSurge and maxUnavailable in pods. If both are rounded to 0, one pod can be unavailable."""
    if not is_rolling(deployment):
        return 0, 0
    desired = size(deployment)
    rolling = meta.spec(deployment)["strategy"]["rollingUpdate"]
    surge = intstr.scale_up(rolling["maxSurge"], desired)
    unavailable = intstr.scale_down(rolling["maxUnavailable"], desired)
    return surge, min(unavailable or int(not surge), desired)


def annotations(deployment: JSONObject) -> dict[str, str]:
    """Return the annotations of a ReplicaSet that record the Deployment's size."""
    desired = size(deployment)
    return {DESIRED: str(desired), MOST: str(desired + bounds(deployment)[0])}


def is_scaled(deployment: JSONObject, sets: Sequence[JSONObject]) -> bool:
    """Return whether the Deployment's size differs from the size recorded on a ReplicaSet with pods."""
    desired = (_number(replicaset, DESIRED) for replicaset in sets if size(replicaset))
    return any(number not in {None, size(deployment)} for number in desired)


def surge_size(deployment: JSONObject, new: JSONObject, old: Sequence[JSONObject]) -> int:
    """Return the maximum size of the new ReplicaSet while the old ReplicaSets retain their pods."""
    free = size(deployment) + bounds(deployment)[0] - sum(map(size, (*old, new)))
    return size(new) + max(0, min(free, size(deployment) - size(new)))


def roll(deployment: JSONObject, new: JSONObject, old: Sequence[JSONObject]) -> Sizes:
    """Return the next step of a rolling update: scale up the new ReplicaSet, or scale down the old ReplicaSets."""
    grown = min(surge_size(deployment, new, old), size(deployment))
    return {meta.name(new): grown} if grown != size(new) else _shrunk(deployment, new, old)


def _shrunk(deployment: JSONObject, new: JSONObject, old: Sequence[JSONObject]) -> Sizes:
    """Scale down the old ReplicaSets. Remove unavailable pods first, and then as many pods as can be unavailable."""
    least = size(deployment) - bounds(deployment)[1]
    may_go = sum(map(size, (*old, new))) - least - (size(new) - available(new))
    if may_go <= 0:
        return {}
    broken = _spread(may_go, [size(replicaset) - available(replicaset) for replicaset in old])
    spare = sum(map(available, (*old, new))) - least
    healthy = _spread(spare, [size(replicaset) - removed for replicaset, removed in zip(old, broken, strict=True)])
    removals = map(sum, zip(broken, healthy, strict=True))
    return {
        meta.name(replicaset): size(replicaset) - count
        for replicaset, count in zip(old, removals, strict=True)
        if count
    }


def _spread(count: int, limits: Sequence[int]) -> list[int]:
    """Distribute a count over slots with limits, starting with the first slot.

    >>> _spread(5, [2, 2, 4])
    [2, 2, 1]
    """
    parts: list[int] = []
    for limit in limits:
        parts.append(max(0, min(count - sum(parts), limit)))
    return parts


def scale(deployment: JSONObject, new: JSONObject | None, old: Sequence[JSONObject]) -> Sizes:
    """Return the sizes after the Deployment was scaled. During a rollout, scale all ReplicaSets proportionally."""
    sets = [*old, new] if new is not None else [*old]
    active = [replicaset for replicaset in sets if size(replicaset)]
    desired = size(deployment)
    if len(active) <= 1:
        only = (active or sets)[-1:]
        return {meta.name(replicaset): desired for replicaset in only if size(replicaset) != desired}
    if new is not None and _is_saturated(deployment, new):
        return {meta.name(replicaset): 0 for replicaset in active if replicaset is not new}
    return _proportional(deployment, active) if is_rolling(deployment) else {}


def _proportional(deployment: JSONObject, active: Sequence[JSONObject]) -> Sizes:
    most = size(deployment) + bounds(deployment)[0] if size(deployment) else 0
    change = remaining = most - sum(map(size, active))
    aged = by_age(active)
    by_size = sorted(aged if change < 0 else reversed(aged), key=size, reverse=True)
    sizes = {}
    for replicaset in by_size:
        share = _share(deployment, replicaset) if change else 0
        share = min(share, remaining) if change > 0 else max(share, remaining)
        sizes[meta.name(replicaset)] = size(replicaset) + share
        remaining -= share
    largest = meta.name(by_size[0])
    return sizes | {largest: max(0, sizes[largest] + remaining)}


def _share(deployment: JSONObject, replicaset: JSONObject) -> int:
    """Return the number of pods to add to the ReplicaSet, so that its rounded share of the total is unchanged."""
    if not size(deployment):
        return -size(replicaset)
    before = _number(replicaset, MOST) or int(meta.status(deployment).get("replicas") or 0)
    most = size(deployment) + bounds(deployment)[0]
    return (2 * size(replicaset) * most + before) // (2 * before) - size(replicaset) if before else 0


def _is_saturated(deployment: JSONObject, new: JSONObject) -> bool:
    desired = size(deployment)
    return size(new) == available(new) == _number(new, DESIRED) == desired


def _number(replicaset: JSONObject, annotation: str) -> int | None:
    return decimals.natural(meta.annotations(replicaset).get(annotation, ""))
