"""Tests the evidence, restart counts, and records of failed groups."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests import builders
from tests.decisions import decide, reconcile

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from kuberuntime.plan import Action, Concurrently, Delete, Emit, Patch, PutStatus, flatten
from leaderworkerset.api import groupname, labels, leaderworkerset
from leaderworkerset.api.recreationrecord import Failure, Recreation, RecreationState
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.leaderworkerset import deploymentleaders, failedgroups, groupstate, outdatedleaders, revisions
from leaderworkerset.core.leaderworkerset.cachedapply import Identity, LastApply, Source
from leaderworkerset.core.leaderworkerset.decision import ObservedLeaderWorkerSet, PreviousResults, SetFacts
from leaderworkerset.core.leaderworkerset.gatedleaders import GatedLeaders
from leaderworkerset.core.leaderworkerset.groupindex import GroupIndex
from leaderworkerset.core.leaderworkerset.outline import RECHECK_DELETION
from leaderworkerset.core.policies import recreation
from leaderworkerset.core.policies.gang import NO_GANG
from leaderworkerset.core.restarts.counts import Key

LWS = builders.leaderworkerset_object(replicas=3)
HASH = builders.hash_object(replicas=3)
KEY = builders.key_of(LWS)


def kept(pod: JSONObject, **annotations: str) -> JSONObject:
    """Return a pod that is preserved as evidence."""
    added = {labels.PREFIX + name: text for name, text in annotations.items()}
    own = {"finalizers": [labels.GROUP_RESTART_BUDGET_CLEANUP], "deletionTimestamp": "2026-03-01T12:00:00Z"}
    return pod | {"metadata": pod["metadata"] | own | {"annotations": meta.annotations(pod) | added}}


def exhausted(leader: JSONObject, **annotations: str) -> JSONObject:
    return kept(leader, **{"group-restart-budget-exhausted": "true"} | annotations)


def evidence(index: int = 1, *, key: str = KEY, **annotations: str) -> list[JSONObject]:
    """Return the pods of an exhausted group with an ordinal."""
    leader = builders.leader_pod(LWS, index, key=key)
    return [exhausted(leader, **annotations), kept(builders.worker_pod(leader))]


def statefulset(*, replicas: int = 3, partition: int = 0, key: str = KEY, **metadata: Any) -> JSONObject:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web", "uid": "uid-of-set", "labels": {labels.TEMPLATE_REVISION_HASH: key}} | metadata,
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": groupname.leader_labels("web")},
            "updateStrategy": {"rollingUpdate": {"partition": partition}},
        },
        "status": {},
    }


def facts(
    obj: JSONObject, living: JSONObject | None, groups: Sequence[JSONObject], **fields: Sequence[JSONObject]
) -> SetFacts:
    described = [groupstate.describe(pod, None) for pod in groups]
    observed = ObservedLeaderWorkerSet(leaderworkerset=obj, groups=builders.by_leader(described), **fields)  # type: ignore[arg-type]
    lws = leaderworkerset.decode(obj)
    is_hash = lws.spec.group_identity.is_hash
    current = (
        None
        if living is None
        else (deploymentleaders.read_progress if is_hash else outdatedleaders.read_progress)(living)
    )
    revision = revisions.resolve(obj, "" if current is None else current.revision, ())
    return SetFacts(observed, obj, lws, revision, NO_GANG, living, GroupIndex(), current, is_hash)


def sort_out(
    pods: Sequence[JSONObject],
    *,
    obj: JSONObject = LWS,
    living: JSONObject | None = None,
    groups: Sequence[JSONObject] = (),
    records: Sequence[JSONObject] = (),
) -> tuple[list[str], set[Key]]:
    """Return the names of the released pods, and the groups whose restart counts are deleted."""
    found = failedgroups.find_failed_groups(facts(obj, living, groups, records=records, evidence=pods))
    return names(found.actions), set(found.reset_keys)


def names(actions: Sequence[Action]) -> list[str]:
    """Return the pods whose finalizer is removed."""
    patches = [patch for one in actions if isinstance(one, Concurrently) for (patch,) in one.sequences]
    assert all(isinstance(patch, Patch) and patch.resource == PODS for patch in patches)
    return [patch.key.name for patch in patches if isinstance(patch, Patch)]


def test_exhausted_group_is_kept() -> None:
    """The annotation has a different value, and the StatefulSet may be temporarily missing (N-RB-5, N-RB-6)."""
    assert sort_out(evidence(recover="yes"), living=statefulset()) == ([], set())
    assert sort_out(evidence()) == ([], set())


def test_recovered_group_is_deleted_and_loses_its_count() -> None:
    """Workers are deleted first (N-RB-5, N-AT-20)."""
    assert sort_out(evidence(recover="true"), living=statefulset()) == (["web-1-1", "web-1"], {Key(KEY, "1")})


def test_new_recovery_value_resumes_every_group() -> None:
    resumed = LWS | {"metadata": LWS["metadata"] | {"annotations": {labels.RESUME_GROUP_RESTARTS: "again"}}}
    leader, worker = evidence()
    record = record_of(leader)

    assert sort_out([leader, worker], living=statefulset(), records=[record]) == ([], set())
    assert sort_out([leader, worker], obj=resumed, living=statefulset(), records=[record])[0] == ["web-1-1", "web-1"]
    assert sort_out([leader, worker], obj=resumed, living=statefulset())[0] == []


def record_of(leader: JSONObject) -> JSONObject:
    found = Recreation(
        leader=meta.uid(leader),
        revision=KEY,
        count=2,
        due_at=builders.NOW,
        failure=Failure(pod="web-1-1"),
        state=RecreationState.EXHAUSTED,
    )
    return recreation.build(LWS, leader, found)


@pytest.mark.parametrize(
    ("living", "stays"),
    [
        (statefulset(replicas=2), True),
        (statefulset(replicas=1), False),
        (statefulset(key="new", partition=2), True),
        (statefulset(key="new", partition=1), False),
        (statefulset(key="", partition=0), True),
        (statefulset(uid="another"), False),
    ],
    ids=["kept", "scaled away", "below the partition", "rolled", "without revision", "of another StatefulSet"],
)
def test_evidence_is_deleted_when_its_group_would_be(living: JSONObject, stays: bool) -> None:
    """The restart count of the group is retained for a rollback (N-RB-6, N-RB-7, N-AT-21)."""
    assert sort_out(evidence(), living=living) == ([] if stays else ["web-1-1", "web-1"], set())


def test_group_without_a_number_is_never_scaled_down() -> None:
    leader = exhausted(builders.leader_pod(LWS, extra_labels={labels.GROUP_INDEX: "x"}, key=KEY))

    assert sort_out([leader], living=statefulset(replicas=0)) == ([], set())


def test_workers_without_an_exhausted_leader_are_released() -> None:
    """If a user removes the leader's finalizer, its workers are not preserved as evidence."""
    _, worker = evidence()
    unmarked = kept(builders.leader_pod(LWS, 2))

    assert sort_out([worker, unmarked], living=statefulset()) == (["web-1-1", "web-2"], set())


