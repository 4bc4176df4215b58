"""The metric of when a server's certificate ends, for an alert before that."""

import math
from typing import Final

import structlog
from prometheus_client import CollectorRegistry, Gauge

from kuberuntime.serving.metrics import Metrics
from leaderworkerset.webhooks import certificates
from leaderworkerset.webhooks.certificates import CertificateError

NAME: Final = "lws_certificate_expiry_timestamp_seconds"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class CertificateEnds:
    """Shows the end of the certificate that each server of this process serves, in seconds since 1970."""

    def __init__(self, metrics: Metrics) -> None:
        registry = CollectorRegistry()
        self._ends = Gauge(NAME, "When the certificate of a server ends.", ("server",), registry=registry)
        metrics.register(self._ends)

    def note(self, server: str, chain: bytes) -> None:
        """Record the certificate that a server uses from now on, as PEM; the end of one that is read by TLS only is NaN."""
        try:
            end = certificates.expires_at(chain).timestamp()
        except CertificateError as error:  # OpenSSL takes more forms, and a metric must not end a server
            log.warning("the end of a certificate is not known", server=server, error=str(error))
            end = math.nan
        self._ends.labels(server).set(end)
