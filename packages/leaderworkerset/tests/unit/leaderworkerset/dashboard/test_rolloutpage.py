"""The rollout page: its course over time, and the content of the last change."""

from datetime import timedelta
from typing import Any

import pytest
from tests import builders
from tests.unit.leaderworkerset.dashboard.test_pages import html, picture, rendered

from kuberuntime.objects import timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS
from leaderworkerset.api import labels
from leaderworkerset.dashboard.address import PageKind
from leaderworkerset.dashboard.pages import revisionpicture
from leaderworkerset.views.groups import view


def at(seconds: int) -> str:
    return timestamps.render(builders.NOW + timedelta(seconds=seconds))


def leader(lws: JSONObject, index: int, *, key: str, created: int, ready: int | None) -> JSONObject:
    pod = builders.leader_pod(lws, index, key=key, ready=ready is not None)
    pod["metadata"]["creationTimestamp"] = at(created)
    for condition in pod["status"].get("conditions", []):
        if condition["type"] == "Ready" and ready is not None:
            condition["lastTransitionTime"] = at(ready)
    return pod


def test_course_counts_groups_of_the_newest_revision() -> None:
    lws = builders.leaderworkerset_object(replicas=4, size=1)
    pods = [
        leader(lws, 0, key="old", created=-900, ready=-800),
        leader(lws, 1, key="new", created=60, ready=None),
        leader(lws, 2, key="new", created=30, ready=50),
        leader(lws, 3, key="new", created=0, ready=20),
    ]
    course = revisionpicture.course(view(lws, pods), "new")
    assert course is not None
    assert [(moment - builders.NOW).seconds for moment in course.started] == [0, 30, 60]
    assert [(moment - builders.NOW).seconds for moment in course.ready] == [20, 50]
    drawing = revisionpicture.picture(course)
    assert 'class="begun" d="M0 100V75H30V50H60V25V100Z"' in drawing
    assert 'class="done" d="M0 100H20V75H50V50H60V100Z"' in drawing
    assert "of 4 groups 3 got the newest revision and 2 are ready" in drawing
    assert revisionpicture.course(view(lws, pods), "none") is None


def test_course_of_a_thousand_groups_stays_small() -> None:
    lws = builders.leaderworkerset_object(replicas=1000, size=1)
    pods = [leader(lws, index, key="new", created=index, ready=index + 5) for index in range(1000)]
    course = revisionpicture.course(view(lws, pods), "new")
    assert course is not None
    assert len(revisionpicture.picture(course)) < 2000


@pytest.mark.parametrize("paused", [False, True])
def test_rollout_page_reports_whether_it_is_paused(paused: bool) -> None:
    marks: dict[str, Any] = {"annotations": {labels.PAUSED_PARTITION: "0"}} if paused else {}
    found = picture(view(builders.leaderworkerset_object(metadata=marks), []))
    for kind in (PageKind.ROLLOUT, PageKind.SET):
        assert f'data-paused="{str(paused).lower()}"' in html(rendered(found, kind), "head")


def test_last_change_omits_values_of_variables() -> None:
    old, new = (builders.leaderworkerset_object(image=image) for image in ("app:1", "app:2"))
    for lws, value in ((old, "one"), (new, "two")):
        worker = lws["spec"]["leaderWorkerTemplate"]["workerTemplate"]
        worker["spec"]["containers"][0]["env"] = [{"name": "TOKEN", "value": value}]
    revisions = [builders.revision(old, number=1), builders.revision(new, number=2)]
    found = picture(view(new, []))
    shown = html(rendered(found, PageKind.ROLLOUT, facts={CONTROLLER_REVISIONS: revisions}), "change")
    assert "revision 1 → 2" in shown
    assert ".image: app:1 -&gt; app:2" in shown
    assert ".env[TOKEN].value: changed" in shown
    assert "two" not in shown
    alone = html(rendered(found, PageKind.ROLLOUT, facts={CONTROLLER_REVISIONS: revisions[1:]}), "change")
    assert "There is no earlier revision." in alone
    assert "could not be read" in html(rendered(found, PageKind.ROLLOUT), "change")
