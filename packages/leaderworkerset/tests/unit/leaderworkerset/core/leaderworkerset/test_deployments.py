"""Tests the Deployment of leaders with random keys, and the resulting status."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests import builders
from tests.decisions import decide, reconcile
from tests.unit.leaderworkerset.core.leaderworkerset.test_reconcile import reads

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, DEPLOYMENTS, PODS
from kuberuntime.plan import Apply, Concurrently, Create, Delete, Patch, Plan, PutStatus, flatten
from leaderworkerset.api import groupname, labels, leaderworkerset
from leaderworkerset.core.leaderworkerset import deploymentleaders, groupstate
from leaderworkerset.core.leaderworkerset.cachedapply import Identity, LastApply, Source
from leaderworkerset.core.leaderworkerset.decision import NO_RESULTS, ObservedLeaderWorkerSet, PreviousResults
from leaderworkerset.core.leaderworkerset.gatedleaders import GatedLeaders
from leaderworkerset.core.leaderworkerset.outline import RECHECK_DELETION, Read
from leaderworkerset.core.policies.policy import NO_SERVICE

LWS = builders.hash_object(replicas=3)
EDITED = builders.hash_object(replicas=3, image="app:2", metadata={"generation": 2})


def deployment(lws: JSONObject = LWS, *, observed: bool = True, **counts: int) -> JSONObject:
    """Return the stored Deployment of a LeaderWorkerSet. By default, all leaders are ready and updated."""
    desired = deploymentleaders.build(
        lws, leaderworkerset.decode(lws), key=builders.key_of(lws), size=meta.spec(lws)["replicas"]
    )
    replicas = meta.spec(lws)["replicas"]
    whole = {"replicas": replicas, "readyReplicas": replicas, "updatedReplicas": replicas} | counts
    live = builders.as_applied(desired, status=whole | {"observedGeneration": 1 if observed else 0})
    return live | {"metadata": live["metadata"] | {"generation": 1}}


def observe(lws: JSONObject, live: JSONObject | None, leaders: str = "abc", **fields: Any) -> ObservedLeaderWorkerSet:
    """Return an observation. The leaders in `letters` have the revision of the Deployment."""
    key = "" if live is None else groupname.revision_key(live)
    pods = [builders.hash_leader(lws, letter, key=key) for letter in leaders]
    known: dict[str, Any] = {"revisions": [builders.revision(lws)], "service": builders.SETTLED} | fields
    if live is not None and "known" not in known:
        source = Source(Identity.from_object(lws), key, meta.spec(lws)["replicas"], 0)
        known["known"] = PreviousResults(applied=LastApply(source, Identity.from_object(live)))
    return ObservedLeaderWorkerSet(
        leaderworkerset=lws,
        leader_workload=live,
        groups=builders.by_leader(groupstate.describe(pod, None) for pod in pods),
        **known,
    )


def conditions(plan: Plan) -> dict[str, str]:
    """Return the conditions in a plan. Include `Degraded` only if it is True."""
    (written,) = [action for action in plan.actions if isinstance(action, PutStatus)]
    found = {one["type"]: one["status"] for one in meta.status(written.object)["conditions"]}
    assert [*found][-1] == "Degraded"
    return {kind: status for kind, status in found.items() if (kind, status) != ("Degraded", "False")}


def test_deployment_has_the_expected_fields() -> None:
    """Surge and unavailability are copied. Groups with workers have a readiness gate (section 5.2)."""
    lws = builders.hash_object(replicas=3, size=2, rollout={"maxSurge": "50%", "maxUnavailable": 0})

    built = deploymentleaders.build(lws, leaderworkerset.decode(lws), key="k", size=3)

    own = {labels.NAME: "web", labels.TEMPLATE_REVISION_HASH: "k"}
    assert built["metadata"] == {
        "name": "web",
        "namespace": "default",
        "labels": own | {labels.ROLE: "leader"},
        "annotations": {labels.REPLICAS: "3"},
        "ownerReferences": [meta.controller_reference(lws)],
    }
    template = built["spec"].pop("template")
    assert built["spec"] == {
        "replicas": 3,
        "selector": {"matchLabels": {labels.NAME: "web", labels.WORKER_INDEX: "0"}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": "50%"}},
    }
    assert template["metadata"]["labels"] == own | {labels.WORKER_INDEX: "0"}
    assert template["metadata"]["annotations"] == {labels.SIZE: "2", labels.GROUP_IDENTITY: "Hash"}
    assert template["spec"]["subdomain"] == "web"
    assert template["spec"]["readinessGates"] == [{"conditionType": labels.GROUP_READY}]


def test_leaders_without_workers_have_no_readiness_gate() -> None:
    alone = builders.hash_object(size=1)

    built = deploymentleaders.build(alone, leaderworkerset.decode(alone), key="k", size=1)

    assert "readinessGates" not in built["spec"]["template"]["spec"]


def test_new_set_gets_revision_deployment_and_service() -> None:
    """A new LeaderWorkerSet creates a revision, a Deployment and a Service (N-HASH-1, N-HASH-2)."""
    plan = reconcile(observe(LWS, None, "", revisions=(), service=NO_SERVICE), builders.NOW)

    assert [type(action) for action in plan.actions] == [Create, Apply, Create]
    apply = plan.actions[1]
    assert isinstance(apply, Apply)
    assert (apply.resource, apply.manager) == (DEPLOYMENTS, "lws")
    assert [event.note for event in apply.on_success] == ["Created leader deployment web"]
    assert [event.note for event in apply.on_failure] == ["Failed to create leader deployment web: {error}"]


def test_reconcile_writes_nothing_at_rest() -> None:
    live = deployment()
    first = reconcile(observe(LWS, live), builders.NOW)
    (written,) = first.actions
    assert isinstance(written, PutStatus)
    assert conditions(first) == {"Available": "True"}
    assert meta.status(written.object)["readyReplicas"] == 3

    done = LWS | {"status": meta.status(written.object)}
    assert reconcile(observe(done, live), builders.NOW) == Plan()


def test_terminating_deployment_is_awaited() -> None:
    """The manager waits for a terminating Deployment (N-HASH-1)."""
    live = deployment()
    going = live | {"metadata": live["metadata"] | {"deletionTimestamp": "2026-03-01T12:00:00Z"}}

    assert reconcile(observe(LWS, going), builders.NOW) == Plan(requeue_after=RECHECK_DELETION)


def test_deleted_set_is_not_reconciled() -> None:
    """The gates of the LeaderWorkerSet's leaders remain closed (N-GATE-6)."""
    going = LWS | {"metadata": LWS["metadata"] | {"deletionTimestamp": "2026-03-01T12:00:00Z"}}
    gated = GatedLeaders(leaders=[builders.hash_leader(LWS, "d", gated=True)])

    assert reconcile(observe(going, deployment(), "ab", gated=gated), builders.NOW) == Plan()


