"""Tests leaders with the replacement gate that wait correctly or are not admitted by the manager."""

from typing import Any

import pytest
from tests.explanations.builders import observed, pod

from leaderworkerset.api import labels
from lwsctl.diagnosis.causes import schedulinggates


@pytest.mark.parametrize(
    ("fields", "is_cause"),
    [
        ({"metadata": {"annotations": {labels.REPLACES: "web-7d9f8b6c4-x2kkp"}}}, False),
        ({"made": 3}, False),
        ({}, True),
    ],
    ids=["it names the group that ends", "it is new", "nothing is known of its turn"],
)
def test_closed_gate_is_a_cause_when_no_group_is_terminating(fields: Any, is_cause: bool) -> None:
    gate = {"schedulingGates": [{"name": labels.REPLACEMENT_GATE}]}
    found = schedulinggates.find_gated_pods.find(observed([pod(spec=gate, **fields)]))
    assert (found is not None) is is_cause
    assert found is None or found.steps[0].endswith("lws doctor")
