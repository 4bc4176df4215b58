"""Which objects a request concerns, and what it costs to decide."""

import pytest
from tests.property.growth import work

from kuberuntime.objects.selectors import parse_fields
from localkube.apiserver.requests.filters import Selection

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
def test_all_terms_must_hold(fields: str, expected: bool) -> None:
    assert Selection("default", fields=parse_fields(fields)).matches(OBJECT) is expected


def test_thousands_of_terms_about_a_field_are_one_comparison() -> None:
    few, many = (
        Selection(fields=parse_fields(",".join(f"metadata.name!=n{number}" for number in range(count))))
        for count in (2, 1000)
    )

    assert many.matches(OBJECT)
    assert work.lines(lambda: many.matches(OBJECT)) == work.lines(lambda: few.matches(OBJECT))