def test_update_continues_until_the_deployment_is_observed() -> None:
    """Both revisions exist until all groups have the new revision and are ready (N-AT-1)."""
    both = [builders.revision(LWS), builders.revision(EDITED, number=2)]
    old = deployment()

    begun = reconcile(observe(EDITED, old, revisions=both), builders.NOW)
    assert conditions(begun) == {"UpdateInProgress": "True", "Progressing": "True"}
    paused = deployment(EDITED, observed=False)
    waiting = observe(EDITED, paused, revisions=both)
    assert conditions(reconcile(waiting, builders.NOW)) == {"UpdateInProgress": "True", "Progressing": "True"}
    assert reads(waiting) == set()
    rolled = observe(EDITED, deployment(EDITED), revisions=both)
    assert conditions(reconcile(rolled, builders.NOW)) == {"Available": "True"}
    assert reads(rolled) == {Read.HISTORY}


@pytest.mark.parametrize(
    ("counts", "leaders", "older", "expected"),
    [
        ({}, "ab", False, {"Progressing": "True"}),
        ({"readyReplicas": 2}, "abc", False, {"Progressing": "True"}),
        ({"updatedReplicas": 2}, "abc", True, {"UpdateInProgress": "True", "Progressing": "True"}),
        ({"readyReplicas": 2}, "abc", True, {"Progressing": "True"}),
        ({}, "ab", True, {"UpdateInProgress": "True", "Progressing": "True"}),
    ],
    ids=["scaled up", "one fails", "rolls", "last step", "last step, a leader is missing"],
)
def test_conditions_follow_from_the_groups(
    counts: dict[str, Any], leaders: str, older: bool, expected: dict[str, str]
) -> None:
    """A later failure of a group does not start an update. An update continues until all leaders have its revision.

    Rules N-AT-7, N-ST-11.
    """
    known = [builders.revision(LWS), *([builders.revision(EDITED, number=2)] if older else [])]

    plan = reconcile(observe(LWS, deployment(**counts), leaders, revisions=known), builders.NOW)

    assert conditions(plan) == expected


