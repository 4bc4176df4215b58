"""Converts objects to the form of the recorded objects, to compare them.

The recorded objects are in `packages/leaderworkerset/tests/vectors/live-objects.json`.

There are two separate steps. `normalize` gives a live object the form of the recording, whoever created it.
`settle_intended` removes the intended differences from the Go controller. No other difference is permitted.

The form has no UIDs, times and resourceVersions. Owners are kind, name and two flags. `managers` records whether the
field manager `lws` wrote the object and how. Pods lack the additions of scheduler and API server. LeaderWorkerSets have
the True conditions only. `name`s of revisions end in `-N` instead of their number.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS, SERVICES, STATEFULSETS
from leaderworkerset.api import labels
from leaderworkerset.api.fieldtypes import round_trip
from leaderworkerset.api.resources import LEADERWORKERSETS

KINDS: Final = (CONTROLLER_REVISIONS, LEADERWORKERSETS, PODS, SERVICES, STATEFULSETS)

RACK: Final = "rack"
ADDRESSES: Final = {"clusterIP", "clusterIPs"}
ADDED_TO_PODS: Final = {"nodeName", "tolerations"}
SERVICE_ACCOUNT_VOLUME: Final = "kube-api-access-"
TOPOLOGY: Final = "topology.kubernetes.io/"


DEFAULTED: Final = ("groupIdentity", "groupReplacementPolicy")
"""The fields with CRD defaults that the recording with v0.10 does not contain (N-DEF-1)."""


def normalize(obj: JSONObject) -> JSONObject:
    """Return the object in the form of the recording."""
    metadata, kind = meta.metadata(obj), obj["kind"]
    result = {
        "kind": kind,
        "name": meta.name(obj),
        "labels": meta.labels(obj),
        "annotations": meta.annotations(obj),
        "owners": [_owner(one) for one in metadata.get("ownerReferences") or []],
        "managers": sorted(_managers(metadata.get("managedFields") or [])),
        "generation": meta.generation(obj) if kind == LEADERWORKERSETS.kind else None,
        "spec": meta.spec(obj),
    }
    return FORMS[kind](result, obj)


def is_recorded(obj: JSONObject, name: str) -> bool:
    """Return whether the recording contains objects of this kind for the LeaderWorkerSet `name`."""
    if obj["kind"] == LEADERWORKERSETS.kind:
        return meta.name(obj) == name
    owner = meta.controller_of(obj) or {}
    is_revision_of_other = obj["kind"] == CONTROLLER_REVISIONS.kind and owner.get("kind") != LEADERWORKERSETS.kind
    return meta.labels(obj).get(labels.NAME) == name and not is_revision_of_other


def settle_intended(objects: Iterable[JSONObject]) -> list[JSONObject]:
    """Remove intended differences from both the recorded objects and the live objects. Sort the objects."""
    settled = [_settle(obj) for obj in objects if labels.RECREATIONS not in obj["annotations"]]
    by_identity = {(obj["kind"], obj["name"]): obj for obj in settled}
    return [by_identity[key] for key in sorted(by_identity)]


def _settle(obj: JSONObject) -> JSONObject:
    """Return the object without intended differences, such as `role` and `leader-address`, new since v0.10."""
    if obj["kind"] == LEADERWORKERSETS.kind:
        # R-DEF-6: this manager patches only the defaults into a posted object. The Go manager writes the object from
        # its typed structs.
        spec = obj["spec"]
        template = round_trip("LeaderWorkerTemplate", spec["leaderWorkerTemplate"], "spec.leaderWorkerTemplate")
        return obj | {"spec": _without(spec, *DEFAULTED) | {"leaderWorkerTemplate": template}}
    if obj["kind"] == PODS.kind:
        # docs/reference/contract.md, section 15: this manager injects LWS_GROUP_INDEX in addition to the three
        # variables of R-ENV-1.
        settled = obj | {"spec": _without_group_index(obj["spec"])}
        if obj["labels"].get(labels.WORKER_INDEX) == labels.LEADER_WORKER_INDEX:
            return settled
        # The annotation changes the worker template, and therefore the label.
        return settled | {
            "labels": _without(obj["labels"], labels.STATEFULSET_REVISION),
            "annotations": _without(obj["annotations"], labels.LEADER_ADDRESS),
        }
    if obj["kind"] == STATEFULSETS.kind:
        spec = obj["spec"]
        metadata = spec["template"]["metadata"]
        metadata = metadata | {"annotations": _without(metadata["annotations"], labels.LEADER_ADDRESS)}
        template = spec["template"] | {"metadata": metadata}
        return obj | {"labels": _without(obj["labels"], labels.ROLE), "spec": spec | {"template": template}}
    # the Go manager creates an additional revision each time it fails to write the StatefulSet. Equal revisions
    # count once (by name without number), see `settle_intended`. Records of recreations
    # (docs/adr/0003-recreation-backoff.md) are omitted as well.
    return obj


def _without(obj: JSONObject, *fields: str) -> JSONObject:
    return {field: value for field, value in obj.items() if field not in fields}


def _without_group_index(spec: JSONObject) -> JSONObject:
    def cleaned(container: JSONObject) -> JSONObject:
        kept = [one for one in container.get("env") or [] if one["name"] != labels.ENV_GROUP_INDEX]
        return container | ({"env": kept} if "env" in container else {})

    fields = ("containers", "initContainers")
    return spec | {field: [cleaned(one) for one in spec[field]] for field in fields if field in spec}


def _normalize_pod(result: JSONObject, obj: JSONObject) -> JSONObject:
    spec = {field: value for field, value in meta.spec(obj).items() if field not in ADDED_TO_PODS}
    spec["volumes"] = [one for one in spec.get("volumes") or [] if not _is_of_service_account(one)]
    for field in ("containers", "initContainers"):
        if field in spec:
            spec[field] = [_without_service_account(container) for container in spec[field]]
    own = {key: value for key, value in result["labels"].items() if not key.startswith(TOPOLOGY)}
    if _names_racks(spec):
        own.pop("controller-revision-hash", None)
    return result | {"labels": own, "spec": _any_rack(spec)}


def _names_racks(value: JSON) -> bool:
    """Return whether a pod spec contains racks. The recording has no hash for such templates."""
    if isinstance(value, dict):
        return RACK in value or any(map(_names_racks, value.values()))
    return any(map(_names_racks, value)) if isinstance(value, list) else value == RACK


def _without_service_account(container: JSONObject) -> JSONObject:
    mounts = [one for one in container.get("volumeMounts") or [] if not _is_of_service_account(one)]
    return container | {"volumeMounts": mounts}


def _is_of_service_account(named: JSONObject) -> bool:
    return str(named["name"]).startswith(SERVICE_ACCOUNT_VOLUME)


def _normalize_statefulset(result: JSONObject, obj: JSONObject) -> JSONObject:
    spec = meta.spec(obj)
    template = spec["template"]
    return result | {"spec": spec | {"template": template | {"spec": _any_rack(template["spec"])}}}


def _any_rack(spec: JSONObject) -> JSONObject:
    selector = spec.get("nodeSelector") or {}
    return spec | {"nodeSelector": selector | {RACK: "*"}} if RACK in selector else spec


def _normalize_service(result: JSONObject, obj: JSONObject) -> JSONObject:
    return result | {"spec": {field: value for field, value in meta.spec(obj).items() if field not in ADDRESSES}}


def _normalize_revision(result: JSONObject, obj: JSONObject) -> JSONObject:
    name = f"{result['name'].rpartition('-')[0]}-N"
    return result | {"name": name, "revision": None, "data": obj.get("data")}


def _normalize_leaderworkerset(result: JSONObject, obj: JSONObject) -> JSONObject:
    status = meta.status(obj)
    fields = ("type", "status", "reason", "message", "observedGeneration")
    true = [one for one in status.get("conditions") or [] if one["status"] == "True"]
    conditions = sorted([one.get(field) for field in fields] for one in true)
    return result | {"status": status | {"conditions": conditions}}


FORMS: Final[dict[str, Callable[[JSONObject, JSONObject], JSONObject]]] = {
    CONTROLLER_REVISIONS.kind: _normalize_revision,
    LEADERWORKERSETS.kind: _normalize_leaderworkerset,
    PODS.kind: _normalize_pod,
    SERVICES.kind: _normalize_service,
    STATEFULSETS.kind: _normalize_statefulset,
}


def _owner(reference: JSONObject) -> list[Any]:
    return [reference[field] for field in ("kind", "name", "controller", "blockOwnerDeletion")]


def _managers(entries: Iterable[JSONObject]) -> set[str]:
    return {f"{one['manager']}/{one['operation']}" for one in entries if one.get("manager") == labels.FIELD_MANAGER}


def differences(expected: Iterable[JSONObject], found: Iterable[JSONObject]) -> list[str]:
    """Return the differences, one line per object or field, or an empty list if there are none."""
    wanted = {(obj["kind"], obj["name"]): obj for obj in settle_intended(expected)}
    live = {(obj["kind"], obj["name"]): obj for obj in settle_intended(found)}
    lines = [f"{kind} {name}: is missing" for kind, name in wanted.keys() - live.keys()]
    lines += [f"{kind} {name}: should not be there" for kind, name in live.keys() - wanted.keys()]
    for key in wanted.keys() & live.keys():
        recorded = wanted[key]
        if key[0] == LEADERWORKERSETS.kind and (STATEFULSETS.kind, key[1]) not in wanted:
            recorded = _with_reported_refusal(recorded, live[key])
        lines += [f"{key[0]} {key[1]}: {line}" for line in _compare(recorded, live[key], "")]
    return sorted(lines)


def _with_reported_refusal(wanted: JSONObject, live: JSONObject) -> JSONObject:
    """Return a LeaderWorkerSet with rejected leaders and the status of this project (docs/adr/0030).

    The Go controller does not write this status.
    """
    if wanted["status"].get("conditions"):
        return wanted
    generation = live["status"].get("observedGeneration")
    reported = {
        "conditions": [["Progressing", "True", "GroupsProgressing", "Replicas are progressing", generation]],
        "hpaPodSelector": f"{labels.NAME}={wanted['name']},{labels.WORKER_INDEX}={labels.LEADER_WORKER_INDEX}",
        "observedGeneration": generation,
    }
    return wanted | {"managers": [f"{labels.FIELD_MANAGER}/Update"], "status": wanted["status"] | reported}


def _compare(wanted: JSON, found: JSON, path: str) -> list[str]:
    if isinstance(wanted, dict) and isinstance(found, dict):
        lines = []
        for field in sorted(wanted.keys() | found.keys()):
            lines += _compare(wanted.get(field, "(absent)"), found.get(field, "(absent)"), f"{path}.{field}")
        return lines
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        return [
            line for i, (a, b) in enumerate(zip(wanted, found, strict=True)) for line in _compare(a, b, f"{path}[{i}]")
        ]
    return [] if wanted == found else [f"{path.lstrip('.')}: recorded {wanted!r}, found {found!r}"]
