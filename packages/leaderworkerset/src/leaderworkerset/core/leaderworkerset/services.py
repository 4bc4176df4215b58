"""The headless services by which the pods of groups find each other (contract section 4).

In: the owner (the LeaderWorkerSet, or a leader pod where each group has its own service). Out: the Service to create.
A service is created if none of its name exists, and never changed again (R-SVC-4).
"""

from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import SERVICES
from kuberuntime.plan import Create, Event
from leaderworkerset.api import groupname, labels

NOT_CREATED: Final = "Failed to create headless service for error: {error}"
"""The text of the event about a service that is refused, or whose name is another object's."""

ADDRESS: Final = "clusterIP"
HEADLESS: Final = "None"


def build_shared(obj: JSONObject) -> JSONObject:
    """Build the service of all groups of a LeaderWorkerSet (R-SVC-1)."""
    return _build(obj, meta.name(obj), meta.name(obj), {})


def build_for_group(leader: JSONObject, name: str) -> JSONObject:
    """Build the service of one group of the LeaderWorkerSet `name`, owned by the leader pod (R-SVC-2, N-HASH-23)."""
    return _build(leader, name, groupname.host(leader), {labels.GROUP_INDEX: groupname.label(leader)})


def conflict(service: JSONObject | None, owner: JSONObject) -> str:
    """Return why a service with the name of ours cannot be used; empty if it can (N-HASH-24).

    A service without a controller is a user's own, and used if it is headless. That of a predecessor is deleted soon.
    """
    if service is None:
        return ""
    remedy = "remove the service, or use another name"
    found = meta.foreign_controller(service, owner)
    if found is not None:
        return (
            f"headless service {meta.name(service)} has controller owner {found['kind']} {found['name']};"
            f" expected {owner['kind']} {meta.name(owner)}: {remedy}"
        )
    address = meta.spec(service).get(ADDRESS, HEADLESS)
    if meta.controller_of(service) is None and address != HEADLESS:
        return f"service {meta.name(service)} has spec.{ADDRESS} {address}, not {HEADLESS}: {remedy}"
    return ""


def is_orphan(service: JSONObject | None, obj: JSONObject) -> bool:
    """Return whether a service is as we create the shared one, by label, selector and address, and has no controller."""
    if service is None or meta.controller_of(service) is not None:
        return False
    own, spec = build_shared(obj), meta.spec(service)
    is_same = all(spec.get(name) == own["spec"][name] for name in (ADDRESS, "selector"))
    return is_same and meta.labels(service).get(labels.NAME) == meta.name(obj)


def create(service: JSONObject, failed: Event) -> Create:
    """Return the creation of a service; a headless one of the user with its name is used instead."""
    return Create(
        resource=SERVICES, object=service, unless_own=True, accepted=(f"spec.{ADDRESS}", HEADLESS), on_failure=(failed,)
    )


def _build(owner: JSONObject, name: str, own_name: str, selector: dict[str, str]) -> JSONObject:
    spec = {ADDRESS: HEADLESS, "publishNotReadyAddresses": True, "selector": {labels.NAME: name} | selector}
    return SERVICES.controlled(owner, own_name, {labels.NAME: name}, spec=spec)
