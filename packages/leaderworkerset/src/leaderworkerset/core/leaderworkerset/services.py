"""Builds the headless Services for communication between the pods of a group (contract section 4).

Input: the owner (the LeaderWorkerSet, or a leader pod if each group has its own Service). Output: the Service to
create. A Service is created if its name is not in use, and never changed again (R-SVC-4).
"""

from typing import Final, TypeAlias

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import SERVICES
from kuberuntime.plan import AcceptedField, Create
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core import decisionevents
from leaderworkerset.core.policies.policy import NO_SERVICE, HeadlessService

PodLabels: TypeAlias = dict[str, str | None]
"""The labels of a pod. None represents a value that a controller sets."""

NOT_CREATED: Final = "Failed to create headless service for error: {error}"
"""The event message for a Service that is rejected, or whose name is in use."""

ADDRESS: Final = "clusterIP"
HEADLESS: Final = "None"

SET_BY_CONTROLLERS: Final = (
    *sorted(labels.POD_LABELS),
    labels.STATEFULSET_REVISION,
    "apps.kubernetes.io/pod-index",
    "statefulset.kubernetes.io/pod-name",
)
"""The labels that controllers set on pods. Manifests do not contain their values."""

UNRESOLVED: Final = (
    "Service {name} is not headless, so pod names such as LWS_LEADER_ADDRESS cannot be resolved. Set clusterIP to None"
)
"""The note about a user's Service that selects the pods (docs/adr/0043-services-of-users.md)."""


def build_shared(obj: JSONObject) -> JSONObject:
    """Build the shared Service of a LeaderWorkerSet (R-SVC-1)."""
    return _build(obj, meta.name(obj), meta.name(obj), {})


def build_for_group(leader: JSONObject, name: str) -> JSONObject:
    """Build the Service of one group, which is owned by the leader pod (R-SVC-2, N-HASH-23)."""
    return _build(leader, name, groupname.hostname(leader), {labels.GROUP_INDEX: groupname.group_label(leader)})


def observe(service: JSONObject | None, owner: JSONObject) -> HeadlessService:
    """Return the state of the Service with the required name. `owner` is its intended controller.

    A Service with a different controller cannot be used (N-HASH-24). The Service of an earlier owner is deleted soon. A
    Service without a controller belongs to a user, and is checked at creation (`create`).
    """
    if service is None:
        return NO_SERVICE
    if meta.is_controlled(service, owner):
        return HeadlessService(is_settled=True)
    if meta.controller_of(service) is None:
        is_orphaned = owner["kind"] == LEADERWORKERSETS.kind and is_orphan(service, owner)
        return HeadlessService(is_settled(service), orphan=service if is_orphaned else None)
    controller = meta.foreign_controller(service, owner)
    conflict = (
        ""
        if controller is None
        else (
            f"headless service {meta.name(service)} has controller owner {controller['kind']} {controller['name']};"
            f" expected {owner['kind']} {meta.name(owner)}: delete the service, or use a different name"
        )
    )
    return HeadlessService(is_settled=True, conflict=conflict)


def is_settled(service: JSONObject) -> bool:
    """Return whether a Service can be skipped, because it has a controller or is headless."""
    return meta.controller_of(service) is not None or meta.spec(service).get(ADDRESS) == HEADLESS


def is_orphan(service: JSONObject, obj: JSONObject) -> bool:
    """Return whether a Service without a controller is equal to the shared Service."""
    own, spec = build_shared(obj), meta.spec(service)
    is_same = all(spec.get(name) == own["spec"][name] for name in (ADDRESS, "selector"))
    return is_same and meta.labels(service).get(labels.NAME) == meta.name(obj)


def is_usable(service: JSONObject, obj: JSONObject, leader: JSONObject) -> bool:
    """Return whether a Service belongs to the group, or is a user's Service that replaces it."""
    if meta.controller_of(service) is not None:
        return meta.foreign_controller(service, leader) is None
    return any(accepted.admits(service) for accepted in create(service, obj, leader).accepted)


def create(service: JSONObject, obj: JSONObject, leader: JSONObject | None = None) -> Create:
    """Return the action that creates the Service of a LeaderWorkerSet or a group.

    A user's Service with the same name is used instead if it is headless, or if it selects pods of the LeaderWorkerSet.
    """
    warned = (decisionevents.not_headless(obj, UNRESOLVED.format(name=meta.name(service)), leader),)
    return Create(
        resource=SERVICES,
        object=service,
        unless_own=True,
        accepted=(
            AcceptedField(f"spec.{ADDRESS}", HEADLESS),
            *(AcceptedField("spec.selector", own, warned) for own in pod_labels(obj)),
        ),
        on_failure=(decisionevents.failed_create(obj, NOT_CREATED, leader),),
    )


def pod_labels(obj: JSONObject) -> tuple[PodLabels, PodLabels]:
    """Return the labels of leaders and the labels of workers."""
    template = meta.spec(obj).get("leaderWorkerTemplate") or {}
    worker = template.get("workerTemplate") or {}
    known = dict.fromkeys(SET_BY_CONTROLLERS) | {labels.NAME: meta.name(obj)}
    leader = meta.labels(template.get("leaderTemplate") or worker)
    return leader | known | {labels.WORKER_INDEX: labels.LEADER_WORKER_INDEX}, meta.labels(worker) | known


def selects(selector: dict[str, str], obj: JSONObject) -> bool:
    """Return whether a selector, if present, matches leaders or workers of a LeaderWorkerSet."""
    return any(
        all(key in own and own[key] in (None, value) for key, value in selector.items()) for own in pod_labels(obj)
    )


def _build(owner: JSONObject, name: str, own_name: str, selector: dict[str, str]) -> JSONObject:
    spec = {ADDRESS: HEADLESS, "publishNotReadyAddresses": True, "selector": {labels.NAME: name} | selector}
    return SERVICES.controlled(owner, own_name, {labels.NAME: name}, spec=spec)
