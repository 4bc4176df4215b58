"""Tests the settings of in-place updates (docs/adr/0024-update-in-place.md)."""

from typing import Any

import pytest
from tests import builders

from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.capabilities.deciding import validate_leaderworkerset

PATH = f"metadata.annotations.{labels.IN_PLACE}"


def errors(way: str | None, stored: str | None = None, **fields: Any) -> list[str]:
    """Return the errors of an annotation. With `stored`, return the errors of a change from this value."""
    old, new = (
        leaderworkerset.decode(
            builders.leaderworkerset_object(
                metadata={"annotations": {} if one is None else {labels.IN_PLACE: one}}, **fields
            )
        )
        for one in (stored, way)
    )
    return [str(one) for one in validate_leaderworkerset(new, old if stored else None)]


@pytest.mark.parametrize("way", [None, "IfPossible", "Only"])
def test_in_place_annotation_accepts_both_values(way: str | None) -> None:
    assert errors(way) == []


def test_invalid_in_place_value_is_rejected_unless_stored() -> None:
    assert errors("Always") == [f'{PATH}: Unsupported value: "Always": supported values: "IfPossible", "Only"']
    assert errors("Always", stored="Always") == []


def test_in_place_update_rejects_random_keys() -> None:
    """A ReplicaSet selects pods by their template hash, so the revision of a pod cannot change."""
    text = "in-place updates require groupIdentity Ordinal. Remove this annotation"
    assert errors("Only", spec={"groupIdentity": "Hash"}) == [f'{PATH}: Invalid value: "Only": {text}']


def restarts(text: str, policy: str = "RecreateGroupAfterStart", stored: str = "") -> list[str]:
    """Return the errors of tolerated restarts with a restart policy.

    With `stored`, return the errors of an update.
    """
    new, old = (
        leaderworkerset.decode(
            builders.leaderworkerset_object(
                metadata={"annotations": {labels.IN_PLACE_RESTARTS: text}}, template={"restartPolicy": one}
            )
        )
        for one in (policy, stored or policy)
    )
    return [str(one) for one in validate_leaderworkerset(new, old if stored else None)]


def test_in_place_restarts_require_a_policy_that_recreates() -> None:
    path = f"metadata.annotations.{labels.IN_PLACE_RESTARTS}"
    assert restarts("120s") == []
    assert restarts("never") == [f'{path}: Invalid value: "never": must be a duration from 1s to 24h']
    refused = [f'{path}: Invalid value: "120s": requires a restartPolicy that recreates groups. Remove this annotation']
    assert restarts("120s", "None") == refused
    assert restarts("120s", "None", stored="RecreateGroupOnPodRestart") == refused
    assert restarts("120s", "None", stored="None") == []
