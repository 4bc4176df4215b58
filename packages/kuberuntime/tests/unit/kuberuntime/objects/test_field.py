"""Errors of fields as they are written, and as an answer's `details.causes` has them."""

from kuberuntime.objects import field


def test_field_error_has_a_line_and_a_cause() -> None:
    """Contract 10.2: path, kind, value, what to do."""
    error = field.invalid("spec.replicas", -1, "must be positive")

    assert str(error) == "spec.replicas: Invalid value: -1: must be positive"
    assert error.cause() == {
        "reason": "FieldValueInvalid",
        "message": "Invalid value: -1: must be positive",
        "field": "spec.replicas",
    }
