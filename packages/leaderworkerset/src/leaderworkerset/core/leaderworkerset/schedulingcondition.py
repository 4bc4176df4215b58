"""Sets the `WorkloadSchedulingCreated` condition for the shared objects of `spec.scheduling` (N-ST-14).

It is True when all objects exist, False with the reason if an action failed, and otherwise unchanged.
"""

from datetime import datetime

from msgspec import structs

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Patch, PutStatus, guarded_patch
from leaderworkerset.api import leaderworkerset
from leaderworkerset.api.conditions import WORKLOAD_SCHEDULING_CREATED
from leaderworkerset.api.leaderworkerset import Condition, LeaderWorkerSet, LeaderWorkerSetStatus
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core import decisionevents
from leaderworkerset.core.leaderworkerset.status import with_condition
from leaderworkerset.core.policies.gang import Preparation
from leaderworkerset.core.policies.policy import SchedulingFailure


def with_preparation(
    status: LeaderWorkerSetStatus, prepared: Preparation, generation: int, now: datetime
) -> LeaderWorkerSetStatus:
    """Return the status with a condition that reports the preparation."""
    if prepared.failure is None and not prepared.is_done:
        return status
    failure, created = prepared.failure, WORKLOAD_SCHEDULING_CREATED
    new = Condition(
        type=created.type,
        status="False" if failure else "True",
        reason=failure.reason if failure else created.reason,
        message=failure.message if failure else created.message,
        observed_generation=generation,
    )
    return structs.replace(status, conditions=with_condition(status.conditions, new, now))


def find_condition(status: LeaderWorkerSetStatus) -> Condition | None:
    """Return the condition, or None if the condition has not been set."""
    return next(
        (condition for condition in status.conditions if condition.type == WORKLOAD_SCHEDULING_CREATED.type), None
    )


def report(obj: JSONObject, lws: LeaderWorkerSet, failure: SchedulingFailure, now: datetime) -> tuple[PutStatus, ...]:
    """Return the status write for a failure before any writes, unless it is already reported."""
    status = with_preparation(lws.status, Preparation(failure=failure), lws.metadata.generation, now)
    if status == lws.status:
        return ()
    event = decisionevents.scheduling_failed_event(obj, failure.reason, failure.message)
    return (
        PutStatus(
            resource=LEADERWORKERSETS,
            object=obj | {"status": leaderworkerset.encode_status(status)},
            resource_version=meta.resource_version(obj),
            if_present=True,
            on_success=(event,),
        ),
    )


def report_rejection(obj: JSONObject, lws: LeaderWorkerSet, reason: str, now: datetime) -> tuple[Patch, ...]:
    """Return the status write for an API server error, unless this reason is already reported."""
    known = find_condition(lws.status)
    if known is not None and (known.status, known.reason) == ("False", reason):
        return ()
    failure = Preparation(failure=SchedulingFailure(reason, "{error}"))
    status = leaderworkerset.encode_status(with_preparation(lws.status, failure, lws.metadata.generation, now))
    change = {"status": {"conditions": status["conditions"]}}
    return (guarded_patch(LEADERWORKERSETS, obj, change, subresource="status", if_present=True),)
