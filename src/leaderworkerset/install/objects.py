"""Everything an installation consists of, in the order in which it is applied.

What others refer to comes first; the webhook configurations come last, since from then on the API server calls us.
"""

from collections.abc import Sequence
from typing import Final

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    NAMESPACES,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from leaderworkerset.api.crd import leaderworkerset_crd
from leaderworkerset.install import metadata, rbac, workload
from leaderworkerset.install.settings import Settings
from leaderworkerset.webhooks import configurations
from leaderworkerset.webhooks.permissions import SERVICE_NAME

POD_SECURITY_LABEL: Final = "pod-security.kubernetes.io/enforce"


def build_all(settings: Settings, crd: JSONObject | None = None) -> Sequence[tuple[Resource, JSONObject]]:
    """Build every object of an installation; `crd` is the definition to install (None: the slim one)."""
    namespace = settings.namespace
    service = configurations.at_service(namespace, SERVICE_NAME)
    return [
        (NAMESPACES, build_namespace(namespace)),
        (CUSTOM_RESOURCE_DEFINITIONS, metadata.labeled(crd or leaderworkerset_crd())),
        (SERVICE_ACCOUNTS, rbac.service_account(namespace)),
        *rbac.roles(namespace),
        (CONFIG_MAPS, workload.configuration(settings)),
        (SECRETS, workload.certificate_secret(namespace)),
        (SERVICES, workload.webhook_service(namespace)),
        (SERVICES, workload.metrics_service(namespace)),
        (NETWORK_POLICIES, workload.network_policy(namespace)),
        *([(POD_DISRUPTION_BUDGETS, workload.disruption_budget(namespace))] if settings.spread else []),
        (DEPLOYMENTS, workload.deployment(settings)),
        (MUTATING_WEBHOOK_CONFIGURATIONS, metadata.labeled(configurations.mutating_configuration(service))),
        (VALIDATING_WEBHOOK_CONFIGURATIONS, metadata.labeled(configurations.validating_configuration(service))),
    ]


def build_namespace(name: str) -> JSONObject:
    """Build the namespace, in which nothing may run with more rights than the manager needs."""
    namespace = metadata.build(NAMESPACES, name)
    own = namespace["metadata"]
    return namespace | {"metadata": own | {"labels": own["labels"] | {POD_SECURITY_LABEL: "restricted"}}}
