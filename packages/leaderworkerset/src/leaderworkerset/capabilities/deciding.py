"""Combines the upstream rules with all capabilities that apply to an object."""

from collections.abc import Collection

from kuberuntime.objects.field import FieldError
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Plan
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.capabilities.enabled import EXTENSIONS
from leaderworkerset.core.admission import annotationvalues, namelengths, templatewarnings
from leaderworkerset.core.admission import leaderworkerset as admission
from leaderworkerset.core.admission import pod as of_pod
from leaderworkerset.core.leaderworkerset import groupstate
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts
from leaderworkerset.core.pod import reconcile as of_group
from leaderworkerset.core.policies import condemned
from leaderworkerset.core.policies.gang import NO_GANG, Gang
from leaderworkerset.core.policies.policy import LiveGroup


def reconcile_group(group: LiveGroup, gang: Gang = NO_GANG) -> Plan:
    """Reconcile a group."""
    return of_group.reconcile(group, gang, EXTENSIONS)


def required_nodes(group: LiveGroup) -> set[str]:
    """Return the names of the nodes that are required to reconcile a group."""
    return {*EXTENSIONS.groups.required_nodes(group), *filter(None, [of_group.required_node(group)])}


def validate_leaderworkerset(
    lws: LeaderWorkerSet, old: LeaderWorkerSet | None = None, gang: Gang = NO_GANG
) -> list[FieldError]:
    """Return all errors of a new object, or only the additional errors of an update to `old`."""
    return admission.validate_leaderworkerset(lws, old, gang, EXTENSIONS)


def warnings(lws: LeaderWorkerSet) -> list[str]:
    """Return admission warnings with their fields."""
    own = (*templatewarnings.warnings(lws), *namelengths.warnings(lws), *admission.queue_warnings(lws))
    own += (*annotationvalues.warnings(lws),)
    return [*own, *(text for warn in EXTENSIONS.warnings for text in warn(lws.metadata.annotations))]


def stored_errors(lws: LeaderWorkerSet) -> list[FieldError]:
    """Return errors that are reported only for new objects."""
    return admission.stored_errors(lws, EXTENSIONS)


def admit_pod(pod: JSONObject, gang: Gang = NO_GANG, request: str = "") -> JSONObject:
    """Return the pod as a member of its group. Pods without a LeaderWorkerSet are unchanged."""
    return of_pod.admit_pod(pod, gang, request, EXTENSIONS)


def describe_group(leader: JSONObject, workers: JSONObject | None, *, is_condemned: bool = False) -> GroupFacts:
    """Describe a group based on its leader pod and the StatefulSet with the same name."""
    described = groupstate.describe(leader, workers, is_condemned=is_condemned)
    return EXTENSIONS.groups.describe(described, leader, workers)


def is_condemned(
    obj: JSONObject,
    leader: JSONObject,
    workers: JSONObject | None,
    record: JSONObject | None,
    suspects: Collection[JSONObject],
) -> bool:
    """Return whether a group must be recreated after a failure, or is exhausted (`core/policies/condemned.py`)."""
    return condemned.is_condemned(obj, leader, workers, record, suspects, EXTENSIONS.excuses)
