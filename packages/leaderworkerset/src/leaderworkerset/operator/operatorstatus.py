"""Builds the status of the `cluster` object, with conditions and generations (R-OP-5 to R-OP-7).

It includes readyReplicas.

`lastTransitionTime` changes only with `status`. Conditions of other writers are kept.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, assert_never

from msgspec import Struct

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import DEPLOYMENTS
from leaderworkerset.api.conditions import ObjectHealth
from leaderworkerset.install.operatornames import DELETE_CRDS
from leaderworkerset.operator.operand import OperatorPlace
from leaderworkerset.operator.operatorspec import OperatorSettings


class OperatorCondition(StrEnum):
    """A condition type of the operator."""

    AVAILABLE = "Available"
    DEGRADED = "Degraded"
    SYNC_DEGRADED = "TargetConfigControllerDegraded"
    PROGRESSING = "Progressing"
    UPGRADEABLE = "Upgradeable"
    DELETES_DEFINITIONS = "DeletesDefinitions"

    @property
    def health(self) -> ObjectHealth:
        """Return the meaning of the condition for tools that wait for the object."""
        match self:
            case OperatorCondition.AVAILABLE:
                return ObjectHealth.HEALTHY
            case OperatorCondition.PROGRESSING:
                return ObjectHealth.PROGRESSING
            case OperatorCondition.DEGRADED | OperatorCondition.SYNC_DEGRADED:
                return ObjectHealth.DEGRADED
            case OperatorCondition.UPGRADEABLE | OperatorCondition.DELETES_DEFINITIONS:
                return ObjectHealth.NEUTRAL
            case _:
                assert_never(self)


AS_EXPECTED: Final = "AsExpected"
MISSING_DEPENDENCY: Final = "MissingDependency"
OF_DEPLOYMENT: Final = ("generations", "version")
"""The status fields that require a Deployment."""


class SyncOutcome(Struct, frozen=True):
    """The result of a reconciliation, and the reason if it is incomplete.

    `missing` is a dependency that is not installed, `error` is any other reason, and `note` describes what was omitted
    on purpose. An outcome is `is_complete` if all objects were applied. Otherwise, the status is degraded. `changes_deployment` is true
    if the Deployment changes, so that the observed Deployment does not describe the rollout. `terminating` and `unconfirmed`
    are CRDs if the object has the annotation for their deletion. The former are deleted with the object, and the latter
    lack the confirming annotation. `unreachable` is the reason why the API server does not reach the webhooks of running
    managers.
    """

    missing: str = ""
    error: str = ""
    note: str = ""
    is_complete: bool = True
    changes_deployment: bool = False
    terminating: Sequence[str] = ()
    unconfirmed: Sequence[str] = ()
    unreachable: str = ""


def build(
    cluster: JSONObject, deployment: JSONObject | None, desired: OperatorSettings, outcome: SyncOutcome
) -> JSONObject:
    """Build the status without condition times. Fields of other writers are preserved."""
    fields: JSONObject = {
        "conditions": conditions(deployment, desired, outcome),
        "observedGeneration": meta.generation(cluster),
        "readyReplicas": available_replicas(deployment),
    }
    before = {name: value for name, value in meta.status(cluster).items() if deployment or name not in OF_DEPLOYMENT}
    return before | fields


def refresh(
    cluster: JSONObject,
    deployment: JSONObject | None,
    desired: OperatorSettings,
    outcome: SyncOutcome,
    *,
    place: OperatorPlace,
    now: datetime,
) -> JSONObject:
    """Return the complete new status."""
    old: Sequence[JSONObject] = meta.status(cluster).get("conditions") or []
    status = build(cluster, deployment, desired, outcome)
    # A dependency that now exists is not the reason why the operand is incomplete.
    if outcome.error and any(condition.get("reason") == MISSING_DEPENDENCY for condition in old):
        status["conditions"].append(_condition(OperatorCondition.DEGRADED, "True", "SyncError", outcome.error))
    status["conditions"] = merge(old, status["conditions"], now)
    if deployment is not None:
        status["generations"] = [_generation(deployment)]
        if is_rolled_out(deployment) and outcome.is_complete and not outcome.changes_deployment:
            status["version"] = place.version
    return status


def merge(old: Sequence[JSONObject], new: Sequence[JSONObject], now: datetime) -> list[JSONObject]:
    """Return the conditions with transition times, in the existing order."""
    fresh = {condition["type"]: condition for condition in new}
    known = {condition["type"]: condition for condition in old}
    moment = timestamps.render(now)
    merged = [
        _with_transition_time(fresh[condition["type"]], condition, moment) if condition["type"] in fresh else condition
        for condition in old
    ]
    return merged + [
        _with_transition_time(condition, None, moment) for condition in new if condition["type"] not in known
    ]


def conditions(deployment: JSONObject | None, desired: OperatorSettings, outcome: SyncOutcome) -> list[JSONObject]:
    """Return the current conditions."""
    current = [
        _available_condition(deployment, outcome.unreachable),
        _progressing_condition(deployment, outcome),
        _upgradeable_condition(desired),
        _deletion_condition(outcome),
    ]
    if outcome.missing or outcome.error:
        current.append(
            _condition(OperatorCondition.SYNC_DEGRADED, "True", "SyncError", outcome.error or outcome.missing)
        )
    else:
        current.append(_condition(OperatorCondition.SYNC_DEGRADED, "False", AS_EXPECTED))
    if outcome.missing:
        current.append(_condition(OperatorCondition.DEGRADED, "True", MISSING_DEPENDENCY, outcome.missing))
    elif outcome.is_complete and not outcome.error:
        current.append(_condition(OperatorCondition.DEGRADED, "False", AS_EXPECTED))
    return current


def available_replicas(deployment: JSONObject | None) -> int:
    """Return the number of available managers."""
    return int(meta.status(deployment or {}).get("availableReplicas") or 0)


def is_rolled_out(deployment: JSONObject) -> bool:
    """Return whether all replicas are available and have the latest template."""
    status, replicas = meta.status(deployment), meta.spec(deployment).get("replicas")
    return (
        int(status.get("observedGeneration") or 0) >= meta.generation(deployment)
        and replicas is not None
        and int(status.get("updatedReplicas") or 0) == replicas == available_replicas(deployment)
    )


def may_become_available(cluster: JSONObject, deployment: JSONObject | None) -> bool:
    """Return whether all managers are running, but the status does not report this. Webhooks are then probed."""
    runs = deployment is not None and available_replicas(deployment) > 0 and _is_running(deployment)
    return runs and not meta.is_condition_true(cluster, OperatorCondition.AVAILABLE)


def _is_running(deployment: JSONObject) -> bool:
    return bool(meta.spec(deployment).get("replicas") == available_replicas(deployment))


def _available_condition(deployment: JSONObject | None, unreached: str) -> JSONObject:
    replicas = None if deployment is None else meta.spec(deployment).get("replicas")
    if deployment is not None and _is_running(deployment):
        if unreached:
            return _condition(
                OperatorCondition.AVAILABLE,
                "False",
                "WebhooksUnreachable",
                f"the manager is not available: {unreached}",
            )
        return _condition(OperatorCondition.AVAILABLE, "True", AS_EXPECTED)
    state = (
        "does not exist"
        if deployment is None
        else f"has {available_replicas(deployment)} of {replicas} available replicas"
    )
    return _condition(
        OperatorCondition.AVAILABLE,
        "False",
        "DeploymentUnavailable",
        f"the manager is not available, because its Deployment {state}",
    )


def _progressing_condition(deployment: JSONObject | None, outcome: SyncOutcome) -> JSONObject:
    if deployment is not None and (outcome.changes_deployment or not is_rolled_out(deployment)):
        return _condition(
            OperatorCondition.PROGRESSING, "True", "RollingOut", "replicas with the latest template are starting"
        )
    return _condition(OperatorCondition.PROGRESSING, "False", AS_EXPECTED, outcome.note)


def _upgradeable_condition(desired: OperatorSettings) -> JSONObject:
    if desired.overrides:
        text = "spec.unsupportedConfigOverrides is set. Remove it before you upgrade"
        return _condition(OperatorCondition.UPGRADEABLE, "False", "UnsupportedConfigOverrides", text)
    return _condition(OperatorCondition.UPGRADEABLE, "True", AS_EXPECTED)


def _deletion_condition(outcome: SyncOutcome) -> JSONObject:
    """Build the condition that describes the effect of `lws.x-k8s.io/delete-crds`."""
    ignored = f"{DELETE_CRDS} is ignored for {', '.join(outcome.unconfirmed)}. Add the annotation to each CRD"
    if outcome.terminating:
        text = f"deleting this object also deletes {', '.join(outcome.terminating)} and all objects of these kinds"
        return _condition(
            OperatorCondition.DELETES_DEFINITIONS,
            "True",
            "Annotated",
            text + (f"; {ignored}" if outcome.unconfirmed else ""),
        )
    if outcome.unconfirmed:
        return _condition(OperatorCondition.DELETES_DEFINITIONS, "False", "NotConfirmed", ignored)
    return _condition(OperatorCondition.DELETES_DEFINITIONS, "False", AS_EXPECTED)


def _condition(kind: OperatorCondition, status: str, reason: str, message: str = "") -> JSONObject:
    return {"type": kind.value, "status": status, "reason": reason, "message": message}


def _with_transition_time(new: JSONObject, old: JSONObject | None, moment: str) -> JSONObject:
    is_same = old is not None and old.get("status") == new["status"]
    return new | {"lastTransitionTime": old["lastTransitionTime"] if old is not None and is_same else moment}


def _generation(deployment: JSONObject) -> JSONObject:
    return {
        "group": DEPLOYMENTS.group,
        "resource": DEPLOYMENTS.plural,
        "namespace": meta.namespace(deployment),
        "name": meta.name(deployment),
        "lastGeneration": meta.generation(deployment),
    }
