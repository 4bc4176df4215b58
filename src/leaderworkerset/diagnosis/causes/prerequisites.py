"""`spec.scheduling` that the manager cannot follow: what it needs before the leaders does not exist. Pure."""

from typing import Final

from kuberuntime.objects import meta
from leaderworkerset.api.conditions import WORKLOAD_SCHEDULING_CREATED
from leaderworkerset.diagnosis import ranks
from leaderworkerset.diagnosis.causes import featuregates
from leaderworkerset.diagnosis.causes.unattended import own
from leaderworkerset.diagnosis.finding import Cause, Finding
from leaderworkerset.diagnosis.observed import Observed

STEPS: Final = {
    "APINotAvailable": featuregates.REMEDIES[featuregates.API_SERVER],
    "UnsupportedProviderCapability": "set gangSchedulingManagement.schedulerProvider to kubernetes in the manager's configuration",
    "ParentWorkloadNotReady": "create the Workload of the owner, or remove the annotation that delegates to it",
}
"""What to do, by the reason of the condition; other reasons name an object."""

OTHERWISE: Final = "correct or delete the object that is named: the manager tries again by itself"


def is_missing(observed: Observed) -> Finding | None:
    """Find a LeaderWorkerSet whose scheduling objects cannot be made, so that its leaders are not changed."""
    told = meta.find_condition(observed.view.object, WORKLOAD_SCHEDULING_CREATED.type) or {}
    if told.get("status") != "False":
        return None
    reason, message = str(told.get("reason")), ranks.quote(str(told.get("message")))
    return Finding(
        subject=own(observed),
        sentence=f"what spec.scheduling needs before the leaders cannot be made: {message}",
        evidence=(f"condition {WORKLOAD_SCHEDULING_CREATED.type}: False, {reason}",),
        steps=(STEPS.get(reason, OTHERWISE), observed.lws(f"events {observed.view.name} --warnings")),
    )


NOT_CREATED: Final = Cause(
    code="LWS-E018",
    title="what spec.scheduling needs cannot be made",
    meaning="A LeaderWorkerSet with spec.scheduling needs a Workload, and for the whole a PodGroup, before its leaders. "
    "Until they exist and are as they shall be, the manager changes no leader.",
    remedy="The condition WorkloadSchedulingCreated says what is in the way: an API that is not served, an object of another owner, "
    "a Workload that was changed.",
    find=is_missing,
)
