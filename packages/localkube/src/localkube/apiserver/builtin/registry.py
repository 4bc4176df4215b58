"""Lists all built-in kinds."""

from collections.abc import Sequence

from localkube.apiserver.builtin import (
    autoscalers,
    autoscalersv1,
    clusterkinds,
    configuration,
    coreevents,
    deployments,
    extensions,
    persistentvolumes,
    pods,
    services,
    statefulsets,
)
from localkube.apiserver.model.kind import Kind

STRATEGIES = (
    pods.POD,
    services.SERVICE,
    services.ENDPOINTS,
    configuration.CONFIG_MAP,
    configuration.SECRET,
    configuration.SERVICE_ACCOUNT,
    persistentvolumes.CLAIM,
    persistentvolumes.VOLUME,
    clusterkinds.NAMESPACE,
    clusterkinds.NODE,
    coreevents.CORE_EVENT,
    coreevents.EVENT,
    autoscalers.AUTOSCALER,
    autoscalersv1.AUTOSCALER_V1,
    deployments.DEPLOYMENT,
    deployments.REPLICA_SET,
    statefulsets.STATEFULSET,
    statefulsets.CONTROLLER_REVISION,
    services.ENDPOINT_SLICE,
    deployments.POD_DISRUPTION_BUDGET,
    clusterkinds.LEASE,
    clusterkinds.PRIORITY_CLASS,
    persistentvolumes.STORAGE_CLASS,
    extensions.DEFINITION,
    extensions.MUTATING,
    extensions.VALIDATING,
)


def kinds() -> Sequence[Kind]:
    """Return all built-in kinds."""
    return tuple(strategy.kind() for strategy in STRATEGIES)
