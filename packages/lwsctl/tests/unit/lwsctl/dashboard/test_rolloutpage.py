"""Tests the rollout page: its progress over time, and the content of the last change."""

import re
from datetime import timedelta
from typing import Any

import pytest
from tests import builders
from tests.unit.lwsctl.dashboard.test_pages import html, rendered, snapshot

from kuberuntime.objects import timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS
from leaderworkerset.api import labels
from lwsctl.dashboard.address import PageKind
from lwsctl.dashboard.pages import revisionchart, rolloutpage
from lwsctl.dashboard.pages.revisionchart import UpdateTimes
from lwsctl.model.leaderworkerset import View, view
from lwsctl.rollout import rolloutprogress


def at(seconds: int) -> str:
    return timestamps.render(builders.NOW + timedelta(seconds=seconds))


def leader(lws: JSONObject, index: int, *, key: str, created: int, ready: int | None) -> JSONObject:
    pod = builders.leader_pod(lws, index, key=key, ready=ready is not None)
    pod["metadata"]["creationTimestamp"] = at(created)
    for condition in pod["status"].get("conditions", []):
        if condition["type"] == "Ready" and ready is not None:
            condition["lastTransitionTime"] = at(ready)
    return pod


def course_of(found: View, revision: str) -> UpdateTimes | None:
    own = [group for group in found.groups if group.revision == revision]
    return revisionchart.update_times(own, len(found.groups))


def test_course_counts_groups_of_the_newest_revision() -> None:
    lws = builders.leaderworkerset_object(replicas=4, size=1)
    pods = [
        leader(lws, 0, key="old", created=-900, ready=-800),
        leader(lws, 1, key="new", created=60, ready=None),
        leader(lws, 2, key="new", created=30, ready=50),
        leader(lws, 3, key="new", created=0, ready=20),
    ]
    course = course_of(view(lws, pods), "new")
    assert course is not None
    assert [(moment - builders.NOW).seconds for moment in course.updated_at] == [0, 30, 60]
    assert [(moment - builders.NOW).seconds for moment in course.ready_at] == [20, 50]
    drawing = revisionchart.chart(course)
    assert 'class="begun" d="M0 100V75H28V50H57V25H60V100Z"' in drawing
    assert 'class="done" d="M0 100H19V75H48V50H60V100Z"' in drawing
    assert "of 4 groups, 3 were updated to the latest revision and 2 are ready" in drawing
    assert course_of(view(lws, pods), "none") is None


def test_course_of_a_thousand_groups_stays_small() -> None:
    lws = builders.leaderworkerset_object(replicas=1000, size=1)
    pods = [leader(lws, index, key="new", created=index, ready=index + 5) for index in range(1000)]
    course = course_of(view(lws, pods), "new")
    assert course is not None
    assert len(revisionchart.chart(course)) < 2000


@pytest.mark.parametrize("groups", [1, 2, 3, 6, 7, 40])
@pytest.mark.parametrize("apart", [0, 1, 30])
def test_finished_course_ends_with_all_groups(groups: int, apart: int) -> None:
    lws = builders.leaderworkerset_object(replicas=groups, size=1)
    pods = [leader(lws, at, key="new", created=at * apart, ready=at * apart + 3) for at in range(groups)]
    del pods[-1]["status"]["conditions"][0]["lastTransitionTime"]
    course = course_of(view(lws, pods), "new")
    assert course is not None
    drawing = revisionchart.chart(course)
    assert f"{groups} are ready" in drawing
    for name in ("begun", "done"):
        path = drawing.partition(f'class="{name}" d="')[2].partition('"')[0]
        assert re.search(r"H(\d+)V0H60V100Z$|^M0 100V0H60V100Z$", path), path


@pytest.mark.parametrize("paused", [False, True])
def test_rollout_page_offers_what_applies(paused: bool) -> None:
    marks: dict[str, Any] = {"annotations": {labels.PAUSED_PARTITION: "0"}} if paused else {}
    lws = builders.leaderworkerset_object(metadata=marks)
    found = snapshot(view(lws, []))
    old = builders.leaderworkerset_object(image="app:0")
    revisions = [builders.revision(old, number=1), builders.revision(lws, number=2)]
    for kind, expected in (
        (PageKind.SET, "scale resume" if paused else "scale restart pause"),
        (PageKind.ROLLOUT, "scale resume" if paused else "scale restart pause undo"),
    ):
        assert f'data-actions="{expected}"' in html(
            rendered(found, kind, facts={CONTROLLER_REVISIONS: revisions}), "head"
        )
    assert "undo" not in html(rendered(found, PageKind.ROLLOUT, facts={}), "head").partition("data-actions")[2][:60]


def test_last_change_omits_values_of_variables() -> None:
    old, new = (builders.leaderworkerset_object(image=image) for image in ("app:1", "app:2"))
    for lws, value in ((old, "one"), (new, "two")):
        worker = lws["spec"]["leaderWorkerTemplate"]["workerTemplate"]
        worker["spec"]["containers"][0]["env"] = [{"name": "TOKEN", "value": value}]
    revisions = [builders.revision(old, number=1), builders.revision(new, number=2)]
    found = snapshot(view(new, []))
    shown = html(rendered(found, PageKind.ROLLOUT, facts={CONTROLLER_REVISIONS: revisions}), "change")
    assert "Revision 1 → 2" in shown
    title = html(rendered(found, PageKind.ROLLOUT, facts={CONTROLLER_REVISIONS: revisions}), "progress")
    assert "<h2>Revision 1 → 2: app:1 → app:2</h2>" in title
    assert ".image: app:1 -&gt; app:2" in shown
    assert ".env[TOKEN].value: changed" in shown
    assert "two" not in shown
    alone = html(rendered(found, PageKind.ROLLOUT, facts={CONTROLLER_REVISIONS: revisions[1:]}), "change")
    assert "There is no previous revision." in alone
    assert "could not be read" in html(rendered(found, PageKind.ROLLOUT), "change")


def test_complete_group_is_done_in_the_chart_and_the_bar() -> None:
    lws = builders.leaderworkerset_object(replicas=2, size=1)
    pods = [builders.leader_pod(lws, index, ready=False) for index in range(2)]
    pods[1]["metadata"]["annotations"] = {labels.GROUP_ENDED: "Complete"}
    leaders = {"metadata": {"labels": {labels.TEMPLATE_REVISION_HASH: builders.key_of(lws)}}}
    shown = view(lws, pods, leaders=leaders)
    assert rolloutprogress.measure_progress(shown, builders.NOW).done_groups == 1
    steps = [rolloutpage.group_step(group, is_updated=True) for group in shown.groups]
    assert steps == ["starting", "done"]
