"""Tests the effects of a change as text and in JSON, with and without a cluster."""

import copy
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests import builders

from kuberuntime.objects import meta
from kuberuntime.texts import fieldchanges
from leaderworkerset.api import labels
from leaderworkerset.core.leaderworkerset import revisions
from lwsctl.model.leaderworkerset import View, view
from lwsctl.rollout import applyforecast, snapshots

OLD = builders.leaderworkerset_object(image="app:1", replicas=3, size=1)
NEW = builders.leaderworkerset_object(image="app:2", replicas=3, size=1)


def pods(lws: dict[str, Any], took: int = 30) -> list[dict[str, Any]]:
    """Return ready groups of one pod, each of which needed `seconds` to start."""
    found = []
    for index in range(lws["spec"]["replicas"]):
        leader = builders.leader_pod(lws, index)
        leader["metadata"]["creationTimestamp"] = "2026-03-01T12:00:00Z"
        for condition in leader["status"]["conditions"]:
            condition["lastTransitionTime"] = f"2026-03-01T12:00:{took:02}Z"
        found.append(leader)
    return found


def leader_statefulset(lws: dict[str, Any]) -> dict[str, Any]:
    own = {labels.NAME: "web", labels.TEMPLATE_REVISION_HASH: builders.key_of(lws)}
    return {
        "kind": "StatefulSet",
        "metadata": {"name": "web", "namespace": "default", "labels": own, "annotations": {labels.REPLICAS: "3"}},
        "spec": {"replicas": 3},
    }


def at_rest(lws: dict[str, Any] = OLD) -> View:
    return view(lws, pods(lws), leaders=leader_statefulset(lws))


def test_new_template_rolls_all_groups() -> None:
    assert applyforecast.lines(applyforecast.forecast_apply(at_rest(), NEW)) == [
        "web: 1 field would change",
        "  spec.leaderWorkerTemplate.workerTemplate.spec.containers[main].image: app:1 -> app:2",
        "a new revision: 3 groups of 1 pod would be created",
        "  step 1: group 2; 2 available",
        "  step 2: group 1; 2 available",
        "  step 3: group 0; 2 available",
        "at most 0 extra pods; at least 2 of 3 groups available",
        "about 90s: 3 groups started in 30s each",
    ]


def test_plan_of_a_revert_rolls_only_the_updated_groups() -> None:
    leaders = pods(OLD)
    key = revisions.content_hash(revisions.build_data(OLD))
    for leader in leaders[:2]:
        leader["metadata"]["labels"][labels.TEMPLATE_REVISION_HASH] = key
    leaders[2]["metadata"]["labels"][labels.TEMPLATE_REVISION_HASH] = "of-the-update"
    updating = leader_statefulset(OLD)
    updating["metadata"]["labels"][labels.TEMPLATE_REVISION_HASH] = "of-the-update"
    told = applyforecast.lines(applyforecast.forecast_apply(view(NEW, leaders, leaders=updating), OLD))
    assert told[2:5] == [
        "the revision of 2 existing groups: 1 group of 1 pod would be created",
        "  step 1: group 2; 2 available",
        "at most 0 extra pods; at least 2 of 3 groups available",
    ]


def test_empty_values_are_no_change_and_others_shown_as_json() -> None:
    changed = copy.deepcopy(OLD)
    (container,) = changed["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"]
    container |= {"resources": {}, "readinessProbe": {"exec": {"command": ["true"]}}}
    told = applyforecast.lines(applyforecast.forecast_apply(at_rest(), changed))
    field = "spec.leaderWorkerTemplate.workerTemplate.spec.containers[main].readinessProbe"
    assert told[:2] == [
        "web: 1 field would change",
        f'  {field}: nothing -> {{"exec":{{"command":["true"]}}}}',
    ]


def test_equal_template_rolls_nothing() -> None:
    assert applyforecast.lines(applyforecast.forecast_apply(at_rest(), OLD)) == [
        "web: unchanged",
        "no groups would be created or deleted",
    ]


