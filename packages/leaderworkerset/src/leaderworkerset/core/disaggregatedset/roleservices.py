"""Creates a headless Service for each LeaderWorkerSet when its revision can serve (R-DS-80 to R-DS-84).

Input: the parts of a slice, and the services that the set owns. Output: the services to create and to delete.
Services of an old revision stay while all its own roles serve (unlike Q-10). Services with other owners are never
changed (Q-9).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import SERVICES
from kuberuntime.plan import Action, Create, Delete
from leaderworkerset.api.disaggregatedset import REVISION, ROLE, SET_NAME, SLICE
from leaderworkerset.core.disaggregatedset import disaggregatedsetevents
from leaderworkerset.core.disaggregatedset.childsets import RolePart
from leaderworkerset.core.disaggregatedset.roleset import owner_reference

SUFFIX: Final = "-prv"


def reconcile_services(
    obj: JSONObject, current: Mapping[str, RolePart | None], old: Sequence[RolePart], services: Sequence[JSONObject]
) -> list[Action]:
    """Return the actions for the Services of one slice. `current` contains the latest parts by role, or None."""
    parts = [part for part in current.values() if part is not None and part.ready_replicas > 0]
    if len(parts) < len(current) or not parts:
        return []
    present = {meta.name(service) for service in services}
    kept = {parts[0].revision, *_serving_revisions(old)}
    creates: list[Action] = [_create(obj, part) for part in parts if service_name(part) not in present]
    return [*creates, *(delete(service) for service in services if meta.labels(service).get(REVISION, "") not in kept)]


def service_name(part: RolePart) -> str:
    """Return the Service name of a LeaderWorkerSet."""
    return part.key.name + SUFFIX


def delete(service: JSONObject) -> Delete:
    """Return the action that deletes a Service of the DisaggregatedSet."""
    return Delete(resource=SERVICES, key=meta.key(service), uid=meta.uid(service))


def _serving_revisions(old: Sequence[RolePart]) -> set[str]:
    """Return the old revisions with at least one ready group for each role."""
    idle = {part.revision for part in old if part.ready_replicas == 0}
    return {part.revision for part in old} - idle


def _create(obj: JSONObject, part: RolePart) -> Create:
    name = service_name(part)
    return Create(
        resource=SERVICES,
        object=build(obj, part),
        unless_own=True,
        on_failure=(disaggregatedsetevents.failed_create_event(obj, SERVICES.kind, name),),
    )


def build(obj: JSONObject, part: RolePart) -> JSONObject:
    """Build the Service of a LeaderWorkerSet (R-DS-83)."""
    selector = {SET_NAME: meta.name(obj), ROLE: part.role, REVISION: part.revision}
    if not part.is_legacy:
        selector[SLICE] = str(part.slice)
    return {
        **SERVICES.type_meta,
        "metadata": {
            "name": service_name(part),
            "namespace": meta.namespace(obj),
            "labels": selector,
            "ownerReferences": [owner_reference(obj)],
        },
        "spec": {"clusterIP": "None", "selector": dict(selector)},
    }
