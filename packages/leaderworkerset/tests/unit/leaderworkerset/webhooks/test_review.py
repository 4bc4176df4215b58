"""Tests AdmissionReview v1 requests and responses."""

import base64
from typing import Any

import msgspec
import pytest

from kuberuntime.objects.gotypes.mismatch import GoTypeError, Mismatch
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.core.policies.policy import DeniedError
from leaderworkerset.webhooks import review
from leaderworkerset.webhooks.review import AdmissionResult, Decide, Review


def body(**request: Any) -> bytes:
    return msgspec.json.encode(
        {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {"uid": "u-1", "operation": "CREATE", "object": {"a": 1}, "oldObject": None} | request,
        }
    )


def nested(levels: int) -> msgspec.Raw:
    return msgspec.Raw(b'{"f:a":' * levels + b"1" + b"}" * levels)


def response(answer: bytes) -> JSONObject:
    document = msgspec.json.decode(answer, type=dict[str, Any])
    assert (document["apiVersion"], document["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    found: JSONObject = document["response"]
    return found


def refuse(error: Exception) -> Decide:
    def decide(_: Review) -> JSONObject:
        raise error

    return decide


def test_unchanged_object_is_allowed_without_a_patch() -> None:
    """An unchanged object is allowed without a patch (R-DEF-6)."""
    assert response(review.respond_to_review(body(), lambda asked: asked.object)) == {"uid": "u-1", "allowed": True}


def test_changed_object_is_allowed_with_a_patch() -> None:
    """A changed object is allowed with a patch (R-DEF-6)."""
    found = response(review.respond_to_review(body(), lambda asked: asked.object | {"b": 2}))
    assert (found["allowed"], found["patchType"]) == (True, "JSONPatch")
    assert msgspec.json.decode(base64.b64decode(found["patch"])) == [{"op": "add", "path": "/b", "value": 2}]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (DeniedError("no"), {"code": 403, "message": "no", "reason": "Forbidden"}),
        (
            GoTypeError(Mismatch("spec.replicas", "x", "int32")),
            {"code": 400, "message": 'spec.replicas: Invalid value: "x": must be a 32-bit integer'},
        ),
    ],
    ids=["refused (R-ADM-1)", "wrong type (R-DEF-7)"],
)
def test_rejection_has_its_code(error: Exception, status: dict[str, Any]) -> None:
    assert response(review.respond_to_review(body(), refuse(error))) == {
        "uid": "u-1",
        "allowed": False,
        "status": status,
    }


def test_other_exceptions_are_left_to_the_server() -> None:
    with pytest.raises(ZeroDivisionError):
        review.respond_to_review(body(), refuse(ZeroDivisionError()))
    assert response(review.internal_error("u-1", "sorry")) == {
        "uid": "u-1",
        "allowed": False,
        "status": {"code": 500, "message": "sorry"},
    }


def test_old_object_exists_on_update_and_not_on_delete() -> None:
    assert review.decode(body(oldObject={"b": 1})).old == {"b": 1}
    deletion = review.decode(body(operation="DELETE", object=None, oldObject={"b": 1}))
    assert (deletion.object, deletion.operation) == ({}, "DELETE")


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (b"", "the body must be JSON"),
        (b"[" * 5000 + b"]" * 5000, "exceeded max depth"),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, "exceeded max depth"),
        (b"[]", "the body must be an AdmissionReview of admission.k8s.io/v1"),
        (b'{"apiVersion":"admission.k8s.io/v1beta1","request":{}}', "must be an AdmissionReview of"),
        (b'{"apiVersion":"admission.k8s.io/v1"}', "must be an AdmissionReview of"),
        (body(uid=None), "requires a uid"),
        (body(object=[]), "object and oldObject must be JSON objects"),
    ],
)
def test_body_that_is_not_a_review_is_answered_with_400(sent: bytes, message: str) -> None:
    found = response(review.respond_to_review(sent, refuse(AssertionError())))
    assert (found["allowed"], found["status"]["code"]) == (False, 400)
    assert message in found["status"]["message"]


@pytest.mark.parametrize("levels", [150, 200, 300])
def test_deep_managed_fields_do_not_affect_a_review(levels: int) -> None:
    deep = {"metadata": {"name": "web-0", "managedFields": [{"fieldsV1": nested(levels)}]}}
    found = response(review.respond_to_review(body(object=deep, oldObject=deep), lambda asked: asked.object))
    assert found == {"uid": "u-1", "allowed": True}


@pytest.mark.parametrize("levels", [150, 5000])
def test_object_that_is_too_deep_is_rejected_with_the_uid(levels: int) -> None:
    found = response(
        review.respond_to_review(body(object={"metadata": {}, "spec": nested(levels)}), lambda asked: asked.object)
    )
    assert found["uid"] == "u-1"
    assert found["status"]["code"] == 400
    assert "exceeded max depth" in found["status"]["message"]


def test_body_that_is_not_utf8_is_rejected() -> None:
    answer = response(
        review.respond_to_review(
            b'{"apiVersion":"admission.k8s.io/v1","request":{"uid":"\xff"}}', lambda one: one.object
        )
    )
    assert (answer["allowed"], answer["status"]["code"]) == (False, 400)


def test_warnings_reach_the_user_of_an_admitted_object() -> None:
    """Warnings are returned to the user of an admitted object (R-KQ-62)."""
    found = response(review.respond_to_review(body(), lambda asked: AdmissionResult(asked.object, ["rather not"])))

    assert found == {"uid": "u-1", "allowed": True, "warnings": ["rather not"]}
