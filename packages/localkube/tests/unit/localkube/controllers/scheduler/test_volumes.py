"""Tests whether the volume claims of a pod are ready."""

import pytest
from tests.unit.localkube.controllers.objects import build_pod

from kuberuntime.objects.meta import JSONObject
from localkube.controllers.scheduler import conditions
from localkube.controllers.scheduler.podinfo import read_pod


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        pytest.param(None, 'persistentvolumeclaim "data" not found', id="missing"),
        pytest.param(
            {"status": {"phase": "Pending"}}, "pod has unbound immediate PersistentVolumeClaims", id="pending"
        ),
        pytest.param(
            {"metadata": {"deletionTimestamp": "x"}}, 'persistentvolumeclaim "data" is being deleted', id="deleting"
        ),
        pytest.param({"status": {"phase": "Bound"}}, None, id="bound"),
    ],
)
def test_claims_must_be_bound(claim: JSONObject | None, expected: str | None) -> None:
    mounting = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
    assert conditions.claim_rejection_reason(read_pod(build_pod("p", {"spec": mounting})), lambda _: claim) == expected


def test_ephemeral_claim_is_named_after_pod_and_volume() -> None:
    pod = read_pod(build_pod("p", {"spec": {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}]}}))
    assert (
        conditions.claim_rejection_reason(pod, lambda _: None)
        == 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v"'
    )
