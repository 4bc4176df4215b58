"""Tests the labels and annotations that the environment variables require (R-ENV-5)."""

from typing import Any

import pytest

from leaderworkerset.core.policies.environment import build_variables
from leaderworkerset.core.policies.policy import DeniedError

P = "leaderworkerset.sigs.k8s.io/"


@pytest.mark.parametrize(
    ("labels", "annotations", "missing"),
    [
        ({}, {}, "name label"),
        ({P + "name": "a"}, {}, "group index label"),
        ({P + "name": "a", P + "group-index": "0"}, {}, "size annotation"),
        ({P + "name": "a", P + "group-index": "0"}, {P + "size": "1"}, "worker index label"),
    ],
)
def test_first_missing_fact_is_named(labels: Any, annotations: Any, missing: str) -> None:
    """Values are required in the order name, group index, size, worker index (R-ENV-5)."""
    pod = {"metadata": {"name": "p", "namespace": "ns", "labels": labels, "annotations": annotations}}
    with pytest.raises(DeniedError) as caught:
        build_variables(pod)
    assert str(caught.value) == f"Failure constructing environment variables, no {missing} found for pod ns/p"
