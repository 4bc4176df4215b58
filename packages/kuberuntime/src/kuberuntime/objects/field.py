"""Field errors: which field of an object is invalid, and why, as the Kubernetes API server reports it.

Rendering follows contract 10.2: `<path>: Invalid value: <value>: <detail>`; numbers bare, strings quoted, everything
else as JSON.
"""

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from kuberuntime.objects.meta import JSON, JSONObject


class Kind(StrEnum):
    """The kind of an error: the `reason` of a status cause; `TEXTS` has its message."""

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
    """One error: the path of the field, its value, and what to do about it."""

    kind: Kind
    path: str
    value: JSON = None
    detail: str = ""

    def body(self) -> str:
        """Render the message without the path, as a status cause carries it."""
        text = TEXTS[self.kind]
        if self.kind not in WITHOUT_VALUE:
            text += f": {render(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.path}: {self.body()}"

    def cause(self) -> JSONObject:
        """Build the entry of `status.details.causes`."""
        return {"reason": self.kind.value, "message": self.body(), "field": self.path}


def invalid(path: str, value: JSON, detail: str) -> FieldError:
    """Build the error of a value that is present but invalid."""
    return FieldError(Kind.INVALID, path, value, detail)


def all_invalid(path: str, value: JSON, details: Iterable[str]) -> list[FieldError]:
    """Build the errors of a value that is invalid for these reasons, if there are any."""
    return [FieldError(Kind.INVALID, path, value, detail) for detail in details]


def required(path: str, detail: str = "") -> FieldError:
    """Build the error of a value that is missing."""
    return FieldError(Kind.REQUIRED, path, detail=detail)


def not_supported(path: str, value: JSON, allowed: Iterable[str]) -> FieldError:
    """Build the error of a value outside a closed set."""
    return FieldError(Kind.NOT_SUPPORTED, path, value, "supported values: " + ", ".join(map(render, allowed)))


def render(value: JSON) -> str:
    """Render a value in the form of error messages: compact JSON.

    >>> render("a"), render(3), render({"a": [1]})
    ('"a"', '3', '{"a":[1]}')
    """
    return msgspec.json.encode(value).decode()


def aggregate(errors: Iterable[FieldError]) -> str:
    """Join errors as the API server does: a single one unchanged, several as `[a, b]`, duplicates once."""
    texts = list(dict.fromkeys(map(str, errors)))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