def deployment(key: str = KEY) -> JSONObject:
    return {"kind": "Deployment", "metadata": {"name": "web", "labels": {labels.TEMPLATE_REVISION_HASH: key}}}


def keyed(letter: str, **fields: Any) -> JSONObject:
    return builders.hash_leader(HASH, letter, key=fields.pop("key", KEY), **fields)


LIVE = [keyed("c"), keyed("d")]


@pytest.mark.parametrize(
    ("replicas", "groups", "left"),
    [
        (3, [*LIVE, keyed("x", gated=True)], "ab"),
        (4, [*LIVE, keyed("x", gated=True), keyed("y", gated=True)], "ab"),
        (3, [*LIVE, keyed("e")], ""),
        (2, [keyed("x", gated=True), keyed("y", gated=True), keyed("z", gated=True)], "a"),
        (2, [keyed("x", gated=True), keyed("y", gated=True), keyed("z", gated=True), keyed("w", gated=True)], ""),
        (0, [], ""),
    ],
    ids=["one too many", "enough places", "none", "others are recreated", "more are", "scaled to none"],
)
def test_oldest_evidence_is_kept_while_there_is_a_place(replicas: int, groups: list[JSONObject], left: str) -> None:
    """Leaders that wait for groups that are not exhausted are counted (N-RB-6, N-AT-14)."""
    obj = builders.hash_object(replicas=replicas)
    going = keyed("q", deleting=True)
    pods = [exhausted(keyed(letter)) for letter in "ba"]
    expected = {"ab": ["a"] if replicas == 3 else ["a", "b"], "a": ["a"], "": []}[left]

    released, cleared = sort_out(pods, obj=obj, living=deployment(), groups=[*groups, *pods, going])

    gone = [letter for letter in "ab" if letter not in expected]
    assert sorted(released) == [meta.name(keyed(letter)) for letter in gone]
    assert cleared == {Key(KEY, letter * 40) for letter in gone}


