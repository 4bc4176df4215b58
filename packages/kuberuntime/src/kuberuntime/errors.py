"""Defines the errors of API requests and of the configuration for API server connections.

```
KubeError                      the root; its text is one sentence for users
├── ConfigError                a kubeconfig (or the service account of a pod) that cannot be used
├── UnusableNameError          an object name or namespace that no URL can carry
├── ConnectionFailedError      no response: refused, reset, timed out, TLS
├── ExecutionError             a plan that was not performed completely (kuberuntime/controller/executor.py)
└── APIError                   the server responded with with a Status
    ├── BadRequestError        400
    ├── UnauthorizedError      401
    ├── ForbiddenError         403
    ├── NotFoundError          404
    ├── AlreadyExistsError     409, reason AlreadyExists
    ├── ConflictError          409, any other reason
    ├── ExpiredError           410: a resourceVersion or continue token is too old
    ├── InvalidError           422
    ├── TooManyRequestsError   429
    ├── InternalError          500
    ├── ServiceUnavailableError 503
    └── ServerTimeoutError     504, or reason ServerTimeout
```

The reason of the Status determines the class, then its code. An unknown pair is an `APIError`.
"""

from typing import Final

from kuberuntime.objects.meta import JSONObject

EXCERPT: Final = 200
"""The maximum size in bytes of a quoted non-Status response, because error pages of proxies can be long."""


class KubeError(Exception):
    """The base class of all errors in this package."""


class ConfigError(KubeError):
    """The configuration is invalid. The message contains the file, the entry and the fix."""


class NotConfiguredError(ConfigError):
    """There is neither a kubeconfig nor a service account."""


class UnusableNameError(KubeError):
    """An object name or namespace is not a valid URL segment."""


class ConnectionFailedError(KubeError):
    """The server did not respond. The message contains its address."""


class APIError(KubeError):
    """The server rejected the request. `status` is the complete Status object in the response."""

    def __init__(self, status: JSONObject) -> None:
        self.status = status
        self.code = int(status.get("code") or 0)
        self.reason = str(status.get("reason") or "")
        self.message = (
            str(status.get("message") or "") or f"the server responded with {self.code} {self.reason}".rstrip()
        )
        self.details: JSONObject = status.get("details") or {}
        super().__init__(self.message)


class BadRequestError(APIError):
    """400: the request itself is malformed."""


class UnauthorizedError(APIError):
    """401: the credentials are missing, invalid or expired."""


class ForbiddenError(APIError):
    """403: the user lacks permission, or admission denied the request."""


class NotFoundError(APIError):
    """404: the object or kind does not exist."""


class AlreadyExistsError(APIError):
    """409: an object with this name already exists."""


class ConflictError(APIError):
    """409: the object changed in the meantime, a precondition failed, or a different manager owns a field."""


class ExpiredError(APIError):
    """410: the resourceVersion or continue token is too old."""


class InvalidError(APIError):
    """422: a field has an invalid value."""


class TooManyRequestsError(APIError):
    """429: the server throttles requests."""


class InternalError(APIError):
    """500: the server or a webhook failed."""


class ServiceUnavailableError(APIError):
    """503: the server is starting, stopping or overloaded."""


class ServerTimeoutError(APIError):
    """504: the request exceeded the server timeout."""


BY_REASON: Final[dict[str, type[APIError]]] = {
    "BadRequest": BadRequestError,
    "Unauthorized": UnauthorizedError,
    "Forbidden": ForbiddenError,
    "NotFound": NotFoundError,
    "AlreadyExists": AlreadyExistsError,
    "Conflict": ConflictError,
    "Gone": ExpiredError,
    "Expired": ExpiredError,
    "Invalid": InvalidError,
    "TooManyRequests": TooManyRequestsError,
    "InternalError": InternalError,
    "ServiceUnavailable": ServiceUnavailableError,
    "Timeout": ServerTimeoutError,
    "ServerTimeout": ServerTimeoutError,
}

BY_CODE: Final[dict[int, type[APIError]]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: ExpiredError,
    422: InvalidError,
    429: TooManyRequestsError,
    500: InternalError,
    503: ServiceUnavailableError,
    504: ServerTimeoutError,
}


def from_status(status: JSONObject) -> APIError:
    """Convert a Status object to an exception.

    >>> type(from_status({"kind": "Status", "code": 409, "reason": "AlreadyExists"})).__name__
    'AlreadyExistsError'
    """
    code = int(status.get("code") or 0)
    return BY_REASON.get(str(status.get("reason") or ""), BY_CODE.get(code, APIError))(status)


def from_response(code: int, body: bytes) -> APIError:
    """Convert an error response to an exception. A response from a proxy might not be a Status."""
    import msgspec  # importing this module must be fast

    try:
        status = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        status = None
    if not isinstance(status, dict) or status.get("kind") != "Status":
        text = body[:EXCERPT].decode(errors="replace").strip()
        status = {"kind": "Status", "message": f"the server responded with {code}: {text}" if text else ""}
    return from_status({"code": code} | status)


def flatten(error: Exception) -> list[Exception]:
    """Return the errors in an exception group, including nested groups."""
    if isinstance(error, ExceptionGroup):
        return [leaf for exception in error.exceptions for leaf in flatten(exception)]
    return [error]
