"""What an administrator may choose about an installation."""

from dataclasses import dataclass
from typing import Final

import leaderworkerset

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The choices; `configuration` is the text of the manager's file, `spread` asks for guards of availability."""

    namespace: str = NAMESPACE
    image: str = IMAGE
    replicas: int = 2
    configuration: str = CONFIGURATION
    spread: bool = False
