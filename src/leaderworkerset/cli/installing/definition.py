"""The definition of LeaderWorkerSets with descriptions: our words, and of pod templates those of the cluster it is for."""

import msgspec

from leaderworkerset.api import descriptions
from leaderworkerset.api.crd import leaderworkerset_crd
from leaderworkerset.api.meta import JSONObject
from leaderworkerset.kube.client import Client
from leaderworkerset.kube.transport import Request


async def full_definition(client: Client) -> JSONObject:
    """Return the definition as this cluster's `kubectl explain` shall show it."""
    response = await client.send(Request("GET", descriptions.DOCUMENT_PATH))
    return descriptions.described(leaderworkerset_crd(), msgspec.json.decode(response.body))
