"""Names and labels of installed objects (contract 12.3 to 12.6), equal to the Go manager's for updates in place."""

from collections.abc import Mapping
from typing import Any, Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from leaderworkerset.api.kubernetesfeatures import OLDEST

MANAGER: Final = "lws-controller-manager"
"""The name of Deployment, ServiceAccount, NetworkPolicy and PodDisruptionBudget."""

CONFIGURATION: Final = "lws-manager-config"
METRICS_SERVICE: Final = "lws-controller-manager-metrics-service"
LEASE: Final = "b8b2488c.x-k8s.io"
MUTATING_WEBHOOKS: Final = "lws-mutating-webhook-configuration"

LABELS: Final[Mapping[str, str]] = {"app.kubernetes.io/name": "lws", "app.kubernetes.io/instance": "lws"}
SELECTOR: Final[Mapping[str, str]] = {**LABELS, "control-plane": "controller-manager"}

OLDEST_KUBERNETES: Final = f"1.{OLDEST}.0"
"""The first version of Kubernetes in which StatefulSets of workers can be created."""


def build(resource: Resource, name: str, namespace: str = "", /, **fields: Any) -> JSONObject:
    """Build an object with our labels; `fields` are its fields besides the metadata."""
    own: JSONObject = {"name": name, "labels": dict(LABELS)}
    if namespace:
        own["namespace"] = namespace
    return {**resource.type_meta, "metadata": own, **fields}


def labeled(obj: JSONObject) -> JSONObject:
    """Return an object that was built elsewhere, with our labels."""
    return obj | {"metadata": meta.metadata(obj) | {"labels": {**meta.labels(obj), **LABELS}}}


def is_installed(obj: JSONObject) -> bool:
    """Return whether a live object carries our labels, so that we may remove it."""
    return LABELS.items() <= meta.labels(obj).items()
