"""Tests the reasons why groups have not yet been moved from nodes."""

from typing import Any

import pytest
from tests.explanations.builders import conditions, lws, node, observed, placed, ready
from tests.explanations.scenarios import SCENARIOS

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import NODES
from leaderworkerset.api import labels
from lwsctl.diagnosis.causes.pendingmoves import find_pending_move
from lwsctl.diagnosis.diagnose import diagnose
from lwsctl.model.health import Verdict
from lwsctl.views.selection import Selection

MOVING: Any = {"readyReplicas": 3, "conditions": conditions(MoveInProgress="True")}
UPDATING: Any = {"conditions": conditions(MoveInProgress="True", UpdateInProgress="True")}
CLOSED: JSONObject = node("node-7") | {"spec": {"unschedulable": True}}
ON_IT: tuple[JSONObject, ...] = (ready(0, node="node-8"), ready(1, node="node-7"), ready(2, node="node-7"))


def waits(*pods: JSONObject, status: Any = MOVING, nodes: tuple[JSONObject, ...] | None = (CLOSED,)) -> str:
    """Return the sentence for three groups of one pod, or an empty string."""
    found = find_pending_move.find(observed(pods, {} if nodes is None else {NODES: nodes}, of=lws(3, 1, status=status)))
    return found.sentence if found else ""


@pytest.mark.parametrize(
    ("sentence", "pods", "given"),
    [
        ("groups 1-2 of web on closed node node-7 wait to be moved (1 group at a time)", ON_IT, {}),
        ("groups 1-2 of web on closed node node-7 wait to be moved (waiting for group 0 to be ready)", ON_IT[1:], {}),
        (
            "groups 1-2 of web on closed node node-7 wait to be moved (until the rollout replaces them)",
            ON_IT,
            {"status": UPDATING},
        ),
        ("at least one group of web waits to be moved (1 group at a time)", ON_IT, {"nodes": None}),
        ("", ON_IT, {"nodes": (node("node-7"),)}),
        ("", ON_IT, {"status": {}}),
    ],
    ids=["its turn", "another group", "a rollout", "nodes may not be read", "open again", "not reported"],
)
def test_waiting_move_names_its_reason(sentence: str, pods: tuple[JSONObject, ...], given: dict[str, Any]) -> None:
    assert waits(*pods, **given) == sentence


def test_group_with_a_requested_move_waits_on_any_node() -> None:
    marked = ready(2, node="node-8", metadata={"annotations": {labels.MOVE_GROUP: "true"}})
    assert waits(*ON_IT[:1], marked, nodes=(node("node-8"),)).startswith("group 2 of web waits to be moved")


def test_group_that_tolerates_its_node_does_not_wait() -> None:
    tolerant = ready(1, node="node-7", spec={"tolerations": [{"operator": "Exists"}]})
    assert waits(ON_IT[0], tolerant, ON_IT[0]) == ""


def test_waiting_group_names_the_group_that_it_waits_for() -> None:
    status = MOVING | {"readyReplicas": 2}
    pods = (placed(0, node="node-8"), *ON_IT[1:])
    told = diagnose(observed(pods, {NODES: (CLOSED,)}, of=lws(3, 1, status=status)), Selection("web", 1))
    waits = "group 1 of web on closed node node-7 waits to be moved (waiting for another group to be ready)"
    assert (told.code, told.sentence, told.steps[0]) == ("LWS-E094", waits, "lws -n prod explain web")


def test_group_that_need_not_move_is_healthy() -> None:
    assert diagnose(SCENARIOS["LWS-E094"], Selection("web", 1)).code == "LWS-E094"
    told = diagnose(SCENARIOS["LWS-E094"], Selection("web", 0))
    assert (told.verdict, told.sentence) == (Verdict.HEALTHY, "web/0 is ready")


@pytest.mark.parametrize(("partition", "code"), [(0, "LWS-E094"), (1, "LWS-E095")])
def test_partition_prevents_surge_groups_for_moves(partition: int, code: str) -> None:
    rolling = {"rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": 1, "partition": partition}}
    held = lws(3, 1, status=MOVING, rolloutStrategy={"type": "RollingUpdate"} | rolling)
    assert diagnose(observed(ON_IT, {NODES: (CLOSED,)}, of=held), Selection("web")).code == code
