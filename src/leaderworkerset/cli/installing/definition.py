"""The definition of LeaderWorkerSets with descriptions: our words, and of pod templates those of the cluster it is for."""

import msgspec

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import descriptions
from leaderworkerset.api.crd import leaderworkerset_crd


async def full_definition(client: Client) -> JSONObject:
    """Return the definition as this cluster's `kubectl explain` shall show it."""
    response = await client.send(Request("GET", descriptions.DOCUMENT_PATH))
    return descriptions.described(leaderworkerset_crd(), msgspec.json.decode(response.body))
