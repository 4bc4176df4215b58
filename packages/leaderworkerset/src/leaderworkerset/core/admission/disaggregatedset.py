"""Validates DisaggregatedSets (R-DS-9 to R-DS-11, N-DS-3), and returns warnings (R-DS-12, R-DS-13).

Input: the posted object, and the `scheduling` of the roles of the stored object. Output: all errors, in the order of
the contract. The schema rule that needs a CEL expression (R-DS-4) is also checked here, for API servers without CEL.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from msgspec.structs import replace

from kuberuntime.objects import intstr, meta, names
from kuberuntime.objects.field import FieldError, Kind, invalid, not_supported, required_error
from kuberuntime.objects.meta import JSON, JSONObject
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.api.disaggregatedset import DisaggregatedSet, Role, RoleRollingUpdate, decode
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.api.policytypes import RolloutStrategyType
from leaderworkerset.core.admission import annotationvalues, namelengths, schedulingfield, templatewarnings
from leaderworkerset.core.admission.leaderworkerset import budget_errors, default_leaderworkerset, identity_errors
from leaderworkerset.core.admission.ratcheting import Rule, errors_of, new_errors
from leaderworkerset.core.disaggregatedset import rolehash
from leaderworkerset.core.disaggregatedset.rolescalers import scaler_name
from leaderworkerset.core.disaggregatedset.roleset import RolePlace
from leaderworkerset.core.policies.gang import NO_GANG, Support

LONGEST_SERVICE_NAME = 63
LONGEST_SCALER_NAME = 253
NAME_PARTS = len("---") + rolehash.LENGTH + len("-prv")
"""The number of additional characters in a Service name (`<set>-<slice>-<revision>-<role>-prv`).

