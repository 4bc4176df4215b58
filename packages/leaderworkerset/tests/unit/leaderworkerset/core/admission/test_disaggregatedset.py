"""Tests the admission of DisaggregatedSets (R-DS-8 to R-DS-13)."""

import base64
import json
from typing import Any

import pytest
from tests.disaggregated import disaggregatedset_object, role

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.core.admission.disaggregatedset import validate_disaggregatedset, warnings
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.webhooks import handlers, review

DECODE = role("decode", 4)


def errors_of(first: JSONObject, *, name: str = "split", **spec: Any) -> list[str]:
    obj = disaggregatedset_object([first, spec.pop("second", DECODE)], name=name, **spec)
    return [str(error) for error in validate_disaggregatedset(obj)]


def rolling(**budgets: Any) -> JSONObject:
    return role("prefill", 4, rollout=budgets)


CONFIGURATION = "spec.roles[0].spec.rolloutStrategy.rollingUpdateConfiguration"


@pytest.mark.parametrize(
    ("entry", "path", "words"),
    [
        (rolling(partition=1, maxSurge=1), "partition", "Forbidden"),
        (rolling(maxUnavailable=-1), "maxUnavailable", "greater than or equal to 0"),
        (rolling(maxSurge="5", maxUnavailable=1), "maxSurge", "percent string"),
        (rolling(maxSurge="101%"), "maxSurge", "greater than 100%"),
        (rolling(maxSurge=0, maxUnavailable=0), "maxUnavailable", "must not be 0 when `maxSurge` is 0"),
        (rolling(maxSurge="0%", maxUnavailable="20%"), "maxUnavailable", "must not be 0 when `maxSurge` is 0"),
    ],
)
def test_invalid_budgets_are_rejected(entry: JSONObject, path: str, words: str) -> None:
    """The budgets are invalid even without other errors (R-DS-9 b to d)."""
    (error,) = errors_of(entry)
    assert error.startswith(f"{CONFIGURATION}.{path}: ")
    assert words in error


def test_differs_from_upstream_stored_role_blocks_no_update() -> None:
    """Invalid role values that are already stored do not block updates of a DisaggregatedSet (ADR 29)."""
    stored = disaggregatedset_object([rolling(maxSurge="0%", maxUnavailable="20%"), DECODE])
    edited = stored | {"metadata": stored["metadata"] | {"labels": {"team": "a"}}}
    worse = disaggregatedset_object([rolling(maxSurge="0%", maxUnavailable="10%"), DECODE])

    assert validate_disaggregatedset(edited, stored) == []
    assert len(validate_disaggregatedset(worse, stored)) == 1


@pytest.mark.parametrize(
    "entry",
    [
        rolling(partition=0, maxSurge=1),
        rolling(maxSurge="25%", maxUnavailable="25%"),
        rolling(maxUnavailable="100%", maxSurge=0),
        role("prefill", 4),
    ],
)
def test_valid_budgets_are_accepted(entry: JSONObject) -> None:
    assert errors_of(entry) == []


def test_budgets_of_a_role_without_groups_are_ignored() -> None:
    """Invalid budgets are also ignored (R-DS-9)."""
    entry = role("prefill", 0, rollout={"maxSurge": "many", "maxUnavailable": 0})
    assert errors_of(entry, second=role("decode", 0)) == []


def test_unsupported_strategy_is_rejected() -> None:
    """Only the `RollingUpdate` strategy is supported (R-DS-9 a)."""
    entry = role("prefill", 4)
    entry["spec"]["rolloutStrategy"] = {"type": "Recreate"}
    (error,) = errors_of(entry)
    assert error.startswith('spec.roles[0].spec.rolloutStrategy.type: Unsupported value: "Recreate"')


@pytest.mark.parametrize(
    ("length", "slices", "is_accepted"),
    [(40, 1, True), (41, 1, False), (40, 10, True), (40, 11, False), (39, 100, True)],
)
def test_role_names_must_leave_space_for_service_names(length: int, slices: int, is_accepted: bool) -> None:
    """Service names have at most 63 characters. Slice, revision and suffix need 16 or 17 (R-DS-9 f)."""
    services = [text for text in errors_of(role("prefill", 4), name="s" * length, slices=slices) if "DNS-1035" in text]
    assert (services == []) is is_accepted
    assert all("spec.roles[0].name" in error for error in services[:1])


