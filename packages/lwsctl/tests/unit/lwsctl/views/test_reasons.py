"""Tests the reason why a group or a LeaderWorkerSet is not ready."""

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.explanations import builders
from tests.explanations.builders import ago, container, ended, event, lws, observed, placed, pod

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CORE_EVENTS
from lwsctl.cli.views import livetable
from lwsctl.diagnosis.diagnose import diagnose
from lwsctl.model.groups import Group, Rank
from lwsctl.model.leaderworkerset import View
from lwsctl.views.grouprows import group_rows
from lwsctl.views.reasons import behind, brief, first_problem, reasons, summary
from lwsctl.views.selection import Selection

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MISSING = Rank(group=0, index=1, pod="web-0-1", state="Missing", why="not created yet")
BROKEN = Rank(group=0, index=0, pod="web-0", state="CrashLoopBackOff", why="main: Error (exit code 3)")
READY = Rank(group=0, index=0, pod="web-0", state="Running", is_ready=True)


def view(*ranks: Rank) -> View:
    return View(
        name="web",
        namespace="default",
        ready=0,
        desired=1,
        up_to_date=1,
        created="",
        groups=(Group(index=0, ranks=ranks),),
        object={},
    )


def test_first_rank_with_a_reason_is_named() -> None:
    shown = view(MISSING, BROKEN)

    assert reasons(shown) == "; web-0 is CrashLoopBackOff: main: Error (exit code 3) (and 1 more rank)"


def test_ready_ranks_have_no_reason() -> None:
    assert reasons(view(READY)) == ""


def test_normal_start_state_is_not_a_problem() -> None:
    assert first_problem(Group(index=0, ranks=(READY, MISSING))) == ""


def test_summary_counts_unready_ranks_and_names_the_problem() -> None:
    shown = view(MISSING, BROKEN)

    assert summary(shown, shown.groups[0], NOW) == (
        "web group 0: 0 of 2 ranks ready (1 CrashLoopBackOff, 1 not created yet); web-0: main: Error (exit code 3)"
    )


def test_finished_group_is_completed() -> None:
    done = Group(index=0, ranks=(Rank(group=0, index=0, pod="web-0", state="Completed"),))

    assert summary(view(), done, NOW) == "web group 0: 1 rank completed"


SERVES: JSONObject = {"containerStatuses": [container(running={"startedAt": ago(200)})]}
NOT_YET = ("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")


def crashed(rank: int, seconds: float, **state: Any) -> JSONObject:
    end = ended(1, seconds, message="no such model")
    return placed(0, rank, status={"containerStatuses": [container(restarts=1, last=end, **state)]})


def test_crash_is_quoted_with_its_exit_code() -> None:
    pod_object = crashed(1, 30, waiting={"reason": "CrashLoopBackOff"})
    rank = Rank(group=0, index=1, pod="web-0-1", state="CrashLoopBackOff", object=pod_object)

    assert brief(view(rank)) == 'web-0-1 CrashLoopBackOff: "no such model" (exit 1)'


PULL: JSONObject = {"reason": "ImagePullBackOff", "message": "Back-off pulling image vllm:1: not found"}
BACK_OFF: JSONObject = {"reason": "CrashLoopBackOff"}
LEADER = placed(status=SERVES)
SICK: dict[str, tuple[JSONObject, str]] = {
    "has no node": (
        pod(0, 2, status={"conditions": [{"type": "PodScheduled", "status": "False", "message": "no GPU"}]}),
        "web-0-2: no GPU",
    ),
    "cannot be started": (
        placed(0, 2, status={"containerStatuses": [container(waiting=PULL)]}),
        f"web-0-2: main: {PULL['message']}",
    ),
    "crashed first": (
        crashed(2, 30, waiting=BACK_OFF),
        "web-0-2: main: no such model (Error, exit code 1); waiting to be restarted",
    ),
    "runs again after its crash": (
        crashed(2, 30, running={"startedAt": ago(3)}),
        "web-0-2: main: no such model (Error, exit code 1); restarted",
    ),
}


@pytest.mark.parametrize(("sick", "said"), SICK.values(), ids=SICK)
def test_same_rank_explains_the_others_in_every_view(sick: JSONObject, said: str) -> None:
    """The leader returns status 503 while a worker is missing, and a different worker exits because of it."""
    told = {CORE_EVENTS: [event("Pod", "web-0", *NOT_YET)]}
    situation = observed([LEADER, crashed(1, 10, waiting=BACK_OFF), sick], told, of=lws(1, 3))
    shown = situation.view
    assert first_problem(shown.groups[0]) == said
    assert group_rows(shown.groups, builders.NOW)[0].reason == said
    assert reasons(shown).startswith(("; web-0-2 is ", "; web-0-2 CrashLoopBackOff: "))
    assert any(said.partition(": ")[2] in line for line in livetable.lines([shown], builders.NOW, livetable.Size(200)))
    named = diagnose(situation, Selection("web"))
    assert named.subject is not None
    assert named.subject.name == "web-0-2"


@pytest.mark.parametrize(
    ("counted", "said"),
    [(1, ""), (0, "the status of web is outdated: according to its pods, 1 group is ready")],
)
def test_status_with_a_different_ready_count_is_behind_its_pods(counted: int, said: str) -> None:
    pods = [builders.ready(), builders.ready(0, 1), placed(1), placed(1, 1)]
    assert behind(observed(pods, of=lws(2, 2, status={"readyReplicas": counted})).view) == said


@pytest.mark.parametrize(
    ("up_to_date", "said"),
    [
        (27, ""),
        (473, ""),
        (0, "the status of big is outdated: according to its pods, the revisions have 27 and 473 groups"),
        (12, "the status of big is outdated: according to its pods, the revisions have 27 and 473 groups"),
    ],
)
def test_status_with_a_different_count_is_behind_its_pods(up_to_date: int, said: str) -> None:
    leader = Rank(group=0, index=0, pod="big-0", state="Running", is_ready=True)
    groups = tuple(Group(index=at, ranks=(leader,), revision="new" if at < 27 else "old") for at in range(500))
    rolling = {"status": {"conditions": [{"type": "UpdateInProgress", "status": "True"}]}}
    found = View(
        name="big",
        namespace="d",
        ready=500,
        desired=500,
        up_to_date=up_to_date,
        created="",
        groups=groups,
        object=rolling,
    )
    assert behind(found) == said
