"""Tests reconciles during a rollout while other parts change, and the order of the actions."""

from collections.abc import Iterable

import pytest
from tests.builders import NOW
from tests.disaggregated import disaggregatedset_object, role, with_image
from tests.unit.leaderworkerset.core.disaggregatedset.decisions import (
    NEXT,
    SET,
    both,
    decided,
    lws,
    reasons,
    revision_of,
    service,
    told,
    writes,
)

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Concurrently, Create, Delete, Event, Finally, Patch, Plan, PutStatus
from leaderworkerset.api.disaggregatedset import INITIAL_REPLICAS
from leaderworkerset.core.disaggregatedset import disaggregatedsetevents, rolehash
from leaderworkerset.core.disaggregatedset.reconcile import ObservedDisaggregatedSet, reconcile

LATEST = SET | {"spec": with_image(SET, "app:3")}


def plan_for(obj: JSONObject, *objects: JSONObject, services: Iterable[JSONObject] = ()) -> Plan:
    return reconcile(
        ObservedDisaggregatedSet(disaggregatedset=obj, leaderworkersets=objects, services=list(services)), NOW
    )


def scaled(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith(("scale", "delete Leader"))]


class TestOtherTemplates:
    def test_third_template_starts_from_the_current_sizes(self) -> None:
        """The baseline of each revision is its size at the start of the new rollout (R-DS-65)."""
        lines = decided(LATEST, *both(SET, 3, 3, initial=4), *both(NEXT, 2, 2))
        assert {line for line in lines if line.startswith("record")} == {
            "record split-0-A-prefill 3",
            "record split-0-A-decode 3",
            "record split-0-B-prefill 2",
            "record split-0-B-decode 2",
        }

    def test_second_template_without_groups_is_deleted_immediately(self) -> None:
        """A second template without groups is deleted immediately (R-DS-65)."""
        lines = decided(LATEST, *both(SET, 4, 4, initial=4), *both(NEXT, 0, 0))
        assert "delete LeaderWorkerSet split-0-B-prefill" in lines
        assert "delete LeaderWorkerSet split-0-B-decode" in lines


class TestOtherSizes:
    def test_larger_size_is_reached_without_adding_old_groups(self) -> None:
        """A larger size is reached without creating old groups (R-DS-67)."""
        roles = [role("prefill", 6, image="app:2"), role("decode", 6, image="app:2")]
        raised = disaggregatedset_object(roles)
        lines = scaled(decided(raised, *both(SET, 4, 4, initial=4), *both(raised, 1, 1)))
        name = f"split-0-{revision_of(raised)}".replace(revision_of(NEXT), "B")
        assert lines == [f"scale {name}-prefill 2", f"scale {name}-decode 2"]

    def test_changed_budget_applies_without_starting_a_rollout(self) -> None:
        """A changed budget takes effect without a new rollout (R-DS-68)."""
        budget = {"maxSurge": 2, "maxUnavailable": 0}
        roles = [role(name, 4, image="app:2", rollout=budget) for name in ("prefill", "decode")]
        wider = disaggregatedset_object(roles)
        parts = [*both(SET, 4, 4, initial=4), *both(NEXT, 0, 0)]
        assert revision_of(wider) == revision_of(NEXT)
        assert scaled(decided(NEXT, *parts)) == ["scale split-0-B-prefill 1", "scale split-0-B-decode 1"]
        assert scaled(decided(wider, *parts)) == ["scale split-0-B-prefill 2", "scale split-0-B-decode 2"]

    def test_removed_role_is_drained_with_its_revision(self) -> None:
        """A removed role is drained with its revision (R-DS-69)."""
        alone = [role("prefill", 4, image="app:2"), role("encode", 4, image="app:2")]
        without = disaggregatedset_object(alone)
        new = [lws(without, "prefill", 1), lws(without, "encode", 1)]
        lines = scaled(decided(without, *both(SET, 4, 4, initial=4), *new))
        assert "scale split-0-A-decode 3" in lines
        assert not [line for line in lines if line.startswith("delete")]


class TestSlices:
    def test_added_slice_starts_with_the_new_revision_at_full_size(self) -> None:
        """Two slices are updated at the same time (R-DS-70, R-DS-26)."""
        two = NEXT | {"spec": NEXT["spec"] | {"slices": 2}}
        lines = decided(two, *both(SET, 4, 4, initial=4), *both(NEXT, 1, 1))
        assert "create LeaderWorkerSet split-1-B-prefill 4" in lines
        assert "create LeaderWorkerSet split-1-B-decode 4" in lines
        assert "scale split-0-A-prefill 3" in lines


class TestOrder:
    def test_pass_deletes_slices_then_reconciles_then_writes_status(self) -> None:
        """A failed deletion stops the reconcile. The status is written even if a slice fails (R-DS-29, R-DS-104)."""
        plan = plan_for(SET, *both(SET, 3, 4, ready=0), *both(SET, 4, 4, index=1))
        *first, work = plan.actions
        assert all(isinstance(action, Delete) for action in first)
        assert len(first) == 2
        assert isinstance(work, Finally)
        (slices,) = work.actions
        assert isinstance(slices, Concurrently)
        assert [type(action) for action in work.after] == [PutStatus]

    def test_services_follow_leaderworkersets_within_a_slice(self) -> None:
        """After a failed write of a LeaderWorkerSet, Services are not created (R-DS-30)."""
        done = writes(plan_for(SET, *both(SET, 4, 3)))
        kinds = [action.resource.plural for action in done if isinstance(action, Patch | Create)]
        assert kinds.index("leaderworkersets") < kinds.index("services")

    def test_deletions_use_the_default_propagation(self) -> None:
        """Deletions use the default propagation (R-DS-34)."""
        plan = plan_for(NEXT, *both(SET, 0, 0, initial=4), *both(NEXT, 4, 4))
        assert {one.propagation for one in writes(plan) if isinstance(one, Delete)} == {None}