@pytest.mark.parametrize(("size", "length"), [(1, 35), (2, 33)])
def test_differs_from_upstream_role_names_leave_space_for_pods(size: int, length: int) -> None:
    """A role name is rejected if it is too long for the labels of worker pods.

    The label value `<set>-<slice>-<revision>-<role>-<group>-<hash>` can have at most 63 characters (ADR 29).
    """
    (error,) = errors_of(role("prefill", 4, size=size), name="s" * (length + 1))
    assert error.startswith("spec.roles[0].name: Invalid value: ")
    assert "must be no more than" in error
    assert errors_of(role("prefill", 4, size=size), name="s" * length) == []


def test_role_name_that_fits_some_revisions_causes_a_warning() -> None:
    obj = disaggregatedset_object([role("prefill", 4, size=2), DECODE], name="s" * 32)
    (warning,) = warnings(obj)
    assert warning.startswith("spec.roles[0]: LeaderWorkerSet ssss")
    assert "some revisions" in warning


def test_scaler_name_is_limited_to_253_characters() -> None:
    """The error is reported together with the error for the Service name (R-DS-9 e)."""
    found = errors_of(role("prefill", external=True), name="s" * 246, second=role("d", 4))
    assert any("253 characters" in error for error in found)


def test_external_roles_require_one_slice() -> None:
    """External roles require one slice (R-DS-10)."""
    (error,) = errors_of(role("prefill", external=True), slices=2)
    assert error.startswith("spec.slices: Forbidden: spec.slices > 1")


def test_all_roles_or_none_have_groups() -> None:
    """The rule also applies on API servers that do not evaluate expressions (R-DS-4)."""
    (error,) = errors_of(role("prefill", 0))
    assert "replicas must be zero for all non-External roles, or non-zero for all of them" in error
    assert errors_of(role("prefill", 0), second=role("decode", 0)) == []
    assert errors_of(role("prefill", 0, external=True)) == []
    assert errors_of(role("prefill", 0), second=role("decode", None)) != []


POLICY = {"type": "ExclusiveSlice", "topology": "rack"}


class TestPlacement:
    def test_exclusive_topology_requires_a_topology(self) -> None:
        """Exclusive topology requires a topology key (R-DS-11)."""
        (error,) = errors_of(role("prefill", 4), placementPolicy={"type": "ExclusiveSlice"})
        assert error.startswith("spec.placementPolicy.topology: Required value")

    @pytest.mark.parametrize("key", [labels.EXCLUSIVE_TOPOLOGY, labels.SUBGROUP_EXCLUSIVE_TOPOLOGY])
    @pytest.mark.parametrize("place", ["role", "leaderTemplate", "workerTemplate"])
    def test_placement_policy_conflicts_with_annotations(self, key: str, place: str) -> None:
        """The placement policy conflicts with annotations (R-DS-11)."""
        entry = role("prefill", 4)
        annotated = {"metadata": {"annotations": {key: "rack"}}}
        template = entry["spec"]["leaderWorkerTemplate"]
        if place == "role":
            entry |= annotated
        else:
            template[place] = template.get(place, template["workerTemplate"]) | annotated
        (error,) = errors_of(entry, placementPolicy=POLICY)
        assert error.startswith(f"spec.roles[0]: Forbidden: the annotation {key}")
        assert errors_of(entry, placementPolicy={"type": "None"}) == []


def test_ignored_replicas_cause_a_warning() -> None:
    """Replicas that are ignored cause a warning (R-DS-12)."""
    (text,) = warnings(disaggregatedset_object([role("prefill", 3, external=True), DECODE]))
    assert "role prefill" in text
    assert "split-prefill" in text
    assert warnings(disaggregatedset_object([role("prefill", 1, external=True), DECODE])) == []


