"""Tests the decisions of a reconcile of a DisaggregatedSet with cached objects."""

from typing import Any

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
    status_of,
    told,
    writes,
)

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Actions, Concurrently, Finally, Patch, PutStatus, flatten
from leaderworkerset.api.disaggregatedset import SLICE
from leaderworkerset.core import reconcilefailure
from leaderworkerset.core.disaggregatedset.reconcile import ObservedDisaggregatedSet, reconcile


def with_policy(obj: JSONObject, policy: str) -> JSONObject:
    """Return a DisaggregatedSet whose roles have random keys and this replacement policy."""
    own = {"groupIdentity": "Hash", "groupReplacementPolicy": policy}
    return obj | {"spec": obj["spec"] | {"roles": [one | {"spec": one["spec"] | own} for one in obj["spec"]["roles"]]}}


def hashed(obj: JSONObject, policy: str, prefill: int, decode: int, **fields: Any) -> list[JSONObject]:
    own = {"groupIdentity": "Hash", "groupReplacementPolicy": policy}
    return [one | {"spec": one["spec"] | own} for one in both(obj, prefill, decode, **fields)]


class TestReplacementPolicy:
    WAITING, NOW_ = with_policy(SET, "PostTermination"), with_policy(SET, "Immediate")

    def patched(self, obj: JSONObject, *objects: JSONObject) -> list[str]:
        plan = reconcile(ObservedDisaggregatedSet(disaggregatedset=obj, leaderworkersets=objects), NOW)
        return sorted(
            f"{action.key.name} {policy}"
            for action in writes(plan)
            if isinstance(action, Patch) and (policy := (action.patch.get("spec") or {}).get("groupReplacementPolicy"))
        )

    def test_replacement_policy_reaches_every_revision_immediately(self) -> None:
        """The replacement policy applies immediately to each revision (N-DS-2, N-AT-9)."""
        newer = with_policy(NEXT, "Immediate")
        old, new = hashed(self.WAITING, "PostTermination", 4, 4), hashed(newer, "PostTermination", 1, 1, ready=0)

        assert self.patched(newer, *old, *new) == sorted(f"{meta.name(one)} Immediate" for one in (*old, *new))

    def test_unchanged_replacement_policy_is_not_written(self) -> None:
        """LeaderWorkerSets with ordinals support only one policy.

        They are not written, and neither are terminating ones.

        Rule N-DS-2.
        """
        (prefill, decode), plain = hashed(self.NOW_, "Immediate", 4, 4), both(SET, 4, 4)
        ending = decode | {"metadata": decode["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"}}

        assert self.patched(self.NOW_, prefill, decode, *plain) == []
        assert self.patched(self.WAITING, prefill, ending) == [f"{meta.name(prefill)} PostTermination"]

    def test_replacement_policy_does_not_change_the_revision(self) -> None:
        """The replacement policy does not change the revision (N-DS-2)."""
        assert revision_of(self.NOW_) == revision_of(self.WAITING) != revision_of(SET)


class TestTerminationPolicy:
    @pytest.mark.parametrize("old", [None, "Default"])
    @pytest.mark.parametrize("new", ["Parallel", None])
    def test_termination_policy_reaches_every_revision_immediately(self, old: str | None, new: str | None) -> None:
        """The field is not part of the revision, so no rollout applies it (N-PT-5)."""

        def with_termination(obj: JSONObject, policy: str | None) -> JSONObject:
            return obj | {"spec": obj["spec"] | ({"podTerminationPolicy": policy} if policy else {})}

        obj = NEXT
        roles = [one | {"spec": with_termination(one, new)["spec"]} for one in obj["spec"]["roles"]]
        parts = [with_termination(part, old) for part in (*both(SET, 4, 4), *both(obj, 1, 1, ready=0))]
        plan = reconcile(
            ObservedDisaggregatedSet(
                disaggregatedset=obj | {"spec": obj["spec"] | {"roles": roles}}, leaderworkersets=parts
            ),
            NOW,
        )

        patches = {action.key.name: action.patch["spec"] for action in writes(plan) if isinstance(action, Patch)}
        changed = [name for name, spec in patches.items() if spec == {"podTerminationPolicy": new}]
        assert sorted(changed) == ([] if new == old else sorted(meta.name(part) for part in parts))


