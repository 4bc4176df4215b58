"""Builds field errors, which contain an invalid field and the reason, like the Kubernetes API server.

Messages follow contract 10.2: `<path>: Invalid value: <value>: <detail>`. Strings are quoted, and other values are
JSON.
"""

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from kuberuntime.objects.meta import JSON, JSONObject


class Kind(StrEnum):
    """The error type, which is the `reason` of a status cause. `TEXTS` contains the messages."""

    REQUIRED = "FieldValueRequired"
    INVALID = "FieldValueInvalid"
    DUPLICATE = "FieldValueDuplicate"
    FORBIDDEN = "FieldValueForbidden"
    NOT_FOUND = "FieldValueNotFound"
    NOT_SUPPORTED = "FieldValueNotSupported"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"
    TYPE_INVALID = "FieldValueTypeInvalid"


TEXTS = {
    Kind.REQUIRED: "Required value",
    Kind.INVALID: "Invalid value",
    Kind.DUPLICATE: "Duplicate value",
    Kind.FORBIDDEN: "Forbidden",
    Kind.NOT_FOUND: "Not found",
    Kind.NOT_SUPPORTED: "Unsupported value",
    Kind.TOO_LONG: "Too long",
    Kind.TOO_MANY: "Too many",
    Kind.TYPE_INVALID: "Invalid value",
}

WITHOUT_VALUE = {Kind.REQUIRED, Kind.FORBIDDEN, Kind.TOO_LONG, Kind.TOO_MANY}


class FieldError(msgspec.Struct, frozen=True):
    """An error with the field path, the value, and a detail."""

    kind: Kind
    path: str
    value: JSON = None
    detail: str = ""

    def body(self) -> str:
        """Format the message without the path, as in a status cause."""
        text = TEXTS[self.kind]
        if self.kind not in WITHOUT_VALUE:
            text += f": {render(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.path}: {self.body()}"

    def cause(self) -> JSONObject:
        """Build the entry for `status.details.causes`."""
        return {"reason": self.kind.value, "message": self.body(), "field": self.path}


def invalid(path: str, value: JSON, detail: str) -> FieldError:
    """Build the error for an invalid value."""
    return FieldError(Kind.INVALID, path, value, detail)


def all_invalid(path: str, value: JSON, details: Iterable[str]) -> list[FieldError]:
    """Build one error for each reason why a value is invalid."""
    return [FieldError(Kind.INVALID, path, value, detail) for detail in details]


def required_error(path: str, detail: str = "") -> FieldError:
    """Build the error for a missing value."""
    return FieldError(Kind.REQUIRED, path, detail=detail)


def not_supported(path: str, value: JSON, allowed: Iterable[str]) -> FieldError:
    """Build the error for a value that is not supported."""
    return FieldError(Kind.NOT_SUPPORTED, path, value, "supported values: " + ", ".join(map(render, allowed)))


def render(value: JSON) -> str:
    """Format a value as compact JSON, as in error messages.

    >>> render("a"), render(3), render({"a": [1]})
    ('"a"', '3', '{"a":[1]}')
    """
    return msgspec.json.encode(value).decode()


def aggregate(errors: Iterable[FieldError]) -> str:
    """Join errors like the API server. Several errors become `[a, b]`, without duplicates."""
    texts = list(dict.fromkeys(map(str, errors)))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