def test_new_set_is_created() -> None:
    assert applyforecast.lines(applyforecast.forecast_apply(None, OLD)) == [
        "web: created",
        "3 groups of 1 pod would be created",
        "  step 1: groups 0-2; 0 available",
    ]


def test_surge_is_counted_in_pods() -> None:
    surging = builders.leaderworkerset_object(image="app:2", replicas=3, size=2, rollout={"maxSurge": 2})
    before = view(OLD, [], leaders=leader_statefulset(OLD))
    told = applyforecast.lines(applyforecast.forecast_apply(before, surging))
    assert "at most 4 extra pods; at least 0 of 3 groups available" in told
    assert any(line.endswith("4 extra pods") for line in told if line.startswith("  step"))


def test_paused_rollout_holds_all_groups() -> None:
    paused = builders.leaderworkerset_object(
        image="app:2",
        replicas=3,
        size=1,
        rollout={"partition": 3},
        metadata={"annotations": {labels.PAUSED_PARTITION: "0"}},
    )
    told = applyforecast.lines(applyforecast.forecast_apply(at_rest(), paused))
    assert told[-1].startswith(
        "no groups would be created or deleted; 3 groups would remain at the previous revision (the rollout is paused)"
    )


def test_long_plans_are_truncated_as_text_and_complete_as_json() -> None:
    many = {f"example.com/{number}": "x" for number in range(40)}
    before = builders.leaderworkerset_object(image="app:1", replicas=50, size=1)
    after = builders.leaderworkerset_object(image="app:2", replicas=50, size=1, metadata={"annotations": many})
    found = applyforecast.forecast_apply(view(before, pods(before)), after)
    told = applyforecast.lines(found)
    assert "  and 11 more fields" in told
    assert "  … 38 more steps" in told
    assert told[-3].startswith("  step 50: group 0")
    assert len(told) < 60
    shown = applyforecast.document(found)
    assert (len(shown["changes"]), len(shown["steps"]), shown["estimatedSeconds"]) == (41, 50, 1500)
    assert (shown["apiVersion"], shown["kind"], shown["endsByItself"]) == ("lws/v1", "RolloutPlan", True)


def test_endless_rollout_is_reported() -> None:
    found = applyforecast.forecast_apply(at_rest(), NEW)
    stuck = replace(found, forecast=replace(found.forecast, is_stuck=True))
    assert any("it would not complete" in line for line in applyforecast.lines(stuck))


def exhausted_at(index: int, lws: dict[str, Any] = OLD) -> View:
    """Return groups, one of which has no remaining restart, was terminated, and is preserved."""
    leaders = pods(lws)
    leaders[index] = builders.leader_pod(lws, index, ready=False, deleting=True)
    leaders[index]["metadata"]["annotations"][labels.GROUP_RESTART_BUDGET_EXHAUSTED] = "true"
    return view(lws, leaders, leaders=leader_statefulset(lws))


def test_rollout_skips_a_group_without_restarts_left() -> None:
    """By default, the other groups are replaced one at a time, and the rollout completes (N-RB-8, N-AT-21)."""
    found = applyforecast.forecast_apply(exhausted_at(0), NEW)
    told = applyforecast.lines(found)
    assert [line for line in told if "step" in line] == [
        "  step 1: group 2; 1 available",
        "  step 2: group 1; 1 available",
        "  step 3: group 0; 2 available",
    ]
    assert (
        "no restarts remain for group 0 (not counted in maxUnavailable until replaced); to find the cause, run `lws explain web`"
    ) in told
    assert not any("would not complete" in line for line in told)
    assert applyforecast.document(found)["exhaustedGroups"] == [0]