class TestSizes:
    def test_new_set_gets_its_roles_at_full_size(self) -> None:
        """A new DisaggregatedSet creates its roles with their full size (R-DS-31)."""
        expected = ["create LeaderWorkerSet split-0-A-prefill 4", "create LeaderWorkerSet split-0-A-decode 4"]
        assert decided(SET) == expected

    def test_size_change_is_one_patch_without_an_event(self) -> None:
        """The patch has one field, and the observed object as its precondition (R-DS-31, R-DS-19)."""
        plan = reconcile(ObservedDisaggregatedSet(disaggregatedset=SET, leaderworkersets=both(SET, 2, 6, ready=0)), NOW)
        assert told(plan) == ["scale split-0-A-prefill 4", "scale split-0-A-decode 4"]
        patches = [action for action in writes(plan) if isinstance(action, Patch)]
        assert patches[0].patch == {"spec": {"replicas": 4}, "metadata": {"uid": patches[0].patch["metadata"]["uid"]}}
        assert reasons(plan) == []

    def test_reconcile_writes_nothing_at_rest(self) -> None:
        objects = both(SET, 4, 4)
        services = [service(SET, "prefill"), service(SET, "decode")]
        known = SET | {"status": status_of(SET, *objects, services=services)}
        seen = ObservedDisaggregatedSet(disaggregatedset=known, leaderworkersets=objects, services=services)
        assert not reconcile(seen, NOW)

    def test_set_that_is_being_deleted_is_not_changed(self) -> None:
        """A DisaggregatedSet that is being deleted is not changed (Q-16)."""
        assert decided(SET | {"metadata": SET["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"}}) == []

    def test_absent_size_means_one(self) -> None:
        """The default size is one (R-DS-25, R-DS-27)."""
        obj = disaggregatedset_object([role("prefill", None), role("decode", None)])
        assert [line.split()[-1] for line in decided(obj)] == ["1", "1"]

    def test_wrong_template_type_is_an_error_with_its_field(self) -> None:
        broken = role("prefill") | {"spec": {"leaderWorkerTemplate": {"size": "two"}}}
        plan = reconcile(
            ObservedDisaggregatedSet(disaggregatedset=disaggregatedset_object([broken, role("decode")])), NOW
        )
        assert plan.error is not None
        assert "DisaggregatedSet default/split: spec.roles[0].spec.leaderWorkerTemplate.size" in plan.error

    def test_set_without_roles_creates_nothing(self) -> None:
        """Another version of the CRD may have accepted the value."""
        assert decided({name: value for name, value in SET.items() if name != "spec"}) == []

    def test_leaderworkerset_of_a_different_owner_counts_as_absent(self) -> None:
        """The creation fails, and no object is adopted (R-DS-71, R-DS-72)."""
        foreign = lws(SET, "prefill", 4, owner=disaggregatedset_object(name="other"))
        assert decided(SET, foreign, lws(SET, "decode", 4)) == ["create LeaderWorkerSet split-0-A-prefill 4"]


