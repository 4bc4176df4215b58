"""All objects of an installation, in the order in which they are applied.

Objects that others refer to come first; the webhook configurations come last, since from then on the API server calls
the manager.
"""

from collections.abc import Sequence
from typing import Final

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    NAMESPACES,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from leaderworkerset.api import metadata
from leaderworkerset.install import certmanager, monitoring, rbac, workload
from leaderworkerset.install.declared import Declared
from leaderworkerset.install.foreign import SERVICE_MONITORS
from leaderworkerset.install.installsettings import Certificates, InstallSettings
from leaderworkerset.webhooks import configurations
from leaderworkerset.webhooks.permissions import SERVICE_NAME

POD_SECURITY_LABEL: Final = "pod-security.kubernetes.io/enforce"


def build_all(
    declared: Declared, settings: InstallSettings, definitions: Sequence[JSONObject] | None = None
) -> Sequence[tuple[Resource, JSONObject]]:
    """Build every object of an installation; `definitions` are those to install (None: the slim ones)."""
    namespace, keeps = settings.namespace, settings.certificates == "internal"
    return [
        (NAMESPACES, build_namespace(namespace)),
        *((CUSTOM_RESOURCE_DEFINITIONS, metadata.labeled(one)) for one in definitions or declared.definitions()),
        (SERVICE_ACCOUNTS, rbac.service_account(namespace)),
        *rbac.roles(namespace, declared.permissions, certificates=keeps),
        *(monitoring.roles(namespace, settings.prometheus) if settings.prometheus else []),
        (CONFIG_MAPS, workload.configuration(settings)),
        *([(SECRETS, workload.certificate_secret(namespace))] if keeps else certmanager.objects(namespace)),
        (SERVICES, workload.webhook_service(namespace)),
        (SERVICES, workload.metrics_service(namespace)),
        (NETWORK_POLICIES, workload.network_policy(namespace)),
        *([(POD_DISRUPTION_BUDGETS, workload.disruption_budget(namespace))] if settings.spread else []),
        *(
            [(SERVICE_MONITORS, monitoring.service_monitor(namespace, verified=not keeps))]
            if settings.prometheus
            else []
        ),
        (DEPLOYMENTS, workload.deployment(settings)),
        *build_webhooks(declared, namespace, certificates=settings.certificates),
    ]


def build_webhooks(
    declared: Declared, namespace: str, *, certificates: Certificates
) -> Sequence[tuple[Resource, JSONObject]]:
    """Build the webhook configurations, which trust the issuer of the certificates."""
    service = configurations.at_service(namespace, SERVICE_NAME)
    calling = configurations.build_configurations(declared.webhooks, service)
    objects = [(resource, metadata.labeled(obj)) for resource, obj in calling]
    if certificates == "internal":
        return objects
    return [(resource, certmanager.trusting(obj, namespace)) for resource, obj in objects]


def build_namespace(name: str) -> JSONObject:
    """Build the namespace, whose Pod Security level allows pods no more than the manager needs."""
    namespace = metadata.build(NAMESPACES, name)
    own = namespace["metadata"]
    return namespace | {"metadata": own | {"labels": own["labels"] | {POD_SECURITY_LABEL: "restricted"}}}
