"""Returns decisions about one DisaggregatedSet in the form that the tests in this directory use."""

from collections.abc import Iterable
from typing import Any

from tests.builders import NOW
from tests.disaggregated import disaggregatedset_object, role, with_image

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Action, Create, Delete, Emit, Patch, Plan, PutStatus, flatten
from leaderworkerset.api.disaggregatedset import INITIAL_REPLICAS, SLICE
from leaderworkerset.core.disaggregatedset import rolehash
from leaderworkerset.core.disaggregatedset.childsets import read_part
from leaderworkerset.core.disaggregatedset.reconcile import ObservedDisaggregatedSet, reconcile
from leaderworkerset.core.disaggregatedset.roleservices import build as build_service
from leaderworkerset.core.disaggregatedset.roleset import RolePlace, owner_reference

SET = disaggregatedset_object([role("prefill", 4), role("decode", 4)])
NEXT = SET | {"spec": with_image(SET, "app:2")}


def revision_of(obj: JSONObject) -> str:
    return rolehash.revision_of(obj["spec"]["roles"])


def lws(
    obj: JSONObject, name: str, replicas: int, *, ready: int | None = None, index: int = 0, **fields: Any
) -> JSONObject:
    """Return the LeaderWorkerSet of a role. `initial`, `legacy` and `owner` set the corresponding fields."""
    place = RolePlace(meta.name(obj), index, revision_of(obj), name)
    legacy, initial = fields.get("legacy", False), fields.get("initial")
    labels = {key: value for key, value in place.labels.items() if not (legacy and key == SLICE)}
    own_name = place.legacy_name if legacy else place.name
    metadata: JSONObject = {
        "name": own_name,
        "namespace": "default",
        "uid": f"uid-of-{own_name}",
        "labels": labels,
        "annotations": {} if initial is None else {INITIAL_REPLICAS: str(initial)},
        "creationTimestamp": fields.get("created", "2026-01-01T00:00:00Z"),
        "ownerReferences": [owner_reference(fields.get("owner", obj))],
    }
    count = replicas if ready is None else ready
    status = {"replicas": replicas, "readyReplicas": count, "updatedReplicas": count}
    kind = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"}
    return kind | {"metadata": metadata, "spec": {"replicas": replicas}, "status": status}


def both(obj: JSONObject, prefill: int, decode: int, **fields: Any) -> list[JSONObject]:
    return [lws(obj, "prefill", prefill, **fields), lws(obj, "decode", decode, **fields)]


def service(obj: JSONObject, name: str, **fields: Any) -> JSONObject:
    """Return the stored Service of a role."""
    found = build_service(obj, read_part(lws(obj, name, 1, **fields)))
    return found | {"metadata": found["metadata"] | {"uid": f"uid-of-{meta.name(found)}"}}


def writes(plan: Plan) -> list[Action]:
    return list(flatten(plan.actions))


def told(plan: Plan) -> list[str]:
    """Return the actions of a plan, one line each, without statuses."""
    lines = []
    for action in writes(plan):
        match action:
            case Create(object=obj):
                size = f" {meta.spec(obj)['replicas']}" if "replicas" in meta.spec(obj) else ""
                lines.append(f"create {obj['kind']} {meta.name(obj)}{size}")
            case Delete(resource=resource, key=key):
                lines.append(f"delete {resource.kind} {key.name}")
            case Patch(key=key, patch=patch, subresource=""):
                value = (patch.get("spec") or {}).get("replicas", meta.annotations(patch).get(INITIAL_REPLICAS))
                lines.append(f"{'scale' if 'spec' in patch else 'record'} {key.name} {value}")
            case Emit(events=events):
                lines += [event.reason for event in events]
            case _:
                pass
    return [line.replace(revision_of(SET), "A").replace(revision_of(NEXT), "B") for line in lines]


def decided(obj: JSONObject, *objects: JSONObject, services: Iterable[JSONObject] = (), **seen: Any) -> list[str]:
    found = ObservedDisaggregatedSet(disaggregatedset=obj, leaderworkersets=objects, services=list(services), **seen)
    return told(reconcile(found, NOW))


def status_of(obj: JSONObject, *objects: JSONObject, **seen: Any) -> JSONObject | None:
    plan = reconcile(ObservedDisaggregatedSet(disaggregatedset=obj, leaderworkersets=objects, **seen), NOW)
    return next((meta.status(action.object) for action in writes(plan) if isinstance(action, PutStatus)), None)


def reasons(plan: Plan) -> list[str]:
    return [event.reason for action in writes(plan) for event in getattr(action, "on_success", ())]
