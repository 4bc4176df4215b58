"""Builds cert-manager resources, which are a self-signed issuer, a certificate for each server, and the trusted CA.

Names, DNS names and Secrets are equal to those of the Go operator (R-OP-17, R-OP-18).
"""

from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from leaderworkerset.api.metadata import METRICS_SERVICE, build
from leaderworkerset.install.installsettings import CERTIFICATES, ISSUERS
from leaderworkerset.webhooks.configurations import SERVICE_NAME

ISSUER: Final = "lws-selfsigned-issuer"
SERVING: Final = "lws-serving-cert"
METRICS: Final = "lws-metrics-cert"
SERVING_SECRET: Final = "webhook-server-cert"  # noqa: S105 - the name of an object
METRICS_SECRET: Final = "metrics-server-cert"  # noqa: S105 - likewise
INJECT: Final = "cert-manager.io/inject-ca-from"


def objects(namespace: str) -> list[tuple[Resource, JSONObject]]:
    """Build the issuer and the two certificates."""
    return [
        (ISSUERS, build(ISSUERS, ISSUER, namespace, spec={"selfSigned": {}})),
        (CERTIFICATES, _certificate(SERVING, SERVICE_NAME, SERVING_SECRET, namespace)),
        (CERTIFICATES, _certificate(METRICS, METRICS_SERVICE, METRICS_SECRET, namespace, common_name="lws-metrics")),
    ]


def with_ca_injection(obj: JSONObject, namespace: str) -> JSONObject:
    """Return a webhook configuration in which cert-manager injects the CA of the serving certificate."""
    own = meta.metadata(obj)
    annotations = {**meta.annotations(obj), INJECT: f"{namespace}/{SERVING}"}
    return obj | {"metadata": own | {"annotations": annotations}}


def _certificate(name: str, service: str, secret: str, namespace: str, *, common_name: str = "") -> JSONObject:
    spec: JSONObject = {
        "dnsNames": [f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local"],
        "issuerRef": {"group": ISSUERS.group, "kind": ISSUERS.kind, "name": ISSUER},
        "secretName": secret,
    }
    return build(CERTIFICATES, name, namespace, spec=spec | ({"commonName": common_name} if common_name else {}))
