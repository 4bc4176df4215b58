"""Tests that the cost of DisaggregatedSet decisions grows linearly with slices and template content."""

from collections.abc import Callable
from functools import partial

import pytest
from testkit import work
from tests.builders import NOW
from tests.disaggregated import disaggregatedset_object, role, with_image

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.core.admission import disaggregatedset as admission
from leaderworkerset.core.disaggregatedset import rolehash
from leaderworkerset.core.disaggregatedset.reconcile import ObservedDisaggregatedSet, reconcile
from leaderworkerset.core.disaggregatedset.roleset import RolePlace, owner_reference

MOST = 2.2
SLACK = 200


def with_slices(count: int) -> JSONObject:
    return disaggregatedset_object([role("prefill", 4), role("decode", 4)], slices=count)


def with_environment(count: int) -> JSONObject:
    obj = disaggregatedset_object()
    for one in obj["spec"]["roles"]:
        (container,) = one["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"]
        container["env"] = [{"name": f"E{index}", "value": "x"} for index in range(count)]
    return obj


def parts(obj: JSONObject, slices: int) -> list[JSONObject]:
    """Return the LeaderWorkerSets of all slices."""
    revision = rolehash.revision_of(obj["spec"]["roles"])
    places = [RolePlace("split", index, revision, name) for index in range(slices) for name in ("prefill", "decode")]
    return [
        {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": {
                "name": place.name,
                "namespace": "default",
                "uid": f"uid-of-{place.name}",
                "labels": place.labels,
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "ownerReferences": [owner_reference(obj)],
            },
            "spec": {"replicas": 4},
            "status": {"replicas": 4, "readyReplicas": 4, "updatedReplicas": 4},
        }
        for place in places
    ]


def rolling(slices: int) -> Callable[[], object]:
    """Return the decision during a rollout. Every slice has the old revision, and none has the new one."""
    obj = with_slices(slices)
    renewed = obj | {"spec": obj["spec"] | with_image(obj, "app:2")}
    return partial(
        reconcile, ObservedDisaggregatedSet(disaggregatedset=renewed, leaderworkersets=tuple(parts(obj, slices))), NOW
    )


def creating(slices: int) -> Callable[[], object]:
    return partial(reconcile, ObservedDisaggregatedSet(disaggregatedset=with_slices(slices)), NOW)


def hashing(count: int) -> Callable[[], object]:
    return partial(rolehash.revision_of, with_environment(count)["spec"]["roles"])


def validating(count: int) -> Callable[[], object]:
    return partial(admission.validate_disaggregatedset, with_environment(count))


@pytest.mark.parametrize("recipe", [rolling, creating, hashing, validating])
def test_twice_the_set_executes_at_most_twice_the_lines(recipe: Callable[[int], Callable[[], object]]) -> None:
    calls = [recipe(count) for count in (40, 80)]
    for call in calls:
        call()
    once, twice = map(work.lines, calls)
    assert twice <= MOST * once + SLACK
