"""Tests how progress, hangs, and complete runs are displayed in views, waits, causes, and the dashboard."""

from datetime import timedelta
from typing import Any

from msgspec.structs import replace
from tests import builders

from kuberuntime.objects.meta import ObjectKey
from leaderworkerset.api import labels, progressannotations
from leaderworkerset.api.progressannotations import Hang, Progress, SilentRank
from lwsctl.cli.commands.wait import describe_condition
from lwsctl.cli.views import output
from lwsctl.dashboard.address import Address, PageKind
from lwsctl.dashboard.pages import setpage
from lwsctl.dashboard.pages.page import PageFacts
from lwsctl.dashboard.snapshot import Snapshot
from lwsctl.diagnosis.diagnose import diagnose
from lwsctl.diagnosis.observed import Observed
from lwsctl.model.health import Verdict
from lwsctl.model.leaderworkerset import View, view
from lwsctl.views import devices, groupprogress, unmetconditions
from lwsctl.views.document import document
from lwsctl.views.outcome import Failures
from lwsctl.views.selection import Selection

NOW = builders.NOW
SAID = Progress(step=120, total=480, metrics=(("loss", "2.1"),), at=NOW - timedelta(seconds=60), rate=2.0)
HANG = Hang(
    since=NOW - timedelta(minutes=10),
    ranks=(SilentRank(pod="web-0-1", uid="u", rank=1, since=NOW - timedelta(minutes=11), waits="the disk"),),
)
BAR = "[#####---------------] step 120 of 480 (25 %), loss 2.1, 2m remaining"
SILENT = "no progress for 10m: web-0-1 has no output for 11m and waits for the disk"


def shown(conditions: dict[str, str] | None = None, asks: dict[str, str] | None = None, **leader: str) -> View:
    """Return a LeaderWorkerSet with one group of two ranks, whose leader has these annotations."""
    lws = builders.leaderworkerset_object(replicas=1, size=2, metadata={"annotations": asks or {}})
    found = [{"type": name, "status": value, "observedGeneration": 1} for name, value in (conditions or {}).items()]
    lws["status"] = {"observedGeneration": 1, "readyReplicas": 1, "updatedReplicas": 1, "conditions": found}
    pod = builders.leader_pod(lws, annotations={getattr(labels, name): value for name, value in leader.items()})
    return view(lws, [pod, builders.worker_pod(pod)])


def idle(found: View) -> View:
    """Return the view with a worker whose GPU is idle."""
    (group,) = found.groups
    note = {devices.DEVICES: '{"main":["GPU-1"]}', devices.IDLE: f'{{"GPU-1":"{HANG.since.isoformat()}"}}'}
    worker = replace(group.ranks[1], object={"metadata": {"annotations": note}})
    return replace(found, groups=(replace(group, ranks=(group.ranks[0], worker)),))


def test_progress_names_idle_gpus() -> None:
    watched = idle(shown(PROGRESS=progressannotations.render(SAID)))
    assert output.notes(watched, NOW) == [f"group 0: {BAR}; web-0-1: GPU idle for 10m"]
    hanging = idle(shown(HANG=progressannotations.render_hang(HANG)))
    assert output.notes(hanging, NOW) == [f"group 0: {SILENT}; web-0-1: GPU idle for 10m"]
    assert output.notes(idle(shown()), NOW) == []


def test_hang_names_idle_gpus() -> None:
    hanging = shown({"Available": "True"}, {labels.PROGRESS_TIMEOUT: "5m"}, HANG=progressannotations.render_hang(HANG))
    watched = idle(hanging)
    finding = diagnose(Observed(view=watched, now=NOW), Selection("web"))
    assert "rank 1 (web-0-1): no output for 11m, waits for the disk, GPU idle for 10m" in finding.evidence


def test_progress_bar_and_remaining_time_use_the_annotation() -> None:
    found = shown(PROGRESS=progressannotations.render(SAID))
    assert groupprogress.progress_sentence(found.groups[0], NOW) == BAR
    assert output.notes(found, NOW) == [f"group 0: {BAR}"]
    (group,) = document([found])["items"][0]["groups"]
    assert group["progress"] == {
        "step": 120,
        "total": 480,
        "metrics": {"loss": "2.1"},
        "at": SAID.at.isoformat() if SAID.at else None,
        "rate": 2.0,
    }
    plain = shown(PROGRESS=f"step=7 at={NOW.isoformat()}")
    assert groupprogress.progress_sentence(plain.groups[0], NOW) == "step 7"
    assert groupprogress.progress_sentence(shown(PROGRESS="step=many", HANG="{").groups[0], NOW) == ""
    assert {"progress", "hang", "end"}.isdisjoint(document([shown()])["items"][0]["groups"][0])


