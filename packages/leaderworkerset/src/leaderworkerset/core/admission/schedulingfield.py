"""Validates `spec.scheduling`, including settings that the scheduler does not support (N-SCH-VAL-1 to -22).

Input: the LeaderWorkerSet, the stored object on an update, and the manager's support for the field. Output: the
errors of the first failed check. The last check validates the field itself and returns all its errors. If the manager
or the API server lacks support, only a new or changed field is rejected, so that other fields of a stored object can
be changed. Changes that the API of the created objects would reject later are rejected immediately.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from kuberuntime.objects import meta, names
from kuberuntime.objects.field import FieldError, Kind, invalid, not_supported, required_error
from leaderworkerset.api import labels, schedulinglevels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core.policies import levels
from leaderworkerset.core.policies.gang import Support
from leaderworkerset.core.policies.levels import PATH, LevelFields, SchedulingLevel, SchedulingPart

TEMPLATE: Final = "spec.leaderWorkerTemplate"
REPLICA: Final = f"{PATH}.replica"
PROVIDERS: Final = ("volcano", "kubernetes")
CONTROLLED: Final = "delegated scheduling requires a controller owner"
LONGEST_CLAIMS: Final = 4


def errors(
    lws: LeaderWorkerSet, old: LeaderWorkerSet | None, support: Support, *, is_known: bool = False
) -> list[FieldError]:
    """Return the errors of `spec.scheduling`. Without `old`, `is_known` means that the stored field is unchanged."""
    scheduling = lws.spec.scheduling
    stored = None if old is None else old.spec.scheduling
    if scheduling is None:
        return [] if stored is None else [_forbidden(PATH, "cannot remove scheduling after creation")]
    if not support.is_enabled and stored is None and not is_known:
        return [_forbidden(PATH, "requires the WorkloadAwareScheduling feature gate")]
    is_new = scheduling != stored and not is_known
    if errors := [*(_validate_provider(scheduling, support) if is_new else ())] or [
        *_validate_delegation(lws, scheduling)
    ]:
        return errors
    if old is not None and stored is None:
        return [_forbidden(PATH, "cannot add scheduling after creation")]
    active = levels.active_levels(scheduling)
    if len(active) > 1:
        return [invalid(PATH, [level.value for level in active], levels.level_count_error(active))]
    return [
        *_validate_update(lws, old, scheduling, stored),
        *_validate_shape(scheduling),
        *_validate_combinations(lws, scheduling),
    ]


def _forbidden(path: str, detail: str) -> FieldError:
    return FieldError(Kind.FORBIDDEN, path, detail=detail)


def _validate_provider(scheduling: schedulinglevels.Scheduling, support: Support) -> Iterator[FieldError]:
    """Return the errors of settings that the provider does not support (N-SCH-VAL-3 to N-SCH-VAL-6)."""
    match support.provider:
        case "":
            yield required_error(PATH, "requires a configured scheduler provider")
        case "volcano":
            yield from _validate_volcano(scheduling)
        case "kubernetes":
            yield from (_forbidden(PATH, levels.unavailable_error(kind)) for kind in support.missing[:1])
        case other:
            yield not_supported(PATH, other, PROVIDERS)


def _validate_volcano(scheduling: schedulinglevels.Scheduling) -> Iterator[FieldError]:
    if levels.active_level(scheduling) is not SchedulingLevel.REPLICA:
        yield _forbidden(PATH, "the Volcano provider supports the typed API only at replica level")
        return
    replica = scheduling.replica or schedulinglevels.ReplicaScheduling()
    if replica.scheduling_policy is not None and replica.scheduling_policy.basic is not None:
        yield _forbidden(f"{REPLICA}.schedulingPolicy", "the Volcano provider does not support Basic policy")
    if replica.scheduling_constraints is not None:
        text = "the Volcano provider does not support typed scheduling constraints"
        yield _forbidden(f"{REPLICA}.schedulingConstraints", text)
    if replica.disruption_mode is not None:
        yield _forbidden(f"{REPLICA}.disruptionMode", "the Volcano provider does not support typed disruption mode")
    for role, fields in _configured_roles(replica):
        if fields.resource_claims:
            text = "the Volcano provider does not support shared resource claims"
            yield _forbidden(f"{REPLICA}.{role}.resourceClaims", text)


def _configured_roles(replica: schedulinglevels.ReplicaScheduling) -> list[tuple[str, schedulinglevels.RoleScheduling]]:
    both = ((labels.LEADER, replica.leader), (labels.WORKER, replica.worker))
    return [(role, fields) for role, fields in both if fields is not None]


def _validate_delegation(lws: LeaderWorkerSet, scheduling: schedulinglevels.Scheduling) -> Iterator[FieldError]:
    """Return the errors of annotations that delegate scheduling to the Workload of an owner (N-SCH-VAL-7)."""
    own = lws.metadata.annotations
    template, parent = own.get(labels.GROUP_TEMPLATE_NAME), own.get(labels.PARENT_COMPOSITE_POD_GROUP)
    at_template = f"metadata.annotations[{labels.GROUP_TEMPLATE_NAME}]"
    at_parent = f"metadata.annotations[{labels.PARENT_COMPOSITE_POD_GROUP}]"
    if template is None:
        if parent is not None:
            yield _forbidden(at_parent, "requires the group-template-name delegation annotation")
        return
    if not template:
        yield required_error(at_template, "must name a parent Workload template")
    if not any(owner.get("controller") for owner in lws.metadata.owner_references):
        yield _forbidden(at_template, CONTROLLED)
    if parent == "":
        yield required_error(at_parent, "must name a parent CompositePodGroup")
    if levels.active_level(scheduling) is SchedulingLevel.ROLE:
        yield _forbidden(at_template, "delegated scheduling supports only whole-LWS or replica mode")


def _validate_update(
    lws: LeaderWorkerSet,
    old: LeaderWorkerSet | None,
    scheduling: schedulinglevels.Scheduling,
    stored: schedulinglevels.Scheduling | None,
) -> Iterator[FieldError]:
    """Return the errors of changes, including changes that the Workload API rejects (N-SCH-VAL-10, N-SCH-VAL-11)."""
    if old is None or stored is None:
        return
    if levels.active_level(scheduling) is not levels.active_level(stored):
        yield _forbidden(PATH, "cannot switch the active scheduling level after creation")
    else:
        for new, known in zip(
            levels.scheduling_parts(lws, scheduling), levels.scheduling_parts(old, stored), strict=True
        ):
            yield from _validate_immutable(new, known)
    new_classes, known_classes = _priorities(lws), _priorities(old)
    if len(new_classes) == len(known_classes) == 1 and new_classes != known_classes:
        text = "cannot change priorityClassName while workload-aware scheduling is configured"
        yield _forbidden(TEMPLATE, text)


def _validate_immutable(new: SchedulingPart, known: SchedulingPart) -> Iterator[FieldError]:
    changes = {
        "schedulingPolicy": (new.min_count is None) != (known.min_count is None),
        "schedulingConstraints": _topology_keys(new.fields) != _topology_keys(known.fields),
        "disruptionMode": _is_all(new.fields) != _is_all(known.fields),
        "resourceClaims": _claims(new.fields) != _claims(known.fields),
    }
    yield from (_forbidden(f"{new.path}.{field}", "field is immutable") for field, is_new in changes.items() if is_new)


def _topology_keys(fields: LevelFields) -> list[str]:
    return (
        []
        if fields.scheduling_constraints is None
        else [constraint.key for constraint in fields.scheduling_constraints.topology]
    )


def _is_all(fields: LevelFields) -> bool:
    return fields.disruption_mode is not None and fields.disruption_mode.all is not None


def _claims(fields: LevelFields) -> tuple[schedulinglevels.ResourceClaim, ...]:
    return fields.resource_claims if isinstance(fields, schedulinglevels.RoleScheduling) else ()


def _validate_shape(scheduling: schedulinglevels.Scheduling) -> Iterator[FieldError]:
    """Return the errors of unions, keys and claims (N-SCH-VAL-12). Outer levels are first."""
    for path, fields in _configured_levels(scheduling):
        if fields.scheduling_policy is not None:
            yield from _validate_policy(f"{path}.schedulingPolicy", fields.scheduling_policy)
        if fields.scheduling_constraints is not None:
            yield from _validate_keys(f"{path}.schedulingConstraints.topology", fields.scheduling_constraints)
        if fields.disruption_mode is not None:
            yield from _validate_mode(f"{path}.disruptionMode", fields.disruption_mode)
        yield from _claim_errors(f"{path}.resourceClaims", _claims(fields))


def _configured_levels(scheduling: schedulinglevels.Scheduling) -> Iterator[tuple[str, LevelFields]]:
    """Yield the configured levels with their paths. Outer levels are first."""
    yield PATH, scheduling
    if scheduling.replica is not None:
        yield REPLICA, scheduling.replica
        yield from ((f"{REPLICA}.{role}", fields) for role, fields in _configured_roles(scheduling.replica))


def _validate_policy(
    path: str, policy: schedulinglevels.CompositePolicy | schedulinglevels.RolePolicy
) -> Iterator[FieldError]:
    if (policy.basic is None) == (policy.gang is None):
        yield _not_exactly_one_error(path, {"basic": policy.basic is not None, "gang": policy.gang is not None})


def _validate_mode(path: str, mode: schedulinglevels.DisruptionMode) -> Iterator[FieldError]:
    if (mode.single is None) == (mode.all is None):
        yield _not_exactly_one_error(path, {"single": mode.single is not None, "all": mode.all is not None})


def _not_exactly_one_error(path: str, members: dict[str, bool]) -> FieldError:
    present = [name for name, is_set in members.items() if is_set]
    return invalid(path, present, f"exactly one of {' and '.join(members)} must be set")


def _validate_keys(path: str, constraints: schedulinglevels.Constraints) -> Iterator[FieldError]:
    if len(constraints.topology) > 1:
        yield FieldError(Kind.TOO_MANY, path, detail="must have at most 1 item")
    for index, constraint in enumerate(constraints.topology):
        yield from (invalid(f"{path}[{index}].key", constraint.key, text) for text in names.label_key(constraint.key))


def _claim_errors(path: str, claims: Sequence[schedulinglevels.ResourceClaim]) -> Iterator[FieldError]:
    if len(claims) > LONGEST_CLAIMS:
        yield FieldError(Kind.TOO_MANY, path, detail=f"must have at most {LONGEST_CLAIMS} items")
    for index, claim in enumerate(claims):
        at = f"{path}[{index}]"
        yield from (invalid(f"{at}.name", claim.name, text) for text in names.dns_1123_label(claim.name))
        if claim.name in {earlier.name for earlier in claims[:index]}:
            yield FieldError(Kind.DUPLICATE, f"{at}.name", claim.name)
        references = {
            "resourceClaimName": claim.resource_claim_name,
            "resourceClaimTemplateName": claim.resource_claim_template_name,
        }
        if list(references.values()).count(None) != 1:
            yield _not_exactly_one_error(at, {name: value is not None for name, value in references.items()})
        for name, value in references.items():
            texts = [] if value is None else names.dns_1123_subdomain(value)
            yield from (invalid(f"{at}.{name}", value, text) for text in texts)


def _validate_combinations(lws: LeaderWorkerSet, scheduling: schedulinglevels.Scheduling) -> Iterator[FieldError]:
    """Return the errors of invalid combinations with other fields (N-SCH-VAL-13 to N-SCH-VAL-20)."""
    level, parts = levels.active_level(scheduling), levels.scheduling_parts(lws, scheduling)
    for part in parts:
        policy = part.fields.scheduling_policy
        if (
            isinstance(policy, schedulinglevels.CompositePolicy)
            and policy.gang is not None
            and policy.gang.min_group_count is not None
        ):
            text = "minGroupCount is not supported"
            yield _forbidden(f"{part.path}.schedulingPolicy.gang.minGroupCount", text)
    if level is SchedulingLevel.ROLE:
        yield from _validate_role_counts(lws, parts)
    is_group_gang = level is not SchedulingLevel.ROLE and any(part.min_count is not None for part in parts)
    if is_group_gang and lws.spec.startup_policy.waits_for_leader:
        text = "a gang containing the leader and workers is incompatible with startupPolicy LeaderReady"
        yield _forbidden(PATH, text)
    places = any(part.min_count is not None or _topology_keys(part.fields) for part in parts)
    if places and lws.metadata.annotations.get(labels.EXCLUSIVE_TOPOLOGY):
        text = "gang scheduling or workload topology constraints cannot be combined with exclusive topology in alpha"
        yield _forbidden(PATH, text)
    if len(_priorities(lws)) > 1:
        yield invalid(PATH, None, "all managed pod templates must use the same priorityClassName")
    if any(meta.spec(template).get("schedulingGroup") is not None for template in lws.pod_templates.values()):
        yield _forbidden(PATH, "managed pod templates must not set spec.schedulingGroup")
    for part in parts:
        yield from _validate_claims(lws, part)


def _validate_role_counts(lws: LeaderWorkerSet, parts: Sequence[SchedulingPart]) -> Iterator[FieldError]:
    """Return errors for groups without workers, and for `minCount` below the pod count (N-SCH-VAL-14, N-SCH-VAL-15)."""
    if lws.size < 2:
        yield invalid(f"{TEMPLATE}.size", lws.size, "leader/worker scheduling requires size >= 2")
    for part in parts:
        policy = part.fields.scheduling_policy
        if not isinstance(policy, schedulinglevels.RolePolicy) or policy.gang is None or part.min_count is None:
            continue
        if policy.gang.min_count not in (None, part.min_count):
            path = f"{part.path}.schedulingPolicy.gang.minCount"
            yield invalid(path, policy.gang.min_count, f"must equal complete leaf membership {part.min_count}")


def _priorities(lws: LeaderWorkerSet) -> set[str]:
    return {str(meta.spec(template).get("priorityClassName") or "") for template in lws.pod_templates.values()}


def _validate_claims(lws: LeaderWorkerSet, part: SchedulingPart) -> Iterator[FieldError]:
    """Return errors for claims that do not exist in the pods of a role (N-SCH-VAL-20)."""
    template = lws.leader_template if part.role == labels.LEADER else lws.spec.leader_worker_template.worker_template
    fields = ("name", "resourceClaimName", "resourceClaimTemplateName")
    theirs = [
        tuple(claim.get(field) or None for field in fields) for claim in meta.spec(template).get("resourceClaims") or []
    ]
    for index, claim in enumerate(_claims(part.fields)):
        if (claim.name, claim.resource_claim_name, claim.resource_claim_template_name) not in theirs:
            text = "must have a matching reference in every member pod template"
            yield invalid(f"{part.path}.resourceClaims[{index}]", claim.name, text)
