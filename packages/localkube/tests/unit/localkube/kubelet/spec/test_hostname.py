"""Tests the host name of a pod, and its fully qualified name with `setHostnameAsFQDN`."""

import pytest

from localkube.kubelet.spec import podspec
from localkube.kubelet.spec.podspec import SpecError

SPEC = {"hostname": "web-0", "subdomain": "web", "setHostnameAsFQDN": True}
POD = {"metadata": {"name": "web-0", "namespace": "prod"}, "spec": SPEC}


def test_pod_can_use_its_full_name_as_hostname() -> None:
    assert podspec.kernel_hostname(POD, "cluster.local") == "web-0.web.prod.svc.cluster.local"


@pytest.mark.parametrize("field", ["subdomain", "setHostnameAsFQDN"])
def test_other_pods_have_their_short_name(field: str) -> None:
    spec = {name: value for name, value in SPEC.items() if name != field}
    assert podspec.kernel_hostname(POD | {"spec": spec}, "cluster.local") == "web-0"


def test_full_name_beyond_the_linux_limit_is_an_error() -> None:
    with pytest.raises(SpecError, match=r"spec\.setHostnameAsFQDN: .* has 96 characters"):
        podspec.kernel_hostname(POD, "x" * 77)
