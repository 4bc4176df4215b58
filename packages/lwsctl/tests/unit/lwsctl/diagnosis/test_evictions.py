"""Tests the reasons for delayed evictions that are visible in a LeaderWorkerSet."""

import pytest
from tests.explanations.builders import lws, observed, ready

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import POD_DISRUPTION_BUDGETS
from leaderworkerset.api import labels
from lwsctl.diagnosis.diagnose import diagnose
from lwsctl.views.selection import Selection


def told(budget: str | None, *pods: JSONObject, group: int | None = None) -> str:
    """Return the diagnosis sentence for three groups of one pod."""
    annotations = {} if budget is None else {labels.DISRUPTION_BUDGET: budget}
    of = lws(3, 1, metadata={"annotations": annotations})
    return diagnose(observed(pods, of=of), Selection("web", group)).sentence


WHOLE = tuple(ready(index) for index in range(3))
ONE_AWAY = WHOLE[:2]


@pytest.mark.parametrize(
    ("budget", "pods", "why"),
    [
        ("1", ONE_AWAY, "; its eviction is delayed, because web/2 is not ready and at most 1 group may be unavailable"),
        (
            "1",
            WHOLE[:1],
            "; its eviction is delayed, because web/1, web/2 are not ready and at most 1 group may be unavailable",
        ),
        ("2", ONE_AWAY, ""),
        (
            "rollout",
            ONE_AWAY,
            "; its eviction is delayed, because web/2 is not ready and at most 1 group may be unavailable",
        ),
        ("0", WHOLE, f"; it cannot be evicted, because {labels.DISRUPTION_BUDGET} is 0"),
        ("1", WHOLE, ""),
        ("off", ONE_AWAY, ""),
        (None, ONE_AWAY, ""),
    ],
)
def test_ready_group_explains_why_it_cannot_be_evicted(
    budget: str | None, pods: tuple[JSONObject, ...], why: str
) -> None:
    assert told(budget, *pods, group=0) == f"web/0 is ready{why}"


@pytest.mark.parametrize(
    ("least", "why"), [(1, "; its eviction is delayed, because web/2 is not ready"), (0, "")], ids=["closed", "open"]
)
def test_group_budget_explains_what_the_manager_permits(least: int, why: str) -> None:
    def budget(group: int, least: int) -> JSONObject:
        owner = {"kind": "LeaderWorkerSet", "name": "web", "uid": "set", "controller": True}
        named = {labels.NAME: "web", labels.GROUP_INDEX: str(group)}
        return {"metadata": {"labels": named, "ownerReferences": [owner]}, "spec": {"minAvailable": least}}

    objects = {POD_DISRUPTION_BUDGETS: [budget(0, least), budget(1, 1 - least)]}
    seen = observed(ONE_AWAY, objects, of=lws(3, 1))
    assert diagnose(seen, Selection("web", 0)).sentence == f"web/0 is ready{why}"