class TestRollout:
    def test_rollout_starts_with_records_and_empty_sets(self) -> None:
        """A rollout starts with size records and empty LeaderWorkerSets (R-DS-35)."""
        plan = reconcile(ObservedDisaggregatedSet(disaggregatedset=NEXT, leaderworkersets=both(SET, 4, 3)), NOW)
        assert told(plan) == [
            "record split-0-A-decode 3",
            "record split-0-A-prefill 4",
            "create LeaderWorkerSet split-0-B-prefill 0",
            "create LeaderWorkerSet split-0-B-decode 0",
        ]
        assert reasons(plan) == ["RollingUpdateStarted"]

    def test_correct_record_is_not_written_again(self) -> None:
        """A correct record is not rewritten (R-DS-35.2)."""
        lines = decided(NEXT, *both(SET, 4, 4, initial=4))
        assert lines == ["create LeaderWorkerSet split-0-B-prefill 0", "create LeaderWorkerSet split-0-B-decode 0"]

    def test_rollout_waits_until_new_groups_are_ready(self) -> None:
        """A rollout waits until new groups are ready (R-DS-37)."""
        assert decided(NEXT, *both(SET, 4, 4, initial=4), *both(NEXT, 2, 2, ready=0)) == []

    def test_missing_leaderworkerset_is_recreated(self) -> None:
        """The Go controller waits permanently for such a group (Q-3)."""
        found = decided(NEXT, *both(SET, 4, 4, initial=4), lws(NEXT, "prefill", 1))
        assert found == ["create LeaderWorkerSet split-0-B-decode 0"]

    def test_old_groups_are_removed_when_new_ones_are_ready(self) -> None:
        """Old groups are scaled down after new groups are ready (R-DS-38, W1)."""
        plan = reconcile(
            ObservedDisaggregatedSet(
                disaggregatedset=NEXT, leaderworkersets=[*both(SET, 4, 4, initial=4), *both(NEXT, 1, 1)]
            ),
            NOW,
        )
        assert told(plan)[:2] == ["scale split-0-A-decode 3", "scale split-0-A-prefill 3"]
        assert reasons(plan) == ["ScalingDown", "ScalingDown"]

    def test_drained_revision_is_deleted_and_completes_the_rollout(self) -> None:
        """The deletion of the last old object completes the rollout (R-DS-32, Q-6)."""
        seen = ObservedDisaggregatedSet(
            disaggregatedset=NEXT, leaderworkersets=[*both(SET, 0, 0, initial=4), *both(NEXT, 4, 4)]
        )
        plan = reconcile(seen, NOW)
        assert told(plan)[:2] == ["delete LeaderWorkerSet split-0-A-decode", "delete LeaderWorkerSet split-0-A-prefill"]
        assert reasons(plan) == ["LWSDeleted", "LWSDeleted", "RollingUpdateCompleted"]

    def test_revision_with_groups_keeps_all_its_objects(self) -> None:
        """A revision with groups retains all of its objects (R-DS-32)."""
        lines = decided(NEXT, *both(SET, 0, 1, initial=4), *both(NEXT, 4, 4, ready=3))
        assert not any(line.startswith("delete") for line in lines)

    def test_broken_revision_is_drained_first(self) -> None:
        """The revisions A(2,2) B(2,2) C(2,2) are scaled to the target 4 (R-DS-62, W13)."""
        third = SET | {"spec": with_image(SET, "app:3")}
        first = both(SET, 2, 2, initial=2)
        second = both(NEXT, 2, 2, initial=2, created="2026-01-02T00:00:00Z")
        lines = decided(third, *first, *second, *both(third, 2, 2))
        assert lines[:2] == ["scale split-0-B-decode 1", "scale split-0-B-prefill 1"]

    def test_all_roles_can_be_replaced_in_one_rollout(self) -> None:
        """The Go controller never deletes the old objects (Q-8)."""
        renamed = disaggregatedset_object([role("first", 2), role("second", 2)])
        lines = decided(renamed, *both(SET, 4, 4))
        assert "record split-0-A-prefill 4" in lines
        assert [line.split()[-1] for line in lines if line.startswith("create")] == ["0", "0"]

    def test_remaining_groups_of_a_removed_role_are_drained(self) -> None:
        """Remaining groups of a removed role are drained (Q-8)."""
        left = [lws(SET, "prefill", 1, initial=4), lws(SET, "decode", 0, initial=4)]
        renamed = disaggregatedset_object([role("decode", 4, image="app:2"), role("encode", 4, image="app:2")])
        new = [lws(renamed, "decode", 4), lws(renamed, "encode", 4)]
        assert "scale split-0-A-prefill 0" in decided(renamed, *left, *new)

    def test_revert_reuses_the_existing_objects(self) -> None:
        """A revert does not write a record or create an object (R-DS-66)."""
        lines = decided(SET, *both(SET, 3, 3, initial=4), *both(NEXT, 3, 3))
        assert [line for line in lines if line.startswith("scale")]
        assert not [line for line in lines if "LeaderWorkerSet" in line or line.startswith("record")]


class TestSlices:
    def test_every_slice_has_all_roles(self) -> None:
        """Each slice contains all roles (R-DS-85)."""
        obj = disaggregatedset_object(slices=2)
        assert [line.split()[2].split("-")[1] for line in decided(obj)] == ["0", "0", "1", "1"]

    def test_surplus_slice_is_deleted_with_its_services(self) -> None:
        """A surplus slice is deleted with its Services (R-DS-33)."""
        surplus = service(SET, "prefill", index=1)
        lines = decided(SET, *both(SET, 4, 4, ready=0), *both(SET, 4, 4, index=1), services=[surplus])
        assert lines == [
            "delete LeaderWorkerSet split-1-A-decode",
            "delete LeaderWorkerSet split-1-A-prefill",
            "delete Service split-1-A-prefill-prv",
        ]

    def test_object_with_an_invalid_slice_is_not_changed(self) -> None:
        """An object with an invalid slice number is not changed (R-DS-33)."""
        odd = lws(SET, "prefill", 4, index=7)
        odd["metadata"]["labels"][SLICE] = "seven"
        assert decided(SET, odd, *both(SET, 4, 4, ready=0)) == []

    def test_slices_roll_independently(self) -> None:
        """An error in one slice does not stop other slices (R-DS-86)."""
        obj = NEXT | {"spec": NEXT["spec"] | {"slices": 2}}
        plan = reconcile(ObservedDisaggregatedSet(disaggregatedset=obj, leaderworkersets=both(SET, 4, 4)), NOW)
        (whole,) = plan.actions
        assert isinstance(whole, Finally)
        (slices,) = whole.actions
        assert isinstance(slices, Concurrently)
        assert len(slices.sequences) == 2