def test_evidence_of_an_older_template_or_set_is_deleted() -> None:
    """Evidence of an older template or a previous LeaderWorkerSet is deleted (N-RB-6)."""
    pods = [exhausted(keyed("a")), exhausted(keyed("b", key="old"))]
    obj = HASH | {"metadata": HASH["metadata"] | {"creationTimestamp": "2026-03-01T12:00:00Z"}}
    later = HASH | {"metadata": HASH["metadata"] | {"creationTimestamp": "2026-03-01T12:00:59Z"}}

    assert sort_out(pods, obj=obj, living=deployment())[0] == [meta.name(keyed("b"))]
    assert sort_out(pods, obj=obj, living=deployment(""))[0] == []
    assert sort_out(pods, obj=obj)[0] == []
    assert sort_out(pods, obj=later, living=deployment(""))[0] == [meta.name(keyed("a")), meta.name(keyed("b"))]


def kept_counts(
    counts: dict[str, int],
    *,
    obj: JSONObject = LWS,
    living: JSONObject | None = None,
    groups: Sequence[JSONObject] = (),
    admitted: Sequence[JSONObject] = (),
) -> dict[str, int]:
    """Return the remaining restart counts. A key contains a revision, a slash, and an index or a letter."""
    keys = {}
    for text, count in counts.items():
        revision, _, group = text.partition("/")
        keys[Key(revision, group if group.isdecimal() else group * 40)] = count
    found = failedgroups.retained_counts(facts(obj, living, groups), keys, admitted)
    return {f"{key.revision}/{key.group if key.group.isdecimal() else key.group[0]}": n for key, n in found.items()}


def test_ordinal_counts_are_deleted_with_their_groups() -> None:
    """Surge groups retain their restart counts (N-RB-11)."""
    counts = {"k/0": 1, "k/2": 1, "k/3": 1, "old/4": 2}

    assert kept_counts(counts) == {"k/0": 1, "k/2": 1}
    assert kept_counts(counts, living=statefulset(replicas=4)) == {"k/0": 1, "k/2": 1, "k/3": 1}
    with pytest.raises(ValueError, match="invalid group restart count key"):
        kept_counts({"k/x": 1})


def test_admitted_leader_takes_the_highest_count() -> None:
    """The highest count of the revision without a leader is used.

    If counts are equal, the smaller key is used (N-RB-13).
    """
    counts = {f"{KEY}/a": 2, f"{KEY}/b": 3, f"{KEY}/e": 3, f"{KEY}/c": 9, "old/f": 8}
    new = [keyed("x", gated=True), keyed("y", gated=True)]

    found = kept_counts(counts, obj=HASH, living=deployment(), groups=[keyed("c"), *new], admitted=new)

    assert found == {f"{KEY}/x": 3, f"{KEY}/y": 3, f"{KEY}/c": 9, "old/f": 8}


def test_leader_with_a_count_takes_no_other() -> None:
    """A leader with a restart count does not receive a second one (N-RB-13)."""
    new = keyed("x", gated=True)
    counts = {f"{KEY}/a": 2, f"{KEY}/x": 1}

    assert kept_counts(counts, obj=HASH, living=deployment(), groups=[new], admitted=[new]) == counts


def test_waiting_counts_are_limited_to_the_places() -> None:
    """The highest counts wait. An exhausted group occupies a slot and retains its count (N-RB-14, N-RB-15)."""
    gone = {f"{KEY}/a": 1, f"{KEY}/b": 3}
    counts = gone | {f"{KEY}/e": 5}
    groups = [keyed("c"), exhausted(keyed("e"))]

    assert kept_counts(counts, obj=HASH, living=deployment(), groups=groups) == {f"{KEY}/b": 3, f"{KEY}/e": 5}
    assert kept_counts(gone, obj=HASH, living=deployment(), groups=[keyed(letter) for letter in "cdef"]) == {}
    assert kept_counts(gone, obj=HASH) == gone


def observe(obj: JSONObject | None, living: JSONObject | None = None, **fields: Any) -> ObservedLeaderWorkerSet:
    known: dict[str, Any] = {"revisions": [builders.revision(LWS)], "service": builders.SETTLED} | fields
    return ObservedLeaderWorkerSet(leaderworkerset=obj, leader_workload=living, **known)


@pytest.mark.parametrize(
    ("obj", "living", "again"),
    [
        (None, None, None),
        (LWS | {"metadata": LWS["metadata"] | {"deletionTimestamp": "2026-03-01T12:00:00Z"}}, statefulset(), None),
        (LWS, statefulset(deletionTimestamp="2026-03-01T12:00:00Z"), RECHECK_DELETION),
    ],
    ids=["gone", "deleted", "leaders deleted"],
)
def test_deletion_releases_all_evidence(obj: JSONObject | None, living: JSONObject | None, again: float | None) -> None:
    """A deletion overrides all reasons to preserve evidence (N-RB-5)."""
    plan = reconcile(observe(obj, living, evidence=evidence()), builders.NOW)

    assert names(plan.actions) == ["web-1-1", "web-1"]
    assert plan.requeue_after == again


