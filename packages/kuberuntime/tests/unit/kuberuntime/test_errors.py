"""Tests that the type of an error depends on the Status of the API server."""

import pytest

from kuberuntime import errors


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (400, "BadRequest", errors.BadRequestError),
        (401, "Unauthorized", errors.UnauthorizedError),
        (403, "Forbidden", errors.ForbiddenError),
        (404, "NotFound", errors.NotFoundError),
        (409, "AlreadyExists", errors.AlreadyExistsError),
        (409, "Conflict", errors.ConflictError),
        (409, "", errors.ConflictError),
        (410, "Expired", errors.ExpiredError),
        (410, "Gone", errors.ExpiredError),
        (422, "Invalid", errors.InvalidError),
        (429, "TooManyRequests", errors.TooManyRequestsError),
        (500, "InternalError", errors.InternalError),
        (500, "ServerTimeout", errors.ServerTimeoutError),
        (503, "ServiceUnavailable", errors.ServiceUnavailableError),
        (504, "Timeout", errors.ServerTimeoutError),
        (418, "Teapot", errors.APIError),
    ],
)
def test_error_type_follows_the_reason_then_the_code(code: int, reason: str, expected: type[errors.APIError]) -> None:
    error = errors.from_status({"kind": "Status", "code": code, "reason": reason, "message": "no"})

    assert type(error) is expected
    assert (error.code, error.reason, str(error)) == (code, reason, "no")


def test_status_keeps_its_details() -> None:
    status = {"kind": "Status", "code": 422, "reason": "Invalid", "details": {"causes": [{"field": "spec.size"}]}}

    error = errors.from_status(status)

    assert error.details == {"causes": [{"field": "spec.size"}]}
    assert error.status == status


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>Bad Gateway</html>", "the server responded with 502: <html>Bad Gateway</html>"),
        (b"", "the server responded with 502"),
        (b"[1]", "the server responded with 502: [1]"),
        (b"x" * 1000, "the server responded with 502: " + "x" * 200),
    ],
    ids=["page of a proxy", "nothing", "other JSON", "long"],
)
def test_malformed_status_is_shown(body: bytes, message: str) -> None:
    error = errors.from_response(502, body)

    assert (error.code, str(error)) == (502, message)


def test_status_without_a_code_uses_the_http_status() -> None:
    assert isinstance(errors.from_response(404, b'{"kind":"Status","message":"gone"}'), errors.NotFoundError)
