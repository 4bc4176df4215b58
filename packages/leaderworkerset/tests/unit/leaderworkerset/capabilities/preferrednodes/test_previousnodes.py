"""Tests how a group's nodes are recorded, which pods prefer them, and which node is avoided."""

from datetime import timedelta
from functools import partial

import pytest
from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS, STATEFULSETS
from kuberuntime.plan import Apply, Create, Patch
from leaderworkerset.api import groupname, labels, leaderworkerset, recreationrecord
from leaderworkerset.api.recreationrecord import Failure, Recreation
from leaderworkerset.capabilities.deciding import admit_pod
from leaderworkerset.capabilities.deciding import reconcile_group as reconcile
from leaderworkerset.capabilities.preferrednodes import previousnodes
from leaderworkerset.capabilities.preferrednodes.previousnodes import NOWHERE, PreviousNodes
from leaderworkerset.core.leaderworkerset import budget, statefulsets
from leaderworkerset.core.leaderworkerset.rollingupdate import RolloutCase, RolloutStep
from leaderworkerset.core.policies import recreation
from leaderworkerset.core.policies.placement import PREFERENCES
from leaderworkerset.core.policies.policy import LiveGroup, Member

STAYS = {"annotations": {labels.STAY_ON_NODES: "Preferred"}}
LWS = builders.leaderworkerset_object(metadata=STAYS)
LEADER = builders.leader_pod(LWS, node="a", annotations={labels.SIZE: "2"})
WORKER = builders.worker_pod(LEADER, node="b")
SET = builders.worker_statefulset(LEADER)


group = partial(builders.whole_group, lws=LWS, leader=LEADER)


def record(
    nodes: str, *, leader: str = "before", failed: str = "before", count: int = 0, pod: str = "web-0-1"
) -> JSONObject:
    """Return the nodes of the leader with this UID. With a count, also return the recreation for a `failed` pod."""
    last = Recreation(
        leader=UID(failed), revision="", count=count, due_at=builders.NOW - timedelta(1), failure=Failure(pod=pod)
    )
    obj = recreation.build(LWS, LEADER, last)
    noted = {labels.FORMER_NODES: nodes, labels.FORMER_LEADER: leader}
    known = meta.annotations(obj) if count else {}
    return obj | {"metadata": obj["metadata"] | {"annotations": known | noted}}


def preference(operator: str, node: str) -> JSONObject:
    field = {"key": "metadata.name", "operator": operator, "values": [node]}
    return {"weight": 100, "preference": {"matchFields": [field]}}


def applied(observed: LiveGroup) -> list[JSONObject]:
    return [meta.annotations(one.object) for one in reconcile(observed).actions if isinstance(one, Apply)]


def test_nodes_are_recorded_when_all_pods_have_one() -> None:
    """The record of the group's recreations also contains the nodes, with a separate field manager."""
    (action,) = reconcile(group(WORKER)).actions
    assert isinstance(action, Apply)
    assert (action.resource, action.manager) == (CONTROLLER_REVISIONS, "lws-places")
    noted = {labels.FORMER_NODES: "a,b", labels.FORMER_LEADER: "uid-of-web-0"}
    assert meta.annotations(action.object) == noted
    assert meta.name(action.object) == recreationrecord.record_name(LEADER)
    assert recreationrecord.read(action.object) is None
    assert applied(group(WORKER, record=action.object)) == []


@pytest.mark.parametrize(
    "workers",
    [(), (builders.worker_pod(LEADER),), (builders.worker_pod(LEADER, 2, node="b"),)],
    ids=["a worker is missing", "a worker has no node", "another rank"],
)
def test_incomplete_group_is_not_recorded(workers: tuple[JSONObject, ...]) -> None:
    assert applied(group(*workers)) == []


def test_new_leader_is_recorded_on_unchanged_nodes() -> None:
    assert applied(group(WORKER, record=record("a,b"))) == applied(group(WORKER))


def test_nodes_are_neither_recorded_nor_used_without_annotation() -> None:
    other = builders.leaderworkerset_object()
    assert reconcile(group(WORKER, lws=other)).actions == ()
    assert previousnodes.previous_nodes(other, record("a,b")) == NOWHERE
    assert previousnodes.previous_nodes(LWS, None) == NOWHERE


