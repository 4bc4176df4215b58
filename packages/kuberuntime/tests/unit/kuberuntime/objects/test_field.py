"""Tests field errors as messages and as entries of `details.causes`."""

from kuberuntime.objects import field


def test_field_error_has_a_line_and_a_cause() -> None:
    """An error contains a path, a type, a value and advice (contract 10.2)."""
    error = field.invalid("spec.replicas", -1, "must be positive")

    assert str(error) == "spec.replicas: Invalid value: -1: must be positive"
    assert error.cause() == {
        "reason": "FieldValueInvalid",
        "message": "Invalid value: -1: must be positive",
        "field": "spec.replicas",
    }
