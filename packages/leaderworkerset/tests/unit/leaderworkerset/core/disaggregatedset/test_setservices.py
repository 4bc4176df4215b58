"""Tests the Services, scalers and status of a DisaggregatedSet."""

from tests.builders import NOW
from tests.disaggregated import disaggregatedset_object, role, with_image
from tests.unit.leaderworkerset.core.disaggregatedset.decisions import (
    NEXT,
    SET,
    both,
    decided,
    lws,
    revision_of,
    service,
    status_of,
    writes,
)

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.plan import Patch
from leaderworkerset.api.disaggregatedset import REVISION, ROLE, SET_NAME, SLICE
from leaderworkerset.core.disaggregatedset.reconcile import ObservedDisaggregatedSet, reconcile


class TestServices:
    def test_services_are_created_when_every_role_has_a_ready_group(self) -> None:
        """Services are created when each role has a ready group (R-DS-80, R-DS-81)."""
        partly = [lws(SET, "prefill", 4, ready=1), lws(SET, "decode", 4, ready=0)]
        assert decided(SET, *partly) == []
        ready = both(SET, 4, 4, ready=1)
        assert decided(SET, *ready) == ["create Service split-0-A-prefill-prv", "create Service split-0-A-decode-prv"]

    def test_service_has_a_selector_and_labels(self) -> None:
        """A Service has the expected selector and labels (R-DS-83)."""
        found = service(SET, "prefill")
        selector = {SET_NAME: "split", ROLE: "prefill", REVISION: revision_of(SET), SLICE: "0"}
        assert found["spec"] == {"clusterIP": "None", "selector": selector}
        assert found["metadata"]["labels"] == selector
        (owner,) = found["metadata"]["ownerReferences"]
        assert owner["controller"] is True
        assert "blockOwnerDeletion" not in owner
        assert SLICE not in service(SET, "prefill", legacy=True)["spec"]["selector"]

    def test_services_of_the_old_revision_stay_while_it_serves(self) -> None:
        """Services of the old revision remain while it is used (R-DS-82)."""
        services = [service(one, name) for one in (SET, NEXT) for name in ("prefill", "decode")]
        new = both(NEXT, 1, 1)
        assert not any("Service" in line for line in decided(NEXT, *both(SET, 3, 3), *new, services=services))
        gone = decided(NEXT, *both(SET, 3, 0, ready=0), *new, services=services)
        assert "delete Service split-0-A-prefill-prv" in gone

    def test_added_role_keeps_services_of_the_old_revision(self) -> None:
        """If a role is added, Services of the old revision remain (Q-10)."""
        grown = disaggregatedset_object([*NEXT["spec"]["roles"], role("encode", 1, image="app:2")])
        new = [lws(grown, name, 1) for name in ("prefill", "decode", "encode")]
        services = [service(SET, "prefill"), *(service(grown, name) for name in ("prefill", "decode", "encode"))]
        lines = decided(grown, *both(SET, 3, 3, initial=4), *new, services=services)
        assert not any(line.startswith("delete Service") for line in lines)

    def test_services_of_others_are_never_deleted(self) -> None:
        """An example is a user's Service that has the name of the DisaggregatedSet (Q-9)."""
        front: JSONObject = {"metadata": {"name": "front", "namespace": "default", "labels": {SET_NAME: "split"}}}
        services = [front, service(SET, "prefill"), service(SET, "decode")]
        assert decided(SET, *both(SET, 4, 4), services=services) == []


EXTERNAL = disaggregatedset_object([role("prefill", 4, external=True), role("decode", 4)])


def scaler(replicas: int, *, owner: JSONObject = EXTERNAL, name: str = "prefill") -> JSONObject:
    metadata: JSONObject = {
        "name": f"split-{name}",
        "namespace": "default",
        "uid": "uid-of-scaler",
        "generation": 3,
        "labels": {SET_NAME: "split", ROLE: name},
        "ownerReferences": [meta.controller_reference(owner)],
    }
    kind = {"apiVersion": "disaggregatedset.x-k8s.io/v1", "kind": "DisaggregatedSetRoleScaler"}
    return kind | {"metadata": metadata, "spec": {"replicas": replicas}}


