"""What an earlier decision compared at length and found in order, so that the next one need not do it again.

In: a LeaderWorkerSet, its leader StatefulSet and its revisions. Out: the parts of them that the long comparisons read,
as one value. Where that value equals the one of an earlier decision, the revision has the content of the spec, and
applying the StatefulSet would change nothing but how far it is rolled. Comparing values that nobody touched runs in C:
of the largest objects it takes a hundredth of what reading them into Go's types takes.

The value refers to the observed objects and copies nothing; whoever keeps it replaces it with each decision.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject
from leaderworkerset.api import labels
from leaderworkerset.core.leaderworkerset import drift, revisions


@dataclass(frozen=True, slots=True)
class Settled:
    """The compared parts: of the LeaderWorkerSet, of its leader StatefulSet, and the data of their revision."""

    source: tuple[JSON, ...]
    statefulset: tuple[JSON, ...]
    data: JSON


def describe(obj: JSONObject, statefulset: JSONObject | None, found: Iterable[JSONObject]) -> Settled | None:
    """Return the parts that decide whether all is in order; None where the StatefulSet or its revision is missing."""
    if statefulset is None:
        return None
    current = revisions.current_of(revisions.owned(found, obj), statefulset)
    if current is None:
        return None
    return Settled(
        (meta.uid(obj), meta.labels(obj), meta.annotations(obj), meta.spec(obj)),
        (
            meta.labels(statefulset),
            meta.annotations(statefulset),
            meta.metadata(statefulset).get("ownerReferences"),
            meta.spec(statefulset),
            drift.applied_fields(statefulset, labels.FIELD_MANAGER),
        ),
        current.get("data"),
    )
