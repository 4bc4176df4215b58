"""Tests the decision for each path (contract 12.3), from the review to the response."""

import base64
import json
import sys
from collections import Counter
from types import FrameType
from typing import Any

import jsonpatch
import msgspec
import pytest

from leaderworkerset.api import fieldtypes, leaderworkerset
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.webhooks import handlers, review

P = "leaderworkerset.sigs.k8s.io/"
POD_TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
LWS: dict[str, Any] = {
    "apiVersion": "leaderworkerset.x-k8s.io/v1",
    "kind": "LeaderWorkerSet",
    "metadata": {"name": "test", "namespace": "default"},
    "spec": {"leaderWorkerTemplate": {"size": 2, "workerTemplate": POD_TEMPLATE}},
}


def ask(path: str, obj: Any, old: Any = None, operation: str = "CREATE") -> dict[str, Any]:
    request = {"uid": "u", "operation": operation, "object": obj, "oldObject": old}
    body = msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
    response: dict[str, Any] = msgspec.json.decode(review.respond_to_review(body, MANAGED.decisions[path]))["response"]
    return response


def patched(obj: Any, response: dict[str, Any]) -> Any:
    operations = json.loads(base64.b64decode(response.get("patch", base64.b64encode(b"[]"))))
    return jsonpatch.apply_patch(json.loads(json.dumps(obj)), operations)


def test_webhooks_have_the_expected_paths() -> None:
    """The path `/convert` does not exist (R-WHC-2, R-API-4)."""
    assert set(MANAGED.decisions) == {
        "/mutate-leaderworkerset-x-k8s-io-v1-leaderworkerset",
        "/mutate--v1-pod",
        "/validate-leaderworkerset-x-k8s-io-v1-leaderworkerset",
        "/validate-disaggregatedset-x-k8s-io-v1-disaggregatedset",
        "/validate--v1-pod",
    }


def test_defaults_are_returned_as_a_minimal_patch() -> None:
    """Defaults are returned as a minimal patch (R-DEF-1 to R-DEF-4, R-DEF-6)."""
    response = ask(handlers.MUTATE_LEADERWORKERSET, LWS)
    spec = patched(LWS, response)["spec"]
    assert spec == {
        "replicas": 1,
        "leaderWorkerTemplate": {
            "size": 2,
            "workerTemplate": POD_TEMPLATE,
            "restartPolicy": "RecreateGroupOnPodRestart",
        },
        "rolloutStrategy": {
            "type": "RollingUpdate",
            "rollingUpdateConfiguration": {"partition": 0, "maxUnavailable": 1, "maxSurge": 0},
        },
        "networkConfig": {"subdomainPolicy": "Shared"},
    }


def test_defaulted_object_needs_no_patch() -> None:
    """An object with defaults does not need a patch (R-DEF-6)."""
    once = patched(LWS, ask(handlers.MUTATE_LEADERWORKERSET, LWS))
    assert ask(handlers.MUTATE_LEADERWORKERSET, once) == {"uid": "u", "allowed": True}


@pytest.mark.parametrize("path", [handlers.MUTATE_LEADERWORKERSET, handlers.VALIDATE_LEADERWORKERSET])
@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"replicas": "3"}, "spec.replicas"),
        ({"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": {}}}}}, "workerTemplate.spec.containers"),
        ({"rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": []}}}, "rollingUpdateConfiguration.maxSurge"),
    ],
)
def test_wrong_types_are_a_bad_request(path: str, spec: dict[str, Any], field: str) -> None:
    """Incorrect types result in a bad request (R-DEF-7)."""
    status = ask(path, LWS | {"spec": spec})["status"]
    assert status["code"] == 400
    assert f"{field}: Invalid value" in status["message"]


def test_valid_object_is_allowed() -> None:
    assert ask(handlers.VALIDATE_LEADERWORKERSET, LWS) == {"uid": "u", "allowed": True}
    assert ask(handlers.VALIDATE_LEADERWORKERSET, LWS, LWS, "UPDATE") == {"uid": "u", "allowed": True}


def test_rejection_has_the_text_of_the_go_manager() -> None:
    """The message equals the Go manager's message for this change (R-VAL-15, contract 10.2)."""
    rolling = {"maxUnavailable": "50%", "maxSurge": 0, "partition": 0}
    strategy = {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling}
    bad = LWS | {"spec": LWS["spec"] | {"replicas": 1, "rolloutStrategy": strategy}}
    assert ask(handlers.VALIDATE_LEADERWORKERSET, bad)["status"] == {
        "code": 403,
        "reason": "Forbidden",
        "message": "spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable: Invalid value:"
        ' "50%": must not be 0 when `maxSurge` is 0',
    }


DELETING = {"deletionTimestamp": "2026-11-27T10:00:00Z", "finalizers": []}


