"""Validates names, label keys and label values, and returns the same errors as Kubernetes.

Each function returns the errors of a string, one sentence each, or none if the string is valid. Because objects
repeat names, keys and values, recent results are cached.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from kuberuntime.objects.field import FieldError, all_invalid

LABEL_MAX = 63
SUBDOMAIN_MAX = 253

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_DNS_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_NAME_PART = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_NAME_PART})?"

_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    f" an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_NO_DOTS = "must not contain dots"
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    f" end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_DNS_1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    " and end with an alphanumeric character"
    f" (e.g. 'my-name',  or 'abc-123', regex used for validation is '{_DNS_1035}')"
)
_NAME_PART_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    f" (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME_PART}')"
)
_LABEL_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character"
    f" (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_LABEL_VALUE}')"
)


@lru_cache(maxsize=1024)
def dns_1123_label(text: str) -> Sequence[str]:
    """Validate a DNS label, for example the name of a namespace.

    >>> dns_1123_label("web-0")
    []
    """
    errors = _length_errors(text, LABEL_MAX)
    if re.fullmatch(_LABEL, text):
        return errors
    return [*errors, _NO_DOTS if re.fullmatch(_SUBDOMAIN, text) else _LABEL_TEXT]


@lru_cache(maxsize=1024)
def dns_1123_subdomain(text: str) -> Sequence[str]:
    """Validate a DNS subdomain, for example the name of a pod. It consists of labels separated by dots."""
    errors = _length_errors(text, SUBDOMAIN_MAX)
    return errors if re.fullmatch(_SUBDOMAIN, text) else [*errors, _SUBDOMAIN_TEXT]


def dns_1035_label(text: str) -> list[str]:
    """Validate a DNS label that starts with a letter, for example the name of a Service."""
    return _check(text, LABEL_MAX, _DNS_1035, _DNS_1035_TEXT)


@lru_cache(maxsize=4096)
def label_key(text: str) -> Sequence[str]:
    """Validate a label key in the form `name` or `domain/name`."""
    return qualified_name(text, "a valid label key")


@lru_cache(maxsize=4096)
def qualified_name(text: str, what: str = "a qualified name") -> Sequence[str]:
    """Validate an annotation key or a resource name in the form `name` or `domain/name`."""
    *prefixes, name = text.split("/")
    if len(prefixes) > 1:
        return [f"{what} {_NAME_PART_TEXT} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    wrong = [
        error for prefix in prefixes for error in (dns_1123_subdomain(prefix) if prefix else ["must be non-empty"])
    ]
    errors = [f"prefix part {error}" for error in wrong]
    if not name:
        return [*errors, "name part must be non-empty", f"name part {_NAME_PART_TEXT}"]
    return errors + [f"name part {error}" for error in _check(name, LABEL_MAX, _NAME_PART, _NAME_PART_TEXT)]


@lru_cache(maxsize=1024)
def label_value(text: str) -> Sequence[str]:
    """Validate a label value."""
    return _check(text, LABEL_MAX, _LABEL_VALUE, _LABEL_VALUE_TEXT)


def label_errors(labels: Mapping[str, str], path: str) -> list[FieldError]:
    """Validate all keys and values of a label map."""
    keys = [error for key in labels for error in all_invalid(path, key, label_key(key))]
    return keys + [error for value in labels.values() for error in all_invalid(path, value, label_value(value))]


def _length_errors(text: str, limit: int) -> list[str]:
    return [] if len(text) <= limit else [f"must be no more than {limit} characters"]


def _check(text: str, limit: int, pattern: str, sentence: str) -> list[str]:
    errors = [] if len(text.encode()) <= limit else [f"must be no more than {limit} bytes"]
    return errors if re.fullmatch(pattern, text) else [*errors, sentence]
