"""Tests that hanging groups are recreated on request, in the same way as after other failures."""

import pytest
from tests import builders

from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Apply, Delete
from leaderworkerset.api import labels, progressannotations
from leaderworkerset.api.progressannotations import Hang, SilentRank
from leaderworkerset.capabilities.completion import runtocompletion
from leaderworkerset.capabilities.deciding import reconcile_group as reconcile

HANG = Hang(since=builders.NOW, ranks=(SilentRank(pod="web-0-1", uid="u", rank=1, since=builders.NOW, waits="a lock"),))
WATCHED = {labels.PROGRESS_TIMEOUT: "5m"}
RECREATES = WATCHED | {labels.ON_HANG: "recreate"}


def lws(annotations: dict[str, str]) -> JSONObject:
    return builders.leaderworkerset_object(metadata={"annotations": annotations})


def leader(text: str) -> JSONObject:
    return builders.leader_pod(lws({}), annotations={labels.HANG: text})


def test_rank_without_progress_for_longest_has_failed() -> None:
    hung = leader(progressannotations.render_hang(HANG))
    found = runtocompletion.hang_failure(lws(RECREATES), hung)
    assert found is not None
    assert (found.pod, found.uid, found.description) == ("web-0-1", "u", "no progress for 300 s, waits for a lock")
    group = builders.live_group(leader=hung, obj=lws(RECREATES), pods=(hung,))
    deleted, recorded = reconcile(group).actions
    assert isinstance(deleted, Delete)
    assert isinstance(recorded, Apply)
    assert recorded.object["metadata"]["annotations"][labels.FAILURE] == found.description


@pytest.mark.parametrize(
    ("annotations", "text"),
    [
        ({}, progressannotations.render_hang(HANG)),
        (WATCHED, progressannotations.render_hang(HANG)),
        ({labels.ON_HANG: "recreate"}, progressannotations.render_hang(HANG)),
        (RECREATES, ""),
        (RECREATES, "{}"),
    ],
)
def test_rank_without_a_hang_has_not_failed(annotations: dict[str, str], text: str) -> None:
    assert runtocompletion.hang_failure(lws(annotations), leader(text)) is None