@pytest.mark.parametrize("path", sorted(MANAGED.decisions))
def test_terminating_object_can_always_be_updated(path: str) -> None:
    """Finalizers can be removed even if other fields are invalid."""
    bad = LWS | {"metadata": LWS["metadata"] | DELETING, "spec": {"replicas": "many", "roles": "none"}}
    assert ask(path, bad, bad, "UPDATE") == {"uid": "u", "allowed": True}


DISAGGREGATED = {
    "apiVersion": "disaggregatedset.x-k8s.io/v1",
    "kind": "DisaggregatedSet",
    "metadata": {"name": "split", "namespace": "default"},
    "spec": {"roles": [{"name": name, "spec": LWS["spec"]} for name in ("prefill", "decode")]},
}


@pytest.mark.parametrize(
    ("path", "stored", "field"),
    [
        (handlers.MUTATE_LEADERWORKERSET, LWS, "replicas"),
        (handlers.VALIDATE_LEADERWORKERSET, LWS, "replicas"),
        (handlers.VALIDATE_DISAGGREGATED_SET, DISAGGREGATED, "slices"),
    ],
)
def test_stored_wrong_type_blocks_no_update(path: str, stored: dict[str, Any], field: str) -> None:
    """A CRD without the schema of a field accepts any value while the webhook is missing (ADR 29)."""
    wrong = stored | {"spec": stored["spec"] | {field: "many"}}
    worse = stored | {"spec": stored["spec"] | {field: "more"}}
    labeled = wrong | {"metadata": wrong["metadata"] | {"labels": {"team": "a"}}}

    assert ask(path, wrong)["status"]["code"] == 400
    assert ask(path, labeled, wrong, "UPDATE") == {"uid": "u", "allowed": True}
    assert ask(path, worse, wrong, "UPDATE")["status"]["code"] == 400
    assert ask(path, stored, wrong, "UPDATE")["allowed"]


def test_ignored_labels_of_a_template_cause_a_warning() -> None:
    """An example is a template that was copied from a running pod (ADR 29)."""
    metadata = {
        "labels": {P + "group-index": "0", P + "worker-index": "0", "team": "a"},
        "annotations": {P + "size": "9"},
    }
    template = {"size": 2, "workerTemplate": POD_TEMPLATE | {"metadata": metadata}}
    response = ask(handlers.VALIDATE_LEADERWORKERSET, LWS | {"spec": {"leaderWorkerTemplate": template}})
    path = "spec.leaderWorkerTemplate.workerTemplate.metadata"
    assert response["allowed"]
    assert response["warnings"] == [
        f"{path}.labels: ignored, because only the controllers set {P}group-index, {P}worker-index",
        f"{path}.annotations: ignored, because only the controllers set {P}size",
    ]


def test_template_fields_that_prevent_pods_cause_warnings() -> None:
    """Upstream also accepts the set, although its pods are never created."""
    spec = POD_TEMPLATE["spec"] | {"restartPolicy": "Never", "activeDeadlineSeconds": 60}
    template = {"size": 2, "workerTemplate": POD_TEMPLATE | {"spec": spec}}
    response = ask(handlers.VALIDATE_LEADERWORKERSET, LWS | {"spec": {"leaderWorkerTemplate": template}})
    path = "spec.leaderWorkerTemplate.workerTemplate.spec"
    assert response["allowed"]
    assert [warning.split(": ")[:2] for warning in response["warnings"]] == [
        [f"{path}.restartPolicy", "Unsupported value"],
        [f"{path}.activeDeadlineSeconds", "Forbidden"],
    ]


def test_deletions_are_allowed() -> None:
    """Deletions are allowed (R-VAL-26)."""
    assert ask(handlers.VALIDATE_LEADERWORKERSET, None, LWS, "DELETE")["allowed"]


def test_pod_of_a_group_is_patched_before_its_own_variables() -> None:
    """The patch does not change the user's variables (R-ENV-1)."""
    pod = {
        "metadata": {
            "name": "test-0",
            "namespace": "default",
            "labels": {P + "name": "test", P + "worker-index": "0"},
            "annotations": {P + "size": "2"},
        },
        "spec": {"subdomain": "test", "containers": [{"name": "c", "env": [{"name": "X", "value": "1"}]}]},
    }
    response = ask(handlers.MUTATE_POD, pod)
    operations = json.loads(base64.b64decode(response["patch"]))
    assert [item["path"] for item in operations if item["path"].startswith("/spec")] == [
        f"/spec/containers/0/env/{i}" for i in range(4)
    ]
    names = [entry["name"] for entry in patched(pod, response)["spec"]["containers"][0]["env"]]
    assert names == ["LWS_LEADER_ADDRESS", "LWS_GROUP_SIZE", "LWS_WORKER_INDEX", "LWS_GROUP_INDEX", "X"]