class TestScalers:
    def test_external_role_gets_a_scaler_of_one_group(self) -> None:
        """The scaler has one group, because autoscalers do not act at 0 (R-DS-96, R-DS-97)."""
        lines = decided(EXTERNAL)
        assert lines[0] == "create DisaggregatedSetRoleScaler split-prefill 1"
        assert lines[1].endswith("-prefill 1")

    def test_scaler_starts_with_the_number_of_running_groups(self) -> None:
        """A scaler starts with the number of running groups (R-DS-97)."""
        lines = decided(EXTERNAL, *both(EXTERNAL, 5, 4, ready=0))
        assert lines == ["create DisaggregatedSetRoleScaler split-prefill 5"]

    def test_scaler_of_an_empty_role_starts_with_zero(self) -> None:
        """A role that is re-added waits for its autoscaler while its empty LeaderWorkerSet exists (R-DS-97)."""
        after = EXTERNAL | {"spec": with_image(EXTERNAL, "app:2")}
        lines = decided(after, lws(EXTERNAL, "decode", 4, initial=4), *both(after, 0, 0))
        assert lines[0] == "create DisaggregatedSetRoleScaler split-prefill 0"
        assert [line.split("-")[-1] for line in lines if line.startswith("scale")] == ["decode 1"]

    def test_scaler_sets_the_number_of_groups(self) -> None:
        """A scaler sets the number of groups (R-DS-98)."""
        lines = decided(EXTERNAL, *both(EXTERNAL, 5, 4, ready=0), scalers=[scaler(0)])
        assert [line.split()[-1] for line in lines] == ["0"]

    def test_scaler_of_a_static_role_is_deleted(self) -> None:
        """The scaler of a static role is deleted (R-DS-96, R-DS-99)."""
        lines = decided(EXTERNAL, *both(EXTERNAL, 1, 4, ready=0), scalers=[scaler(1), scaler(1, name="decode")])
        assert lines == ["delete DisaggregatedSetRoleScaler split-decode"]

    def test_conflicting_scaler_keeps_the_groups_and_is_reported(self) -> None:
        """A conflicting scaler is reported, and the number of groups does not change (R-DS-74)."""
        foreign = scaler(9, owner=disaggregatedset_object(name="other"))
        assert decided(EXTERNAL, *both(EXTERNAL, 5, 4, ready=0), scalers=[foreign]) == ["ScalerConflict"]

    def test_rollout_without_a_scaler_keeps_the_number_of_groups(self) -> None:
        """The Go controller would scale the role to zero (Q-13)."""
        foreign = scaler(9, owner=disaggregatedset_object(name="other"))
        after = EXTERNAL | {"spec": with_image(EXTERNAL, "app:2")}
        lines = decided(after, *both(EXTERNAL, 4, 4, initial=4), *both(after, 0, 0), scalers=[foreign])
        raised = [line.split("-")[-1] for line in lines if line.startswith("scale")]
        assert raised == ["prefill 1", "decode 1"]

    def test_scaler_status_has_replicas_and_a_selector(self) -> None:
        """A scaler status contains replicas and a selector (R-DS-100)."""
        seen = ObservedDisaggregatedSet(
            disaggregatedset=EXTERNAL, leaderworkersets=both(EXTERNAL, 5, 4), scalers=[scaler(5)]
        )
        (patch,) = [one for one in writes(reconcile(seen, NOW)) if isinstance(one, Patch) and one.subresource]
        status = patch.patch["status"]
        assert patch.key == ObjectKey("default", "split-prefill")
        assert (status["replicas"], status["observedGeneration"]) == (5, 3)
        assert status["selector"] == (
            "disaggregatedset.x-k8s.io/name=split,disaggregatedset.x-k8s.io/role=prefill,"
            "leaderworkerset.sigs.k8s.io/worker-index=0"
        )
        (ready,) = status["conditions"]
        assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "True", "Bound")
        known = scaler(5) | {"status": status}
        again = ObservedDisaggregatedSet(
            disaggregatedset=EXTERNAL, leaderworkersets=both(EXTERNAL, 5, 4), scalers=[known]
        )
        assert not [one for one in writes(reconcile(again, NOW)) if isinstance(one, Patch)]


class TestStatus:
    def test_status_counts_current_roles_of_all_revisions(self) -> None:
        """The status counts the current roles of all revisions (R-DS-92)."""
        status = status_of(
            NEXT,
            *both(SET, 3, 2, initial=4),
            lws(NEXT, "prefill", 1),
            lws(NEXT, "decode", 1),
            lws(SET, "prefill", 1, ready=0, index=1),
        )
        assert status is not None
        assert list(status["roleStatuses"]) == [
            {"name": "prefill", "replicas": 5, "readyReplicas": 4, "updatedReplicas": 1},
            {"name": "decode", "replicas": 3, "readyReplicas": 3, "updatedReplicas": 1},
        ]

    def test_set_is_available_when_all_groups_are_ready_and_new(self) -> None:
        """The opposite condition is not added to the status (R-DS-93, R-DS-94)."""
        status = status_of(SET, *both(SET, 4, 4))
        assert status is not None
        (one,) = status["conditions"]
        assert (one["type"], one["status"], one["reason"]) == ("Available", "True", "AllRolesReady")
        assert status["observedGeneration"] == 1

    def test_set_is_progressing_during_a_rollout(self) -> None:
        """During a rollout, the `Progressing` condition is True (R-DS-94)."""
        status = status_of(SET)
        assert status is not None
        (one,) = status["conditions"]
        assert (one["type"], one["status"], one["reason"]) == ("Progressing", "True", "RolloutInProgress")

    def test_change_flips_both_conditions(self) -> None:
        """The transition time of an unchanged condition is retained (R-DS-94)."""
        was = "2025-01-01T00:00:00Z"
        known = {"type": "Available", "status": "True", "reason": "AllRolesReady", "lastTransitionTime": was}
        status = status_of(SET | {"status": {"conditions": [known]}}, *both(SET, 4, 4, ready=3))
        assert status is not None
        states = {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}
        assert states == {"Available": ("False", "RolloutInProgress"), "Progressing": ("True", "RolloutInProgress")}
        same = status_of(SET | {"status": {"conditions": [known]}}, *both(SET, 4, 4))
        assert same is not None
        assert same["conditions"][0]["lastTransitionTime"] == was

    def test_set_without_groups_is_available(self) -> None:
        """Without groups, the `Available` condition is True (R-DS-93)."""
        paused = disaggregatedset_object([role("prefill", 0), role("decode", 0)])
        status = status_of(paused, *both(paused, 0, 0))
        assert status is not None
        assert status["conditions"][0]["type"] == "Available"

    def test_set_with_a_missing_scaler_is_progressing(self) -> None:
        """If a scaler is missing, the `Progressing` condition is True (R-DS-93)."""
        foreign = scaler(4, owner=disaggregatedset_object(name="other"))
        status = status_of(EXTERNAL, *both(EXTERNAL, 4, 4), scalers=[foreign])
        assert status is not None
        assert status["conditions"][0]["type"] == "Progressing"
