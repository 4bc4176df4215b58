"""Builds all objects of an installation in the order in which they are applied.

Referenced objects are first. The webhook configurations are last, because the API server then starts to call the
manager.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from kuberuntime.objects import resources
from kuberuntime.objects.field import FieldError, not_supported
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import Resource
from kuberuntime.policyrules import Permission, policy_rules
from leaderworkerset.api import metadata
from leaderworkerset.api.metadata import LEASE, METRICS_SERVICE, SELECTOR, build
from leaderworkerset.install import certmanager, rbac, workload
from leaderworkerset.install.installsettings import SERVICE_MONITORS, Certificates, InstallSettings
from leaderworkerset.install.rbac import METRICS_READER
from leaderworkerset.install.workload import CERTIFICATES_PATH, METRICS_PORT, PROBE_PORT, WEBHOOK_PORT
from leaderworkerset.manager.config.configuration import Configuration
from leaderworkerset.webhooks import configurations
from leaderworkerset.webhooks.configurations import SECRET_NAME, SERVICE_NAME
from leaderworkerset.webhooks.spec import WebhookSpec


class KindDeclarations(Protocol):
    """The kind declarations, as values."""

    @property
    def permissions(self) -> Sequence[Permission]:
        """Return the permissions of the controllers."""

    @property
    def webhooks(self) -> Sequence[WebhookSpec]:
        """Return the webhooks."""

    def definitions(self) -> Sequence[JSONObject]:
        """Build the CRDs without descriptions."""


POD_SECURITY_LABEL: Final = "pod-security.kubernetes.io/enforce"


def build_all(
    declared: KindDeclarations, settings: InstallSettings, definitions: Sequence[JSONObject] | None = None
) -> Sequence[tuple[Resource, JSONObject]]:
    """Build all objects of an installation. `definitions` are the CRDs to install (None for the slim CRDs)."""
    namespace, keeps = settings.namespace, settings.certificates == "internal"
    return [
        (resources.NAMESPACES, build_namespace(namespace)),
        *(
            (resources.CUSTOM_RESOURCE_DEFINITIONS, metadata.with_labels(definition))
            for definition in definitions or declared.definitions()
        ),
        (resources.SERVICE_ACCOUNTS, rbac.service_account(namespace)),
        *rbac.roles(namespace, declared.permissions, certificates=keeps),
        *(roles(namespace, settings.prometheus) if settings.prometheus else []),
        (resources.CONFIG_MAPS, workload.configuration(settings)),
        *(
            [(resources.SECRETS, configurations.certificate_secret(ObjectKey(namespace, SECRET_NAME)))]
            if keeps
            else certmanager.objects(namespace)
        ),
        (resources.SERVICES, workload.webhook_service(namespace)),
        (resources.SERVICES, workload.metrics_service(namespace)),
        (resources.NETWORK_POLICIES, workload.network_policy(namespace)),
        *([(resources.POD_DISRUPTION_BUDGETS, workload.disruption_budget(namespace))] if settings.spread else []),
        *([(SERVICE_MONITORS, service_monitor(namespace, verified=not keeps))] if settings.prometheus else []),
        (resources.DEPLOYMENTS, workload.deployment(settings)),
        *build_webhooks(declared, namespace, certificates=settings.certificates),
    ]


def build_webhooks(
    declared: KindDeclarations, namespace: str, *, certificates: Certificates
) -> Sequence[tuple[Resource, JSONObject]]:
    """Build the webhook configurations, which trust the issuer of the certificates."""
    service = configurations.at_service(namespace, SERVICE_NAME)
    calling = configurations.build_configurations(declared.webhooks, service, evaluates_cel=True)
    objects = [(resource, metadata.with_labels(obj)) for resource, obj in calling]
    if certificates == "internal":
        return objects
    return [(resource, certmanager.with_ca_injection(obj, namespace)) for resource, obj in objects]


def build_namespace(name: str) -> JSONObject:
    """Build the namespace with the most restrictive Pod Security level for the manager's pods."""
    namespace = metadata.build(resources.NAMESPACES, name)
    own = namespace["metadata"]
    return namespace | {"metadata": own | {"labels": own["labels"] | {POD_SECURITY_LABEL: "restricted"}}}


