"""Tests the reason why a pod is not bound."""

from typing import Any

import pytest
from tests.builders import rank_pod

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from lwsctl.model import groups
from lwsctl.model.admission import gate_reason

GATED = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "Scheduling is blocked"}


def gated_pod(*gates: str, queue: str = "", **spec: Any) -> JSONObject:
    """Return a pod from a group of four with these scheduling gates."""
    own = {"labels": {labels.QUEUE_NAME: queue} if queue else {}}
    gated = {"schedulingGates": [{"name": gate} for gate in gates]} | spec
    return rank_pod(size=4, ready=None, node="", metadata=own, spec=gated, conditions=[GATED] if gates else [])


@pytest.mark.parametrize(
    ("held", "words"),
    [
        (gated_pod(), ""),
        (gated_pod("kueue.x-k8s.io/admission", queue="team"), "waits for quota in queue team (Kueue)"),
        (gated_pod("kueue.x-k8s.io/admission"), "waits for quota (Kueue)"),
        (gated_pod("kueue.x-k8s.io/topology", queue="team"), "waits until Kueue selects its node"),
        (gated_pod(labels.GANG_GATE), "waits until all 4 pods of its group fit on the nodes"),
        (gated_pod("example.com/a"), "waits for the scheduling gate example.com/a"),
        (
            gated_pod(schedulingGroup={"podGroupName": "web-0-a"}),
            "waits for PodGroup web-0-a, whose pods are scheduled together",
        ),
        (gated_pod(schedulingGroup={"podGroupName": "web-0-a"}, nodeName="n"), ""),
    ],
    ids=["nothing", "quota", "quota of nobody", "topology", "room", "somebody", "native", "native and bound"],
)
def test_pending_pod_names_what_it_waits_for(held: JSONObject, words: str) -> None:
    assert gate_reason(held) == words


def test_quota_is_reported_first() -> None:
    held = gated_pod(labels.GANG_GATE, "kueue.x-k8s.io/topology", "kueue.x-k8s.io/admission", queue="team")

    assert gate_reason(held) == "waits for quota in queue team (Kueue)"


def test_scheduler_message_replaces_the_group_reason() -> None:
    """The pod condition also contains the number of nodes, and the reason why each node was rejected."""
    tried = gated_pod(schedulingGroup={"podGroupName": "g"})
    tried["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "message": "0/4 nodes are available"}]

    assert gate_reason(tried) == ""
    assert groups.rank_of(tried).why == "0/4 nodes are available"


def test_gated_rank_shows_state_and_reason() -> None:
    rank = groups.rank_of(gated_pod("kueue.x-k8s.io/admission", queue="team"))

    assert (rank.state, rank.why) == ("SchedulingGated", "waits for quota in queue team (Kueue)")
