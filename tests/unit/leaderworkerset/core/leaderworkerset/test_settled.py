"""A decision that knows what the one before found in order is the same decision."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from tests import builders
from tests.unit.leaderworkerset.core.leaderworkerset.test_reconcile import at_rest

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.core.leaderworkerset import settled
from leaderworkerset.core.leaderworkerset.reconcile import ObservedLeaderWorkerSet, decide, reconcile

REST = at_rest()
SEEN = decide(REST, builders.NOW).settled


def fresh(value: JSONObject) -> JSONObject:
    """Return the same object as another watch event brings it."""
    copy: JSONObject = msgspec.json.decode(msgspec.json.encode(value))
    return copy


def copied() -> ObservedLeaderWorkerSet:
    assert REST.leaderworkerset is not None
    assert REST.leader_statefulset is not None
    return replace(
        REST,
        leaderworkerset=fresh(REST.leaderworkerset),
        leader_statefulset=fresh(REST.leader_statefulset),
        revisions=[fresh(revision) for revision in REST.revisions],
    )


def test_what_is_in_order_is_described() -> None:
    assert SEEN is not None
    assert decide(copied(), builders.NOW).settled == SEEN


@pytest.mark.parametrize(
    "missing",
    [{"leaderworkerset": None}, {"leader_statefulset": None}, {"revisions": ()}],
    ids=["LeaderWorkerSet", "StatefulSet", "revision"],
)
def test_without_one_of_the_three_nothing_is_settled(missing: dict[str, Any]) -> None:
    assert decide(replace(REST, **missing), builders.NOW).settled is None


def test_an_error_settles_nothing() -> None:
    observed = copied()
    observed.leaderworkerset["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"] = 7  # type: ignore[index]

    decision = decide(observed, builders.NOW)

    assert decision.plan.error
    assert decision.settled is None


def _edit(*path: str | int, value: Any) -> Any:
    def edit(observed: ObservedLeaderWorkerSet) -> None:
        place: Any = {
            "lws": observed.leaderworkerset,
            "sts": observed.leader_statefulset,
            "revision": observed.revisions[0],
        }
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return edit


TEMPLATE = ("spec", "template", "spec", "containers", 0, "image")
CHANGES = {
    "nothing": _edit("lws", "metadata", "resourceVersion", value="2"),
    "status": _edit("sts", "status", value={"replicas": 1}),
    "image": _edit(
        "lws", "spec", "leaderWorkerTemplate", "workerTemplate", "spec", "containers", 0, "image", value="app:2"
    ),
    "replicas": _edit("lws", "spec", "replicas", value=3),
    "label": _edit("lws", "metadata", "labels", value={"team": "a"}),
    "annotation": _edit("lws", "metadata", "annotations", value={labels.EXCLUSIVE_TOPOLOGY: "rack"}),
    "another uid": _edit("lws", "metadata", "uid", value="other"),
    "StatefulSet's image": _edit("sts", *TEMPLATE, value="app:0"),
    "StatefulSet's replicas": _edit("sts", "spec", "replicas", value=1),
    "StatefulSet's partition": _edit("sts", "spec", "updateStrategy", "rollingUpdate", "partition", value=2),
    "StatefulSet's label": _edit("sts", "metadata", "labels", labels.NAME, value="other"),
    "StatefulSet's key": _edit("sts", "metadata", "labels", labels.TEMPLATE_REVISION_HASH, value="other"),
    "StatefulSet's annotation": _edit("sts", "metadata", "annotations", labels.REPLICAS, value="7"),
    "StatefulSet's owner": _edit("sts", "metadata", "ownerReferences", value=[]),
    "StatefulSet's fields": _edit("sts", "metadata", "managedFields", value=[]),
    "revision's data": _edit("revision", "data", "spec", "networkConfig", value={"subdomainPolicy": "Shared"}),
    "revision's number": _edit("revision", "revision", value=0),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_decision_is_the_same_with_what_was_settled_before(change: str) -> None:
    """Whatever changes between two decisions is seen by the second as if it were the first."""
    observed = copied()
    CHANGES[change](observed)

    assert reconcile(replace(observed, settled=SEEN), builders.NOW) == reconcile(observed, builders.NOW)


def test_a_plan_that_applies_settles_nothing() -> None:
    observed = copied()
    CHANGES["StatefulSet's image"](observed)

    decision = decide(replace(observed, settled=SEEN), builders.NOW)

    assert decision.plan.actions
    assert decision.settled is None


def test_nothing_is_copied() -> None:
    """What is kept between decisions are the objects that the caches hold anyway."""
    assert REST.leader_statefulset is not None
    assert REST.leaderworkerset is not None

    seen = settled.describe(REST.leaderworkerset, REST.leader_statefulset, REST.revisions)

    assert seen is not None
    assert seen.source[-1] is REST.leaderworkerset["spec"]
    assert seen.data is REST.revisions[0]["data"]


def test_an_edit_is_decided_as_if_nothing_had_been_read_before() -> None:
    observed = copied()
    template = observed.leaderworkerset["spec"]["leaderWorkerTemplate"]  # type: ignore[index]
    template["workerTemplate"]["spec"]["containers"][0]["image"] = "app:1.2"
    known = replace(observed, settled=SEEN)

    assert SEEN is not None
    assert SEEN.reading is not None
    assert decide(known, builders.NOW) == decide(observed, builders.NOW)
    assert decide(known, builders.NOW).plan.actions


def test_bytes_that_go_does_not_write_are_not_taken_over() -> None:
    observed = copied()
    revision = observed.revisions[0]
    revision["data"]["spec"]["leaderWorkerTemplate"]["unknown"] = 1

    found = decide(observed, builders.NOW).settled

    assert found is not None
    assert found.reading is None
