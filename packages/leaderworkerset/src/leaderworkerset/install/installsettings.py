"""Defines the installation settings that administrators can change."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

import leaderworkerset
from kuberuntime.objects.meta import JSON, JSONObject
from kuberuntime.objects.resources import Resource

ISSUERS: Final = Resource("cert-manager.io", "v1", "issuers", "Issuer")
CERTIFICATES: Final = Resource("cert-manager.io", "v1", "certificates", "Certificate")
SERVICE_MONITORS: Final = Resource("monitoring.coreos.com", "v1", "servicemonitors", "ServiceMonitor")
PROMETHEUS_RULES: Final = Resource("monitoring.coreos.com", "v1", "prometheusrules", "PrometheusRule")


Certificates: TypeAlias = Literal["internal", "cert-manager"]
LogFormat: TypeAlias = Literal["console", "json"]

NAMESPACE: Final = "lws-system"
IMAGE: Final = f"localhost/leaderworkerset:{leaderworkerset.__version__}"
"""The image built from `deploy/Containerfile`. `--image` specifies a different image.

An image name without a host would be pulled from a public registry, where anyone may own the name.
"""

CONFIGURATION: Final = """\
apiVersion: config.lws.x-k8s.io/v1
kind: Configuration
leaderElection:
  leaderElect: true
internalCertManagement:
  enable: true
"""
"""The manager's default configuration file (contract 12.6)."""

MOUNTED_CERTIFICATES: Final = CONFIGURATION.replace("enable: true", "enable: false")
"""The configuration file of a manager with certificates from cert-manager (R-OP-20)."""


class Placement(Struct, frozen=True, kw_only=True):
    """The node placement of the manager. If a field is None, it is omitted."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[JSONObject] | None = None


class InstallSettings(Struct, frozen=True, kw_only=True):
    """The installation settings.

    `configuration` is the manager's file. `spread` tolerates the loss of a node or zone.

    `pod` contains additional pod fields, and `resources` are the container resources. `certificates` is the issuer for
    webhooks and metrics. `prometheus` is the namespace of the Prometheus that scrapes metrics, or empty.
    """

    namespace: str = NAMESPACE
    image: str = IMAGE
    replicas: int = 2
    configuration: str = CONFIGURATION
    spread: bool = True
    certificates: Certificates = "internal"
    verbosity: int = 2
    log_format: LogFormat = "console"
    placement: Placement = Placement()
    pod: Mapping[str, JSON] = field(default_factory=dict)
    prometheus: str = ""
