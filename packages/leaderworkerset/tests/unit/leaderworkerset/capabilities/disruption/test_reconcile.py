"""Tests how disruption budgets are created, closed, opened, corrected and removed (ADR 22)."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace
from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Create, Delete, Patch, Plan, flatten
from leaderworkerset.api import labels
from leaderworkerset.capabilities.disruption import groupbudget
from leaderworkerset.capabilities.disruption.disruptionsettings import DisruptionSettings
from leaderworkerset.capabilities.disruption.reconcile import ObservedDisruption, allows_evictions, reconcile

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = "0123456789012345678901234567890123456789"


def lws(replicas: int = 2, size: int = 2, budget: str = "1", **spec: Any) -> JSONObject:
    """Return a stored LeaderWorkerSet."""
    found = builders.leaderworkerset_object(replicas=replicas, size=size, spec=spec)
    found["metadata"] |= {"uid": "uid-of-web", "annotations": {labels.DISRUPTION_BUDGET: budget}}
    return found


def leader(label: str, *, size: str = "2", **metadata: Any) -> JSONObject:
    """Return a leader pod."""
    own = {labels.NAME: "web", labels.GROUP_INDEX: label, labels.WORKER_INDEX: "0"}
    annotations = {labels.SIZE: size} | metadata.pop("annotations", {})
    return {"metadata": {"name": f"web-{label}", "labels": own, "annotations": annotations} | metadata}


def stored(obj: JSONObject, label: str, *, least: int = 2, healthy: int = 2, size: int = 2) -> JSONObject:
    """Return a budget in the form of the API server, with a status for its current spec."""
    bare = groupbudget.ProtectedGroup(
        label=label, size=size, min_available=least, is_present=True, must_move=False, budget=None
    )
    budget = groupbudget.create(obj, bare).object
    metadata = budget["metadata"] | {"uid": f"uid-of-{label}", "generation": 2}
    return budget | {"metadata": metadata, "status": {"observedGeneration": 2, "currentHealthy": healthy}}


def plan(
    obj: JSONObject,
    leaders: Sequence[JSONObject] = (),
    budgets: Sequence[JSONObject] = (),
    wanted: Sequence[str] = (),
) -> Plan:
    observed = ObservedDisruption(obj=obj, leaders=leaders, budgets=budgets, groups_to_move=wanted, now=NOW)
    return reconcile(observed, DisruptionSettings())


def told(found: Plan) -> list[str]:
    """Return the writes in a readable form."""
    words = []
    for action in flatten(found.actions):
        match action:
            case Create(object=obj):
                words.append(f"create {meta.name(obj)} {obj['spec']['minAvailable']}")
            case Patch(key=key, patch=change):
                words.append(f"set {key.name} {change['spec']['minAvailable']}")
            case Delete(key=key):
                words.append(f"delete {key.name}")
    return words


def test_each_group_gets_its_own_closed_budget() -> None:
    found = plan(lws(), [leader("0"), leader("1")])
    assert told(found) == ["create web-0 2", "create web-1 2"]
    assert not allows_evictions(found)
    (first, _) = (one.object for one in flatten(found.actions) if isinstance(one, Create))
    assert first["spec"] == {
        "minAvailable": 2,
        "selector": {"matchLabels": {labels.NAME: "web", labels.GROUP_INDEX: "0"}},
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
    assert first["metadata"]["ownerReferences"][0]["uid"] == "uid-of-web"


def test_open_budget_records_an_event_when_a_group_must_leave() -> None:
    obj = lws()
    leaders, budgets = [leader("0"), leader("1")], [stored(obj, "0"), stored(obj, "1")]
    plain = plan(obj, leaders, budgets)
    assert told(plain) == ["set web-0 0"]
    assert allows_evictions(plain)
    (wanted,) = flatten(plan(obj, leaders, budgets, wanted=["1"]).actions)
    assert isinstance(wanted, Patch)
    assert (wanted.key.name, wanted.patch["metadata"], wanted.if_present) == ("web-1", {"uid": "uid-of-1"}, True)
    assert [event.reason for event in wanted.on_success] == ["GroupMayBeEvicted"]


def test_open_budget_is_closed_when_a_second_group_must_move() -> None:
    obj = lws()
    budgets = [stored(obj, "0", least=0), stored(obj, "1")]
    assert told(plan(obj, [leader("0"), leader("1")], budgets, wanted=["1"])) == ["set web-0 2"]


def test_reconcile_writes_nothing_at_rest() -> None:
    obj = lws()
    rest = plan(obj, [leader("0"), leader("1")], [stored(obj, "0", least=0), stored(obj, "1")])
    assert rest == Plan()


def test_budget_is_kept_for_a_recreated_leader_only() -> None:
    obj = lws()
    three = [stored(obj, "0", least=0), stored(obj, "1"), stored(obj, "2")]
    assert told(plan(obj, [leader("1")], three)) == ["delete web-2"]
    assert told(plan(lws(replicas=0), [], three)) == ["delete web-0", "delete web-1", "delete web-2"]


def test_budget_of_a_random_key_is_deleted_with_its_group() -> None:
    obj = lws(groupIdentity="Hash")
    budgets = [stored(obj, KEY, least=0), stored(obj, "1" * 40)]
    assert told(plan(obj, [leader("1" * 40)], budgets)) == [f"delete web-{KEY}"]


@pytest.mark.parametrize("going", [{"deletionTimestamp": "2026-01-01T00:00:00Z"}, {"annotations": {}}])
def test_terminating_leader_counts_as_absent_unless_replaced(going: dict[str, Any]) -> None:
    if "annotations" in going:
        going = {"annotations": {labels.GROUP_RESTART_BUDGET_EXHAUSTED: "true"}}
    obj = lws()
    budgets = [stored(obj, "0"), stored(obj, "1")]
    assert told(plan(obj, [leader("0"), leader("1", **going)], budgets)) == ["set web-1 0"]
    assert told(plan(obj, [leader("0"), leader("1", **going), leader("1")], budgets)) == ["set web-0 0"]


def test_group_that_waits_for_its_recreation_counts_as_absent() -> None:
    """Its pods may be Ready. In the meantime, no other group is opened, and its budget has no pods to protect."""
    obj = lws()
    failed = leader("1", uid="uid-of-web-1")
    annotations = {
        labels.RECREATED_LEADER: "uid-of-web-1",
        labels.RECREATION_STATE: "waiting",
        labels.RECREATIONS: "2",
        labels.RECREATE_AFTER: NOW.isoformat(),
    }
    record = {"metadata": {"name": "web-1-recreations", "annotations": annotations}}
    budgets = [stored(obj, "0"), stored(obj, "1")]
    observed = ObservedDisruption(obj=obj, leaders=[leader("0"), failed], budgets=budgets, groups_to_move=(), now=NOW)
    assert told(reconcile(replace(observed, records=[record]), DisruptionSettings())) == ["set web-1 0"]
    assert told(reconcile(observed, DisruptionSettings())) == ["set web-0 0"]


def test_growing_group_is_protected_with_its_next_size() -> None:
    """With the previous size, the group would be open from its growth until the next write."""
    obj = lws(size=4)
    leaders = [leader("0"), leader("1", size="2")]
    assert told(plan(obj, leaders, [stored(obj, "0", least=0), stored(obj, "1", least=2)])) == ["set web-1 4"]
    grown = [stored(obj, "0", least=2), stored(obj, "1", least=0)]
    assert told(plan(obj, [leader("0", size="4"), leader("1")], grown)) == ["set web-1 4", "set web-0 4"]


def test_edited_budget_is_recreated() -> None:
    obj = lws()
    edited = stored(obj, "0")
    edited["spec"] = edited["spec"] | {"maxUnavailable": 1}
    found = plan(obj, [leader("0"), leader("1")], [edited, stored(obj, "1")])
    assert told(found) == ["delete web-0"]
    found = plan(obj, [leader("0"), leader("1")], [stored(obj, "0"), stored(obj, "1", least=1)])
    assert told(found) == ["set web-1 2"]


def test_budgets_of_others_are_not_changed() -> None:
    obj = lws()
    foreign = stored(obj, "0")
    foreign["metadata"] = foreign["metadata"] | {"ownerReferences": []}
    found = plan(obj, [leader("0")], [foreign])
    (create,) = flatten(found.actions)
    assert isinstance(create, Create)
    assert create.unless_own
    assert create.on_failure[0].reason == "FailedCreate"


def test_labels_that_are_not_valid_names_get_no_budget() -> None:
    assert told(plan(lws(replicas=1), [leader("A_b"), leader("0")])) == ["create web-0 2"]


def test_budgets_are_deleted_when_the_setting_is_removed() -> None:
    obj = lws(budget="off")
    assert told(plan(obj, [leader("0")], [stored(obj, "0"), stored(obj, "1")])) == ["delete web-0", "delete web-1"]


def test_deleted_or_unreadable_set_is_not_reconciled() -> None:
    obj = lws()
    deleting = obj | {"metadata": obj["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
    unreadable = obj | {"spec": obj["spec"] | {"replicas": "many"}}
    for one in (deleting, unreadable):
        assert plan(one, [leader("0")], [stored(obj, "0")]) == Plan()


def test_leader_without_a_size_uses_the_size_of_the_spec() -> None:
    assert told(plan(lws(size=3), [leader("0", size="")])) == ["create web-0 3"]
