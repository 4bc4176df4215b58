"""Builds the Workload and PodGroups of a LeaderWorkerSet with `spec.scheduling` (N-K8S-6, N-K8S-8a, N-K8S-9).

Input: the LeaderWorkerSet and, for a PodGroup, the source of its name and labels. Output: the desired objects, and an
error if an existing object differs in an immutable field. All fields but `gang.minCount` are immutable.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, OwnerReference
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.api.schedulinglevels import ResourceClaim, RoleScheduling, Scheduling
from leaderworkerset.core.gang.native import POD_GROUPS, PRIORITY, WORKLOADS, workload_spec
from leaderworkerset.core.policies import levels, workloadnames
from leaderworkerset.core.policies.levels import SchedulingLevel, SchedulingPart

SINGLE: Final[JSONObject] = {"single": {}}
"""The API server's default disruption mode."""


def build_workload(obj: JSONObject, lws: LeaderWorkerSet, scheduling: Scheduling) -> JSONObject:
    """Build the Workload. `obj` is the original LeaderWorkerSet, and `lws` is the decoded object."""
    templates = [{"name": part.name} | build_template(lws, part) for part in levels.scheduling_parts(lws, scheduling)]
    spec = workload_spec(obj, templates)
    return WORKLOADS.controlled(obj, workloadnames.workload_name(lws), {labels.NAME: lws.name}, spec=spec)


def build_template(lws: LeaderWorkerSet, part: SchedulingPart) -> JSONObject:
    """Build the template fields, which are copied to PodGroups. The priority is copied from the pods (N-K8S-15)."""
    fields, priority = part.fields, meta.spec(lws.leader_template).get(PRIORITY)
    topology = () if fields.scheduling_constraints is None else fields.scheduling_constraints.topology
    claims = fields.resource_claims if isinstance(fields, RoleScheduling) else ()
    return {
        "schedulingPolicy": {"basic": {}} if part.min_count is None else {"gang": {"minCount": part.min_count}},
        **(
            {"schedulingConstraints": {"topology": [{"key": constraint.key} for constraint in topology]}}
            if topology
            else {}
        ),
        **(
            {}
            if fields.disruption_mode is None
            else {"disruptionMode": SINGLE if fields.disruption_mode.all is None else {"all": {}}}
        ),
        **({"resourceClaims": [encode_claim(claim) for claim in claims]} if claims else {}),
        **({PRIORITY: priority} if priority else {}),
    }


def encode_claim(claim: ResourceClaim) -> JSONObject:
    """Return a resource claim in the format of pods and PodGroups."""
    references = {
        "resourceClaimName": claim.resource_claim_name,
        "resourceClaimTemplateName": claim.resource_claim_template_name,
    }
    return {"name": claim.name} | {field: name for field, name in references.items() if name is not None}


def build_pod_group(
    obj: JSONObject, name: str, workload: JSONObject, template: JSONObject, own_labels: Mapping[str, str]
) -> JSONObject:
    """Build a PodGroup from a Workload template. Its owners are the LeaderWorkerSet and its own Workload."""
    owners: list[OwnerReference] = [meta.controller_reference(obj)]
    if meta.is_controlled(workload, obj):
        owners.append(
            OwnerReference(
                apiVersion=workload["apiVersion"],
                kind=workload["kind"],
                name=meta.name(workload),
                uid=meta.uid(workload),
            )
        )
    reference = {"workloadName": meta.name(workload), "templateName": template["name"]}
    return {
        **POD_GROUPS.type_meta,
        "metadata": {
            "name": name,
            "namespace": meta.namespace(obj),
            "labels": {labels.NAME: meta.name(obj), **own_labels},
            "ownerReferences": owners,
        },
        "spec": {"workloadRef": reference, **{field: template[field] for field in template if field != "name"}},
    }


def group_labels(leader: JSONObject, level: SchedulingLevel, role: str) -> dict[str, str]:
    """Return the PodGroup labels for one replica or one of its roles."""
    own = meta.labels(leader)
    copied = (labels.GROUP_INDEX, labels.TEMPLATE_REVISION_HASH)
    return (
        {labels.SCHEDULING_LEVEL: level.value}
        | {key: own[key] for key in copied if key in own}
        | ({labels.ROLE: role} if role else {})
    )


def delegated_template(parent: JSONObject, obj: JSONObject) -> JSONObject:
    """Return the template of the LeaderWorkerSet in the owner's Workload. Raise `ValueError` if it does not exist."""
    name = meta.annotations(obj)[labels.GROUP_TEMPLATE_NAME]
    template = next((entry for entry in templates_of(parent) if entry["name"] == name), None)
    if template is None:
        raise ValueError(f'Workload {meta.key(parent)} has no PodGroup template "{name}"')
    return template


def workload_drift(existing: JSONObject, desired: JSONObject) -> str:
    """Describe the difference between Workloads in immutable fields, or return an empty string."""
    name = meta.key(existing)
    theirs, ours = (_templates_by_name(workload) for workload in (existing, desired))
    if theirs.keys() != ours.keys():
        return f"Workload {name} has immutable PodGroup template set drift"
    different = next((name for name in ours if has_drift(theirs[name], ours[name])), "")
    return (
        f'Workload {name} has immutable scheduling configuration drift in template "{different}"' if different else ""
    )


def _templates_by_name(workload: JSONObject) -> dict[str, JSONObject]:
    return {template["name"]: template for template in templates_of(workload)}


def templates_of(workload: JSONObject) -> Sequence[JSONObject]:
    """Return the templates in a Workload."""
    return meta.spec(workload).get("podGroupTemplates") or ()


def pod_group_drift(existing: JSONObject, desired: JSONObject) -> str:
    """Describe the difference between PodGroups in immutable fields, or return an empty string."""
    same = meta.spec(existing).get("workloadRef") == meta.spec(desired)["workloadRef"]
    is_drift = not same or has_drift(meta.spec(existing), meta.spec(desired))
    return f"PodGroup {meta.key(existing)} has immutable scheduling configuration drift" if is_drift else ""


def has_drift(existing: JSONObject, desired: JSONObject) -> bool:
    """Return whether two templates or PodGroup specs differ in immutable fields.

    Priorities are compared only if a priority is desired, because the API server sets defaults.
    """
    return _immutable_fields(existing, desired) != _immutable_fields(desired, desired)


def _immutable_fields(template: JSONObject, desired: JSONObject) -> JSONObject:
    return {
        "policy": sorted(template.get("schedulingPolicy") or {}),
        "topology": (template.get("schedulingConstraints") or {}).get("topology") or [],
        "mode": template.get("disruptionMode") or SINGLE,
        "claims": template.get("resourceClaims") or [],
        "priority": template.get(PRIORITY) if PRIORITY in desired else None,
    }


def min_count(template: JSONObject) -> int | None:
    """Return the minimum pod count in a template or PodGroup spec, or None for individually scheduled pods."""
    count: int | None = ((template.get("schedulingPolicy") or {}).get("gang") or {}).get("minCount")
    return count


def with_min_count(template: JSONObject, count: int) -> JSONObject:
    """Return the template with the specified minimum pod count."""
    return template | {"schedulingPolicy": {"gang": {"minCount": count}}}