def test_hang_replaces_the_bar_and_is_a_cause() -> None:
    both: dict[str, Any] = {"PROGRESS": progressannotations.render(SAID), "HANG": progressannotations.render_hang(HANG)}
    watched = {labels.PROGRESS_TIMEOUT: "5m"}
    found = shown({"Available": "True"}, watched, **both)
    assert found.is_ready
    assert groupprogress.progress_sentence(found.groups[0], NOW) == SILENT
    assert document([found])["items"][0]["groups"][0]["hang"]["ranks"][0]["pod"] == "web-0-1"
    for chosen in (Selection("web"), Selection("web", 0)):
        told = diagnose(Observed(view=found, now=NOW), chosen)
        assert (told.code, told.verdict) == ("LWS-E076", Verdict.STUCK)
        assert told.sentence == f"group 0 has made {SILENT}"
    unwatched = shown({"Available": "True"}, **both)
    assert diagnose(Observed(view=unwatched, now=NOW), Selection("web")).verdict is Verdict.HEALTHY


def test_completed_set_is_healthy_with_completed_ranks() -> None:
    asks = {labels.RUN_TO_COMPLETION: "true"}
    found = shown({"Complete": "True"}, asks, GROUP_ENDED="Complete", HANG=progressannotations.render_hang(HANG))
    (group,) = found.groups
    assert [rank.state for rank in group.ranks] == ["Completed", "Completed"]
    assert (group.is_over, group.is_exhausted, group.hang) == (True, False, None)
    assert output.notes(found, NOW) == ["web: 1 of 1 group complete"]
    assert document([found])["items"][0]["groups"][0]["end"] == "Complete"
    assert found.is_finished
    told = diagnose(Observed(view=found, now=NOW), Selection("web"))
    assert (told.verdict, told.sentence) == (Verdict.COMPLETE, "1 of 1 group complete")
    of_group = diagnose(Observed(view=found, now=NOW), Selection("web", 0))
    assert (of_group.verdict, of_group.sentence) == (Verdict.COMPLETE, "web/0 is complete")


def test_wait_for_completion_reports_what_is_missing() -> None:
    check, asks = unmetconditions.parse("done"), {labels.RUN_TO_COMPLETION: "true"}
    assert check(None) == "it no longer exists"
    assert (check(shown()) or "").startswith("it does not run to completion, because the annotation")
    assert check(shown(asks=asks, PROGRESS=progressannotations.render(SAID))) == (
        "0 of 1 group complete; group 0 at step 120 of 480"
    )
    assert check(shown(asks=asks)) == "0 of 1 group complete; not complete: 0/0, 0/1 (Init:0/0)"
    late = check(shown({"Failed": "True"}, asks, GROUP_ENDED="DeadlineExceeded"))
    assert late == "0 of 1 group complete; stopped at the deadline: 0"
    lost = shown({"Failed": "True"}, asks, GROUP_ENDED="DeadlineExceeded")
    assert Failures(limit=9).verdict([lost]) == "web: group 0 did not complete before the deadline"
    assert not lost.is_finished
    done = shown({"Complete": "True"}, asks, GROUP_ENDED="Complete")
    assert check(done) is None
    stale = replace(done, object=done.object | {"metadata": done.object["metadata"] | {"generation": 2}})
    assert (check(stale) or "").startswith("1 of 1 group complete")
    assert describe_condition("done") == "is complete"


def test_set_page_has_a_bar_for_each_group_with_progress() -> None:
    def facts(found: View) -> str:
        snapshot = Snapshot(namespace="default", now=NOW, views=(found,))
        address = Address(kind=PageKind.SET, key=ObjectKey("default", "web"))
        return "".join(str(piece.html) for piece in setpage.PAGE.render(snapshot, address, PageFacts())["facts"])

    said = facts(shown(PROGRESS=progressannotations.render(SAID)))
    assert "step 120 of 480 (25 %)" in said
    assert 'width="25"' in said
    assert SILENT in facts(shown(HANG=progressannotations.render_hang(HANG)))
    assert 'class="advance"' not in facts(shown())
