"""Tests which objects a request selects."""

import pytest

from kuberuntime.objects.selectors import parse_fields
from localkube.apiserver.requests.filters import ObjectSelector

OBJECT = {"metadata": {"name": "a", "namespace": "default"}, "status": {"phase": "Running"}}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("", True),
        ("metadata.name=a", True),
        ("metadata.name=a,metadata.name=b", False),
        ("metadata.name!=b,metadata.name!=c", True),
        ("metadata.name!=b,metadata.name!=a", False),
        ("metadata.name=a,status.phase!=Running", False),
        ("metadata.name=a,spec.unschedulable=false", True),
    ],
)
def test_field_selector_requires_all_terms(fields: str, expected: bool) -> None:
    assert ObjectSelector("default", fields=parse_fields(fields)).matches(OBJECT) is expected
