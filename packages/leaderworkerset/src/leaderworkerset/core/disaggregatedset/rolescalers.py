"""Creates, deletes and reads the scalers of External roles, and writes their status (R-DS-96 to R-DS-100).

Input: the role scalers that have the set's name as a label or use a name that it needs, and the parts of the set.
Output: the replicas that each scaler sets, and the writes.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Action, Create, Delete, Emit, Patch
from leaderworkerset.api import labels
from leaderworkerset.api.disaggregatedset import ROLE, SET_NAME, DisaggregatedSet
from leaderworkerset.api.resources import ROLE_SCALERS
from leaderworkerset.core.disaggregatedset import childsets, disaggregatedsetevents
from leaderworkerset.core.disaggregatedset.childsets import RolePart
from leaderworkerset.core.disaggregatedset.roletargets import Scalers

READY: Final = "Ready"
"""The scaler condition that is True if its role exists."""

BOUND = "Bound"


class ScalerResult(Struct, frozen=True):
    """The desired scalers, with the replicas that they specify, the objects by role, and the required writes."""

    scalers: Scalers
    objects: Mapping[str, JSONObject]
    actions: tuple[Action, ...]


def reconcile_scalers(
    obj: JSONObject, disaggregated_set: DisaggregatedSet, scalers: Sequence[JSONObject], parts: Sequence[RolePart]
) -> ScalerResult:
    """Return the scalers of all External roles. Scalers of other roles are deleted."""
    external = {role.name for role in disaggregated_set.roles if role.is_external}
    owned = [scaler for scaler in scalers if childsets.is_owned(scaler, disaggregated_set.uid)]
    objects = {_scaled_role(scaler): scaler for scaler in owned if _scaled_role(scaler) in external}
    actions: list[Action] = [
        _delete(obj, scaler)
        for scaler in owned
        if _scaled_role(scaler) not in external and not meta.is_deleting(scaler)
    ]
    replicas = {role: int(meta.spec(scaler).get("replicas") or 0) for role, scaler in objects.items()}
    used_names = {meta.name(scaler) for scaler in scalers}
    for role in disaggregated_set.roles:
        if role.name not in external or role.name in objects:
            continue
        name = scaler_name(disaggregated_set.name, role.name)
        if name in used_names:
            actions.append(Emit(events=(disaggregatedsetevents.scaler_conflict_event(obj, name, role.name),)))
        else:
            replicas[role.name] = initial_replicas(parts, role.name)
            actions.append(_create(obj, role.name, replicas[role.name]))
    return ScalerResult(replicas, objects, tuple(actions))


def scaler_name(set_name: str, role: str) -> str:
    """Return the name of a role's scaler."""
    return f"{set_name}-{role}"


def initial_replicas(parts: Sequence[RolePart], role: str) -> int:
    """Return the replicas of a new scaler, which are the existing groups, or 1 if there are none (R-DS-97)."""
    return childsets.total_replicas(parts, role) if any(part.role == role for part in parts) else 1


def status_writes(
    set_name: str, objects: Mapping[str, JSONObject], parts: Sequence[RolePart], now: datetime
) -> list[Action]:
    """Return the writes of all scaler statuses that are not up to date (R-DS-100)."""
    return [
        Patch(
            resource=ROLE_SCALERS,
            key=meta.key(scaler),
            patch={"status": status},
            subresource="status",
            if_present=True,
        )
        for role, scaler in objects.items()
        for status in (_status(set_name, role, scaler, parts, now),)
        if status != meta.status(scaler)
    ]


def _status(set_name: str, role: str, scaler: JSONObject, parts: Sequence[RolePart], now: datetime) -> JSONObject:
    ready: JSONObject = {
        "type": READY,
        "status": "True",
        "reason": BOUND,
        "message": f"Scales role {role} of DisaggregatedSet {set_name}",
        "observedGeneration": meta.generation(scaler),
    }
    return {
        "replicas": sum(part.created_replicas for part in parts if part.role == role),
        "selector": f"{SET_NAME}={set_name},{ROLE}={role},{labels.WORKER_INDEX}={labels.LEADER_WORKER_INDEX}",
        "observedGeneration": meta.generation(scaler),
        "conditions": meta.with_condition(scaler, ready, timestamps.render(now)),
    }


def _scaled_role(scaler: JSONObject) -> str:
    return meta.labels(scaler).get(ROLE, "")


def _create(obj: JSONObject, role: str, replicas: int) -> Create:
    name = scaler_name(meta.name(obj), role)
    return Create(
        resource=ROLE_SCALERS,
        object=ROLE_SCALERS.controlled(obj, name, {SET_NAME: meta.name(obj), ROLE: role}, spec={"replicas": replicas}),
        unless_own=True,
        on_success=(disaggregatedsetevents.scaler_created_event(obj, name, role),),
        on_failure=(disaggregatedsetevents.failed_create_event(obj, ROLE_SCALERS.kind, name),),
    )


def _delete(obj: JSONObject, scaler: JSONObject) -> Delete:
    event = disaggregatedsetevents.scaler_deleted_event(obj, meta.name(scaler), _scaled_role(scaler))
    return Delete(resource=ROLE_SCALERS, key=meta.key(scaler), uid=meta.uid(scaler), on_success=(event,))