def counted(text: str) -> JSONObject:
    return LWS | {"metadata": LWS["metadata"] | {"annotations": {labels.GROUP_RESTART_COUNTS: text}}}


def test_recovered_group_is_released_after_its_count_is_cleared() -> None:
    """The next manager completes an interrupted operation (N-RB-5)."""
    pods = evidence(recover="true")

    first = reconcile(observe(counted(f'{{"{KEY}/1":2}}'), statefulset(), evidence=pods), builders.NOW)

    (patch,) = first.actions
    assert isinstance(patch, Patch)
    assert patch.resource == LEADERWORKERSETS
    assert patch.patch["metadata"]["annotations"] == {labels.GROUP_RESTART_COUNTS: None}
    then = reconcile(observe(LWS, statefulset(), evidence=pods), builders.NOW)
    assert names(then.actions) == ["web-1-1", "web-1"]


def test_counts_of_other_revisions_are_deleted_after_an_update() -> None:
    """Restart counts of other revisions are deleted after an update (N-RB-12)."""
    obj = builders.leaderworkerset_object(
        replicas=0, metadata={"annotations": {labels.GROUP_RESTART_COUNTS: '{"old/0":1}'}}
    )

    (patch,) = reconcile(observe(obj, statefulset(replicas=1)), builders.NOW).actions

    assert isinstance(patch, Patch)
    assert patch.patch["metadata"]["annotations"] == {labels.GROUP_RESTART_COUNTS: None}


def test_unreadable_counts_are_an_error() -> None:
    """Unreadable restart counts cause an error (N-RB-10)."""
    plan = reconcile(observe(counted("null"), statefulset()), builders.NOW)

    assert plan.error == "LeaderWorkerSet default/web: invalid group restart counts: expected a JSON object"
    notes = [event.note for action in plan.actions if isinstance(action, Emit) for event in action.events]
    assert notes == [
        f"Cannot reconcile: annotation {labels.GROUP_RESTART_COUNTS}: null: invalid group restart counts: expected a JSON object"
    ]


def test_leader_is_admitted_after_it_has_its_count() -> None:
    """A leader is admitted after it has received its restart count (N-RB-13)."""
    text = f'{{"{builders.key_of(HASH)}/{"a" * 40}":2}}'
    obj = HASH | {"metadata": HASH["metadata"] | {"annotations": {labels.GROUP_RESTART_COUNTS: text}}}
    new = builders.hash_leader(HASH, "x", gated=True)

    def observed(found: JSONObject) -> ObservedLeaderWorkerSet:
        living = builders.as_applied(
            deploymentleaders.build(found, leaderworkerset.decode(found), key=builders.key_of(HASH), size=3)
        )
        source = Source(Identity.from_object(found), builders.key_of(HASH), 3, 0)
        return ObservedLeaderWorkerSet(
            leaderworkerset=found,
            leader_workload=living,
            revisions=[builders.revision(HASH)],
            service=builders.SETTLED,
            groups=builders.by_leader([groupstate.describe(new, None)]),
            gated=GatedLeaders(leaders=[new]),
            known=PreviousResults(applied=LastApply(source, Identity.from_object(living))),
        )

    (claim,) = decide(observed(obj), builders.NOW).plan.actions
    assert isinstance(claim, Patch)
    claimed = claim.patch["metadata"]["annotations"]
    assert claimed == {labels.GROUP_RESTART_COUNTS: text.replace("a" * 40, "x" * 40)}
    then = decide(observed(obj | {"metadata": obj["metadata"] | {"annotations": claimed}}), builders.NOW).plan
    assert [type(action) for action in flatten(then.actions)] == [PutStatus, Patch]


def record(name: str, index: str = "") -> JSONObject:
    return {"metadata": {"name": f"{name}-recreations", "namespace": "default", "labels": {labels.GROUP_INDEX: index}}}


def test_records_of_scaled_down_groups_are_unused() -> None:
    group = groupstate.describe(builders.leader_pod(LWS, 1), None)
    records = [record("web-0", "0"), last := record("web-1", "1"), record("web-x", "x")]

    assert failedgroups.records_of_removed_groups(records, {}, 1) == [last]
    assert failedgroups.records_of_removed_groups([last], {}, 2) == []
    assert failedgroups.records_of_removed_groups([last], {"web-1": group}, 1) == []


def test_records_of_scaled_down_groups_are_deleted_at_rest() -> None:
    lws = builders.leaderworkerset_object(replicas=0)

    plan = reconcile(observe(lws, statefulset(replicas=0), records=[record("web-0", "0")]), builders.NOW)

    assert [one.key.name for one in plan.actions if isinstance(one, Delete)] == ["web-0-recreations"]
