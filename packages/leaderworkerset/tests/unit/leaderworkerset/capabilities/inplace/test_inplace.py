"""Tests which groups a rollout updates in place or recreates (docs/adr/0024-update-in-place.md)."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests import builders, scheduled
from tests.decisions import decide
from tests.unit.leaderworkerset.core.leaderworkerset import test_reconcile as cases

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS, STATEFULSETS
from kuberuntime.plan import Apply, Delete, Patch, flatten
from leaderworkerset.api import groupname, labels
from leaderworkerset.capabilities.inplace import inplace
from leaderworkerset.capabilities.inplace.inplace import InPlace
from leaderworkerset.core.leaderworkerset import groupstate
from leaderworkerset.core.leaderworkerset.decision import ObservedLeaderWorkerSet, PreviousResults
from leaderworkerset.core.leaderworkerset.groupindex import index_groups
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts
from leaderworkerset.core.leaderworkerset.outline import Read
from leaderworkerset.core.policies.gang import NO_GANG

WAY = labels.IN_PLACE


def lws(image: str = "app:1", way: str = "IfPossible", **fields: Any) -> JSONObject:
    """Return a LeaderWorkerSet of four groups of two pods."""
    annotations = {WAY: way} if way else {}
    return builders.leaderworkerset_object(image=image, replicas=4, metadata={"annotations": annotations}, **fields)


OLD, NEW, OTHER = lws("app:1"), lws("app:2"), lws("app:1", size=3)
KEY = builders.key_of(NEW)


def facts(index: int, letter: str, key: str = KEY) -> GroupFacts:
    """Return a group. O is old, N is new, o and n are the same but not ready. M is marked for `key`.

    The letter m is marked for another revision.

    R is marked and has the labels of `key`, and its nodes cannot resize it.
    """
    is_new = letter in "NnR"
    revision, is_ready = builders.key_of(NEW if is_new else OLD), letter in "ON"
    workers = groupstate.Workers(is_ready=is_ready, revision=revision, group_index=str(index))
    return GroupFacts(
        leader=f"web-{index}", group_index=str(index), index=index, is_leader_ready=is_ready, revision=revision,
        workers=workers, statefulset_revision="web-new" if is_new else "web-old", original_size=2,
        target_revision={"M": key, "R": key, "m": "another"}.get(letter, ""), is_rejected=letter == "R", is_deleting=letter == "x",
    )  # fmt: skip


def rolling(letters: str, obj: JSONObject = NEW, *, partition: int = 4, observed: int = 3) -> ObservedLeaderWorkerSet:
    """Return a rollout whose leader StatefulSet blocks the groups below the partition."""
    key = builders.key_of(obj)
    statefulset = cases.live(obj, partition=partition, replicas=4)
    statefulset["metadata"] |= {"generation": 3}
    statefulset["status"] = {
        "replicas": 4, "observedGeneration": observed, "updateRevision": "web-new", "currentRevision": "web-old",
        "updatedReplicas": sum(map(letters.count, "NnR")),
    }  # fmt: skip
    return ObservedLeaderWorkerSet(
        leaderworkerset=obj,
        leader_workload=statefulset,
        revisions=[builders.revision(one, number=number) for number, one in enumerate((OLD, NEW, OTHER))]
        + ([] if key in map(builders.key_of, (OLD, NEW, OTHER)) else [builders.revision(obj, number=9)]),
        service=builders.SETTLED,
        groups=builders.by_leader(facts(index, letter, key) for index, letter in enumerate(letters)),
        known=PreviousResults(applied=builders.applied(obj, statefulset)),
    )


def marked(observed: ObservedLeaderWorkerSet) -> list[str]:
    patches = [one for one in flatten(decide(observed, builders.NOW).plan.actions) if isinstance(one, Patch)]
    return [one.key.name for one in patches if one.resource == PODS]


def partitions(observed: ObservedLeaderWorkerSet) -> list[int]:
    """Return the written partition, or None if it is not written."""
    applied = [one for one in flatten(decide(observed, builders.NOW).plan.actions) if isinstance(one, Apply)]
    found = [one.object["spec"]["updateStrategy"] for one in applied if one.resource == STATEFULSETS]
    return [one["rollingUpdate"]["partition"] for one in found]


@pytest.mark.parametrize(
    ("letters", "partition", "marks", "written"),
    [
        ("OOOO", 4, ["web-3"], []),
        ("OOOM", 4, [], []),
        ("OOON", 4, [], [3]),
        ("OOON", 3, ["web-2"], []),
        ("OOOn", 4, [], [3]),
        ("OOoO", 4, [], []),
        ("OOOo", 4, [], [3]),
        ("OOOx", 4, [], [3]),
        ("NNNN", 1, [], [0]),
        ("OOOm", 4, ["web-3"], []),
    ],
    ids=[
        "the highest is marked", "and waited for", "the partition falls below it", "then the next one",
        "also while it starts", "a broken one below is replaced first", "what is not ready is recreated", "so is what ends",
        "the end", "on the way to another revision",
    ],
)  # fmt: skip
def test_rollout_marks_groups_in_order_before_the_partition(
    letters: str, partition: int, marks: list[str], written: list[int]
) -> None:
    """The number of marked groups equals the number that the partition would release (R-ROLL-6, R-ROLL-7)."""
    observed = rolling(letters, partition=partition)
    assert (marked(observed), partitions(observed)) == (marks, written)


def test_partition_waits_until_the_leader_is_counted() -> None:
    """The StatefulSet controller deletes the leader if it observes the partition before the leader's label."""
    observed = rolling("OOON")
    (observed.leader_workload or {})["status"]["updatedReplicas"] = 0
    assert (marked(observed), partitions(observed)) == (["web-2"], [])


