"""Tests pods that wait for claimed devices, because an object does not exist or devices are missing."""

from tests.explanations.builders import pending

from lwsctl.diagnosis.causes.deviceclaims import find_unmet_device_claim

CLAIMS = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]}


def test_unavailable_devices_name_their_claims() -> None:
    found = find_unmet_device_claim.find(pending("0/2 nodes are available: 2 cannot allocate all claims.", spec=CLAIMS))
    assert found is not None
    assert found.sentence == "pod web-0 waits for its resourceClaims: no node has free devices for gpu"


def test_missing_claim_is_named() -> None:
    why = '0/2 nodes are available: resourceclaim.resource.k8s.io "shared" not found.'
    found = find_unmet_device_claim.find(pending(why, spec=CLAIMS))
    assert found is not None
    assert "ResourceClaim shared does not exist" in found.sentence
    assert found.steps[0].startswith("create ResourceClaim shared in namespace prod")


def test_pod_that_waits_for_cpu_does_not_wait_for_its_claims() -> None:
    assert find_unmet_device_claim.find(pending("0/2 nodes are available: 2 Insufficient cpu.", spec=CLAIMS)) is None
