"""Kinds that change nothing in a rehearsal: they are skipped if the API server does not serve them.

In: the documents to apply. Out: the applied documents, and a line for each skipped document. A kind that pods depend
on, for example to create Secrets, is not in the table: it stays an error.
"""

from collections.abc import Sequence
from typing import Final

from kuberuntime.client.client import Client
from leaderworkerset.cli.applying.applier import brings_kind
from leaderworkerset.cli.applying.kindlookup import Discovery, UnknownKindError
from leaderworkerset.cli.reading.manifests import Document

ACCESS: Final = "requests are not authorized by roles"
TRAFFIC: Final = "there is no traffic from outside"
METRICS: Final = "nobody collects metrics"
SIZES: Final = "nobody sizes it by load"
QUEUES: Final = "there are no queues"
MACHINE: Final = "containers are processes of this machine"

IDLE: Final = {
    "rbac.authorization.k8s.io": ACCESS,
    **dict.fromkeys(
        (
            "networking.k8s.io", "gateway.networking.k8s.io", "gateway.networking.x-k8s.io", "gateway.envoyproxy.io",
            "inference.networking.k8s.io", "inference.networking.x-k8s.io", "networking.istio.io", "security.istio.io",
            "networking.gke.io", "cloud.google.com", "traefik.io", "elbv2.k8s.aws", "route.openshift.io",
        ),
        TRAFFIC,
    ),
    **dict.fromkeys(("monitoring.coreos.com", "monitoring.googleapis.com", "opentelemetry.io"), METRICS),
    **dict.fromkeys(("keda.sh", "autoscaling.k8s.io", "karpenter.sh", "karpenter.k8s.aws"), SIZES),
    "kueue.x-k8s.io": QUEUES,
    "node.k8s.io": MACHINE,
}  # fmt: skip
"""API groups whose kinds change nothing in a rehearsal, and the reason."""


async def without_unserved(client: Client, documents: Sequence[Document]) -> tuple[list[Document], list[str]]:
    """Return the documents without unserved idle kinds, and a line for each removed document."""
    discovery = Discovery(client)
    kept: list[Document] = []
    skipped: list[str] = []
    for document in documents:
        why = IDLE.get(document.object["apiVersion"].rpartition("/")[0], "")
        if why and not brings_kind(documents, document) and not await _is_served(discovery, document):
            skipped.append(f"{document.title} is skipped: {why}")
        else:
            kept.append(document)
    return kept, skipped


async def _is_served(discovery: Discovery, document: Document) -> bool:
    try:
        await discovery.resource_of(document.object)
    except UnknownKindError:
        return False
    return True
