"""Tests gang scheduling in webhooks. Each leader has its own group. Sets that cannot start are rejected."""

import base64
from typing import Any

import msgspec
from tests import builders

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.kinds.managedkinds import Served, managed_kinds
from leaderworkerset.webhooks import handlers, review

LEADER: JSONObject = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web-0",
        "labels": {labels.NAME: "web", labels.WORKER_INDEX: "0", labels.TEMPLATE_REVISION_HASH: "rev"},
        "annotations": {labels.SIZE: "2"},
    },
    "spec": {"containers": [{"name": "main", "image": "app:1"}]},
}


def ask(path: str, obj: JSONObject, served: Served, uid: str = "u") -> JSONObject:
    request = {"uid": uid, "operation": "CREATE", "object": obj}
    body = msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
    decide = managed_kinds("auto", served).decisions[path]
    response: JSONObject = msgspec.json.decode(review.respond_to_review(body, decide))["response"]
    return response


def group_in(response: JSONObject) -> Any:
    (name,) = [
        one["value"] if isinstance(one["value"], str) else one["value"][labels.GANG_GROUP]
        for one in msgspec.json.decode(base64.b64decode(response["patch"]))
        if "gang-group" in one["path"] or labels.GANG_GROUP in (one.get("value") or {})
    ]
    return name


def test_each_admission_assigns_a_leader_to_a_different_group() -> None:
    """A recreated pod never joins the terminating group (R-KQ-147)."""
    answers = [ask(handlers.MUTATE_POD, LEADER, lambda: ["native"], uid) for uid in ("a", "a", "b")]

    first, again, other = map(group_in, answers)

    assert first == again
    assert first != other


def test_set_that_cannot_start_is_rejected() -> None:
    """A set that cannot start is rejected (R-KQ-149)."""
    waiting = builders.leaderworkerset_object(spec={"startupPolicy": "LeaderReady"})

    refused = ask(handlers.VALIDATE_LEADERWORKERSET, waiting, lambda: ["native"])

    assert "spec.startupPolicy" in refused["status"]["message"]
    assert ask(handlers.VALIDATE_LEADERWORKERSET, waiting, lambda: ["coscheduling"])["allowed"]
