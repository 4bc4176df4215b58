"""Sets defaults of LeaderWorkerSets (R-DEF-1 to -5) and validates them (R-VAL-1 to -28, N-VAL-1 to -6).

Input: the posted object, and the stored object on an update, with validated types. Output: the object with defaults,
or all errors in the order of the contract. It differs from the Go controller in three ways:

- an error is returned where the Go controller panics (R-VAL-20)
- templates without containers are rejected (Q-34)
- changes that a StatefulSet does not accept are rejected (Q-7)
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import to_builtins

from kuberuntime.objects import intstr, meta, names, objectmeta
from kuberuntime.objects.field import FieldError, Kind, invalid, required_error
from kuberuntime.objects.intstr import IntOrString
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import MAX_REPLICAS, LeaderWorkerSet, LeaderWorkerTemplate, SubGroupPolicy
from leaderworkerset.api.policytypes import (
    WITH_BOUNDS,
    GroupIdentity,
    GroupReplacementPolicy,
    PodTerminationPolicy,
    RestartPolicy,
    RolloutStrategyType,
    SubdomainPolicy,
)
from leaderworkerset.core.admission import namelengths, schedulingfield
from leaderworkerset.core.admission.ratcheting import Rule, errors_of, new_errors
from leaderworkerset.core.extensions import UPSTREAM, Extensions
from leaderworkerset.core.leaderworkerset.statefulsets import claim_fields
from leaderworkerset.core.policies.gang import NO_GANG, Gang

MAX_PODS = 2**31 - 1

TEMPLATE = "spec.leaderWorkerTemplate"
ROLLING_UPDATE = "spec.rolloutStrategy.rollingUpdateConfiguration"
SUBGROUP_SIZE = f"{TEMPLATE}.subGroupPolicy.subGroupSize"
SUBDOMAIN_POLICY = "spec.networkConfig.subdomainPolicy"
GROUP_IDENTITY = "spec.groupIdentity"

LONGEST_HASH_NAME = 63 - len("-12345678")
"""The maximum length of a name in leader host names. They also contain a dash and 8 key characters."""

LONGEST_HASH_NAME_WITH_WORKERS = LONGEST_HASH_NAME - len("-1234567890")
"""The maximum length of a name in the labels of workers. They also contain a dash and 10 revision characters."""

PERCENT_TEXT = (
    "a valid percent string must be a numeric string followed by an ending '%'"
    " (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
CLAIMS_TEXT = "the claim templates of a StatefulSet are immutable. Create another LeaderWorkerSet, or delete and recreate this one"


NEWER_DEFAULTS: Final = {
    "groupIdentity": GroupIdentity.ORDINAL.value,
    "groupReplacementPolicy": GroupReplacementPolicy.POST_TERMINATION.value,
}
"""The defaults of fields that do not exist in a v0.10 CRD.