def test_set_without_groups_is_available() -> None:
    """Without groups, the `Available` condition is True (N-ST-2)."""
    empty = builders.hash_object(replicas=0)

    assert conditions(reconcile(observe(empty, deployment(empty), ""), builders.NOW)) == {"Available": "True"}


def test_leader_of_a_different_revision_means_an_update() -> None:
    observed = observe(
        LWS, deployment(), "abc", revisions=[builders.revision(LWS), builders.revision(EDITED, number=2)]
    )
    old = groupstate.describe(builders.hash_leader(LWS, "d", key="old"), None)
    groups = [*observed.groups.values(), old]

    leaders = deploymentleaders.Leaders(deployment(), groups, builders.key_of(LWS), has_older=True)

    assert not deploymentleaders.is_current(leaders)


def test_groups_with_a_foreign_service_are_not_ready() -> None:
    observed = replace(observe(LWS, deployment(), "abc"), unreachable=frozenset({"web-a"}))

    (write,) = [action for action in reconcile(observed, builders.NOW).actions if isinstance(action, PutStatus)]

    assert meta.status(write.object)["readyReplicas"] == meta.status(deployment())["readyReplicas"] - 1
    assert conditions(reconcile(observed, builders.NOW))["Progressing"] == "True"


def test_gates_open_when_the_deployment_is_current() -> None:
    new = builders.hash_leader(LWS, "d", gated=True)
    gated = GatedLeaders(leaders=[new], ending={"gone": "~"}, surplus={"gone": True})

    let_go = decide(observe(LWS, deployment(), "ab", gated=gated), builders.NOW)
    (patch,) = [action for action in flatten(let_go.plan.actions) if not isinstance(action, PutStatus)]
    assert isinstance(patch, Patch)
    assert (patch.resource, patch.key.name, let_go.surplus) == (PODS, meta.name(new), {"gone": True})
    moving = decide(observe(LWS, deployment(), "ab", gated=gated, known=NO_RESULTS), builders.NOW)
    assert not any(isinstance(action, Concurrently) for action in moving.plan.actions)
    assert (moving.surplus, moving.plan.requeue_after) == ({"gone": True}, 0)


def test_unused_records_are_deleted() -> None:
    lws = LWS
    records = [
        {"metadata": {"name": f"web-7d9f8b6c4-{letter * 5}-recreations", "namespace": "default", "uid": letter}}
        for letter in "abx"
    ]

    plan = reconcile(observe(lws, deployment(), records=records), builders.NOW)

    deleted = [action.key.name for action in plan.actions if isinstance(action, Delete)]
    assert deleted == ["web-7d9f8b6c4-xxxxx-recreations"]
    assert all(action.resource == CONTROLLER_REVISIONS for action in plan.actions if isinstance(action, Delete))


PROGRESSING = {"type": "Progressing", "status": "True"}
FAILING = {"type": "ReplicaFailure", "status": "True", "lastTransitionTime": "2026-01-01T00:00:30Z"}
FAILED_BEFORE = FAILING | {"lastTransitionTime": "2026-01-01T00:00:29Z"}
CREATED = "2026-01-01T00:00:30Z"
STANDING = {"type": "Progressing", "status": "False"}