class TestFailures:
    def test_orphans_are_adopted_before_anything_else(self) -> None:
        """The name of an orphan is derived from its labels, so a copy with a different name is not adopted."""
        orphans = [obj | {"metadata": obj["metadata"] | {"ownerReferences": []}} for obj in both(SET, 4, 4)]
        copy = orphans[0] | {"metadata": orphans[0]["metadata"] | {"name": "copy"}}
        plan = reconcile(ObservedDisaggregatedSet(disaggregatedset=SET, leaderworkersets=[*orphans, copy]), NOW)
        patches = [action for action in plan.actions if isinstance(action, Patch)]
        assert [patch.key for patch in patches] == [meta.key(obj) for obj in orphans]
        assert all(meta.is_controlled(patch.patch, SET) for patch in patches)
        assert reason_of(plan.on_failure) == "ReconcileFailed"

    def test_unreadable_set_is_not_available(self) -> None:
        """This also applies if only the status can be read (docs/adr/0030)."""
        status = {"conditions": [{"type": "Available", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
        plan = reconcile(
            ObservedDisaggregatedSet(disaggregatedset=SET | {"spec": {"slices": "x"}, "status": status}), NOW
        )
        assert plan.error
        (write,) = [action for action in plan.actions if isinstance(action, PutStatus)]
        assert not meta.is_condition_true(write.object, "Available")
        assert reason_of(plan.actions) == "ReconcileFailed"
        assert "spec.slices" in reconcilefailure.message(write.object)

    def test_set_is_not_available_when_an_action_fails(self) -> None:
        plan = reconcile(ObservedDisaggregatedSet(disaggregatedset=NEXT, leaderworkersets=both(SET, 4, 4)), NOW)
        (work,) = plan.actions
        assert isinstance(work, Finally)
        assert reason_of(work.otherwise or ()) == "ReconcileFailed"
        assert reason_of(work.after) == "RolloutInProgress"


def reason_of(actions: Actions) -> str:
    """Return the reason of the `Progressing` condition in a status write."""
    (write,) = [action for action in flatten(actions) if isinstance(action, PutStatus)]
    return str((meta.find_condition(write.object, "Progressing") or {})["reason"])


class TestLegacy:
    def test_single_slice_keeps_its_old_names(self) -> None:
        """A single slice retains its old names (R-DS-87)."""
        assert decided(SET, *both(SET, 3, 4, ready=0, legacy=True)) == ["scale split-A-prefill 4"]

    def test_second_slice_converts_the_first(self) -> None:
        """A second slice converts the first one (R-DS-89)."""
        obj = SET | {"spec": SET["spec"] | {"slices": 2}}
        old = service(SET, "prefill", legacy=True)
        plan = reconcile(
            ObservedDisaggregatedSet(
                disaggregatedset=obj, leaderworkersets=both(SET, 4, 4, legacy=True), services=[old]
            ),
            NOW,
        )
        lines = told(plan)
        assert lines[:3] == [
            "delete LeaderWorkerSet split-A-decode",
            "delete Service split-A-prefill-prv",
            "delete LeaderWorkerSet split-A-prefill",
        ]
        assert "create LeaderWorkerSet split-0-A-prefill 4" in lines
        events = [event for action in writes(plan) for event in getattr(action, "on_success", ())]
        assert {event.action for event in events} == {"Migrate"}

    def test_terminating_objects_are_not_deleted_again(self) -> None:
        """Terminating objects are not deleted a second time (R-DS-89)."""
        obj = SET | {"spec": SET["spec"] | {"slices": 2}}
        parts = both(SET, 4, 4, legacy=True)
        parts[0]["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
        deleted = [line for line in decided(obj, *parts) if line.startswith("delete")]
        assert deleted == ["delete LeaderWorkerSet split-A-decode"]

    def test_revert_to_a_legacy_revision_uses_its_names(self) -> None:
        """The Go controller requests an empty name (Q-7)."""
        lines = decided(SET, *both(SET, 3, 3, initial=4, legacy=True), *both(NEXT, 1, 1))
        assert lines[:2] == ["scale split-A-prefill 4", "scale split-A-decode 4"]
        assert not any(line.startswith("create Leader") for line in lines)
