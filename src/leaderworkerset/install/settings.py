"""What an administrator may choose about an installation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

import leaderworkerset
from kuberuntime.objects.meta import JSONObject

Certificates: TypeAlias = Literal["internal", "cert-manager"]

NAMESPACE: Final = "lws-system"
IMAGE: Final = f"localhost/leaderworkerset:{leaderworkerset.__version__}"
"""What `deploy/Containerfile` is built as; clusters that pull from elsewhere say so with `--image`.

A name without a host would be looked up at a public registry, where anyone may own it.
"""

CONFIGURATION: Final = """\
apiVersion: config.lws.x-k8s.io/v1alpha1
kind: Configuration
leaderElection:
  leaderElect: true
internalCertManagement:
  enable: true
"""
"""The manager's configuration file where none is given (contract 12.6)."""

MOUNTED_CERTIFICATES: Final = CONFIGURATION.replace("enable: true", "enable: false")
"""The configuration file of a manager whose certificates cert-manager issues (R-OP-20)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """On which nodes the manager runs; None leaves out the field."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[JSONObject] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The choices; `configuration` is the text of the manager's file, `spread` asks for guards of availability.

    `certificates` says who issues those of the webhooks and the metrics, `prometheus` names the namespace of the
    Prometheus that scrapes (empty: none does).
    """

    namespace: str = NAMESPACE
    image: str = IMAGE
    replicas: int = 2
    configuration: str = CONFIGURATION
    spread: bool = False
    certificates: Certificates = "internal"
    verbosity: int = 2
    placement: Placement = Placement()
    prometheus: str = ""