def test_pod_of_a_different_owner_is_allowed() -> None:
    """Test environments send all pods to the webhook (R-WHC-1)."""
    assert ask(handlers.MUTATE_POD, {"metadata": {"name": "web"}, "spec": {"containers": []}})["allowed"]


def test_invalid_pod_of_a_group_is_denied() -> None:
    """An invalid pod in a group is denied (R-ADM-1)."""
    status = ask(handlers.MUTATE_POD, {"metadata": {"name": "a-0", "labels": {P + "name": "a"}}, "spec": {}})["status"]
    assert status == {
        "code": 403,
        "reason": "Forbidden",
        "message": "size annotation is unexpectedly missing for pod a-0",
    }


def test_malformed_pod_is_a_bad_request() -> None:
    status = ask(handlers.MUTATE_POD, {"metadata": {"labels": []}, "spec": {}})["status"]
    assert (status["code"], status["message"]) == (400, "metadata.labels: Invalid value: []: must be an object")


def test_null_annotation_is_an_empty_text() -> None:
    """A fuzzer found that a null subgroup size caused the status 500."""
    marks = {f"{P}name": "one", f"{P}worker-index": "1", f"{P}group-index": "0"}
    notes = {f"{P}size": "2", f"{P}subgroup-size": None, f"{P}subgroup-policy-type": None}
    pod = {"metadata": {"name": "one-0-1", "labels": marks, "annotations": notes}, "spec": POD_TEMPLATE["spec"]}
    response = ask(handlers.MUTATE_POD, pod)
    assert response["status"]["code"] == 403


def test_every_pod_is_valid() -> None:
    """All pods are valid (R-ADM-16)."""
    assert ask(handlers.VALIDATE_POD, {"anything": 1})["allowed"]


def test_update_review_decodes_each_object_once() -> None:
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code in {leaderworkerset.decode.__code__, fieldtypes.round_trip.__code__}:
            calls[frame.f_code.co_name] += 1

    sys.setprofile(count)
    try:
        answer = ask(handlers.VALIDATE_LEADERWORKERSET, LWS | {"metadata": LWS["metadata"] | {"generation": 2}}, LWS)
    finally:
        sys.setprofile(None)

    assert answer["allowed"]
    assert calls == {"decode": 2, "round_trip": 2}


def test_restart_limit_annotation_causes_a_warning() -> None:
    metadata = LWS["metadata"] | {"annotations": {"leaderworkerset.sigs.k8s.io/max-group-restarts": "3"}}
    using = LWS | {"spec": LWS["spec"] | {"networkConfig": {"subdomainPolicy": "Shared"}}, "metadata": metadata}

    response = ask(handlers.VALIDATE_LEADERWORKERSET, using)

    assert response["allowed"]
    (warning,) = response["warnings"]
    assert "use spec.leaderWorkerTemplate.maxGroupRestarts" in warning


def test_new_scheduling_requires_its_feature_gate() -> None:
    """New scheduling requires its feature gate (N-SCH-VAL-2)."""
    using = LWS | {"spec": LWS["spec"] | {"networkConfig": {"subdomainPolicy": "Shared"}, "scheduling": {}}}
    stored = using | {"spec": using["spec"] | {"replicas": 3}}

    refused = ask(handlers.VALIDATE_LEADERWORKERSET, using)
    assert "spec.scheduling: Forbidden: requires the WorkloadAware" in refused["status"]["message"]
    assert ask(handlers.VALIDATE_LEADERWORKERSET, using, stored, "UPDATE")["allowed"]


def test_new_scheduling_of_a_role_requires_its_feature_gate() -> None:
    """A renamed role is treated as new, because it creates other LeaderWorkerSets (N-SCH-VAL-2, N-DS-3)."""
    kind = {"apiVersion": "disaggregatedset.x-k8s.io/v1", "kind": "DisaggregatedSet"}

    def using(scheduling: dict[str, Any]) -> dict[str, Any]:
        spec = LWS["spec"] | {"scheduling": scheduling}
        roles = [{"name": name, "spec": spec} for name in ("prefill", "decode")]
        return {**kind, "metadata": {"name": "a", "namespace": "default"}, "spec": {"roles": roles}}

    refused = ask(handlers.VALIDATE_DISAGGREGATED_SET, using({}))
    assert "spec.roles[1].spec.scheduling: Forbidden: requires the WorkloadAware" in refused["status"]["message"]
    assert ask(handlers.VALIDATE_DISAGGREGATED_SET, using({}), using({}), "UPDATE")["allowed"]
    changed = ask(handlers.VALIDATE_DISAGGREGATED_SET, using({"replica": {}}), using({}), "UPDATE")
    assert "spec.roles[0].spec.scheduling: Forbidden" in changed["status"]["message"]
