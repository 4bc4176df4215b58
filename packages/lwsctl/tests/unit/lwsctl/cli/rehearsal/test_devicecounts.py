"""Tests that a rehearsal counts device claims as extended resources."""

import pytest

from kuberuntime.objects.meta import JSONObject
from lwsctl.cli.errors import CommandError
from lwsctl.cli.reading.manifests import Document
from lwsctl.cli.rehearsal.devicecounts import DeviceCounts, replace_claims


def template(name: str, requests: object) -> JSONObject:
    spec = {"spec": {"devices": {"requests": requests}}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": spec,
    }


def claiming_pod(**claim: str) -> JSONObject:
    main = {"name": "a", "resources": {"claims": [{"name": "gpu"}], "limits": {"cpu": "1"}}}
    spec = {"containers": [main, {"name": "b"}], "resourceClaims": [{"name": "gpu", **claim}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def of(*objects: JSONObject) -> DeviceCounts:
    return replace_claims([Document("a.yaml", 1, obj) for obj in objects])


GPUS = template("gpus", [{"name": "x", "exactly": {"deviceClassName": "gpu.example.com", "count": 4}}])


def test_claim_template_becomes_a_resource_of_each_pod() -> None:
    found = of(
        GPUS,
        {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": [claiming_pod(resourceClaimTemplateName="gpus")]},
    )
    (document,) = found.documents
    (rewritten,) = document.object["items"]
    assert rewritten["spec"] == {
        "containers": [
            {"name": "a", "resources": {"limits": {"cpu": "1", "gpu.example.com/device": 4}}},
            {"name": "b"},
        ]
    }
    assert found.assumptions == ("resourceclaimtemplate/gpus: each pod has 4 gpu.example.com/device",)


def test_compute_domain_becomes_one_channel_of_each_pod() -> None:
    domain = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": "domain"},
        "spec": {"channel": {"resourceClaimTemplate": {"name": "channel"}}},
    }
    (document,) = of(domain, claiming_pod(resourceClaimTemplateName="channel")).documents
    assert document.object["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1", "channel/device": 1}


def test_shared_claim_and_device_class_are_not_counted() -> None:
    claim = GPUS | {"kind": "ResourceClaim"}
    device_class = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu.example.com"}}
    found = of(claim, device_class, claiming_pod(resourceClaimName="gpus"))
    assert found.documents[0].object["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1"}
    assert len(found.assumptions) == 2


def test_missing_claim_template_is_an_error() -> None:
    with pytest.raises(
        CommandError, match=r"a.yaml:1: resourceClaims\[gpu\]: resourceClaimTemplateName other is not in"
    ):
        of(claiming_pod(resourceClaimTemplateName="other"))


@pytest.mark.parametrize("requests", ["many", [5], [{"exactly": {"deviceClassName": "a", "count": "x"}}]])
def test_malformed_claim_template_is_an_error(requests: object) -> None:
    with pytest.raises(CommandError, match=r"spec: Invalid value: devices\.requests must be a list"):
        of(template("gpus", requests))
