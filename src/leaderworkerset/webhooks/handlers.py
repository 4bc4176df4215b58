"""The webhooks of LeaderWorkerSets and of their pods: which path decides what (contract 12.3, R-WHC-2).

Types are checked here, so that decisions can rely on them.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from kuberuntime.objects import gotypes, meta
from kuberuntime.objects.field import aggregate
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import decode
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.admission import leaderworkerset, pod, queueing
from leaderworkerset.core.denial import DeniedError
from leaderworkerset.core.policies.gang import Gang
from leaderworkerset.webhooks.review import Admitted, Review
from leaderworkerset.webhooks.spec import WebhookSpec

MUTATE_LEADERWORKERSET: Final = "/mutate-leaderworkerset-x-k8s-io-v1-leaderworkerset"
VALIDATE_LEADERWORKERSET: Final = "/validate-leaderworkerset-x-k8s-io-v1-leaderworkerset"
MUTATE_POD: Final = "/mutate--v1-pod"
VALIDATE_POD: Final = "/validate--v1-pod"


def mutate_leaderworkerset(review: Review) -> JSONObject:
    """Fill defaults (R-DEF)."""
    gotypes.round_trip("LeaderWorkerSet", review.object)
    return leaderworkerset.default_leaderworkerset(review.object)


def validate_leaderworkerset(review: Review, gang: Gang) -> Admitted:
    """Refuse with all errors at once (contract 10.2); deletions pass (R-VAL-26)."""
    if review.operation == "DELETE":
        return Admitted(review.object)
    gotypes.round_trip("LeaderWorkerSet", review.object)
    if review.old is not None:
        gotypes.round_trip("LeaderWorkerSet", review.old)
    errors = leaderworkerset.validate_leaderworkerset(review.object, review.old, gang)
    if errors:
        raise DeniedError(aggregate(errors))
    return Admitted(review.object, queueing.warnings(decode(review.object)))


def mutate_pod(review: Review, gang: Gang) -> JSONObject:
    """Make a pod a member of its group (R-ADM)."""
    gotypes.round_trip("ObjectMeta", meta.metadata(review.object), "metadata")
    gotypes.round_trip("PodSpec", meta.spec(review.object), "spec")
    return pod.admit_pod(review.object, gang, review.uid)


def allow(review: Review) -> JSONObject:
    """Let everything pass (R-ADM-16)."""
    return review.object


MEMBERS: Final[JSONObject] = {"matchExpressions": [{"key": labels.NAME, "operator": "Exists"}]}
"""Selects pods of LeaderWorkerSets: those of others never wait for a webhook."""

Ask: TypeAlias = Callable[[], Gang]
"""Return the gang schedulers that may be used now; raise `DeniedError` while that is not known."""


def leaderworkerset_webhooks(ask: Ask) -> tuple[WebhookSpec, ...]:
    """Return the webhooks of LeaderWorkerSets."""
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
    """Return the webhooks of their pods."""
    return (
        WebhookSpec(
            name="mpod.kb.io",
            path=MUTATE_POD,
            decide=lambda review: mutate_pod(review, ask()),
            resource=PODS,
            operations=("CREATE",),
            mutates=True,
            selector=MEMBERS,
        ),
        WebhookSpec(
            name="vpod.kb.io",
            path=VALIDATE_POD,
            decide=allow,
            resource=PODS,
            operations=("CREATE", "UPDATE"),
            mutates=False,
            selector=MEMBERS,
        ),
    )