If the fields are absent, the schema sets the defaults. The webhook does not set them, because an API server without
support for a field drops it after the webhook, and would count each update as a spec change.
"""

FILLED_IF_EMPTY: Final = NEWER_DEFAULTS | {"podTerminationPolicy": PodTerminationPolicy.DEFAULT.value}
"""The empty values of newer fields. If the last field is absent, an annotation is used."""


def default_leaderworkerset(obj: JSONObject) -> JSONObject:
    """Return the object with the defaults that the schema does not set."""
    spec = meta.spec(obj)
    network: JSONObject = spec.get("networkConfig") or {}
    defaults = {
        "replicas": 1 if spec.get("replicas") is None else spec["replicas"],
        **{field: default for field, default in FILLED_IF_EMPTY.items() if field in spec and not spec[field]},
        "leaderWorkerTemplate": _default_restart_policy(spec.get("leaderWorkerTemplate") or {}),
        "rolloutStrategy": _default_rollout_strategy(spec.get("rolloutStrategy") or {}),
        "networkConfig": _without_null(network, "subdomainPolicy", SubdomainPolicy.SHARED.value),
    }
    return obj | {"spec": spec | defaults}


def _default_restart_policy(template: JSONObject) -> JSONObject:
    policy = template.get("restartPolicy") or RestartPolicy.RECREATE_GROUP_ON_POD_RESTART.value
    current = next((known.current.value for known in RestartPolicy if known == policy), policy)
    return template | {"restartPolicy": current}


def _default_rollout_strategy(strategy: JSONObject) -> JSONObject:
    typed = strategy | {"type": strategy.get("type") or RolloutStrategyType.ROLLING_UPDATE.value}
    if typed["type"] not in WITH_BOUNDS:
        return typed
    return _without_null(typed, "rollingUpdateConfiguration", {"partition": 0, "maxUnavailable": 1, "maxSurge": 0})


def _without_null(obj: JSONObject, field: str, default: object) -> JSONObject:
    return obj | {field: default} if obj.get(field) is None else obj


def validate_leaderworkerset(
    lws: LeaderWorkerSet,
    old: LeaderWorkerSet | None = None,
    gang: Gang = NO_GANG,
    extensions: Extensions = UPSTREAM,
) -> list[FieldError]:
    """Return all errors of a new object, or only the additional errors of an update if `old` is specified.

    A name that is too long is rejected only at creation, because an autoscaler or the manager may add groups later.
    """
    if old is None:
        return errors_of((*RULES, *CREATION_RULES), LeaderWorkerSetChange(lws, None, gang, extensions))
    return new_errors(
        lambda new, stored: errors_of(RULES, LeaderWorkerSetChange(new, stored, gang, extensions)), lws, old
    )


def stored_errors(lws: LeaderWorkerSet, extensions: Extensions = UPSTREAM) -> list[FieldError]:
    """Return errors that are reported only for new objects."""
    return errors_of((*RULES, *CREATION_RULES), LeaderWorkerSetChange(lws, lws, NO_GANG, extensions))


def _validate_counts(lws: LeaderWorkerSet) -> Iterator[FieldError]:
    """Return the errors of `replicas` and `size` (R-VAL-3 to R-VAL-6)."""
    replicas, size = lws.spec.replicas, lws.size
    if replicas < 0:
        yield invalid("spec.replicas", replicas, "replicas must be equal or greater than 0")
    if replicas > MAX_REPLICAS:
        yield invalid("spec.replicas", replicas, f"replicas must be equal or less than {MAX_REPLICAS}")
    if size < 1:
        yield invalid(f"{TEMPLATE}.size", size, "size must be equal or greater than 1")
    if replicas * size > MAX_PODS:
        text = f"the product of replicas and worker replicas must not exceed {MAX_PODS}"
        yield invalid("spec.replicas", replicas, text)


def _validate_rolling_update(lws: LeaderWorkerSet) -> Iterator[FieldError]:
    """Return the errors of the rolling update configuration (R-VAL-7 to R-VAL-15)."""
    budget, replicas = lws.spec.rollout_strategy.rolling_update_configuration, lws.spec.replicas
    max_unavailable, max_surge = f"{ROLLING_UPDATE}.maxUnavailable", f"{ROLLING_UPDATE}.maxSurge"
    yield from budget_errors(max_unavailable, budget.max_unavailable)
    yield from budget_errors(max_surge, budget.max_surge)
    if budget.partition < 0:
        yield invalid(f"{ROLLING_UPDATE}.partition", budget.partition, "must be greater than or equal to 0")
    unscalable = [
        (path, value)
        for path, value in ((max_unavailable, budget.max_unavailable), (max_surge, budget.max_surge))
        if not intstr.is_scalable(value)
    ]
    yield from (invalid(path, value, "invalid value") for path, value in unscalable)
    bad = dict(unscalable)
    unavailable = 0 if max_unavailable in bad else intstr.scale(budget.max_unavailable, replicas, up=False)
    surge = 0 if max_surge in bad else intstr.scale(budget.max_surge, replicas, up=True)
    if unavailable == 0 and surge == 0 and replicas != 0:
        yield invalid(max_unavailable, budget.max_unavailable, "must not be 0 when `maxSurge` is 0")


def budget_errors(path: str, value: IntOrString) -> Iterator[FieldError]:
    """Return the errors of `maxUnavailable` or `maxSurge` (R-VAL-7 to R-VAL-12)."""
    if isinstance(value, str) and not intstr.is_percent(value):
        yield invalid(path, value, PERCENT_TEXT)
    if isinstance(value, int) and value < 0:
        yield invalid(path, value, "must be greater than or equal to 0")
    if intstr.exceeds_whole(value):
        yield invalid(path, value, "must not be greater than 100%")


def identity_errors(lws: LeaderWorkerSet) -> Iterator[FieldError]:
    """Return the errors of groupIdentity, the replacement policy and the restart limit (N-VAL-2 to N-VAL-6)."""
    spec, template = lws.spec, lws.spec.leader_worker_template
    identity, policy = spec.group_identity, spec.group_replacement_policy
    if identity.is_hash:
        yield from _hash_errors(lws)
    elif not policy.waits_for_termination:
        text = "Immediate is only supported with groupIdentity Hash"
        yield invalid("spec.groupReplacementPolicy", policy.value, text)
    if template.max_group_restarts is not None and not template.restart_policy.recreates:
        text = "maxGroupRestarts is only supported when restartPolicy recreates the group"
        yield invalid(f"{TEMPLATE}.maxGroupRestarts", template.max_group_restarts, text)


def _hash_errors(lws: LeaderWorkerSet) -> Iterator[FieldError]:
    """Return the errors of fields that are not supported for groups with random keys (N-VAL-3 to N-VAL-5)."""
    hashed = GroupIdentity.HASH.value
    if lws.spec.leader_worker_template.volume_claim_templates:
        yield invalid(GROUP_IDENTITY, hashed, "volumeClaimTemplates are not supported with groupIdentity Hash")
    if lws.spec.rollout_strategy.rolling_update_configuration.partition > 0:
        text = "rollingUpdateConfiguration.partition is not supported with groupIdentity Hash"
        yield invalid(GROUP_IDENTITY, hashed, text)
    if lws.size > 1 and meta.spec(lws.leader_template).get("hostname"):
        text = "a hostname in the leaders' template is not supported with groupIdentity Hash, because all leaders would have the same hostname"
        yield invalid(GROUP_IDENTITY, hashed, text)
    longest = LONGEST_HASH_NAME_WITH_WORKERS if lws.size > 1 else LONGEST_HASH_NAME
    if len(lws.name) > longest:
        yield invalid("metadata.name", lws.name, f"must be no more than {longest} characters with groupIdentity Hash")


def _validate_subgroups(lws: LeaderWorkerSet) -> Iterator[FieldError]:
    """Return the errors of the subgroup policy (R-VAL-16 to R-VAL-20, N-VAL-10).

    A size below 1 has only one error.
    """
    policy = lws.spec.leader_worker_template.sub_group_policy
    if policy is None:
        return
    subgroup_size, size = policy.sub_group_size, lws.size
    if subgroup_size is None:
        yield required_error(SUBGROUP_SIZE, "subGroupSize is required")
        return
    if subgroup_size < 1:
        yield invalid(SUBGROUP_SIZE, subgroup_size, "subGroupSize must be equal or greater than 1")
        return
    if size % subgroup_size != 0 and (size - 1) % subgroup_size != 0:
        yield invalid(SUBGROUP_SIZE, subgroup_size, "size or size - 1 must be divisible by subGroupSize")
    if size < subgroup_size:
        yield invalid(SUBGROUP_SIZE, subgroup_size, "subGroupSize cannot be larger than size")
    kind = policy.sub_group_policy_type
    if kind and not kind.has_leader and (size - 1) % subgroup_size != 0:
        text = "size-1 must be divisible by subGroupSize when using LeaderExcluded"
        yield invalid(SUBGROUP_SIZE, subgroup_size, text)


def _validate_annotations(lws: LeaderWorkerSet) -> Iterator[FieldError]:
    """Return an error if subgroups are exclusive but have no size (R-VAL-21)."""
    key = labels.SUBGROUP_EXCLUSIVE_TOPOLOGY
    if key in lws.metadata.annotations and lws.spec.leader_worker_template.sub_group_policy is None:
        text = "cannot have subgroup-exclusive-topology without subGroupSize set"
        yield invalid(f"metadata.annotations.{key}", lws.metadata.annotations[key], text)


def _validate_templates(lws: LeaderWorkerSet) -> Iterator[FieldError]:
    """Return an error for each template without containers (Q-34)."""
    for field, template in lws.pod_templates.items():
        if not meta.spec(template).get("containers"):
            yield required_error(f"{TEMPLATE}.{field}.spec.containers", "a pod needs at least one container")


def _validate_identity_change(new: LeaderWorkerSet, old: LeaderWorkerSet) -> Iterator[FieldError]:
    if new.spec.group_identity != old.spec.group_identity:
        yield invalid(GROUP_IDENTITY, new.spec.group_identity.value, "groupIdentity is immutable")


def _validate_claim_change(new: LeaderWorkerTemplate, old: LeaderWorkerTemplate) -> Iterator[FieldError]:
    if _claims_differ(new.volume_claim_templates, old.volume_claim_templates):
        yield FieldError(Kind.FORBIDDEN, f"{TEMPLATE}.volumeClaimTemplates", detail=CLAIMS_TEXT)


def _claims_differ(new: Sequence[JSONObject], old: Sequence[JSONObject]) -> bool:
    """Return whether the StatefulSet claims are different. Claims are decoded only if their JSON is different."""
    if len(new) != len(old):
        return True
    pairs = ((claim, other) for claim, other in zip(new, old, strict=True) if claim != other)
    return any(_decode_claim(claim) != _decode_claim(other) for claim, other in pairs)


def _decode_claim(claim: JSONObject) -> JSONObject:
    return claim_fields(LeaderWorkerTemplate(volume_claim_templates=(claim,)), "")


def _validate_subgroup_update(new: SubGroupPolicy | None, old: SubGroupPolicy | None) -> Iterator[FieldError]:
    if new is not None and old is not None:
        if None not in (new.sub_group_size, old.sub_group_size) and new.sub_group_size != old.sub_group_size:
            yield invalid(SUBGROUP_SIZE, new.sub_group_size, "field is immutable")
    elif new is not None:
        text = "cannot enable subGroupSize after the lws is already created"
        yield invalid(SUBGROUP_SIZE, new.sub_group_size, text)
    elif old is not None:
        yield invalid(SUBGROUP_SIZE, old.sub_group_size, "cannot remove subGroupSize after enabled")


def _validate_null_subdomain(obj: JSONObject) -> Iterator[FieldError]:
    """Return an error if an update sets `subdomainPolicy` to null.

    It would be decoded as an absent field (R-VAL-25).
    """
    network = meta.spec(obj).get("networkConfig")
    if network is not None and network.get("subdomainPolicy") is None:
        yield invalid(SUBDOMAIN_POLICY, None, "cannot set subdomainPolicy as null")


class LeaderWorkerSetChange(NamedTuple):
    """The submitted LeaderWorkerSet, the stored object of an update, and the supported features."""

    new: LeaderWorkerSet
    old: LeaderWorkerSet | None
    gang: Gang
    extensions: Extensions

    @property
    def templates(self) -> tuple[LeaderWorkerTemplate, LeaderWorkerTemplate]:
        """Return the new and the previous template. For a new LeaderWorkerSet, both are identical."""
        return self.new.spec.leader_worker_template, (self.old or self.new).spec.leader_worker_template


RULES: Final[tuple[Rule[LeaderWorkerSetChange], ...]] = (
    Rule("R-VAL-1..2", lambda change: objectmeta.validate(to_builtins(change.new.metadata), names.dns_1035_label)),
    Rule("R-VAL-3..6", lambda change: _validate_counts(change.new)),
    Rule("R-VAL-7..15", lambda change: _validate_rolling_update(change.new)),
    Rule("R-VAL-16..20, N-VAL-10", lambda change: _validate_subgroups(change.new)),
    Rule("R-VAL-21", lambda change: _validate_annotations(change.new)),
    Rule("Q-34", lambda change: _validate_templates(change.new)),
    Rule("N-VAL-2..6, random keys", lambda change: identity_errors(change.new)),
    Rule(
        "N-SCH-VAL-1..20, scheduling",
        lambda change: schedulingfield.errors(change.new, change.old, change.gang.support),
    ),
    Rule("scheduler", lambda change: change.gang.errors(change.new, change.old)),
    Rule("settings", lambda change: (error for find in change.extensions.errors for error in find(change.new))),
    Rule("N-VAL-1", lambda change: _validate_identity_change(change.new, change.old or change.new)),
    Rule(
        "R-VAL-22..24",
        lambda change: _validate_subgroup_update(*(template.sub_group_policy for template in change.templates)),
    ),
    Rule("Q-7", lambda change: _validate_claim_change(*change.templates)),
)
"""The validation rules for LeaderWorkerSets, in the order in which their errors are returned."""

CREATION_RULES: Final[tuple[Rule[LeaderWorkerSetChange], ...]] = (
    Rule("R-VAL-28", lambda change: namelengths.errors(change.new)),
)

JSON_RULES: Final[tuple[Rule[JSONObject], ...]] = (Rule("R-VAL-25", _validate_null_subdomain),)
"""The rules for updates that require the submitted object."""


QUEUE_LABEL: Final = f"metadata.labels[{labels.QUEUE_NAME}]"


def queue_warnings(lws: LeaderWorkerSet) -> list[str]:
    """Return warnings about valid fields that Kueue handles unexpectedly (R-KQ-4, R-KQ-62)."""
    return [*_surge_warnings(lws), *_template_queue_warnings(lws)]


def _surge_warnings(lws: LeaderWorkerSet) -> Iterator[str]:
    surge = lws.spec.rollout_strategy.rolling_update_configuration.max_surge
    if (
        lws.metadata.labels.get(labels.QUEUE_NAME)
        and isinstance(surge, str)
        and intstr.is_percent(surge)
        and surge != "0%"
    ):
        yield (
            f'{ROLLING_UPDATE}.maxSurge: "{surge}": Kueue treats percentages as 0, so additional groups are never '
            "admitted. Use a number of groups"
        )


def _template_queue_warnings(lws: LeaderWorkerSet) -> Iterator[str]:
    if lws.metadata.labels.get(labels.QUEUE_NAME):
        return
    for field, pod in lws.pod_templates.items():
        if meta.labels(pod).get(labels.QUEUE_NAME):
            yield (
                f"{TEMPLATE}.{field}.metadata.labels[{labels.QUEUE_NAME}]: Kueue ignores workers and queues each "
                f"leader as a single pod. Set {QUEUE_LABEL} on the LeaderWorkerSet"
            )
