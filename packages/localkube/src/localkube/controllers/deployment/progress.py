"""Builds the status of a Deployment with its pod counts and its `Available` and `Progressing` conditions.

The `ReplicaFailure` condition is also set.

Mirrors `calculateStatus`, `syncRolloutStatus` and `checkPausedConditions` of kube-controller-manager.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from msgspec import Struct

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject
from localkube.controllers.deployment import sizes

AVAILABLE: Final = "Available"
PROGRESSING: Final = "Progressing"
FAILURE: Final = "ReplicaFailure"

COMPLETE: Final = "NewReplicaSetAvailable"
TIMED_OUT: Final = "ProgressDeadlineExceeded"
PAUSED: Final = "DeploymentPaused"
CREATE_ERROR: Final = "ReplicaSetCreateError"

UNLIMITED: Final = 2**31 - 1

Conditions: TypeAlias = dict[str, JSONObject]


class RolloutState(Struct, frozen=True, kw_only=True):
    """The inputs of the status: the planned ReplicaSets, the new ReplicaSet, and the actions.

    `creates_replicaset` means that this plan creates the new ReplicaSet, and `is_rollout` that it does more than scale.
    """

    deployment: JSONObject
    sets: Sequence[JSONObject]
    new: JSONObject | None
    creates_replicaset: bool
    is_rollout: bool
    collisions: int
    now: datetime


def build(situation: RolloutState) -> JSONObject:
    """Build the whole status. Counts of 0 are omitted if the API type omits them."""
    counts = _counts(situation)
    conditions = _with_availability(situation, counts, _with_started_change(situation))
    if situation.is_rollout:
        conditions = _with_failures(situation, _with_progress(situation, counts, conditions))
    status = counts | {"conditions": list(conditions.values())}
    return {name: value for name, value in status.items() if value or name == "terminatingReplicas"}


def failed_status(situation: RolloutState, message: str) -> JSONObject:
    """Return the status if the new ReplicaSet could not be created."""
    deployment = situation.deployment
    conditions = _conditions(deployment)
    if has_deadline(deployment):
        conditions = _set_condition(conditions, (PROGRESSING, "False", CREATE_ERROR, message), situation.now)
    return meta.status(deployment) | {"conditions": list(conditions.values())}


def is_complete(deployment: JSONObject, status: JSONObject) -> bool:
    """Return whether all pods belong to the new ReplicaSet and are available."""
    counts = {int(status.get(name) or 0) for name in ("updatedReplicas", "replicas", "availableReplicas")}
    return counts == {sizes.desired_size(deployment)} and int(status.get("observedGeneration") or 0) >= meta.generation(
        deployment
    )


def has_deadline(deployment: JSONObject) -> bool:
    """Return whether the Deployment has a progress deadline."""
    return int(meta.spec(deployment)["progressDeadlineSeconds"]) < UNLIMITED


def next_check(deployment: JSONObject, status: JSONObject, now: datetime) -> float | None:
    """Return the seconds until a rollout without progress times out, or None if it cannot time out."""
    condition = meta.find_condition({"status": status}, PROGRESSING)
    if condition is None or not has_deadline(deployment) or is_complete(deployment, status):
        return None
    if condition["reason"] in {COMPLETE, TIMED_OUT, PAUSED}:
        return None
    return max(0.0, (_progress_deadline(deployment, condition) - now).total_seconds()) + 1


def _counts(situation: RolloutState) -> JSONObject:
    def total(field: str, sets: Iterable[JSONObject] = situation.sets) -> int:
        return sum(int(meta.status(replicaset).get(field) or 0) for replicaset in sets)

    available = total("availableReplicas")
    return {
        "observedGeneration": meta.generation(situation.deployment),
        "replicas": total("replicas"),
        "updatedReplicas": total("replicas", [situation.new] if situation.new else []),
        "readyReplicas": total("readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, sum(map(sizes.desired_size, situation.sets)) - available),
        "terminatingReplicas": total("terminatingReplicas"),
        "collisionCount": situation.collisions,
    }


def _with_started_change(situation: RolloutState) -> Conditions:
    """Return the conditions with the change that this plan starts, such as a pause, a resumption, or a rollout."""
    deployment, conditions = situation.deployment, _conditions(situation.deployment)
    if not has_deadline(deployment) or meta.is_deleting(deployment):
        return conditions
    reason = conditions.get(PROGRESSING, {}).get("reason")
    paused = bool(meta.spec(deployment).get("paused"))
    if reason != TIMED_OUT and paused != (reason == PAUSED):
        word = "paused" if paused else "resumed"
        condition = (PROGRESSING, "Unknown", f"Deployment{word.title()}", f"Deployment is {word}")
        conditions = _set_condition(conditions, condition, situation.now)
    if situation.new is None or not (situation.creates_replicaset or PROGRESSING not in conditions):
        return conditions
    name = meta.name(situation.new)
    created = ("NewReplicaSetCreated", f'Created new replica set "{name}"')
    existing = ("FoundNewReplicaSet", f'Found new replica set "{name}"')
    return _set_condition(
        conditions, (PROGRESSING, "True", *(created if situation.creates_replicaset else existing)), situation.now
    )


def _with_availability(situation: RolloutState, counts: JSONObject, conditions: Conditions) -> Conditions:
    least = sizes.desired_size(situation.deployment) - sizes.rolling_limits(situation.deployment)[1]
    if counts["availableReplicas"] >= least:
        condition = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        condition = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    return _set_condition(conditions, (AVAILABLE, *condition), situation.now)


def _with_progress(situation: RolloutState, counts: JSONObject, conditions: Conditions) -> Conditions:
    deployment, current = situation.deployment, conditions.get(PROGRESSING)
    if not has_deadline(deployment):
        return _without_condition(conditions, PROGRESSING)
    if current and current["reason"] == COMPLETE and counts["replicas"] == counts["updatedReplicas"]:
        return conditions
    new = situation.new
    subject = f'ReplicaSet "{meta.name(new)}"' if new else f'Deployment "{meta.name(deployment)}"'
    if is_complete(deployment, counts):
        condition = ("True", COMPLETE, f"{subject} has successfully progressed.")
        return _set_condition(conditions, (PROGRESSING, *condition), situation.now)
    if _has_progress(meta.status(deployment), counts):
        condition = ("True", "ReplicaSetUpdated", f"{subject} is progressing.")
        renewed = _set_condition(_without_condition(conditions, PROGRESSING), (PROGRESSING, *condition), situation.now)
        if current and current["status"] == "True":
            renewed[PROGRESSING]["lastTransitionTime"] = current["lastTransitionTime"]
        return renewed
    if current and _has_timed_out(deployment, current, situation.now):
        condition = ("False", TIMED_OUT, f"{subject} has timed out progressing.")
        return _set_condition(conditions, (PROGRESSING, *condition), situation.now)
    return conditions


def _has_progress(before: JSONObject, after: JSONObject) -> bool:
    def count(status: JSONObject, field: str) -> int:
        return int(status.get(field) or 0)

    def old_pods(status: JSONObject) -> int:
        return count(status, "replicas") - count(status, "updatedReplicas")

    more = any(
        count(after, name) > count(before, name) for name in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )
    return more or old_pods(after) < old_pods(before)


def _has_timed_out(deployment: JSONObject, progressing: JSONObject, now: datetime) -> bool:
    reason = progressing["reason"]
    return reason != COMPLETE and (reason == TIMED_OUT or _progress_deadline(deployment, progressing) < now)


def _progress_deadline(deployment: JSONObject, progressing: JSONObject) -> datetime:
    updated = timestamps.parse(progressing["lastUpdateTime"])
    return updated + timedelta(seconds=meta.spec(deployment)["progressDeadlineSeconds"])


def _with_failures(situation: RolloutState, conditions: Conditions) -> Conditions:
    sets = [situation.new, *situation.sets] if situation.new else situation.sets
    failure = next(filter(None, (meta.find_condition(replicaset, FAILURE) for replicaset in sets)), None)
    if failure is None:
        return _without_condition(conditions, FAILURE)
    since = failure["lastTransitionTime"]
    previous = conditions.get(FAILURE, {})
    if (previous.get("status"), previous.get("reason")) == (failure["status"], failure["reason"]):
        return conditions
    return _without_condition(conditions, FAILURE) | {FAILURE: failure | {"lastUpdateTime": since}}


def _conditions(deployment: JSONObject) -> Conditions:
    return {condition["type"]: condition for condition in meta.status(deployment).get("conditions") or ()}


def _without_condition(conditions: Conditions, name: str) -> Conditions:
    return {other: condition for other, condition in conditions.items() if other != name}


def _set_condition(conditions: Conditions, change: tuple[str, str, str, str], now: datetime) -> Conditions:
    """Set a condition (type, status, reason, message), unless its status and reason are equal."""
    name, status, reason, message = change
    previous = conditions.get(name, {})
    if (previous.get("status"), previous.get("reason")) == (status, reason):
        return conditions
    moment = timestamps.render(now)
    since = previous["lastTransitionTime"] if previous.get("status") == status else moment
    condition = {"type": name, "status": status, "reason": reason, "message": message}
    return _without_condition(conditions, name) | {
        name: condition | {"lastUpdateTime": moment, "lastTransitionTime": since}
    }
