"""Tests the history of a workload: the timeline of the last hour, and recorded failures side by side."""

from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests import builders
from tests.unit.lwsctl.cli.views.test_episodetable import BARE, FULL
from tests.unit.lwsctl.dashboard.test_pages import html, snapshot, web

from kuberuntime.objects import timestamps
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CORE_EVENTS
from leaderworkerset.api.episode import RecordedContainer, RecordedRank, RunTermination
from lwsctl.dashboard.address import Address, NoSuchPageError, PageKind, parse
from lwsctl.dashboard.pages import timeline
from lwsctl.dashboard.pages.page import PageFacts
from lwsctl.dashboard.pages.timeline import Lane
from lwsctl.dashboard.subscriptions import PAGES

PROD = ObjectKey("prod", "web")


def event(
    reason: str, *, kind: str = "LeaderWorkerSet", name: str = "web", minutes: int = 5, **fields: str
) -> JSONObject:
    about = {"kind": kind, "namespace": "default", "name": name}
    last = timestamps.render(builders.NOW - timedelta(minutes=minutes))
    metadata = {"name": f"{reason}-{name}-{minutes}", "namespace": "default"}
    return {
        "metadata": metadata,
        "involvedObject": about,
        "reason": reason,
        "lastTimestamp": last,
        "type": "Normal",
    } | fields


EVENTS = [
    event("CreatingRevision", minutes=50),
    event("GroupsUpdating", minutes=49),
    event("RecreateGroup", minutes=20),
    event("BackOff", kind="Pod", name="web-0-1", minutes=21, type="Warning", message="<restarting>"),
    event("SuccessfulCreate", kind="StatefulSet", minutes=10),
    event("FailedCreate", minutes=8, type="Warning", message="quota"),
    event("Pulled", kind="Pod", name="web-0", minutes=3),
    event("GroupsUpdating", name="other", minutes=2),
    event("GroupsUpdating", minutes=90),
]


def test_timeline_sorts_the_last_hour_into_lanes() -> None:
    failed = replace(FULL, time=timestamps.render(builders.NOW - timedelta(minutes=22)))
    shown, facts = snapshot(web()), PageFacts({CORE_EVENTS: EVENTS}, [failed])
    found = timeline.timeline_items(shown, shown.views[0], facts)
    assert [moment.lane for moment in found] == [
        Lane.ROLLOUTS,
        Lane.ROLLOUTS,
        Lane.ROLLOUTS,
        Lane.FAILURES,
        Lane.RECREATIONS,
    ]
    text = timeline.timeline_fragment(shown, shown.views[0], facts).html
    assert "<title>rollouts: 2 events in the last hour</title>" in text
    assert "<title>failures: 1 event in the last hour</title>" in text
    assert "scale:" not in text, "pods that a StatefulSet creates scale nothing"
    assert "restarting" not in text, "a failure counts once, not with each event of a pod"
    assert 'href="sets/default/web/history/0/3"' in text


def test_timeline_without_records_shows_warnings_of_the_set() -> None:
    shown = snapshot(web())
    found = timeline.timeline_items(shown, shown.views[0], PageFacts({CORE_EVENTS: EVENTS}))
    assert [moment.words for moment in found if moment.lane is Lane.FAILURES] == [
        "FailedCreate: leaderworkerset/web: quota"
    ]


def test_timeline_reads_no_events_of_others() -> None:
    assert [query.field_selector for query in timeline.reads(PROD)] == [
        "involvedObject.kind=LeaderWorkerSet,involvedObject.name=web",
    ]


def test_timeline_changes_once_a_minute_without_events() -> None:
    shown, facts = snapshot(web()), PageFacts({CORE_EVENTS: EVENTS})
    start = builders.NOW.replace(second=1)
    pieces = [
        timeline.timeline_fragment(replace(shown, now=start + timedelta(seconds=seconds)), shown.views[0], facts).html
        for seconds in (0, 30, 58, 59)
    ]
    assert len(set(pieces[:3])) == 1
    assert pieces[3] != pieces[0]


def test_timeline_reports_events_that_were_not_read() -> None:
    shown = snapshot(web())
    assert "Events could not be read" in timeline.timeline_fragment(shown, shown.views[0], PageFacts()).html


def test_two_recorded_failures_are_shown_side_by_side() -> None:
    facts = PageFacts(episodes=[FULL, BARE])
    path = "sets/prod/web/history/1/1"
    address = parse(path, {"with": "0/3"})
    shown = PAGES[PageKind.HISTORY].render(snapshot(), address, facts)
    left, right = (piece.html for piece in shown["pair"])
    assert "<h2>1#1</h2>" in left
    assert "<h2>0#3</h2>" in right
    assert "rank 1 app: 3 Error, 143" in right
    assert "failure 1#1 next to 0#3" in html(shown, "head")
    text = list(PAGES[PageKind.HISTORY].text(snapshot(), address, facts))
    assert sum(line.startswith(("web/1#1:", "web/0#3:")) for line in text) == 2
    gone = PAGES[PageKind.HISTORY].render(snapshot(), parse(path, {"with": "7/7"}), facts)
    assert "web/7#7 does not exist" in gone["pair"][1].html


def test_two_recorded_failures_show_only_what_differs() -> None:
    def log(*lines: str) -> tuple[RecordedRank, ...]:
        own = RecordedContainer(name="app", ends=(RunTermination(exit_code=3),), logs=(lines,))
        return (RecordedRank(rank=0, pod="web-0", containers=(own,)),)

    left = replace(FULL, number=1, ranks=log("step 1", "KeyError"))
    right = replace(FULL, number=2, ranks=log("step 7", "CUDA error"))
    address = parse("sets/prod/web/history/0/1", {"with": "0/2"})
    shown = PAGES[PageKind.HISTORY].render(snapshot(), address, PageFacts(episodes=[left, right]))
    for piece, line in zip(shown["pair"], ("KeyError", "CUDA error"), strict=True):
        assert f'<pre tabindex="0">{line}</pre>' in piece.html
        for words in ("step", "spec.x", "rank 0 app"):
            assert words not in piece.html, "equal in both"


def test_episode_links_to_others_for_comparison() -> None:
    address = Address(kind=PageKind.HISTORY, key=PROD, episode="0/3")
    shown = PAGES[PageKind.HISTORY].render(snapshot(), address, PageFacts(episodes=[FULL, BARE]))
    assert 'Compare with: <a href="sets/prod/web/history/0/3?with=1/1">1#1</a>' in html(shown, "circumstances")


@pytest.mark.parametrize("other", ["x", "0", "0/1/2", "0/-1", "<b>/1"])
def test_address_without_a_valid_failure_is_rejected(other: str) -> None:
    with pytest.raises(NoSuchPageError, match="is not a recorded failure"):
        parse("sets/prod/web/history/0/3", {"with": other})
