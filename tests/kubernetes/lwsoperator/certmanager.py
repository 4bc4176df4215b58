"""Simulates cert-manager with its two kinds, and with Secrets whose certificates a small CA signs."""

import base64
from datetime import UTC, datetime
from typing import Any

from tests.kubernetes.install.conftest import Administrator
from tests.kubernetes.lwsoperator.waiting import until

from kuberuntime.objects.resources import Resource
from leaderworkerset.install.installsettings import CERTIFICATES, ISSUERS
from leaderworkerset.webhooks import certificates


def definition(kind: Resource) -> dict[str, Any]:
    """Return the CRD of a kind without a schema."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind.kind, "plural": kind.plural, "singular": kind.kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.group_resource},
        "spec": {"group": kind.group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def install(administrator: Administrator) -> None:
    """Create the CRDs unless they exist."""
    kinds = [kind for kind in (ISSUERS, CERTIFICATES) if administrator.get(f"crd/{kind.group_resource}") is None]
    if kinds:
        administrator.kubectl("apply", "--server-side", "-f", "-", objects=[definition(kind) for kind in kinds])


def issue(administrator: Administrator, name: str, namespace: str) -> None:
    """Wait until a certificate is requested, and write the issued certificate to its Secret."""
    words = (f"certificates.cert-manager.io/{name}", "-n", namespace)
    until(lambda: administrator.get(*words) is not None, f"certificate {name}")
    spec = administrator.there(*words)["spec"]
    now = datetime.now(UTC)
    authority = certificates.create_authority(now)
    pair = certificates.issue(authority, [name, *spec["dnsNames"]], now)
    data = {"ca.crt": authority.certificate, "tls.crt": pair.certificate, "tls.key": pair.key}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": spec["secretName"], "namespace": namespace},
        "type": "kubernetes.io/tls",
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }
    administrator.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", objects=[secret])
