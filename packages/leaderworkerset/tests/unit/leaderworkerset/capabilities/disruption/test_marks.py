"""Tests the annotations that prevent autoscalers from evicting a starting group."""

from datetime import timedelta
from functools import partial
from typing import Any

from tests import builders
from tests.unit.leaderworkerset.capabilities.disruption.test_reconcile import NOW, leader, lws, stored

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from kuberuntime.plan import Patch, flatten
from leaderworkerset.api import labels
from leaderworkerset.capabilities.disruption import disruptionsettings
from leaderworkerset.capabilities.disruption.disruptionsettings import STARTING, DisruptionSettings
from leaderworkerset.capabilities.disruption.reconcile import (
    FOREIGN,
    ObservedDisruption,
    eviction_mark_patches,
    reconcile,
)

MARKS = {**FOREIGN, labels.MARKED_STARTING: "true"}
NO_MARKS = dict.fromkeys(MARKS)
pod = partial(leader, label="0", uid="u", creationTimestamp=timestamps.render(NOW))
MARKING = {"metadata": {"annotations": {labels.DO_NOT_DISRUPT: STARTING}}}


def written(obj: JSONObject, *pods: JSONObject, whole: tuple[str, ...] = ()) -> list[tuple[str, Any]]:
    patches, _ = eviction_mark_patches(obj, pods, whole, NOW)
    return [(one.key.name, one.patch["metadata"]["annotations"]) for one in patches]


def test_pods_are_marked_until_their_group_is_complete() -> None:
    assert written(MARKING, pod(), pod(label="1"), whole=("1",)) == [("web-0", MARKS)]
    marked = pod(annotations=MARKS)
    assert written(MARKING, marked) == []
    assert written(MARKING, marked, whole=("0",)) == [("web-0", NO_MARKS)]
    assert written({}, marked) == [("web-0", NO_MARKS)]
    assert written({}, pod()) == []


def test_mark_of_a_template_is_kept() -> None:
    own = pod(annotations={labels.SAFE_TO_EVICT: "true"})
    assert written(MARKING, own) == written(MARKING, own, whole=("0",)) == []


def test_terminating_pods_get_no_mark() -> None:
    going: Any = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert written(MARKING, pod(**going)) == []
    assert written(MARKING, pod(annotations=MARKS, **going), whole=("0",)) == []


def test_mark_expires_when_a_group_never_completes() -> None:
    old, young = (
        pod(label=group, creationTimestamp=timestamps.render(NOW - timedelta(minutes=age)), annotations=marks)
        for group, age, marks in (("0", 60, MARKS), ("1", 50, {}))
    )
    assert written(MARKING, old, young) == [("web-0", NO_MARKS), ("web-1", MARKS)]
    assert eviction_mark_patches(MARKING, [old, young], (), NOW)[1] == 600
    assert eviction_mark_patches(MARKING, [old], (), NOW)[1] is None
    assert eviction_mark_patches(MARKING, [leader("0")], (), NOW)[1] == 3600


def test_mark_is_removed_with_the_budget() -> None:
    obj = lws(replicas=1)
    obj["metadata"]["annotations"][labels.DO_NOT_DISRUPT] = STARTING
    for budget, healthy, change in (("1", 1, MARKS), ("1", 2, None), ("off", 1, None)):
        obj["metadata"]["annotations"][labels.DISRUPTION_BUDGET] = budget
        observed = ObservedDisruption(
            obj=obj,
            leaders=[pod()],
            budgets=[stored(obj, "0", healthy=healthy)],
            groups_to_move=(),
            now=NOW,
            pods=[pod() if change else pod(annotations=MARKS)],
        )
        plan = reconcile(observed, DisruptionSettings())
        (patch,) = (one for one in flatten(plan.actions) if isinstance(one, Patch) and one.resource == PODS)
        assert patch.patch["metadata"] == {"uid": meta.uid(pod()), "annotations": change or NO_MARKS}
        assert plan.requeue_after == (3600 if change else None)


def test_invalid_mark_setting_is_rejected() -> None:
    (error,) = disruptionsettings.errors(builders.annotated({labels.DO_NOT_DISRUPT: "always"}))
    assert error.path == f"metadata.annotations.{labels.DO_NOT_DISRUPT}"
    assert not list(disruptionsettings.errors(builders.annotated({labels.DO_NOT_DISRUPT: STARTING})))