def test_rollout_marks_as_many_groups_as_may_be_unavailable() -> None:
    budget = {"rollingUpdateConfiguration": {"partition": 0, "maxUnavailable": 3, "maxSurge": 0}}
    wide = lws("app:2", spec={"rolloutStrategy": {"type": "RollingUpdate", **budget}})
    assert marked(rolling("OOOO", wide)) == ["web-3", "web-2", "web-1"]
    assert marked(rolling("OMOO", wide)) == ["web-3", "web-2"]
    assert partitions(rolling("OONM", wide)) == []


def test_mark_names_both_revisions_and_one_leader() -> None:
    (patch,) = [
        one for one in flatten(decide(rolling("OOOO"), builders.NOW).plan.actions)
        if isinstance(one, Patch) and one.resource == PODS
    ]  # fmt: skip
    assert (patch.key, patch.if_present) == (ObjectKey("default", "web-3"), True)
    wanted = {labels.IN_PLACE_REVISION: KEY, labels.IN_PLACE_STATEFULSET_REVISION: "web-new"}
    assert patch.patch == {"metadata": {"uid": "", "annotations": wanted}}
    assert [event.note for event in patch.on_success] == ["Updating the group of leader pod web-3 in place"]


def test_rollout_marks_nothing_before_the_template_is_observed() -> None:
    assert marked(rolling("OOOO", observed=2)) == []
    assert marked(rolling("OOOm", observed=2)) == []


def test_first_marks_of_an_update_read_leaders_from_the_server() -> None:
    assert cases.reads(rolling("OOOO")) == {Read.LEADERS}
    assert cases.reads(rolling("OOON", partition=3)) == frozenset()


@pytest.mark.parametrize(
    ("states", "way", "written"), [("OOOO", "", [3]), ("OOOO", "Sometimes", [3]), ("OOOM", "", [])]
)
def test_partition_releases_groups_without_the_annotation(states: str, way: str, written: list[int]) -> None:
    """A value that no webhook has validated has the same effect. An update in place that has started is finished."""
    plain = rolling(states, lws("app:2", way))
    assert (marked(plain), partitions(plain)) == ([], written)


@pytest.mark.parametrize(("way", "written"), [("IfPossible", [3]), ("Only", [])])
def test_changes_besides_images_recreate_or_hold_groups(way: str, written: list[int]) -> None:
    observed = rolling("OOOO", lws("app:2", way, size=3))
    assert (marked(observed), partitions(observed)) == ([], written)


def test_only_policy_still_recreates_unready_groups() -> None:
    assert partitions(rolling("OOOo", lws("app:2", "Only", size=3))) == [3]


def test_group_between_revisions_is_recreated_immediately() -> None:
    """The group is between two revisions, and an image change alone cannot change its size."""
    for way in ("", "Only"):
        actions = flatten(decide(rolling("OmOO", lws("app:2", way, size=3)), builders.NOW).plan.actions)
        assert [one.key.name for one in actions if isinstance(one, Delete)] == ["web-1"]


@pytest.mark.parametrize(
    ("way", "partition", "written", "deleted"),
    [
        ("IfPossible", 4, [3], []),
        ("IfPossible", 3, [], ["web-3"]),
        ("", 3, [], ["web-3"]),
        ("Only", 4, [3], []),
        ("Only", 3, [], []),
    ],
)
def test_group_that_cannot_be_resized_gets_the_new_revision(
    way: str, partition: int, written: list[int], deleted: list[str]
) -> None:
    """The partition is first lowered below the group. Otherwise, a deleted leader would be recreated unchanged."""
    observed = rolling("OOOR", lws("app:2", way), partition=partition)
    actions = list(flatten(decide(observed, builders.NOW).plan.actions))
    assert (partitions(observed), [one.key.name for one in actions if isinstance(one, Delete)]) == (written, deleted)
    assert not [one for one in marked(observed) if one != "web-2"]