def test_record_is_truncated_to_the_first_ranks() -> None:
    name = "n" * 200
    size = previousnodes.LONGEST // 201 + 9
    leader = builders.leader_pod(LWS, node=name, annotations={labels.SIZE: str(size)})
    workers = [builders.worker_pod(leader, rank, node=name) for rank in range(1, size)]
    (noted,) = applied(group(*workers, leader=leader))
    assert noted[labels.FORMER_NODES].split(",") == [name] * (previousnodes.LONGEST // 201)


@pytest.mark.parametrize(
    ("count", "pod", "avoided"),
    [(1, "web-0-1", ""), (2, "web-0-1", "b"), (3, "web-0", "a"), (2, "web-0-7", ""), (2, "odd", "")],
)
def test_node_is_avoided_after_two_failures_in_a_row(count: int, pod: str, avoided: str) -> None:
    assert previousnodes.previous_nodes(LWS, record("a,b", count=count, pod=pod)) == PreviousNodes(("a", "b"), avoided)


def test_failure_of_an_earlier_leader_is_ignored() -> None:
    found = record("a,b", count=5, leader="another")
    assert previousnodes.previous_nodes(LWS, found) == PreviousNodes(("a", "b"))


def test_record_of_an_earlier_set_is_ignored() -> None:
    found = record("a,b")
    found["metadata"]["ownerReferences"] = [
        meta.controller_reference(LWS | {"metadata": LWS["metadata"] | {"uid": "x"}})
    ]
    assert previousnodes.previous_nodes(LWS, found) == NOWHERE


@pytest.mark.parametrize(("text", "nodes"), [("", ()), (",,", ()), ("a,B!,c", ("a", "", "c")), ("x" * 300, ())])
def test_invalid_node_names_are_ignored(text: str, nodes: tuple[str, ...]) -> None:
    """Users with access to the annotation can write any string, and the API server would reject the pod."""
    assert previousnodes.previous_nodes(LWS, record(text)).nodes == nodes


def test_each_rank_prefers_its_node_and_avoids_the_failed_one() -> None:
    found = PreviousNodes(("a", "b"), "b")
    assert found.preferences(0) == [preference("In", "a"), preference("NotIn", "b")]
    assert found.preferences(1) == found.preferences(2) == [preference("NotIn", "b")]
    assert NOWHERE.preferences(0) == []


def test_workers_get_their_preference_at_admission() -> None:
    """A second admission does not change the pod (N-AT-3)."""
    plan = reconcile(group(statefulsets=(), record=record("a,b", count=2)))
    (made,) = [one.object for one in plan.actions if isinstance(one, Create) and one.resource == STATEFULSETS]
    template = meta.spec(made)["template"]
    listed = {labels.FORMER_NODES: "a,b", labels.AVOIDED_NODE: "b"}
    assert listed.items() <= meta.annotations(template).items()
    for rank, preferences in ((1, [preference("NotIn", "b")]), (3, [preference("NotIn", "b")])):
        pod = template | {"kind": "Pod", "metadata": template["metadata"] | {"name": f"web-0-{rank}"}}
        admitted = admit_pod(pod)
        assert meta.spec(admitted)["affinity"] == {"nodeAffinity": {PREFERENCES: preferences}}
        assert not meta.annotations(admitted).keys() & listed.keys()
        assert admit_pod(admitted) == admitted


def test_preferences_of_the_user_are_kept() -> None:
    own = {"podAffinity": {"x": []}, "nodeAffinity": {PREFERENCES: [preference("In", "z")], "required": 1}}
    listed = meta.annotations(WORKER) | {labels.FORMER_NODES: "a,b"}
    pod = WORKER | {
        "spec": WORKER["spec"] | {"affinity": own},
        "metadata": WORKER["metadata"] | {"annotations": listed},
    }
    admitted = previousnodes.admit(pod, Member(size=2, worker_index=1, is_leader=False))
    assert meta.spec(admitted)["affinity"] == own | {
        "nodeAffinity": {PREFERENCES: [preference("In", "z"), preference("In", "b")], "required": 1}
    }


def test_gated_leader_gets_its_preference_when_the_gate_opens() -> None:
    marked = builders.leader_pod(LWS, annotations={labels.STAY_ON_NODES: "Preferred", labels.SIZE: "2"})
    admitted = admit_pod(marked)
    assert meta.spec(admitted)["schedulingGates"] == [{"name": labels.REPLACEMENT_GATE}]
    (opened,) = reconcile(group(leader=admitted, statefulsets=(), record=record("a,b"))).actions
    assert opened == Patch(
        resource=PODS,
        key=meta.key(admitted),
        patch={
            "metadata": {"uid": meta.uid(admitted)},
            "spec": {
                "schedulingGates": None,
                "affinity": {"nodeAffinity": {PREFERENCES: [preference("In", "a")]}},
            },
        },
        if_present=True,
    )
    (without,) = reconcile(group(leader=admitted, statefulsets=())).actions
    assert isinstance(without, Patch)
    assert without.patch["spec"] == {"schedulingGates": None}


def test_leaders_are_marked_with_a_new_revision_only() -> None:
    """The annotation would change the leader template and replace all groups."""

    def marked(obj: JSONObject, living: JSONObject | None, key: str = "new") -> bool:
        lws = leaderworkerset.decode(obj)
        step = RolloutStep(RolloutCase.ROLLING, 0, 2)
        template = (
            None if living is None or groupname.revision_key(living) != key else living["spec"].get("template", {})
        )
        marks = previousnodes.gate_annotations(lws, template)
        made = statefulsets.build(obj, lws, key=key, limits=budget.read(lws.spec), step=step, marks=marks)
        return labels.STAY_ON_NODES in meta.annotations(meta.spec(made)["template"])

    plain = builders.leaderworkerset_object()
    unmarked: JSONObject = {"metadata": {"labels": {labels.TEMPLATE_REVISION_HASH: "old"}}, "spec": {}}
    known = unmarked | {"spec": {"template": {"metadata": STAYS}}}
    assert marked(LWS, None)
    assert marked(LWS, unmarked)
    assert not marked(LWS, unmarked, "old")
    assert marked(plain, known, "old")
    assert not marked(plain, known)
    assert not marked(plain, None)


def test_invalid_same_nodes_value_is_rejected() -> None:
    key = labels.STAY_ON_NODES
    (error,) = previousnodes.errors(builders.annotated({key: "Always"}))
    assert str(error) == f'metadata.annotations.{key}: Invalid value: "Always": must be Preferred'
    assert (
        list(previousnodes.errors(builders.annotated({key: "Preferred"})))
        == list(previousnodes.errors(builders.annotated({})))
        == []
    )
