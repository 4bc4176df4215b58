"""Decodes AdmissionReview v1 requests, and encodes responses.

A function returns the object to store for a `Review`, or raises an error, which determines the code: 400 for an
invalid type (R-DEF-7), and 403 for a denial (R-ADM-1, contract 10.2). Every response is an AdmissionReview, so that
the user receives the error message instead of a message about a failed webhook.
"""

import base64
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from kuberuntime.manifests import nesting
from kuberuntime.manifests.nesting import DepthError
from kuberuntime.objects import patch
from kuberuntime.objects.gotypes.mismatch import GoTypeError
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.leaderworkerset import DecodeError
from leaderworkerset.core.policies.policy import DeniedError

API_VERSION = "admission.k8s.io/v1"


TYPE_ERRORS: Final = (GoTypeError, DecodeError)
"""Errors about fields with an invalid type."""


UID: Final = re.compile(rb'"uid":\s{0,8}"([\w-]{1,64})"')
"""The uid of a review, which precedes the object in the body. API servers reject responses without a uid."""

HEAD: Final = 1024
"""The number of body bytes that are searched for the uid."""


class BadReviewError(ValueError):
    """The body is not an AdmissionReview request. `uid` is set if the only problem is that the body is nested too deeply."""

    uid = ""


class Review(msgspec.Struct, frozen=True):
    """The request of a review. `object` is empty for DELETE, and `old` is set for UPDATE and DELETE."""

    uid: str
    operation: str
    object: JSONObject
    old: JSONObject | None


class AdmissionResult(msgspec.Struct, frozen=True):
    """The object to store, and the warnings for the user."""

    object: JSONObject
    warnings: Sequence[str] = ()


Decide: TypeAlias = Callable[[Review], JSONObject | AdmissionResult]
"""Returns the object to store, or the same object if it is unchanged. Raises an error to deny the request."""


def respond_to_review(body: bytes, decide: Decide) -> bytes:
    """Decode a review, process it, and encode the response."""
    try:
        return respond(decode(body), decide)
    except BadReviewError as error:
        return unreadable(error)


def unreadable(error: BadReviewError) -> bytes:
    """Encode the response to a body that is not a review."""
    return encode(_deny(error.uid, 400, str(error)))


def respond(review: Review, decide: Decide) -> bytes:
    """Process a review, and encode the response."""
    try:
        decision = _decide(review, decide)
    except TYPE_ERRORS as error:
        return encode(_deny(review.uid, 400, str(error)))
    except DeniedError as error:
        return encode(_deny(review.uid, 403, str(error), reason="Forbidden"))
    admitted = decision if isinstance(decision, AdmissionResult) else AdmissionResult(decision)
    return encode(_allow(review, admitted))


def _decide(review: Review, decide: Decide) -> JSONObject | AdmissionResult:
    """Process a review. Errors in stored objects never block deletions, and invalid types never block updates."""
    if review.operation == "UPDATE" and _is_deleting(review.object):
        return review.object  # its finalizers must be removable
    try:
        return decide(review)
    except TYPE_ERRORS as error:
        if review.old is None or not _has_error(review.old, decide, str(error)):
            raise
        return review.object


def _is_deleting(obj: JSONObject) -> bool:
    metadata = obj.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("deletionTimestamp"))


def _has_error(stored: JSONObject, decide: Decide, text: str) -> bool:
    """Return whether creating the stored object would fail with this error."""
    try:
        decide(Review("", "CREATE", stored, None))
    except TYPE_ERRORS as error:
        return str(error) == text
    except DeniedError:
        return False
    return False


def internal_error(uid: str, message: str) -> bytes:
    """Encode the response to a review that failed with an internal error."""
    return encode(_deny(uid, 500, message))


def decode(body: bytes) -> Review:
    """Decode an AdmissionReview request. Raise `BadReviewError` if it is invalid or nested too deeply.

    If an object is nested too deeply, `managedFields` are omitted, because decisions do not depend on them.
    """
    try:
        document = _decode_bounded(msgspec.json.decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        is_deep = isinstance(error, RecursionError | DepthError)
        failure = BadReviewError(f"the body must be JSON: {nesting.TOO_DEEP if is_deep else error}")
        if is_deep and (match := UID.search(body[:HEAD])):
            failure.uid = match[1].decode()
        raise failure from error
    request = document.get("request") if isinstance(document, dict) else None
    if not isinstance(request, dict) or document.get("apiVersion") != API_VERSION:
        raise BadReviewError(f"the body must be an AdmissionReview of {API_VERSION} with a request")
    parts = [request.get("object"), request.get("oldObject")]
    if not isinstance(request.get("uid"), str) or not all(part is None or isinstance(part, dict) for part in parts):
        raise BadReviewError("an AdmissionReview request requires a uid, and object and oldObject must be JSON objects")
    return Review(request["uid"], str(request.get("operation", "")), parts[0] or {}, parts[1])


def _decode_bounded(document: Any) -> Any:
    """Return a decoded review. Raise `DepthError` if it is nested too deeply even without `managedFields`."""
    if not nesting.is_too_deep(document):
        return document
    request = document.get("request") if isinstance(document, dict) else None
    for obj in (request.get("object"), request.get("oldObject")) if isinstance(request, dict) else ():
        if isinstance(obj, dict) and isinstance(metadata := obj.get("metadata"), dict):
            metadata.pop("managedFields", None)
    if nesting.is_too_deep(document):
        raise DepthError(nesting.TOO_DEEP)
    return document


def encode(response: JSONObject) -> bytes:
    """Wrap a response in an AdmissionReview."""
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response})


def _allow(review: Review, admitted: AdmissionResult) -> JSONObject:
    warnings = {"warnings": list(admitted.warnings)} if admitted.warnings else {}
    response: JSONObject = {"uid": review.uid, "allowed": True} | warnings
    operations = patch.diff(review.object, admitted.object)
    if not operations:
        return response
    encoded = base64.b64encode(msgspec.json.encode(operations)).decode()
    return response | {"patchType": "JSONPatch", "patch": encoded}


def _deny(uid: str, code: int, message: str, *, reason: str = "") -> JSONObject:
    status = {"code": code, "message": message} | ({"reason": reason} if reason else {})
    return {"uid": uid, "allowed": False, "status": status}
