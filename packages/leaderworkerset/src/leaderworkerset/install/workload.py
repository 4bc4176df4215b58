"""Builds the Deployment, Services, ConfigMap, Secret and other workload objects of the manager (contract 12.6).

The pod meets the Pod Security level `restricted`. It has no root user, no capabilities, no privilege escalation, and
a read-only root file system. `/tmp` is in memory, because certificate keys are written to files for the TLS library.
"""

import hashlib
from typing import Final

from kuberuntime.objects import resources
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.api.metadata import CONFIGURATION, MANAGER, METRICS_SERVICE, SELECTOR, build
from leaderworkerset.install import certmanager
from leaderworkerset.install.installsettings import InstallSettings
from leaderworkerset.webhooks.configurations import SECRET_NAME, SERVICE_NAME

CONFIGURATION_KEY: Final = "controller_manager_config.yaml"
CONFIGURATION_PATH: Final = f"/{CONFIGURATION_KEY}"
CERTIFICATES_PATH: Final = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 - a mount, and the name is upstream's
METRICS_CERTIFICATES_PATH: Final = "/tmp/k8s-metrics-server/serving-certs"  # noqa: S108 - likewise
WEBHOOK_PORT: Final = 9443
METRICS_PORT: Final = 8443
PROBE_PORT: Final = 8081
MEMORY_LIMIT: Final = "2Gi"
"""The memory limit. A container with too many requests is restarted before the node runs out of memory."""

RESOURCES: Final = "resources"
DEFAULT_RESOURCES: Final[JSONObject] = {
    "requests": {"cpu": "100m", "memory": "1Gi"},
    "limits": {"memory": MEMORY_LIMIT},
}
"""The default resource requests for an idle process. A busy process can use more CPU of its node."""

READ_WRITE_BY_OWNER: Final = 420  # 0o644, because JSON has no octal numbers

CONTAINER_SECURITY: Final[JSONObject] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
POD_SECURITY: Final[JSONObject] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}

MOUNTS: Final[tuple[JSONObject, ...]] = (
    {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - likewise
    {"name": "cert", "mountPath": CERTIFICATES_PATH, "readOnly": True},
    {"name": "manager-config", "mountPath": CONFIGURATION_PATH, "subPath": CONFIGURATION_KEY},
)
VOLUMES: Final[tuple[JSONObject, ...]] = (
    {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}},
    {"name": "cert", "secret": {"secretName": SECRET_NAME, "defaultMode": READ_WRITE_BY_OWNER}},
    {"name": "manager-config", "configMap": {"name": CONFIGURATION}},
)

METRICS_MOUNT: Final = {"name": "metrics-cert", "mountPath": METRICS_CERTIFICATES_PATH, "readOnly": True}
METRICS_VOLUME: Final[JSONObject] = {
    "name": "metrics-cert",
    "secret": {
        "secretName": certmanager.METRICS_SECRET,
        "items": [{"key": key, "path": key} for key in ("ca.crt", "tls.crt", "tls.key")],
        "optional": False,
    },
}
"""The volume with the metrics certificate if cert-manager issues it (R-OP-20)."""


def deployment(settings: InstallSettings) -> JSONObject:
    """Build the Deployment with the selector of the Go manager, because selectors are immutable."""
    # A file mounted by subPath is not updated in a running pod, so a configuration change must change the template.
    digest = hashlib.sha256(settings.configuration.encode()).hexdigest()[:16]
    return build(
        resources.DEPLOYMENTS,
        MANAGER,
        settings.namespace,
        spec={
            "replicas": settings.replicas,
            "selector": {"matchLabels": dict(SELECTOR)},
            "template": {
                "metadata": {
                    "labels": dict(SELECTOR),
                    "annotations": {
                        "kubectl.kubernetes.io/default-container": "manager",
                        labels.CONFIGURATION_HASH: digest,
                    },
                },
                "spec": _pod(settings),
            },
        },
    )