def test_exhausted_group_stays_when_nothing_rolls() -> None:
    """The group is also preserved below a partition, and is deleted by scaling down (N-RB-5, N-RB-6)."""
    stays = "no restarts remain for group 1, which would remain terminated; to recover, run `lws recover web`"
    partition = {"partition": 2}
    held = builders.leaderworkerset_object(image="app:2", replicas=3, size=1, rollout=partition)
    assert stays in applyforecast.lines(applyforecast.forecast_apply(exhausted_at(1), OLD))
    assert stays in applyforecast.lines(applyforecast.forecast_apply(exhausted_at(1), held))
    fewer = builders.leaderworkerset_object(image="app:1", replicas=1, size=1)
    assert not any(
        "no restarts remain" in line
        for line in applyforecast.lines(applyforecast.forecast_apply(exhausted_at(1), fewer))
    )


def test_name_that_fits_some_hashes_adds_a_warning() -> None:
    lws = builders.leaderworkerset_object("a" * 51)
    plan = applyforecast.forecast_apply(None, lws)
    assert applyforecast.lines(plan)[-1].startswith("warning: metadata.name: pods of some revisions may be rejected")
    assert applyforecast.document(plan)["warnings"] == list(plan.warnings)


def test_long_values_are_truncated() -> None:
    after = builders.leaderworkerset_object(image="x" * 100, replicas=3, size=1)
    (change,) = fieldchanges.field_changes(OLD, after)
    assert str(change).endswith("-> " + "x" * 60 + "…")


def test_long_values_are_shown_around_their_difference() -> None:
    old, new = (
        {"spec": {"args": ["serve " + "--flag x " * 20 + f"--max-len {length} --y"]}} for length in (8192, 16384)
    )
    (change,) = fieldchanges.field_changes(old, new)
    assert str(change) == "spec.args[0]: …x --max-len 8192 --y -> …x --max-len 16384 --y"


def test_multiline_texts_show_the_changed_lines() -> None:
    script = "set -u\nexec server \\\n  --port 80 \\\n  --max-len {} \\\n  --ranks 2\n"
    old, new = ({"spec": {"args": [script.format(length)]}} for length in (8192, 16384))
    (change,) = fieldchanges.field_changes(old, new)
    assert list(fieldchanges.change_lines([change])) == [
        "  spec.args[0]:",
        "    -   --max-len 8192 \\",
        "    +   --max-len 16384 \\",
    ]


def test_restarted_group_gives_no_startup_time() -> None:
    leaders = pods(OLD)
    leaders[0]["status"]["containerStatuses"] = [{"name": "main", "restartCount": 1}]
    leaders[0]["status"]["conditions"].append({"type": "Initialized", "status": "True"})
    del leaders[1]["metadata"]["creationTimestamp"]
    shown = view(OLD, leaders)
    assert applyforecast.startup_times(shown) == [timedelta(seconds=30)]


def test_invalid_values_raise_an_error() -> None:
    with pytest.raises(ValueError, match="neither a number nor a percentage"):
        applyforecast.forecast_apply(None, builders.leaderworkerset_object(rollout={"maxSurge": "many"}))


def test_snapshot_has_everything_that_a_plan_needs() -> None:
    saved = snapshots.build([at_rest()])
    assert [one["kind"] for one in saved["items"]] == ["LeaderWorkerSet", "StatefulSet", "Pod", "Pod", "Pod"]
    found = snapshots.find(saved["items"], "web", "default")
    assert found is not None
    assert applyforecast.forecast_apply(found, NEW) == applyforecast.forecast_apply(at_rest(), NEW)
    assert snapshots.find(saved["items"], "web", "elsewhere") is None
    assert snapshots.find(saved["items"], "other", "") is None


def test_manifest_is_merged_over_the_snapshot() -> None:
    manifest = {
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": [{"name": "main", "image": "app:2"}]}}}
        },
    }
    laid = snapshots.overlay(OLD, manifest)
    assert [str(change) for change in fieldchanges.field_changes(OLD, laid)] == [
        "spec.leaderWorkerTemplate.workerTemplate.spec.containers[main].image: app:1 -> app:2"
    ]
    assert meta.spec(snapshots.overlay(None, OLD)) == meta.spec(OLD)


