"""Tests the observation of ranks during a fault storm, and the report."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from tests.builders import rank_pod

from kuberuntime.objects.meta import JSONObject
from lwsctl.cli.commands.local import chaosfaults
from lwsctl.cli.faultnames import FAULTS, FaultTarget
from lwsctl.cli.storms import report, storm, stormpage, stormrunner
from lwsctl.cli.storms.report import ProbeCounts, StormReport, StormStep
from lwsctl.cli.storms.stormeffects import StormEffects
from lwsctl.cli.storms.stormpage import Row, Span
from lwsctl.model.failurehistory import Crashes
from lwsctl.model.groups import Group, Rank
from lwsctl.model.leaderworkerset import View

KILLED = {"terminated": {"exitCode": 137, "reason": "Error"}}


def pod(uid: str = "a", rank: int = 1, *, ready: bool = True, restarts: int = 0, **more: JSONObject) -> JSONObject:
    """Return a pod for a rank in group 0."""
    container = {"name": "main", "restartCount": restarts, "state": {"running": {}}} | more.pop("container", {})
    return rank_pod(0, rank, ready=ready, metadata={"uid": uid} | more, containerStatuses=[container])


def seen(*changes: tuple[JSONObject | None, JSONObject | None]) -> list[tuple[str, str]]:
    """Return the report of an observer of changes."""
    witness = StormEffects()
    for index, change in enumerate(changes):
        witness.record(float(index), *change)
    return [(one.change, one.reason) for one in witness.changes]


def test_killed_container_is_one_failure_with_its_exit_code() -> None:
    unready = pod(ready=False)
    died = pod(ready=False, restarts=1, container={"lastState": KILLED})
    assert seen((pod(), unready), (unready, died), (died, pod(restarts=1))) == [
        ("failed", "Error (exit code 137)"),
        ("ready", ""),
    ]


def test_restart_between_two_observations_is_a_failure() -> None:
    assert seen((pod(), pod(restarts=1))) == [("failed", "")]


def test_recreated_pod_has_four_observations() -> None:
    ending = pod(deletionTimestamp="2026-01-01T00:00:00Z")  # type: ignore[arg-type]
    fresh = pod("b", ready=False)
    assert [what for what, _ in seen((pod(), ending), (ending, None), (None, fresh), (fresh, pod("b")))] == [
        "ending",
        "gone",
        "made",
        "ready",
    ]


def test_pods_without_ranks_are_not_observed() -> None:
    assert seen((None, {"metadata": {"name": "x", "namespace": "default", "uid": "1"}})) == []


def storm_report() -> StormReport:
    """Return the report for a killed leader whose group was recreated twice."""
    found = StormReport(recovered=4.21)
    found.steps.append(StormStep(0.0, storm.build_step(0.0, "kill", ["web/0/0"], 0.0)))
    leader, unready = pod("a", 0), pod("a", 0, ready=False, container={"lastState": KILLED})
    found.effects.record(0.3, leader, unready)
    for at, uid in ((2.0, "b"), (3.0, "c")):
        found.effects.record(at, None, pod(uid, 0))
    return found


def test_report_lists_failures_recreations_and_recovery() -> None:
    found = storm_report()
    found.probe = ProbeCounts("http://a", 50, 3, 1.25, "connection refused")
    assert list(report.lines(found)) == [
        "First failed: web/0/0 after 0.3 s (Error (exit code 137)).",
        "Recreated: web/0 2 times.",
        "Rank failures: web/0/0.",
        "All ranks were ready 4.2 s after the last fault.",
        "Probe http://a: 50 requests, 3 failed; longest time without a response 1.2 s; first error: connection refused.",
    ]
    assert found.is_successful
    assert report.document(found) == {
        "apiVersion": "lws/v1",
        "kind": "StormReport",
        "faults": [{"at": 0.0, "fault": "kill web/0/0", "refused": None}],
        "firstFailed": {"rank": "web/0/0", "at": 0.3, "why": "Error (exit code 137)"},
        "recreated": {"web/0": 2},
        "failures": {"web/0/0": 1},
        "notReady": [],
        "notReadyBefore": [],
        "recoveredAfter": 4.21,
        "probe": {
            "url": "http://a",
            "requests": 50,
            "failed": 3,
            "longestOutage": 1.25,
            "firstError": "connection refused",
        },
    }


def test_report_covers_calm_and_failed_storms() -> None:
    calm = StormReport(recovered=0.0, probe=ProbeCounts("http://a", 5))
    assert list(report.lines(calm)) == [
        "No rank failed.",
        "All ranks were ready 0.0 s after the last fault.",
        "Probe http://a: 5 requests, 0 failed.",
    ]
    broken = StormReport(unready=["web/0 (waiting to be recreated)"])
    broken.effects.record(0.5, pod(), pod(deletionTimestamp="2026-01-01T00:00:00Z"))  # type: ignore[arg-type]
    assert list(report.lines(broken)) == [
        "First failed: web/0/1 after 0.5 s (it was deleted).",
        "Not ready at the end: web/0 (waiting to be recreated).",
    ]
    assert not broken.is_successful
    refused = storm_report()
    refused.steps.append(StormStep(1.0, storm.build_step(1.0, "delay", ["web/0/0"], 1.0), "no netem"))
    assert not refused.is_successful


def test_page_shows_faults_ranks_and_outages_in_time() -> None:
    found = storm_report()
    found.steps.append(StormStep(1.0, storm.build_step(1.0, "stop", ["web/0/1"], 4.0)))
    found.probe = ProbeCounts("http://a", 50, 3, 1.25, "refused", [(0.5, 1.75)])
    assert list(stormpage.timeline_rows(found)) == [
        Row("fault", "kill web/0/0", (Span(0.0, 0.0, "kill web/0/0"),)),
        Row("fault", "stop web/0/1 for 4 s", (Span(1.0, 5.0, "stop web/0/1 for 4 s"),)),
        Row("rank", "web/0/0", (Span(0.3, 2.0, "web/0/0 was not ready"), Span(3.0, 3.0, "web/0/0 was not ready"))),
        Row("probe", "requests", (Span(0.5, 1.75, "no response"),)),
    ]
    told = stormpage.page(found)
    assert "<h1>Storm passed</h1>" in told
    assert '<rect x="20.00%" width="80.00%" height="100%" class="fault">' in told


def test_page_escapes_foreign_text_and_loads_nothing() -> None:
    hostile = "<script>alert(1)</script>"
    found = StormReport(unready=[hostile], probe=ProbeCounts(f"http://a/?{hostile}", 5, 5, 9.0, hostile))
    found.steps.append(StormStep(0.0, storm.build_step(0.0, "kill", [hostile], 0.0), hostile))
    told = stormpage.page(found)
    assert "Storm failed" in told
    assert "<script" not in told
    assert told.count("&lt;script&gt;") == 5
    assert not re.search(r"""(src|href)=|url\(|@import""", told)
    assert "default-src &#x27;none&#x27;" in told
    assert stormpage.page(StormReport()).count("<p>None.</p>") == 2


def test_earlier_problems_are_listed_but_not_counted() -> None:
    found = StormReport(recovered=1.0, before=["old/0/0"])
    assert found.is_successful
    assert "Ignored because they were not ready before the storm: old/0/0." in list(report.lines(found))
    assert report.document(found)["notReadyBefore"] == ["old/0/0"]


def test_problems_are_compared_with_the_start() -> None:
    before = ["old", "old/0/0", "old/1"]
    now = ["old (0 of 3 groups ready)", "old/0/0", "old/1 (waiting to be recreated)", "old/2/0", "web/0/1"]
    assert stormrunner.new_problems(now, before) == ["old/2/0", "web/0/1"]


@pytest.mark.parametrize("name", FAULTS)
def test_help_explains_ranks_for_faults_of_ranks_only(name: str) -> None:
    help_text = chaosfaults.one_fault(name).help or ""
    assert ("RANK has the form LWS/GROUP/RANK" in help_text) == (
        FAULTS[name].of in {FaultTarget.RANK, FaultTarget.RANKS}
    )


def test_report_omits_ranks_that_were_unready_before_the_storm() -> None:
    found = StormReport(recovered=1.0, before=["web/0/1"])
    found.effects.record(0.5, pod(), pod(ready=False))
    assert list(report.lines(found)) == [
        "No rank failed.",
        "Ignored because they were not ready before the storm: web/0/1.",
        "All ranks were ready 1.0 s after the last fault.",
    ]
    assert report.document(found)["firstFailed"] is None
    found.effects.record(1.0, pod("a", 0), pod("a", 0, ready=False))
    assert next(report.lines(found)) == "First failed: web/0/0 after 1.0 s (it was not ready)."
    found.before = ["web/0"]
    assert next(report.lines(found)) == "No rank failed."


def test_report_of_an_interrupted_storm_has_no_empty_list() -> None:
    assert list(report.lines(StormReport()))[1] == (
        "The storm was interrupted, so it is unknown whether all ranks became ready again."
    )


def test_groups_that_failed_shortly_before_count_as_broken() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    crashes = Crashes(count=3, first=now, last=now, stable_since=now, is_ready=True)
    ranks = tuple(Rank(group=0, index=at, pod=f"web-0-{at}", state="Running", is_ready=True) for at in (0, 1))
    groups = (Group(index=0, ranks=ranks, crashes=crashes),)
    obj = {
        "metadata": {"generation": 1},
        "status": {"observedGeneration": 1, "conditions": [{"type": "Available", "status": "True"}]},
    }
    ready = View(name="web", namespace="d", ready=1, desired=1, up_to_date=1, created="", groups=groups, object=obj)
    assert stormrunner.find_problems([ready], now) == ["web", "web/0", "web/0/0", "web/0/1"]
    assert stormrunner.find_problems([ready], now + timedelta(hours=1)) == []
