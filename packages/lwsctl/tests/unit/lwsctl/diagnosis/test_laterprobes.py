"""Tests running ranks whose first probe is not yet due."""

from typing import Any

import pytest
from tests.explanations.builders import ago, container, event, lws, observed, placed, ready
from tests.unit.lwsctl.diagnosis.test_diagnose import told

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CORE_EVENTS
from lwsctl.model.health import Verdict


def waiting(rank: int = 0, *, seconds: float = 10, status: JSONObject | None = None, **probes: Any) -> JSONObject:
    """Return a rank that has been running for `seconds`, with these probes."""
    declared = {"name": "main", "image": "vllm:1", **probes}
    shown = container(running={"startedAt": ago(seconds)}) | (status or {})
    return placed(0, rank, spec={"containers": [declared]}, status={"containerStatuses": [shown]})


LATER: JSONObject = {"initialDelaySeconds": 900}


@pytest.mark.parametrize(
    ("probes", "status", "sentence"),
    [
        ({"readinessProbe": LATER}, {}, "the first readiness probe is due in 14m50s"),
        ({"readinessProbe": {}, "startupProbe": LATER}, {}, "the first startup probe is due in 14m50s"),
        (
            {"readinessProbe": LATER, "startupProbe": {"initialDelaySeconds": 5}},
            {"started": True},
            "the first readiness probe is due in 14m50s",
        ),
    ],
    ids=["readiness", "startup", "readiness after startup"],
)
def test_first_probe_of_a_leader_is_reported_with_its_time(
    probes: JSONObject, status: JSONObject, sentence: str
) -> None:
    found = told(observed([waiting(status=status, **probes), ready(0, 1)]))
    assert (found.code, found.verdict, found.sentence) == (
        "LWS-E101",
        Verdict.STARTING,
        f"pod web-0 is running; {sentence}",
    )


def test_workers_that_wait_for_a_probed_leader_are_no_cause() -> None:
    found = told(observed([waiting(readinessProbe=LATER)], of=lws(startupPolicy="LeaderReady")))
    assert found.code == "LWS-E101"


def test_probe_that_is_due_is_not_a_cause() -> None:
    assert told(observed([waiting(seconds=901, readinessProbe=LATER), ready(0, 1)])).code == "LWS-E082"


def test_failing_probe_of_a_different_rank_is_the_cause() -> None:
    failing = event("Pod", "web-0-1", "Unhealthy", "Readiness probe failed: connection refused")
    pods = [waiting(readinessProbe=LATER), waiting(1, readinessProbe={"httpGet": {"port": 1}})]
    assert told(observed(pods, {CORE_EVENTS: [failing]})).code == "LWS-E073"
