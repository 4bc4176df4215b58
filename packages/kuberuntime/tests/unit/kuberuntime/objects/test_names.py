"""Tests the validation of names, label keys and label values."""

from collections.abc import Callable

import pytest

from kuberuntime.objects import names


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (names.dns_1123_label, "0-web"),
        (names.dns_1123_label, "a" * 63),
        (names.dns_1123_subdomain, "a.b-c.0d"),
        (names.dns_1123_subdomain, ".".join(["a" * 50] * 4)),
        (names.dns_1035_label, "web-0"),
        (names.qualified_name, "name"),
        (names.qualified_name, "example.com/My_name.x"),
        (names.label_value, ""),
        (names.label_value, "A_b-c.d"),
    ],
)
def test_valid_texts_have_no_errors(check: Callable[[str], list[str]], text: str) -> None:
    assert check(text) == []


@pytest.mark.parametrize(
    ("check", "text", "failures"),
    [
        (names.dns_1123_label, "a.b", ["must not contain dots"]),
        (names.dns_1123_label, "a" * 64, ["must be no more than 63 characters"]),
        (names.dns_1123_label, "a\n", ["a lowercase RFC 1123 label must consist of"]),
        (names.dns_1123_label, "A.b", ["a lowercase RFC 1123 label must consist of"]),
        (names.dns_1123_label, "", ["a lowercase RFC 1123 label must consist of"]),
        (
            names.dns_1123_subdomain,
            "A" * 254,
            ["must be no more than 253 characters", "a lowercase RFC 1123 subdomain must"],
        ),
        (names.dns_1035_label, "2cube", ["a DNS-1035 label must consist of"]),
        (names.qualified_name, "a/b/c", ["a qualified name must consist of"]),
        (names.qualified_name, "/b", ["prefix part must be non-empty"]),
        (names.qualified_name, "A/b", ["prefix part a lowercase RFC 1123 subdomain must"]),
        (names.qualified_name, "", ["name part must be non-empty", "name part must consist of"]),
        (names.qualified_name, "-a", ["name part must consist of"]),
        (names.qualified_name, "x" * 64, ["name part must be no more than 63 bytes"]),
        (names.label_value, "a b", ["a valid label must be an empty string"]),
    ],
)
def test_errors_use_the_texts_of_kubernetes(check: Callable[[str], list[str]], text: str, failures: list[str]) -> None:
    found = check(text)
    assert len(found) == len(failures)
    assert all(failure.startswith(start) for failure, start in zip(found, failures, strict=True))


def test_service_name_error_is_complete() -> None:
    """The error message contains the whole DNS-1035 rule (R-VAL-1)."""
    (failure,) = names.dns_1035_label("2cube")
    assert failure == (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic"
        " character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation"
        " is '[a-z]([-a-z0-9]*[a-z0-9])?')"
    )


def test_label_errors_name_key_and_value() -> None:
    errors = names.label_errors({"ok": "fine", "a b": "c d"}, "metadata.labels")
    assert [(error.path, error.value) for error in errors] == [("metadata.labels", "a b"), ("metadata.labels", "c d")]
