"""Implements the webhooks for LeaderWorkerSets, their pods, and DisaggregatedSets (contract 12.3).

Types are validated here, so that decisions can rely on them.
"""

from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar

from kuberuntime.objects import meta
from kuberuntime.objects.field import aggregate
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from leaderworkerset.api.disaggregatedset import decode as decode_disaggregatedset
from leaderworkerset.api.fieldtypes import round_trip
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet, decode
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS
from leaderworkerset.capabilities import deciding
from leaderworkerset.core.admission import disaggregatedset, leaderworkerset
from leaderworkerset.core.admission.podpolicy import MEMBERS, NOT_A_MEMBER
from leaderworkerset.core.admission.ratcheting import errors_of, new_errors
from leaderworkerset.core.policies.gang import Gang
from leaderworkerset.core.policies.policy import DeniedError
from leaderworkerset.webhooks.review import TYPE_ERRORS, AdmissionResult, Review
from leaderworkerset.webhooks.spec import WebhookSpec

T = TypeVar("T")

MUTATE_LEADERWORKERSET: Final = "/mutate-leaderworkerset-x-k8s-io-v1-leaderworkerset"
VALIDATE_LEADERWORKERSET: Final = "/validate-leaderworkerset-x-k8s-io-v1-leaderworkerset"
MUTATE_POD: Final = "/mutate--v1-pod"
VALIDATE_POD: Final = "/validate--v1-pod"
VALIDATE_DISAGGREGATED_SET: Final = "/validate-disaggregatedset-x-k8s-io-v1-disaggregatedset"


def mutate_leaderworkerset(review: Review) -> JSONObject:
    """Set the defaults of a LeaderWorkerSet (chapter R-DEF)."""
    round_trip("LeaderWorkerSet", review.object)
    return leaderworkerset.default_leaderworkerset(review.object)


def validate_leaderworkerset(review: Review, gang: Gang) -> AdmissionResult:
    """Return the LeaderWorkerSet, or deny it with all errors (contract 10.2). Deletions are allowed (R-VAL-26)."""
    if review.operation == "DELETE":
        return AdmissionResult(review.object)
    new, old = _decode(review.object), _decode_stored(review.old, _decode)
    errors = deciding.validate_leaderworkerset(new, old, gang)
    if review.old is not None:
        stored = None if old is None else review.old
        errors += new_errors(lambda obj, _: errors_of(leaderworkerset.JSON_RULES, obj), review.object, stored)
    if errors:
        raise DeniedError(aggregate(errors))
    return AdmissionResult(review.object, deciding.warnings(new))


def validate_disaggregatedset(review: Review, gang: Gang) -> AdmissionResult:
    """Return the DisaggregatedSet, or deny it with all errors (R-DS-9). Deletions are allowed."""
    if review.operation == "DELETE":
        return AdmissionResult(review.object)
    errors = disaggregatedset.validate_disaggregatedset(
        _require_valid_roles(review.object), _decode_stored(review.old, _require_valid_roles), gang.support
    )
    if errors:
        raise DeniedError(aggregate(errors))
    return AdmissionResult(review.object, disaggregatedset.warnings(review.object))


def _decode(obj: JSONObject) -> LeaderWorkerSet:
    """Return the decoded object. Raise an error for invalid field types, including field types in templates."""
    round_trip("LeaderWorkerSet", obj)
    return decode(obj)


def _require_valid_roles(obj: JSONObject) -> JSONObject:
    """Return the object. Raise an error for invalid field types, including field types in roles."""
    decode_disaggregatedset(obj)
    for index, role in enumerate(meta.spec(obj).get("roles") or []):
        round_trip("LeaderWorkerSetSpec", role.get("spec"), f"spec.roles[{index}].spec")
    return obj


def _decode_stored(stored: JSONObject | None, read: Callable[[JSONObject], T]) -> T | None:
    """Return the decoded stored object, or None for invalid field types, so that an update can fix them."""
    try:
        return None if stored is None else read(stored)
    except TYPE_ERRORS:
        return None


def mutate_pod(review: Review, gang: Gang) -> JSONObject:
    """Return the pod as a member of its group (chapter R-ADM)."""
    read = round_trip("ObjectMeta", meta.metadata(review.object), "metadata")
    round_trip("PodSpec", meta.spec(review.object), "spec")
    return deciding.admit_pod(_with_texts(review.object, read), gang, review.uid)


def _with_texts(obj: JSONObject, read: JSONObject) -> JSONObject:
    """Return the object with labels and annotations as decoded by Go, where null is an empty string."""
    metadata = meta.metadata(obj)
    parts = {part: read[part] for part in ("labels", "annotations") if None in (metadata.get(part) or {}).values()}
    return obj | {"metadata": metadata | parts} if parts else obj


def allow(review: Review) -> JSONObject:
    """Allow every request, because pods are not validated (R-ADM-16)."""
    return review.object


Ask: TypeAlias = Callable[[], Gang]
"""Returns the available gang schedulers."""


def disaggregatedset_webhooks(ask: Ask) -> tuple[WebhookSpec, ...]:
    """Return the webhook for DisaggregatedSets."""
    return (
        WebhookSpec(
            name="vdisaggregatedset.kb.io",
            path=VALIDATE_DISAGGREGATED_SET,
            decide=lambda review: validate_disaggregatedset(review, ask()),
            resource=DISAGGREGATED_SETS,
            operations=("CREATE", "UPDATE"),
            mutates=False,
        ),
    )


def leaderworkerset_webhooks(ask: Ask) -> tuple[WebhookSpec, ...]:
    """Return the webhooks for LeaderWorkerSets."""
    return (
        WebhookSpec(
            name="mleaderworkerset.kb.io",
            path=MUTATE_LEADERWORKERSET,
            decide=mutate_leaderworkerset,
            resource=LEADERWORKERSETS,
            operations=("CREATE", "UPDATE"),
            mutates=True,
        ),
        WebhookSpec(
            name="vleaderworkerset.kb.io",
            path=VALIDATE_LEADERWORKERSET,
            decide=lambda review: validate_leaderworkerset(review, ask()),
            resource=LEADERWORKERSETS,
            operations=("CREATE", "UPDATE"),
            mutates=False,
        ),
    )


def pod_webhooks(ask: Ask) -> tuple[WebhookSpec, ...]:
    """Return the webhooks for the pods of LeaderWorkerSets."""
    return (
        WebhookSpec(
            name="mpod.kb.io",
            path=MUTATE_POD,
            decide=lambda review: mutate_pod(review, ask()),
            resource=PODS,
            operations=("CREATE",),
            mutates=True,
            selector=MEMBERS,
            conditions=(NOT_A_MEMBER,),
        ),
        WebhookSpec(
            name="vpod.kb.io",
            path=VALIDATE_POD,
            decide=allow,
            resource=PODS,
            operations=("CREATE", "UPDATE"),
            mutates=False,
            selector=MEMBERS,
            is_called=False,
        ),
    )
