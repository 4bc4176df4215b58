"""Builds error responses with the same Kubernetes `Status` as kube-apiserver.

In: the cause. Out: a `StatusError` that any verb may raise. The server (`server.py`) converts the error to a response.
Codes, reasons and messages are the same as in apimachinery, so that clients can compare them.
"""

from collections.abc import Iterable, Sequence

from kuberuntime.objects import field
from kuberuntime.objects.field import FieldError
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource


class StatusError(Exception):
    """An error response with this Status."""

    def __init__(self, code: int, reason: str, message: str, details: JSONObject | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    def status(self) -> JSONObject:
        """Build the Status object."""
        optional = {"message": self.message, "reason": self.reason or None, "details": self.details}
        present = {name: value for name, value in optional.items() if value is not None}
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", **present, "code": self.code}


def bad_request(message: str) -> StatusError:
    """Build the error for a malformed request."""
    return StatusError(400, "BadRequest", message)


def undecodable(method: str, body: bytes, message: str) -> StatusError:
    """Build the error for an object that does not match its kind, in a request or after a patch."""
    if method != "PATCH":
        return bad_request(message)
    failure = field.invalid("patch", body.decode(errors="replace"), message)
    return StatusError(422, "Invalid", f' "" is invalid: {failure}', {"causes": [failure.cause()]})


def unauthorized() -> StatusError:
    """Build the error for a request without valid credentials."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def forbidden(resource: Resource, name: str, why: str, causes: Sequence[JSONObject] = ()) -> StatusError:
    """Build the error for a request that the cluster rules do not permit."""
    what = f'{resource.group_resource} "{name}"' if name else resource.group_resource
    return StatusError(403, "Forbidden", f"{what} is forbidden: {why}", _details(resource, name, causes))


def not_found(resource: Resource, name: str) -> StatusError:
    """Build the error for a request for an object that does not exist."""
    return StatusError(404, "NotFound", f'{resource.group_resource} "{name}" not found', _details(resource, name))


def unknown_resource() -> StatusError:
    """Build the error for a resource, version or subresource that is not served."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def unknown_path(path: str) -> StatusError:
    """Build the error for a path outside the API."""
    return StatusError(404, "NotFound", f"the embedded API server does not serve {path}")


def method_not_allowed() -> StatusError:
    """Build the error for a method that the resource does not support."""
    return StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def not_served(what: str) -> StatusError:
    """Build the error for a Kubernetes feature that the embedded cluster does not support."""
    return StatusError(501, "NotImplemented", f"the embedded cluster does not serve {what}")


def not_acceptable(accepted: Iterable[str]) -> StatusError:
    """Build the error for an unsupported response format."""
    types = ", ".join(accepted)
    return StatusError(406, "NotAcceptable", f"only the following media types are accepted: {types}")


def unsupported_media_type(accepted: Iterable[str]) -> StatusError:
    """Build the error for an unsupported request format."""
    types = ", ".join(accepted)
    text = f"the body of the request was in an unknown format - accepted media types include: {types}"
    return StatusError(415, "UnsupportedMediaType", text)


def too_large(limit: int) -> StatusError:
    """Build the error for a body that exceeds the limit."""
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def not_stored(why: str) -> StatusError:
    """Build the error for an object that the store rejects, with the message of the store and without a reason."""
    return StatusError(500, "", why)


def already_exists(resource: Resource, name: str, *, deleting: bool = False) -> StatusError:
    """Build the error for the creation of an object that exists, or whose deletion is not complete."""
    text = f'{resource.group_resource} "{name}" already exists'
    if deleting:
        text = f"object is being deleted: {text}"
    return StatusError(409, "AlreadyExists", text, _details(resource, name))


def conflict(resource: Resource, name: str, why: str) -> StatusError:
    """Build the error for a write whose precondition failed."""
    text = f'Operation cannot be fulfilled on {resource.group_resource} "{name}": {why}'
    return StatusError(409, "Conflict", text, _details(resource, name))


STALE = "the object has been modified; please apply your changes to the latest version and try again"


def stale(resource: Resource, name: str) -> StatusError:
    """Build the error for a write with an outdated resourceVersion."""
    return conflict(resource, name, STALE)


def invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> StatusError:
    """Build the error for an object with invalid fields."""
    qualified = f"{kind}.{group}" if group else kind
    details: JSONObject = {"name": name, "group": group, "kind": kind}
    details = {key: value for key, value in details.items() if value}
    causes = [error.cause() for error in errors]
    text = f'{qualified} "{name}" is invalid: {field.aggregate(errors)}'
    return StatusError(422, "Invalid", text, details | {"causes": causes})


def expired(message: str) -> StatusError:
    """Build the error for a resourceVersion or continue token that is too old."""
    return StatusError(410, "Expired", message)


def too_old(revision: int, oldest: int) -> StatusError:
    """Build the error for a watch from a resourceVersion before the retained changes."""
    return expired(f"too old resource version: {revision} ({oldest})")


def internal_error(message: str) -> StatusError:
    """Build the error for an internal failure."""
    details = {"causes": [{"message": message}]}
    return StatusError(500, "InternalError", f"Internal error occurred: {message}", details)


def unavailable(message: str) -> StatusError:
    """Build the error for a request that this server temporarily cannot serve."""
    return StatusError(503, "ServiceUnavailable", message)


def _details(resource: Resource, name: str, causes: Sequence[JSONObject] = ()) -> JSONObject:
    fields: JSONObject = {"name": name, "group": resource.group, "kind": resource.plural, "causes": list(causes)}
    return {key: value for key, value in fields.items() if value}
