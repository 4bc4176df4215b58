"""The definitions of kinds with descriptions: our words, and of pod templates those of the cluster they are for."""

from collections.abc import Sequence

import msgspec

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import descriptions
from leaderworkerset.kinds.managed import MANAGED


async def full_definitions(client: Client) -> Sequence[JSONObject]:
    """Return the definitions as this cluster's `kubectl explain` shall show them."""
    response = await client.send(Request("GET", descriptions.DOCUMENT_PATH))
    return MANAGED.described_definitions(msgspec.json.decode(response.body))
