"""Defines the names and labels of installed objects (contract 12.3 to 12.6).

For in-place upgrades, they are the same as in the Go manager.
"""

from collections.abc import Mapping
from typing import Any, Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from leaderworkerset.api.kubernetesfeatures import OLDEST

MANAGER: Final = "lws-controller-manager"
"""The name of the Deployment, ServiceAccount, NetworkPolicy and PodDisruptionBudget."""

CONFIGURATION: Final = "lws-manager-config"
METRICS_SERVICE: Final = "lws-controller-manager-metrics-service"
LEASE: Final = "b8b2488c.x-k8s.io"
MUTATING_WEBHOOKS: Final = "lws-mutating-webhook-configuration"

LABELS: Final[Mapping[str, str]] = {"app.kubernetes.io/name": "lws", "app.kubernetes.io/instance": "lws"}
SELECTOR: Final[Mapping[str, str]] = {**LABELS, "control-plane": "controller-manager"}

OLDEST_KUBERNETES: Final = f"1.{OLDEST}.0"
"""The first Kubernetes version that supports the creation of worker StatefulSets."""


def build(resource: Resource, name: str, namespace: str = "", /, **fields: Any) -> JSONObject:
    """Build an object with the labels of this project. `fields` are added after the metadata."""
    own: JSONObject = {"name": name, "labels": dict(LABELS)}
    if namespace:
        own["namespace"] = namespace
    return {**resource.type_meta, "metadata": own, **fields}


def with_labels(obj: JSONObject) -> JSONObject:
    """Add the labels of this project to an object."""
    return obj | {"metadata": meta.metadata(obj) | {"labels": {**meta.labels(obj), **LABELS}}}


def is_installed(obj: JSONObject) -> bool:
    """Return whether an object in the cluster has the labels of this project, so that it can be removed."""
    return LABELS.items() <= meta.labels(obj).items()