def test_group_without_its_revision_is_recreated() -> None:
    observed = rolling("OOOO")
    assert partitions(replace(observed, revisions=observed.revisions[1:])) == [3]


def update(way: str) -> list[str]:
    """Return the event messages for a new revision with a different size."""
    wanted = lws("app:2", way, size=3)
    observed = replace(rolling("OOOO", OLD, partition=0), leaderworkerset=wanted)
    applied = [one for one in flatten(decide(observed, builders.NOW).plan.actions) if isinstance(one, Apply)]
    return [event.note for one in applied for event in one.on_success]


def test_first_field_that_needs_recreation_is_named_once() -> None:
    what = "spec.leaderWorkerTemplate.size cannot be changed in a running pod"
    assert update("IfPossible") == [f"Cannot update groups in place, so groups are recreated: {what}"]
    assert update("Only") == [f"Cannot update groups in place, so the rollout is blocked: {what}"]
    assert update("") == update("Sometimes") == []


def content(**changes: Any) -> Any:
    template = {"spec": {"containers": [{"name": "a", "image": "x"}], "initContainers": [{"name": "i", "image": "x"}]}}
    return {"leaderWorkerTemplate": {"workerTemplate": template | changes, "size": 2}}


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (content(), ""),
        (content(spec=content()["leaderWorkerTemplate"]["workerTemplate"]["spec"] | {"containers": [{"name": "a", "image": "y"}]}), ""),
        (content(spec={"containers": [{"name": "a", "image": "x"}]}), "spec.initContainers"),
        (content(metadata={}), "metadata"),
        (content(spec={"containers": [], "initContainers": []}), "spec.containers"),
        (content(spec={"containers": [{"name": "a", "image": "x"}], "initContainers": [{"name": "i", "image": "y"}]}), "spec.initContainers[0].image"),
        (content(spec={"containers": [{"name": "a", "image": "x", "env": []}], "initContainers": []}), "spec.containers[0].env"),
    ],
    ids=["same", "image", "field gone", "field added", "list", "init container", "within a container"],
)  # fmt: skip
def test_container_images_are_the_only_change_without_obstacle(new: Any, expected: str) -> None:
    """Init containers do not run a second time in an existing pod."""
    prefix = "spec.leaderWorkerTemplate.workerTemplate."
    assert inplace.obstacle(content(), new) == (prefix + expected if expected else "")


def test_cpu_and_memory_changes_are_no_obstacle_when_mutable() -> None:
    def sized(**resources: Any) -> Any:
        return content(spec={"containers": [{"name": "a", "image": "x", "resources": resources}]})

    requests = {"cpu": "1", "memory": "1Gi"}
    place = "spec.leaderWorkerTemplate.workerTemplate.spec.containers[0].resources"
    assert inplace.obstacle(sized(requests=requests), sized(requests=requests | {"cpu": "2"})) == ""
    assert inplace.obstacle(sized(requests=requests), sized(requests={"cpu": "1"})) == f"{place}.requests.memory"
    assert (
        inplace.obstacle(sized(requests=requests), sized(limits=requests)) == f"{place} (the quality of service class)"
    )
    device = requests | {"example.com/device": "1"}
    assert inplace.obstacle(sized(requests=requests), sized(requests=device)) == f"{place}.requests.example.com/device"


def test_gang_objects_of_the_revision_are_an_obstacle() -> None:
    aware = scheduled.lws(scheduled.REPLICA)
    aware["metadata"]["annotations"] = {WAY: "IfPossible"}
    key = builders.key_of(aware)
    group_summary = index_groups([facts(0, "N")], "web")
    route, _ = inplace.find_route(
        aware, [builders.revision(aware), builders.revision(NEW)], key, group_summary, NO_GANG
    )
    assert route.obstacles == {KEY: "spec.scheduling"}
    chosen = builders.leaderworkerset_object(metadata={"annotations": {WAY: "Only", labels.GANG_SCHEDULER: "volcano"}})
    known = [builders.revision(chosen), builders.revision(NEW)]
    for gang, expected in ((NO_GANG, ""), (scheduled.GANG, f"metadata.annotations[{labels.GANG_SCHEDULER}]")):
        route, _ = inplace.find_route(chosen, known, "of-nothing", group_summary, gang)
        assert (expected or "the ControllerRevision") in route.obstacles.values()


def test_invalid_in_place_value_means_off() -> None:
    assert inplace.read({WAY: "Always"}) is InPlace.OFF
    assert groupname.revision_key(rolling("O").leader_workload or {}) == KEY
    assert meta.name(NEW) == "web"