def incompatible_values(configuration: Configuration) -> list[FieldError]:
    """Return the configuration values that would prevent the installed objects from reaching the manager."""
    certificates, health = configuration.internal_cert_management, configuration.health
    rules: tuple[tuple[str, str | int, tuple[str | int, ...]], ...] = (
        ("webhook.port", configuration.webhook.port, (WEBHOOK_PORT,)),
        ("webhook.certDir", configuration.webhook.cert_dir, (CERTIFICATES_PATH,)),
        ("metrics.bindAddress", configuration.metrics.bind_address, (f":{METRICS_PORT}", "0")),
        ("health.healthProbeBindAddress", health.health_probe_bind_address, (f":{PROBE_PORT}",)),
        ("health.livenessEndpointName", health.liveness_endpoint_name, ("/healthz",)),
        ("health.readinessEndpointName", health.readiness_endpoint_name, ("/readyz",)),
        ("leaderElection.resourceName", configuration.leader_election.resource_name, (LEASE,)),
        ("internalCertManagement.webhookServiceName", certificates.webhook_service_name, (SERVICE_NAME,)),
        ("internalCertManagement.webhookSecretName", certificates.webhook_secret_name, (SECRET_NAME,)),
    )
    return [not_supported(path, value, map(str, fitting)) for path, value, fitting in rules if value not in fitting]


MONITOR: Final = "lws-controller-manager-metrics-monitor"
ROLE: Final = "lws-prometheus-k8s"
ACCOUNTS: Final = ("prometheus-k8s", "prometheus-operator")
"""The service accounts of Prometheus. The first service account scrapes metrics."""

FIND: Final = tuple(
    Permission(kind, ("get", "list", "watch")) for kind in (resources.SERVICES, resources.ENDPOINTS, resources.PODS)
)
TOKEN: Final = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105 - a path


def roles(namespace: str, prometheus: str) -> list[tuple[Resource, JSONObject]]:
    """Build the roles that allow Prometheus in a different namespace to discover and scrape its targets."""
    subjects = [{"kind": resources.SERVICE_ACCOUNTS.kind, "name": name, "namespace": prometheus} for name in ACCOUNTS]
    reference = {"apiGroup": resources.ROLES.group, "kind": resources.ROLES.kind, "name": ROLE}
    reader = {"apiGroup": resources.CLUSTER_ROLES.group, "kind": resources.CLUSTER_ROLES.kind, "name": METRICS_READER}
    binding = f"{METRICS_READER}-rolebinding"
    return [
        (
            resources.CLUSTER_ROLE_BINDINGS,
            build(resources.CLUSTER_ROLE_BINDINGS, binding, roleRef=reader, subjects=subjects[:1]),
        ),
        (resources.ROLES, build(resources.ROLES, ROLE, namespace, rules=policy_rules(FIND))),
        (
            resources.ROLE_BINDINGS,
            build(resources.ROLE_BINDINGS, ROLE, namespace, roleRef=reference, subjects=subjects),
        ),
    ]


def service_monitor(namespace: str, *, verified: bool) -> JSONObject:
    """Build the ServiceMonitor. `verified` is true if cert-manager issues the metrics certificate."""
    name = f"{METRICS_SERVICE}.{namespace}.svc"
    authority = {"secret": {"name": certmanager.METRICS_SECRET, "key": "ca.crt"}}
    endpoint = {
        "port": "https",
        "scheme": "https",
        "path": "/metrics",
        # The namespace of the LeaderWorkerSet, not of the scraped pod.
        "honorLabels": True,
        "bearerTokenFile": TOKEN,
        "tlsConfig": {"ca": authority, "serverName": name} if verified else {"insecureSkipVerify": True},
    }
    spec = {"endpoints": [endpoint], "selector": {"matchLabels": dict(SELECTOR)}}
    return build(SERVICE_MONITORS, MONITOR, namespace, spec=spec)