def test_name_that_no_leaderworkerset_can_have_causes_a_warning() -> None:
    """The name is accepted as in upstream, with a warning (R-DS-13)."""
    (text,) = warnings(disaggregatedset_object(name="1st"))
    assert text.startswith("metadata.name: ")


def answer(obj: Any, operation: str = "CREATE") -> JSONObject:
    request = {"uid": "u", "operation": operation, "object": obj}
    body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()
    path = handlers.VALIDATE_DISAGGREGATED_SET
    response: JSONObject = json.loads(review.respond_to_review(body, MANAGED.decisions[path]))["response"]
    return response


def test_webhook_answers_with_errors_warnings_and_types() -> None:
    """A rejection lists all errors. An accepted object can have warnings. Incorrect types are rejected (R-DS-8)."""
    assert answer(disaggregatedset_object()) == {"uid": "u", "allowed": True}
    warned = answer(disaggregatedset_object([role("prefill", 3, external=True), DECODE]))
    assert warned["allowed"]
    assert len(warned["warnings"]) == 1
    refused = answer(disaggregatedset_object([rolling(partition=1, maxSurge="x"), DECODE]))
    assert not refused["allowed"]
    assert "partition" in refused["status"]["message"]
    assert "maxSurge" in refused["status"]["message"]
    wrong = answer(disaggregatedset_object() | {"spec": {"roles": [{"name": 1}]}})
    assert (wrong["allowed"], wrong["status"]["code"]) == (False, 400)
    assert "spec.roles[0].name" in wrong["status"]["message"]
    deep = role("prefill")
    deep["spec"]["leaderWorkerTemplate"]["workerTemplate"] = {"spec": {"containers": 1}}
    assert "spec.roles[0].spec" in answer(disaggregatedset_object([deep, DECODE]))["status"]["message"]
    assert answer({}, "DELETE") == {"uid": "u", "allowed": True}
    assert "patch" not in base64.b64encode(json.dumps(warned).encode()).decode()


HASH: dict[str, Any] = {"groupIdentity": "Hash"}


def role_with(*, size: int = 1, template: dict[str, Any] | None = None, **spec: Any) -> JSONObject:
    entry = role("prefill", 4, size=size)
    given = entry["spec"] | spec
    return entry | {"spec": given | {"leaderWorkerTemplate": given["leaderWorkerTemplate"] | (template or {})}}


@pytest.mark.parametrize(
    ("entry", "field", "words"),
    [
        (role_with(groupReplacementPolicy="Immediate"), "groupReplacementPolicy", "Immediate is only supported"),
        (
            role_with(template={"volumeClaimTemplates": [{"metadata": {"name": "a"}}]}, **HASH),
            "groupIdentity",
            "volume",
        ),
        (
            role_with(template={"maxGroupRestarts": 1, "restartPolicy": "None"}),
            "leaderWorkerTemplate.maxGroupRestarts",
            "recreates",
        ),
    ],
)
def test_role_with_an_invalid_leaderworkerset_is_rejected(entry: JSONObject, field: str, words: str) -> None:
    """A role with an invalid LeaderWorkerSet is rejected (N-DS-3, N-VAL-11)."""
    (error,) = errors_of(entry)
    assert error.startswith(f"spec.roles[0].spec.{field}: Invalid value: ")
    assert words in error
    assert errors_of(role_with(groupReplacementPolicy="Immediate", **HASH)) == []


@pytest.mark.parametrize(("size", "longest"), [(1, 54), (2, 43)])
def test_role_names_must_leave_space_for_random_keys(size: int, longest: int) -> None:
    """The generated name must leave space for a random key (N-DS-3, N-VAL-8)."""
    room = longest - len("-0-12345678-prefill")
    (error,) = errors_of(role_with(size=size, **HASH), name="s" * (room + 1))
    assert error.startswith("spec.roles[0].name: Invalid value: ")
    assert error.endswith(f"must be no more than {longest} characters with groupIdentity Hash")
    assert errors_of(role_with(size=size, **HASH), name="s" * room) == []
