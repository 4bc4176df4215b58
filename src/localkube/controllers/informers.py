"""The informers that the controllers share: every kind is watched once, with the indexes of all its readers."""

from dataclasses import dataclass, fields

from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.objects import resources
from localkube.controllers import controllerrefs, endpoints
from localkube.controllers.nodes import podgc
from localkube.controllers.statefulset import controller as statefulsets
from localkube.controllers.volumes import volumebinder


@dataclass(frozen=True, slots=True, kw_only=True)
class Informers:
    """One informer per kind."""

    pods: Informer
    nodes: Informer
    namespaces: Informer
    statefulsets: Informer
    replicasets: Informer
    deployments: Informer
    autoscalers: Informer
    revisions: Informer
    claims: Informer
    volumes: Informer
    classes: Informer
    services: Informer
    slices: Informer
    budgets: Informer
    definitions: Informer

    def all(self) -> list[Informer]:
        """Return every informer."""
        return [getattr(self, field.name) for field in fields(self)]


def build_informers(client: Client) -> Informers:
    """Build the informers; nothing is read before they run."""
    owned = {
        controllerrefs.BY_CONTROLLER: controllerrefs.controller_index,
        controllerrefs.ORPHANS: controllerrefs.orphan_index,
    }
    pod_indexes = {
        **owned,
        statefulsets.BY_PARENT: statefulsets.orphan_pod_index,
        podgc.BY_NODE: podgc.node_index,
        volumebinder.BY_CLAIM: volumebinder.pod_claim_index,
        endpoints.BY_NAMESPACE: endpoints.namespace_index,
    }
    return Informers(
        pods=Informer(client, resources.PODS, indexes=pod_indexes),
        nodes=Informer(client, resources.NODES),
        namespaces=Informer(client, resources.NAMESPACES),
        statefulsets=Informer(client, resources.STATEFULSETS),
        replicasets=Informer(client, resources.REPLICA_SETS, indexes=owned),
        deployments=Informer(client, resources.DEPLOYMENTS),
        autoscalers=Informer(client, resources.HORIZONTAL_POD_AUTOSCALERS),
        revisions=Informer(client, resources.CONTROLLER_REVISIONS, indexes=owned),
        claims=Informer(client, resources.PERSISTENT_VOLUME_CLAIMS),
        volumes=Informer(client, resources.PERSISTENT_VOLUMES),
        classes=Informer(client, resources.STORAGE_CLASSES),
        services=Informer(client, resources.SERVICES, indexes={endpoints.BY_NAMESPACE: endpoints.namespace_index}),
        slices=Informer(client, resources.ENDPOINT_SLICES, indexes={endpoints.BY_SERVICE: endpoints.service_index}),
        budgets=Informer(
            client, resources.POD_DISRUPTION_BUDGETS, indexes={endpoints.BY_NAMESPACE: endpoints.namespace_index}
        ),
        definitions=Informer(client, resources.CUSTOM_RESOURCE_DEFINITIONS),
    )