def _pod(settings: InstallSettings) -> JSONObject:
    pod: JSONObject = {
        "serviceAccountName": MANAGER,
        "securityContext": POD_SECURITY,
        "terminationGracePeriodSeconds": 10,
        "containers": [_container(settings)],
        "volumes": _volumes(settings),
    }
    if settings.placement.node_selector:
        pod["nodeSelector"] = dict(settings.placement.node_selector)
    if settings.placement.tolerations is not None:
        pod["tolerations"] = list(settings.placement.tolerations)
    if settings.spread:
        pod["topologySpreadConstraints"] = [_spread("kubernetes.io/hostname"), _spread("topology.kubernetes.io/zone")]
    return pod | {name: value for name, value in settings.pod.items() if name != RESOURCES}


def _volumes(settings: InstallSettings) -> list[JSONObject]:
    if settings.certificates == "internal":
        return list(VOLUMES)
    temporary, certificate, configuration = VOLUMES
    secret = certificate["secret"] | {"secretName": certmanager.SERVING_SECRET}
    return [temporary, certificate | {"secret": secret}, configuration, METRICS_VOLUME]


def _container(settings: InstallSettings) -> JSONObject:
    return {
        "name": "manager",
        "image": settings.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/manager"],
        "args": [
            f"--config={CONFIGURATION_PATH}",
            f"--zap-log-level={settings.verbosity}",
            *(["--zap-encoder=json"] if settings.log_format == "json" else []),
        ],
        "ports": [_port("webhook-server", WEBHOOK_PORT), _port("metrics", METRICS_PORT)],
        "livenessProbe": _probe("/healthz", delay=15, period=20),
        "readinessProbe": _probe("/readyz", delay=5, period=10),
        RESOURCES: settings.pod.get(RESOURCES, DEFAULT_RESOURCES),
        "securityContext": CONTAINER_SECURITY,
        "volumeMounts": [*MOUNTS, *([METRICS_MOUNT] if settings.certificates == "cert-manager" else [])],
    }


def _port(name: str, number: int) -> JSONObject:
    return {"name": name, "containerPort": number, "protocol": "TCP"}


def _probe(path: str, *, delay: int, period: int) -> JSONObject:
    return {"httpGet": {"path": path, "port": PROBE_PORT}, "initialDelaySeconds": delay, "periodSeconds": period}


def _spread(topology: str) -> JSONObject:
    return {
        "maxSkew": 1,
        "topologyKey": topology,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": dict(SELECTOR)},
    }


def webhook_service(namespace: str) -> JSONObject:
    """Build the webhook Service."""
    return _service(SERVICE_NAME, namespace, {"port": 443, "targetPort": WEBHOOK_PORT, "protocol": "TCP"})


def metrics_service(namespace: str) -> JSONObject:
    """Build the metrics Service."""
    port = {"name": "https", "port": METRICS_PORT, "targetPort": METRICS_PORT, "protocol": "TCP"}
    service = _service(METRICS_SERVICE, namespace, port)
    # The labels with which a ServiceMonitor selects services.
    return service | {"metadata": service["metadata"] | {"labels": dict(SELECTOR)}}


def _service(name: str, namespace: str, port: JSONObject) -> JSONObject:
    return build(resources.SERVICES, name, namespace, spec={"selector": dict(SELECTOR), "ports": [port]})


def configuration(settings: InstallSettings) -> JSONObject:
    """Build the ConfigMap with the manager's configuration file."""
    return build(
        resources.CONFIG_MAPS, CONFIGURATION, settings.namespace, data={CONFIGURATION_KEY: settings.configuration}
    )


def network_policy(namespace: str) -> JSONObject:
    """Build the NetworkPolicy, which allows only the ports that other components use.

    Policies do not affect kubelet probes. API servers use node addresses, or addresses that a selector cannot match, so
    the webhooks are open to all clients. Metrics are open to all pods.
    """
    spec = {
        "podSelector": {"matchLabels": dict(SELECTOR)},
        "policyTypes": ["Ingress"],
        "ingress": [
            {"ports": [{"port": WEBHOOK_PORT, "protocol": "TCP"}]},
            {"from": [{"namespaceSelector": {}}], "ports": [{"port": METRICS_PORT, "protocol": "TCP"}]},
        ],
    }
    return build(resources.NETWORK_POLICIES, MANAGER, namespace, spec=spec)


def disruption_budget(namespace: str) -> JSONObject:
    """Build the PodDisruptionBudget, which allows the eviction of one replica at a time."""
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": dict(SELECTOR)}}
    return build(resources.POD_DISRUPTION_BUDGETS, MANAGER, namespace, spec=spec)