def test_list_of_a_different_length_is_taken_from_the_manifest() -> None:
    both = [{"name": "main", "image": "app:1"}, {"name": "side", "image": "app:1"}]
    manifest = builders.leaderworkerset_object(template={"workerTemplate": {"spec": {"containers": both}}})
    template = meta.spec(snapshots.overlay(OLD, manifest))["leaderWorkerTemplate"]
    assert template["workerTemplate"]["spec"]["containers"] == both


def way(lws: dict[str, Any], word: str, **fields: Any) -> dict[str, Any]:
    """Return a LeaderWorkerSet that is updated in place."""
    annotated = lws["metadata"] | {"annotations": {labels.IN_PLACE: word}}
    return lws | {"metadata": annotated, "spec": lws["spec"] | fields}


def test_pods_in_place_and_recreated_are_counted() -> None:
    old = way(OLD, "IfPossible")
    leaders = pods(old)
    leaders[2]["status"]["conditions"][0]["status"] = "False"
    found = applyforecast.forecast_apply(view(old, leaders, leaders=leader_statefulset(old)), way(NEW, "IfPossible"))
    assert applyforecast.lines(found)[2:4] == [
        "a new revision: 3 groups of 1 pod would be updated",
        "2 pods would be updated in place, and 1 recreated",
    ]
    told = applyforecast.document(found)
    assert (told["inPlacePods"], told["recreatedPods"], told["notInPlace"]) == (2, 1, "")


def test_cpu_and_memory_change_in_place() -> None:
    """Requests cannot be added to a pod without requests, because this would change its QoS class."""

    def sized(**requests: str) -> dict[str, Any]:
        main = {"name": "main", "image": "app:1", "resources": {"requests": requests}}
        return way(
            builders.leaderworkerset_object(
                replicas=3, size=1, template={"workerTemplate": {"spec": {"containers": [main]}}}
            ),
            "IfPossible",
        )

    found = applyforecast.forecast_apply(at_rest(sized(cpu="1")), sized(cpu="2"))
    assert "3 pods would be updated in place, and 0 recreated" in applyforecast.lines(found)
    found = applyforecast.forecast_apply(at_rest(sized(cpu="1")), sized())
    gone = "spec.leaderWorkerTemplate.workerTemplate.spec.containers[0].resources.requests.cpu"
    assert applyforecast.document(found)["notInPlace"] == gone


def test_first_field_that_needs_recreation_is_named() -> None:
    scheduled = way(NEW, "IfPossible", scheduling={})
    larger = builders.leaderworkerset_object(image="app:2", replicas=3, size=2)
    field = "spec.leaderWorkerTemplate.size"
    for new, expected in ((scheduled, "spec.scheduling"), (way(larger, "IfPossible"), field)):
        found = applyforecast.forecast_apply(at_rest(way(OLD, "IfPossible")), new)
        assert (
            f"no pods would be updated in place, because {expected} of a running pod is immutable"
            in applyforecast.lines(found)
        )
        assert applyforecast.document(found)["notInPlace"] == expected
        assert len(applyforecast.document(found)["steps"]) == 3


def test_such_a_field_holds_the_rollout_under_policy_only() -> None:
    larger = way(builders.leaderworkerset_object(image="app:2", replicas=3, size=2), "Only")
    found = applyforecast.forecast_apply(at_rest(way(OLD, "Only")), larger)
    assert applyforecast.lines(found)[-2:] == [
        "no groups would be created or deleted; 3 groups would remain at the previous revision",
        "an update in place is not possible, because spec.leaderWorkerTemplate.size of a running pod is immutable; the rollout would be blocked",
    ]
    assert applyforecast.document(found)["heldGroups"] == 3
