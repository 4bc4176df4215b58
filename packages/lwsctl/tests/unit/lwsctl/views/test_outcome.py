"""Tests that a run is complete after all ranks exit with code 0, and fails if a rank fails too often."""

from typing import Any

from lwsctl.model.groups import Group, Rank
from lwsctl.model.leaderworkerset import View
from lwsctl.views.outcome import Failures


def ended(code: int, ident: str = "c1") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "containerID": ident}}


def rank(index: int, *statuses: dict[str, Any], uid: str = "u", **metadata: Any) -> Rank:
    pod = {"metadata": {"uid": uid, **metadata}, "status": {"containerStatuses": list(statuses)}}
    return Rank(group=0, index=index, pod=f"web-0-{index}", state="", object=pod)


def view(*ranks: Rank, desired: int = 1) -> View:
    return View(
        name="web",
        namespace="default",
        ready=0,
        desired=desired,
        up_to_date=0,
        created="",
        groups=(Group(index=0, ranks=ranks),),
        object={},
    )


def test_rank_is_done_when_all_its_containers_exited_with_0() -> None:
    assert rank(0, {"state": ended(0)}).has_succeeded
    assert rank(0, {"state": {"running": {}}, "lastState": ended(0)}).has_succeeded
    assert not rank(0, {"state": ended(0)}, {"state": {"running": {}}}).has_succeeded
    assert not rank(0, {"state": ended(1)}).has_succeeded
    assert not rank(0).has_succeeded
    assert not Rank(group=0, index=0, pod="web-0", state="Missing").has_succeeded


def test_run_is_done_when_every_rank_of_every_group_is_done() -> None:
    done, busy = rank(0, {"state": ended(0)}), rank(1, {"state": {"running": {}}})
    assert view(done).is_finished
    assert not view(done, busy).is_finished
    assert not view(done, desired=2).is_finished


def test_repeated_report_of_one_end_counts_once() -> None:
    failures = Failures(limit=1)
    shown = view(rank(0, {"name": "main", "state": ended(3)}))
    assert failures.verdict([shown]) is None
    assert failures.verdict([shown]) is None
    again = view(rank(0, {"name": "main", "state": ended(3, "c2")}, uid="v"))
    assert failures.verdict([again]) == "web/0/0 failed 2 times, last with exit code 3"


def test_failed_run_reports_reason_and_masked_last_lines() -> None:
    end = {"terminated": {"exitCode": 3, "reason": "Error", "message": "token=a1b2c3d4\nboom\n"}}
    told = Failures(limit=0).verdict([view(rank(0, {"name": "main", "lastState": end}))])
    assert told == "web/0/0 failed 1 time, last with exit code 3 (Error):\n  token=[masked]\n  boom"


def test_end_without_a_container_id_is_identified_by_its_time() -> None:
    failures = Failures(limit=0)
    end = {"terminated": {"exitCode": 1, "finishedAt": "2026-01-01T00:00:00Z"}}
    assert failures.verdict([view(rank(0, {"name": "main", "lastState": end}))]) is not None


def test_rank_stopped_with_its_group_has_not_failed() -> None:
    deleted = rank(0, {"name": "main", "state": ended(143)}, deletionTimestamp="2026-01-01T00:00:00Z")
    assert Failures(limit=0).verdict([view(deleted)]) is None
