"""The headless services by which the pods of groups find each other (contract section 4).

In: the owner (the LeaderWorkerSet, or a leader pod where each group has its own service). Out: the Service to create.
A service is created if none of its name exists, and never changed again (R-SVC-4).
"""

from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import SERVICES
from leaderworkerset.api import groupname, labels

NOT_CREATED: Final = "Failed to create headless service for error: {error}"
"""The text of the event about a service that is refused, or whose name is another object's."""


def build_shared(obj: JSONObject) -> JSONObject:
    """Build the service of all groups of a LeaderWorkerSet (R-SVC-1)."""
    return _build(obj, meta.name(obj), meta.name(obj), {})


def build_for_group(leader: JSONObject, name: str) -> JSONObject:
    """Build the service of one group of the LeaderWorkerSet `name`, owned by the leader pod (R-SVC-2, N-HASH-23)."""
    return _build(leader, name, groupname.host(leader), {labels.GROUP_INDEX: groupname.label(leader)})


def conflict(service: JSONObject | None, kind: str, owner: JSONObject) -> str:
    """Return whose a service is that has the name of one of ours, if another object controls it; else empty (N-HASH-24).

    One without a controller is somebody's own, and used. That of a predecessor of the owner goes soon. `kind` is the
    owner's.
    """
    found = meta.controller_of(service) if service is not None else None
    if service is None or found is None or (found["kind"], found["name"]) == (kind, meta.name(owner)):
        return ""
    return (
        f"headless service {meta.name(service)} has controller owner {found['kind']} {found['name']};"
        f" expected {kind} {meta.name(owner)}: remove the service, or use another name"
    )


def _build(owner: JSONObject, name: str, own_name: str, selector: dict[str, str]) -> JSONObject:
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {labels.NAME: name} | selector}
    return SERVICES.controlled(owner, own_name, {labels.NAME: name}, spec=spec)
