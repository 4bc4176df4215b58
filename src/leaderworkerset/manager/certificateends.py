"""The metric of when a server's certificate ends, for an alert before that."""

from typing import Final

from prometheus_client import CollectorRegistry, Gauge

from kuberuntime.serving.metrics import Metrics
from leaderworkerset.webhooks import certificates

NAME: Final = "lws_certificate_expiry_timestamp_seconds"


class CertificateEnds:
    """Shows the end of the certificate that each server of this process serves, in seconds since 1970."""

    def __init__(self, metrics: Metrics) -> None:
        registry = CollectorRegistry()
        self._ends = Gauge(NAME, "When the certificate of a server ends.", ("server",), registry=registry)
        metrics.register(self._ends)

    def note(self, server: str, chain: bytes) -> None:
        """Record the certificate that a server uses from now on, as PEM."""
        self._ends.labels(server).set(certificates.expires_at(chain).timestamp())
