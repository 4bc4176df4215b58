"""Kinds of other projects that an installation uses if they are served: certificates and monitoring."""

from typing import Final

from kuberuntime.objects.resources import Resource

ISSUERS: Final = Resource("cert-manager.io", "v1", "issuers", "Issuer")
CERTIFICATES: Final = Resource("cert-manager.io", "v1", "certificates", "Certificate")
SERVICE_MONITORS: Final = Resource("monitoring.coreos.com", "v1", "servicemonitors", "ServiceMonitor")
PROMETHEUS_RULES: Final = Resource("monitoring.coreos.com", "v1", "prometheusrules", "PrometheusRule")