class TestForeign:
    def test_leaderworkersets_of_other_owners_are_not_scaled(self) -> None:
        """Objects with the same name are distinguished by the owner's UID (R-DS-73)."""
        other = SET | {"metadata": SET["metadata"] | {"uid": "another"}}
        lines = decided(SET, lws(SET, "prefill", 4, owner=other), lws(SET, "decode", 4))
        assert not [line for line in lines if line.startswith("scale")]

    def test_services_of_others_are_not_deleted(self) -> None:
        """The Go controller does not compare owners (R-DS-75, Q-9)."""
        foreign = service(SET, "prefill")
        foreign["metadata"]["ownerReferences"] = []
        foreign["metadata"]["name"] = "of-a-user"
        assert "delete Service of-a-user" not in decided(NEXT, *both(NEXT, 4, 4), services=[foreign])


class TestNothingThatServes:
    def test_services_are_unchanged_without_groups(self) -> None:
        """Services do not change if there are no groups (R-DS-84)."""
        empty = disaggregatedset_object([role("prefill", 0), role("decode", 0)])
        old = service(SET, "prefill")
        lines = decided(empty, *both(empty, 0, 0), services=[old])
        assert not [line for line in lines if "Service" in line]


class TestLegacy:
    def test_new_template_gets_names_with_a_slice(self) -> None:
        """Old objects are drained and retain their names (R-DS-88)."""
        first = decided(NEXT, *both(SET, 4, 4, legacy=True))
        assert "create LeaderWorkerSet split-0-B-prefill 0" in first
        later = scaled(decided(NEXT, *both(SET, 4, 4, legacy=True, initial=4), *both(NEXT, 1, 1)))
        assert later == ["scale split-A-decode 3", "scale split-A-prefill 3"]


class TestPlacement:
    def test_placement_change_does_not_touch_existing_groups(self) -> None:
        """The placement policy applies to new objects (R-DS-91)."""
        placed = SET | {"spec": SET["spec"] | {"placementPolicy": {"type": "PreferredSlice", "topology": "rack"}}}
        assert revision_of(placed) == revision_of(SET)
        assert scaled(decided(placed, *both(SET, 4, 4))) == []


class TestWire:
    def test_role_without_a_strategy_leaves_it_to_the_webhook(self) -> None:
        """For a role without a strategy, the webhook sets the default (R-DS-18)."""
        created = [one.object for one in writes(plan_for(SET)) if isinstance(one, Create) and "roles" not in one.object]
        assert created
        assert all("rolloutStrategy" not in one.get("spec", {}) for one in created)

    def test_every_field_can_be_changed(self) -> None:
        """All fields are mutable. Roles may be renamed, reordered, added and removed (R-DS-7)."""
        reordered = SET | {"spec": {"roles": list(reversed(SET["spec"]["roles"]))}}
        renamed = disaggregatedset_object([role("first", 4), role("second", 4)])
        for obj in (reordered, renamed):
            assert plan_for(obj, *both(SET, 4, 4)).error is None

    def test_set_of_a_former_controller_is_adopted_without_a_write(self) -> None:
        """The revision bytes are equal, so no object is outdated (R-DS-24)."""
        parts = both(SET, 4, 4)
        assert {meta.labels(one)["disaggregatedset.x-k8s.io/revision"] for one in parts} == {
            rolehash.revision_of(SET["spec"]["roles"])
        }
        assert scaled(decided(SET, *parts)) == []

    @pytest.mark.parametrize(
        ("event", "expected"),
        [
            (disaggregatedsetevents.started_event(SET, "r", 0), ("Normal", "RollingUpdateStarted", "Update")),
            (disaggregatedsetevents.completed_event(SET, "r", 0), ("Normal", "RollingUpdateCompleted", "Update")),
            (disaggregatedsetevents.scaling_event(SET, "prefill", "n", (1, 2)), ("Normal", "ScalingUp", "Update")),
            (disaggregatedsetevents.scaling_event(SET, "prefill", "n", (2, 1)), ("Normal", "ScalingDown", "Update")),
            (disaggregatedsetevents.deleted_event(SET, "n", "drained"), ("Normal", "LWSDeleted", "Delete")),
            (disaggregatedsetevents.deleted_event(SET, "n", "anew", "Migrate"), ("Normal", "LWSDeleted", "Migrate")),
            (disaggregatedsetevents.scaler_created_event(SET, "n", "prefill"), ("Normal", "ScalerCreated", "Create")),
            (disaggregatedsetevents.scaler_deleted_event(SET, "n", "prefill"), ("Normal", "ScalerDeleted", "Delete")),
            (
                disaggregatedsetevents.scaler_conflict_event(SET, "n", "prefill"),
                ("Warning", "ScalerConflict", "Conflict"),
            ),
        ],
        ids=lambda one: one[1] if isinstance(one, tuple) else "",
    )
    def test_events_have_types_reasons_and_actions_of_the_contract(
        self, event: Event, expected: tuple[str, str, str]
    ) -> None:
        """The events refer to the DisaggregatedSet and contain the name of its controller (R-DS-102)."""
        assert (event.type, event.reason, event.action) == expected
        assert (event.reporter, event.regarding["name"], event.related) == ("disaggregatedset", "split", None)

    def test_scaling_without_a_rollout_records_no_event(self) -> None:
        """Scaling without a rollout does not record an event (R-DS-102)."""
        assert reasons(plan_for(SET, *both(SET, 2, 6, ready=0))) == []
        assert not [line for line in told(plan_for(SET)) if INITIAL_REPLICAS in line]
