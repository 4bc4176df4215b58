"""Tests the progress of a rollout, as numbers and as a sentence."""

from datetime import timedelta
from typing import Any

from tests import builders

from leaderworkerset.api import labels
from lwsctl.model.leaderworkerset import view
from lwsctl.rollout import rolloutprogress

OLD = builders.leaderworkerset_object(size=1)
BEGAN = "2026-03-01T11:58:00Z"


def conditions(*, updating: bool) -> list[dict[str, Any]]:
    return [{"type": "UpdateInProgress", "status": str(updating), "lastTransitionTime": BEGAN}]


def measured(
    *groups: str, partition: int = 0, updating: bool = True, observed: int = 1, **metadata: Any
) -> rolloutprogress.RolloutProgress:
    """Return the progress of groups that are `old`, `new` or `starting`.

    `old!` and `new!` have no remaining restart.
    """
    lws = builders.leaderworkerset_object(
        image="app:2",
        size=1,
        replicas=len(groups),
        rollout={"partition": partition},
        metadata=metadata or None,
        status={"observedGeneration": observed, "conditions": conditions(updating=updating)},
    )
    leaders = [
        marked(builders.leader_pod(OLD if "old" in group else lws, index, ready=group in ("old", "new")), group)
        for index, group in enumerate(groups)
    ]
    own = {labels.TEMPLATE_REVISION_HASH: builders.key_of(lws)}
    return rolloutprogress.measure_progress(view(lws, leaders, leaders={"metadata": {"labels": own}}), builders.NOW)


def marked(leader: dict[str, Any], group: str) -> dict[str, Any]:
    if group.endswith("!"):
        leader["metadata"].setdefault("annotations", {})[labels.GROUP_RESTART_BUDGET_EXHAUSTED] = "true"
    return leader


def test_exhausted_groups_are_skipped_or_need_recovery() -> None:
    """A rollout does not wait for groups with an older revision.

    A user resumes those with the newest (N-RB-8, N-AT-21).
    """
    found = measured("old!", "old", "new!", "new")
    assert rolloutprogress.progress_line(found) == (
        "web: 1/4 groups updated, 1 starting;"
        " no restarts remain for group 0 (replaced without counting in maxUnavailable);"
        " no restarts remain for group 2; to recover, run `lws recover web`; about 6m remaining"
    )
    assert rolloutprogress.document(found)["exhaustedGroups"] == [0, 2]


def test_remaining_time_follows_from_the_pace() -> None:
    found = measured("old", "old", "starting", "new")
    assert (found.done_groups, found.updated_groups, found.ready_groups, found.desired_groups) == (1, 2, 3, 4)
    assert found.remaining == timedelta(minutes=6)
    assert rolloutprogress.progress_line(found) == (
        "web: 1/4 groups updated, 1 starting; about 6m0s remaining"
    ).replace("6m0s", "6m")
    assert rolloutprogress.progress_bar(found) == "[#####=====----------]"


def test_finished_rollout_shows_no_remaining_time() -> None:
    done = measured("new", "new")
    assert done.remaining == timedelta()
    assert "left" not in rolloutprogress.progress_line(done) + rolloutprogress.brief_line(done)


def test_remaining_time_is_unknown_before_the_first_group() -> None:
    assert measured("old", "starting").remaining is None


def test_rollout_is_complete_when_the_controller_agrees() -> None:
    assert measured("new", "new", updating=False).is_complete
    assert not measured("new", "new", updating=True).is_complete
    assert not measured("new", "new", updating=False, observed=0).is_complete
    assert not measured("new", "starting", updating=False).is_complete


def test_groups_below_the_partition_are_held_and_not_awaited() -> None:
    found = measured("old", "new", partition=1, updating=False)
    assert found.is_complete
    assert (found.desired_groups, found.held_groups) == (1, 1)
    assert rolloutprogress.progress_line(found).endswith("the partition blocks 1 group")


def test_bar_is_full_when_everything_is_held() -> None:
    assert rolloutprogress.progress_bar(measured("old", partition=1)) == f"[{'#' * 20}]"


def test_paused_rollout_has_no_remaining_time() -> None:
    found = measured("old", "new", annotations={labels.PAUSED_PARTITION: "0"})
    assert rolloutprogress.progress_line(found) == "web: 1/2 groups updated; paused"


def test_nothing_is_updated_without_a_statefulset() -> None:
    lws = builders.leaderworkerset_object(size=1)
    found = rolloutprogress.measure_progress(view(lws, [builders.leader_pod(lws, 0)]), builders.NOW)
    assert (found.updated_groups, found.is_complete) == (0, False)


def test_document_has_stable_keys() -> None:
    assert rolloutprogress.document(measured("old", "old", "starting", "new")) == {
        "apiVersion": "lws/v1",
        "kind": "RolloutStatus",
        "leaderWorkerSet": "web",
        "complete": False,
        "paused": False,
        "doneGroups": 1,
        "updatedGroups": 2,
        "readyGroups": 3,
        "wantedGroups": 4,
        "heldGroups": 0,
        "exhaustedGroups": [],
        "estimatedSeconds": 360,
        "reason": "web-2 is Init:0/0",
    }