The set, the slice and the role are not counted.
"""

EXCLUSIVE_KEYS = (labels.EXCLUSIVE_TOPOLOGY, labels.SUBGROUP_EXCLUSIVE_TOPOLOGY)


def validate_disaggregatedset(
    obj: JSONObject, old: JSONObject | None = None, support: Support = NO_GANG.support
) -> list[FieldError]:
    """Return all errors of a new object, or only the additional errors of an update if `old` is specified."""
    return new_errors(
        lambda new, stored: errors_of(RULES, DisaggregatedSetChange.from_objects(new, stored, support)), obj, old
    )


def stored_errors(obj: JSONObject) -> list[FieldError]:
    """Return errors that are reported only for new objects."""
    return errors_of(RULES, DisaggregatedSetChange.from_objects(obj, obj, NO_GANG.support))


def warnings(obj: JSONObject) -> list[str]:
    """Return warnings about valid values that are probably unintended."""
    disaggregated_set = decode(obj)
    ignored = [
        f"spec.roles[{index}].spec.replicas: ignored, because role {role.name} is External. DisaggregatedSetRoleScaler "
        f"{scaler_name(disaggregated_set.name, role.name)} specifies the number of groups"
        for index, role in enumerate(disaggregated_set.roles)
        if role.is_external and role.replicas > 1
    ]
    wrong = names.dns_1035_label(disaggregated_set.name) if disaggregated_set.name else []
    return [
        *ignored,
        *_member_warnings(obj, disaggregated_set),
        *(
            f"metadata.name: {disaggregated_set.name} cannot be used in the name of a LeaderWorkerSet: {text}"
            for text in wrong
        ),
    ]


def _validate_roles(disaggregated_set: DisaggregatedSet) -> Iterator[FieldError]:
    for index, role in enumerate(disaggregated_set.roles):
        yield from _validate_role(disaggregated_set, role, f"spec.roles[{index}]")


def _validate_role(disaggregated_set: DisaggregatedSet, role: Role, path: str) -> Iterator[FieldError]:
    strategy = None if role.spec is None else role.spec.rollout_strategy
    if strategy is not None and strategy.type and strategy.type not in tuple(RolloutStrategyType):
        supported = [kind.value for kind in RolloutStrategyType]
        yield not_supported(f"{path}.spec.rolloutStrategy.type", strategy.type, supported)
    rolling = role.rolling_update
    if rolling is not None:
        yield from _validate_rolling_update(role, rolling, f"{path}.spec.rolloutStrategy.rollingUpdateConfiguration")
    yield from _validate_names(disaggregated_set, role, path)


def _validate_rolling_update(role: Role, rolling: RoleRollingUpdate, path: str) -> Iterator[FieldError]:
    if rolling.partition:
        detail = "partition is not supported in a DisaggregatedSet, because a rollout updates all groups"
        yield FieldError(Kind.FORBIDDEN, f"{path}.partition", detail=detail)
    replicas = None if role.spec is None else role.spec.replicas
    if not replicas:
        return
    unavailable, surge = rolling.max_unavailable, rolling.max_surge
    budgets = {f"{path}.maxUnavailable": unavailable, f"{path}.maxSurge": surge}
    errors = [error for field, value in budgets.items() if value is not None for error in budget_errors(field, value)]
    yield from errors
    if (
        errors
        or intstr.scale(unavailable or 0, replicas, up=False) > 0
        or intstr.scale(surge or 0, replicas, up=True) > 0
    ):
        return
    yield invalid(f"{path}.maxUnavailable", unavailable or 0, "must not be 0 when `maxSurge` is 0")


def _validate_names(disaggregated_set: DisaggregatedSet, role: Role, path: str) -> Iterator[FieldError]:
    length = len(scaler_name(disaggregated_set.name, role.name))
    if role.is_external and length > LONGEST_SCALER_NAME:
        text = f"the name of the role's scaler would have {length} characters, and at most 253 characters are allowed"
        yield invalid(f"{path}.name", role.name, text)
    length = len(disaggregated_set.name) + len(role.name) + NAME_PARTS + len(str(max(0, disaggregated_set.slices - 1)))
    if length > LONGEST_SERVICE_NAME:
        text = f"the name of the role's service would have {length} characters, and a DNS-1035 label has at most {LONGEST_SERVICE_NAME}. Shorten the name of the set or of the role"
        yield invalid(f"{path}.name", role.name, text)


def _validate_members(
    obj: JSONObject, disaggregated_set: DisaggregatedSet, old: JSONObject, support: Support
) -> Iterator[FieldError]:
    """Return the errors in fields of the roles' LeaderWorkerSets that cannot be changed later (N-VAL-11).

    A change of `scheduling` creates new LeaderWorkerSets, so it is checked as for a new set.
    """
    known = {role.get("name"): _scheduling_field(role) for role in meta.spec(old).get("roles") or []}
    for index, role in enumerate(meta.spec(obj).get("roles") or []):
        lws = _role_leaderworkerset(disaggregated_set, role)
        is_known = known.get(role.get("name")) == _scheduling_field(role)
        own = (*identity_errors(lws), *namelengths.errors(lws))
        for error in (*own, *schedulingfield.errors(lws, None, support, is_known=is_known)):
            path = "name" if error.path == "metadata.name" else error.path
            yield replace(error, path=f"spec.roles[{index}].{path}")


def _role_leaderworkerset(disaggregated_set: DisaggregatedSet, role: JSONObject) -> LeaderWorkerSet:
    """Return the LeaderWorkerSet of a role with the maximum name length."""
    place = RolePlace(
        disaggregated_set.name, max(0, disaggregated_set.slices - 1), "0" * rolehash.LENGTH, role.get("name") or ""
    )
    annotations = (role.get("metadata") or {}).get("annotations") or {}
    metadata = {"name": place.name, "annotations": annotations, "ownerReferences": [{"controller": True}]}
    return leaderworkerset.decode(default_leaderworkerset({"metadata": metadata, "spec": role.get("spec") or {}}))


def _member_warnings(obj: JSONObject, disaggregated_set: DisaggregatedSet) -> Iterator[str]:
    for index, role in enumerate(meta.spec(obj).get("roles") or []):
        lws = _role_leaderworkerset(disaggregated_set, role)
        yield from (f"spec.roles[{index}].spec: {text}" for text in templatewarnings.warnings(lws))
        yield from (f"spec.roles[{index}].{text}" for text in annotationvalues.warnings(lws))
        yield from (f"spec.roles[{index}]: LeaderWorkerSet {lws.name}: {text}" for text in namelengths.warnings(lws))


def _scheduling_field(role: JSONObject) -> JSON:
    return (role.get("spec") or {}).get("scheduling")


def _validate_zero_replicas(disaggregated_set: DisaggregatedSet) -> Iterator[FieldError]:
    """Return an error if some roles have zero replicas and others do not (R-DS-4)."""
    counts = {role.replicas for role in disaggregated_set.roles if not role.is_external}
    if 0 in counts and len(counts) > 1:
        text = "replicas must be zero for all non-External roles, or non-zero for all of them"
        yield invalid("spec.roles", [role.replicas for role in disaggregated_set.roles], text)


def _validate_slices(disaggregated_set: DisaggregatedSet) -> Iterator[FieldError]:
    """Return an error if there are several slices and a role is External (R-DS-10)."""
    if disaggregated_set.slices > 1 and any(role.is_external for role in disaggregated_set.roles):
        text = "spec.slices > 1 is not supported with External roles, because a scaler counts the groups of one slice"
        yield FieldError(Kind.FORBIDDEN, "spec.slices", detail=text)


def _validate_placement(obj: JSONObject, disaggregated_set: DisaggregatedSet) -> Iterator[FieldError]:
    """Return the errors of the placement policy and of annotations that conflict with it (R-DS-11)."""
    if not disaggregated_set.placement.is_exclusive:
        return
    if not disaggregated_set.placement.topology:
        yield required_error(
            "spec.placementPolicy.topology", "specify the node label whose value is the topology domain"
        )
    for index, role in enumerate(meta.spec(obj).get("roles") or []):
        annotations = _annotation_keys(role)
        key = next((key for key in EXCLUSIVE_KEYS if key in annotations), None)
        if key is not None:
            text = f"the annotation {key} and spec.placementPolicy both place the groups. Remove one of them"
            yield FieldError(Kind.FORBIDDEN, f"spec.roles[{index}]", detail=text)


def _annotation_keys(role: JSONObject) -> set[str]:
    """Return the annotation keys of a role and its templates."""
    template = (role.get("spec") or {}).get("leaderWorkerTemplate") or {}
    annotated = (role, template.get("leaderTemplate") or {}, template.get("workerTemplate") or {})
    return {key for template in annotated for key in (template.get("metadata") or {}).get("annotations") or {}}


class DisaggregatedSetChange(NamedTuple):
    """The submitted DisaggregatedSet, its decoded form, the stored object, and the `spec.scheduling` support."""

    obj: JSONObject
    disaggregated_set: DisaggregatedSet
    old: JSONObject
    support: Support

    @classmethod
    def from_objects(cls, obj: JSONObject, old: JSONObject | None, support: Support) -> "DisaggregatedSetChange":
        """Return the change to an object."""
        return cls(obj, decode(obj), old or {}, support)


RULES: Final[tuple[Rule[DisaggregatedSetChange], ...]] = (
    Rule("R-DS-9, R-VAL-7..15, roles", lambda change: _validate_roles(change.disaggregated_set)),
    Rule(
        "N-DS-3, N-VAL-11",
        lambda change: _validate_members(change.obj, change.disaggregated_set, change.old, change.support),
    ),
    Rule("R-DS-4", lambda change: _validate_zero_replicas(change.disaggregated_set)),
    Rule("R-DS-10", lambda change: _validate_slices(change.disaggregated_set)),
    Rule("R-DS-11", lambda change: _validate_placement(change.obj, change.disaggregated_set)),
)
"""The validation rules for DisaggregatedSets, in the order in which their errors are returned."""
