"""AdmissionReview v1: reads the request of the API server, and writes the answer.

Bytes come in, bytes go out. A decision is a function from a `Review` to the object to store, or it raises an error,
which decides the code: a wrong type is 400 (R-DEF-7), a refusal 403 (R-ADM-1, contract 10.2). Every answer is an
AdmissionReview, so that the user reads the error's text and not that a webhook failed.
"""

import base64
from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from kuberuntime.objects import patch
from kuberuntime.objects.gotypes.mismatch import GoTypeError
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.leaderworkerset import DecodeError
from leaderworkerset.core.policies.policy import DeniedError

API_VERSION = "admission.k8s.io/v1"


class BadReviewError(ValueError):
    """The body is not an AdmissionReview request."""


class Review(msgspec.Struct, frozen=True):
    """The request of one review. `object` is empty on DELETE; `old` is set on UPDATE and DELETE."""

    uid: str
    operation: str
    object: JSONObject
    old: JSONObject | None


class Admitted(msgspec.Struct, frozen=True):
    """The object to store, and the warnings for the user."""

    object: JSONObject
    warnings: Sequence[str] = ()


Decide: TypeAlias = Callable[[Review], JSONObject | Admitted]
"""Returns the object to store: the review's own if nothing is to change. Raises an error to refuse."""


def answer(body: bytes, decide: Decide) -> bytes:
    """Decode a review, decide, and encode the answer."""
    try:
        review = decode(body)
    except BadReviewError as error:
        return encode(_refused("", 400, str(error)))
    try:
        decided = decide(review)
    except (GoTypeError, DecodeError) as error:
        return encode(_refused(review.uid, 400, str(error)))
    except DeniedError as error:
        return encode(_refused(review.uid, 403, str(error), reason="Forbidden"))
    admitted = decided if isinstance(decided, Admitted) else Admitted(decided)
    return encode(_allowed(review, admitted))


def failed(body: bytes, message: str) -> bytes:
    """Encode the answer to a review whose decision failed with an internal error."""
    try:
        uid = decode(body).uid
    except BadReviewError:
        uid = ""
    return encode(_refused(uid, 500, message))


def decode(body: bytes) -> Review:
    """Read the request of an AdmissionReview."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadReviewError(f"the body is not JSON: {error}") from error
    request = document.get("request") if isinstance(document, dict) else None
    if not isinstance(request, dict) or document.get("apiVersion") != API_VERSION:
        raise BadReviewError(f"the body is not an AdmissionReview of {API_VERSION} with a request")
    parts = [request.get("object"), request.get("oldObject")]
    if not isinstance(request.get("uid"), str) or not all(part is None or isinstance(part, dict) for part in parts):
        raise BadReviewError("the request of an AdmissionReview needs a uid, and objects as object and oldObject")
    return Review(request["uid"], str(request.get("operation", "")), parts[0] or {}, parts[1])


def encode(response: JSONObject) -> bytes:
    """Wrap a response into an AdmissionReview."""
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response})


def _allowed(review: Review, admitted: Admitted) -> JSONObject:
    warnings = {"warnings": list(admitted.warnings)} if admitted.warnings else {}
    response: JSONObject = {"uid": review.uid, "allowed": True} | warnings
    operations = patch.diff(review.object, admitted.object)
    if not operations:
        return response
    encoded = base64.b64encode(msgspec.json.encode(operations)).decode()
    return response | {"patchType": "JSONPatch", "patch": encoded}


def _refused(uid: str, code: int, message: str, *, reason: str = "") -> JSONObject:
    status = {"code": code, "message": message} | ({"reason": reason} if reason else {})
    return {"uid": uid, "allowed": False, "status": status}
