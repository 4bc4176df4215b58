"""The definitions of kinds with descriptions: ours, and those of the target cluster for pod templates."""

from collections.abc import Sequence

import msgspec

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import descriptions
from leaderworkerset.kinds.managed import MANAGED


async def full_definitions(client: Client) -> Sequence[JSONObject]:
    """Return the definitions with the descriptions that this cluster's `kubectl explain` shall show."""
    response = await client.send(Request("GET", descriptions.DOCUMENT_PATH))
    return MANAGED.described_definitions(msgspec.json.decode(response.body))
