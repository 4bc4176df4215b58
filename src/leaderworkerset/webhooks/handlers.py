"""Which path decides what (contract 12.3, R-WHC-2). Types are checked here, so that decisions can rely on them."""

from collections.abc import Mapping
from typing import Final

from kuberuntime.objects import gotypes, meta
from kuberuntime.objects.field import aggregate
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.core.admission import leaderworkerset, pod
from leaderworkerset.core.denial import DeniedError
from leaderworkerset.webhooks.review import Decide, Review

MUTATE_LEADERWORKERSET: Final = "/mutate-leaderworkerset-x-k8s-io-v1-leaderworkerset"
VALIDATE_LEADERWORKERSET: Final = "/validate-leaderworkerset-x-k8s-io-v1-leaderworkerset"
MUTATE_POD: Final = "/mutate--v1-pod"
VALIDATE_POD: Final = "/validate--v1-pod"


def mutate_leaderworkerset(review: Review) -> JSONObject:
    """Fill defaults (R-DEF)."""
    gotypes.round_trip("LeaderWorkerSet", review.object)
    return leaderworkerset.default_leaderworkerset(review.object)


def validate_leaderworkerset(review: Review) -> JSONObject:
    """Refuse with all errors at once (contract 10.2); deletions pass (R-VAL-26)."""
    if review.operation == "DELETE":
        return review.object
    gotypes.round_trip("LeaderWorkerSet", review.object)
    if review.old is not None:
        gotypes.round_trip("LeaderWorkerSet", review.old)
    errors = leaderworkerset.validate_leaderworkerset(review.object, review.old)
    if errors:
        raise DeniedError(aggregate(errors))
    return review.object


def mutate_pod(review: Review) -> JSONObject:
    """Make a pod a member of its group (R-ADM)."""
    gotypes.round_trip("ObjectMeta", meta.metadata(review.object), "metadata")
    gotypes.round_trip("PodSpec", meta.spec(review.object), "spec")
    return pod.admit_pod(review.object)


def allow(review: Review) -> JSONObject:
    """Let everything pass (R-ADM-16)."""
    return review.object


HANDLERS: Final[Mapping[str, Decide]] = {
    MUTATE_LEADERWORKERSET: mutate_leaderworkerset,
    VALIDATE_LEADERWORKERSET: validate_leaderworkerset,
    MUTATE_POD: mutate_pod,
    VALIDATE_POD: allow,
}
