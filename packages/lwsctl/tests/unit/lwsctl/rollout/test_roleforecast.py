"""Tests the effects of a manifest on the fields of a DisaggregatedSet, and on the steps of each role."""

import pytest
from tests.disaggregated import disaggregatedset_object, role, with_image

from leaderworkerset.api.leaderworkerset import DecodeError
from lwsctl.rollout import roleforecast

OLD = disaggregatedset_object([role("prefill", 2), role("decode", 1)])


def told(before: dict[str, object] | None, after: dict[str, object]) -> list[str]:
    return list(roleforecast.lines(roleforecast.forecast_roles(before, after)))


def test_new_image_shows_fields_and_steps_of_each_role() -> None:
    new = disaggregatedset_object(**with_image(OLD, "app:2"))
    lines = told(OLD, new)
    path = "leaderWorkerTemplate.workerTemplate.spec.containers[main].image: app:1 -> app:2"
    assert lines[:6] == [
        "split: 2 fields would change",
        f"  spec.roles[prefill].spec.{path}",
        f"  spec.roles[decode].spec.{path}",
        "  role prefill: 2 groups desired, now 2",
        "  role decode: 1 group desired, now 1",
        "a new revision: the groups of all roles would be replaced",
    ]
    assert lines[6].startswith("  step 1: prefill 2 old, 1 new; decode 1 old, 1 new")
    assert lines[-1].endswith("prefill 0 old, 2 new; decode 0 old, 1 new")


def test_scaling_creates_no_revision() -> None:
    assert told(OLD, disaggregatedset_object([role("prefill", 3), role("decode", 1)])) == [
        "split: 1 field would change",
        "  spec.roles[prefill].spec.replicas: 2 -> 3",
        "  role prefill: 3 groups desired, now 2",
        "no new revision",
    ]


def test_new_set_shows_the_groups_of_its_roles() -> None:
    assert told(None, OLD) == ["split: created", "  role prefill: 2 groups desired", "  role decode: 1 group desired"]


def test_role_with_a_scaler_keeps_its_groups() -> None:
    roles = [role("prefill", external=True), role("decode", 1)]
    status = {"roleStatuses": [{"name": "prefill", "replicas": 4}, {"name": "decode", "replicas": 1}]}
    before = disaggregatedset_object(roles, status=status)
    after = disaggregatedset_object(**with_image(before, "app:2"))
    assert "  role prefill: 4 groups desired, now 4" in told(before, after)


def test_document_has_the_counts_of_each_step() -> None:
    new = disaggregatedset_object(**with_image(OLD, "app:2"))
    document = roleforecast.document(roleforecast.forecast_roles(OLD, new))
    assert document["disaggregatedSet"] == "split"
    assert document["steps"][-1] == {"oldGroups": {"prefill": 0, "decode": 0}, "newGroups": {"prefill": 2, "decode": 1}}


def test_value_of_a_wrong_type_is_an_error() -> None:
    with pytest.raises(DecodeError):
        roleforecast.forecast_roles(None, disaggregatedset_object(slices="many"))