@pytest.mark.parametrize(
    ("wanted", "revisions_of_leaders", "observed", "found", "expected"),
    [
        (2, "ooo", True, [PROGRESSING], 3),
        (2, "oon", True, [PROGRESSING], 2),
        (2, "nnn", True, [PROGRESSING], 2),
        (2, "nnn", False, [PROGRESSING], 3),
        (2, "", True, [PROGRESSING], 2),
        (4, "ooo", True, [PROGRESSING], 4),
        (2, "ooo", True, [PROGRESSING, FAILING], 2),
        (2, "ooo", True, [PROGRESSING, FAILED_BEFORE], 3),
        (2, "ooo", True, [STANDING], 2),
        (2, "ooo", True, [], 3),
    ],
    ids=[
        "begins",
        "has begun",
        "none",
        "not observed",
        "no leaders",
        "grows",
        "fails",
        "failed before",
        "stands",
        "not seen yet",
    ],
)
def test_rollout_surges_before_it_scales_down(
    wanted: int, revisions_of_leaders: str, observed: bool, found: list[JSONObject], expected: int
) -> None:
    live = deployment(EDITED, observed=observed)
    live = live | {"status": meta.status(live) | {"conditions": found}}
    keys = {"o": "old", "n": builders.key_of(EDITED)}
    leaders = [builders.hash_leader(EDITED, f"{n}", key=keys[one]) for n, one in enumerate(revisions_of_leaders)]
    groups = [groupstate.describe(leader, None) for leader in leaders]
    lws = leaderworkerset.decode(builders.hash_object(replicas=wanted))

    assert deploymentleaders.deployment_replicas(lws, live, groups, 3, CREATED) == expected
    assert deploymentleaders.deployment_replicas(lws, live, groups, None, CREATED) == expected


def test_deployment_is_applied_with_its_temporary_size() -> None:
    small = builders.hash_object(replicas=2, image="app:2", metadata={"generation": 3})
    live = deployment(EDITED)
    live = live | {"status": meta.status(live) | {"conditions": [PROGRESSING]}}
    old = [groupstate.describe(builders.hash_leader(LWS, letter, key="old"), None) for letter in "abc"]
    begun = replace(observe(small, live, "", known=NO_RESULTS), groups=builders.by_leader(old))
    new = groupstate.describe(builders.hash_leader(small, "d", key=builders.key_of(small)), None)

    assert [applied_size(one) for one in (begun, replace(begun, groups=builders.by_leader([*old, new])))] == [3, 2]


def applied_size(observed: ObservedLeaderWorkerSet) -> int:
    (apply,) = [one for one in reconcile(observed, builders.NOW).actions if isinstance(one, Apply)]
    return int(meta.spec(apply.object)["replicas"])


@pytest.mark.parametrize(
    ("counts", "leaders", "older", "expected"),
    [
        (
            {"readyReplicas": 2},
            "abc",
            False,
            {"Available": "False", "Progressing": "False", "UpdateInProgress": "False"},
        ),
        (
            {"readyReplicas": 1},
            "abc",
            False,
            {"Available": "False", "Progressing": "True", "UpdateInProgress": "False"},
        ),
        (
            {"readyReplicas": 2, "updatedReplicas": 1},
            "abc",
            True,
            {"Available": "False", "Progressing": "False", "UpdateInProgress": "True"},
        ),
        (
            {"readyReplicas": 3},
            "abc",
            False,
            {"Available": "False", "Progressing": "False", "UpdateInProgress": "False"},
        ),
    ],
    ids=["nothing else moves", "another starts", "rolls", "not deleted yet"],
)
def test_exhausted_groups_set_the_degraded_condition(
    counts: dict[str, Any], leaders: str, older: bool, expected: dict[str, str]
) -> None:
    """Exhausted groups set the `Degraded` condition (N-ST-4 to N-ST-6, N-ST-11, N-ST-12)."""
    known = [builders.revision(LWS), *([builders.revision(EDITED, number=2)] if older else [])]
    observed = observe(LWS, deployment(**counts), leaders, revisions=known)
    mark = {labels.GROUP_RESTART_BUDGET_EXHAUSTED: "true"}
    one = builders.hash_leader(LWS, "z", annotations=mark, deleting=counts["readyReplicas"] < 3)
    degraded = replace(observed, groups=builders.by_leader([*observed.groups.values(), groupstate.describe(one, None)]))

    plan = reconcile(degraded, builders.NOW)

    assert conditions(plan) == expected | {"Degraded": "True"}
