"""Tests the patches that undo, pause, resume and restart a rollout."""

from typing import Any

import pytest
from tests import builders

from leaderworkerset.api import labels
from leaderworkerset.core.leaderworkerset import revisions
from localkube.apiserver.patch import merge
from lwsctl.model.leaderworkerset import View, view
from lwsctl.rollout import patches, revisionhistory

OLD = builders.leaderworkerset_object(image="app:1", size=1, replicas=4)
KEY = builders.key_of(OLD)
UPDATING = {"conditions": [{"type": "UpdateInProgress", "status": "True"}]}


def rolling(updated: int, *, replicas: int = 4, **metadata: Any) -> View:
    """Return a rollout in which the last groups are updated."""
    lws = builders.leaderworkerset_object(
        image="app:2", size=1, replicas=replicas, metadata=metadata or None, status=UPDATING
    )
    leaders = [
        builders.leader_pod(lws, index, key=None if index >= replicas - updated else KEY) for index in range(replicas)
    ]
    return view(lws, leaders)


def statefulset(shown: View, partition: int) -> dict[str, Any]:
    rolling_update = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    own = {labels.TEMPLATE_REVISION_HASH: builders.key_of(shown.object)}
    return {"metadata": {"name": "web", "labels": own}, "spec": {"updateStrategy": rolling_update}}


def held(patch: Any) -> tuple[int, Any]:
    strategy = patch["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]
    return strategy["partition"], patch["metadata"]["annotations"][labels.PAUSED_PARTITION]


@pytest.mark.parametrize(
    ("updated", "partition", "expected"),
    [(1, 2, 3), (2, 0, 2), (4, 0, 4)],
    ids=["above the partition", "released, but not replaced", "after all updates"],
)
def test_pause_holds_the_groups_that_are_not_updated(updated: int, partition: int, expected: int) -> None:
    shown = rolling(updated=updated)
    assert held(patches.pause_patch(shown, statefulset(shown, partition=partition))) == (expected, "0")


def test_pause_at_rest_holds_all_groups() -> None:
    resting = view(OLD, [builders.leader_pod(OLD, index) for index in range(4)])
    assert held(patches.pause_patch(resting, statefulset(resting, partition=0))) == (4, "0")
    assert held(patches.pause_patch(resting, None)) == (4, "0")


def test_pause_never_lowers_the_partition_and_remembers_it() -> None:
    lws = builders.leaderworkerset_object(size=1, replicas=2, rollout={"partition": 5})
    assert held(patches.pause_patch(view(lws, []), None)) == (5, "5")


def test_repeated_pause_or_resume_changes_nothing() -> None:
    shown = rolling(updated=1)
    paused = merge.apply(shown.object, patches.pause_patch(shown, statefulset(shown, 2)))
    assert patches.is_paused(paused)
    assert patches.pause_patch(view(paused, []), statefulset(shown, 2)) is None
    resumed = merge.apply(paused, patches.resume_patch(paused))
    assert patches.partition(resumed) == 0
    assert not patches.is_paused(resumed)
    assert patches.resume_patch(resumed) is None


@pytest.mark.parametrize(("remembered", "expected"), [("3", 3), ("three", 0), ("-1", 0), ("\u0663", 0)])
def test_remembered_partition_is_a_number_or_zero(remembered: str, expected: int) -> None:
    lws = builders.leaderworkerset_object(metadata={"annotations": {labels.PAUSED_PARTITION: remembered}})
    assert held(patches.resume_patch(lws)) == (expected, None)


def test_undo_restores_the_spec_of_the_revision() -> None:
    new = builders.leaderworkerset_object(
        image="app:2", size=1, metadata={"annotations": {labels.CHANGE_CAUSE: "bad idea", "app": "web"}}
    )
    told = builders.leaderworkerset_object(image="app:1", size=1, metadata={"annotations": {labels.CHANGE_CAUSE: "ok"}})
    found = revisionhistory.entries(
        view(new, []), [builders.revision(told, number=1), builders.revision(new, number=2)]
    )

    guard, template, network, annotations = patches.restore_patch(new, found[0])

    assert guard == {"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}
    assert template["path"] == "/spec/leaderWorkerTemplate"
    assert network["path"] == "/spec/networkConfig"
    assert annotations["value"] == {"app": "web", labels.CHANGE_CAUSE: "ok"}
    restored = new | {"spec": new["spec"] | {"leaderWorkerTemplate": template["value"]}}
    assert revisions.build_data(restored) == revisions.build_data(told)


def test_undo_removes_a_cause_that_was_not_recorded() -> None:
    new = builders.leaderworkerset_object(image="app:2", metadata={"annotations": {labels.CHANGE_CAUSE: "bad idea"}})
    plain = builders.leaderworkerset_object(image="app:1")
    found = revisionhistory.entries(
        view(new, []), [builders.revision(plain, number=1), builders.revision(new, number=2)]
    )
    assert patches.restore_patch(new, found[0])[-1]["value"] == {}


def test_restart_changes_only_the_templates() -> None:
    both = builders.leaderworkerset_object(template={"leaderTemplate": builders.pod_template()})
    stamp = {"metadata": {"annotations": {patches.RESTARTED_AT: "2026-03-01T12:00:00Z"}}}
    assert patches.restart_patch(OLD, builders.NOW)["spec"] == {"leaderWorkerTemplate": {"workerTemplate": stamp}}
    assert patches.restart_patch(both, builders.NOW)["spec"] == {
        "leaderWorkerTemplate": {"leaderTemplate": stamp, "workerTemplate": stamp}
    }


def test_paused_rollout_is_not_restarted() -> None:
    lws = builders.leaderworkerset_object(metadata={"annotations": {labels.PAUSED_PARTITION: "0"}})
    with pytest.raises(patches.PausedError, match="the rollout of web is paused"):
        patches.restart_patch(lws, builders.NOW)
