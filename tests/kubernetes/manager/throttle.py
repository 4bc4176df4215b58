"""Configures API Priority and Fairness so that the API server responds to the manager with status 429.

The manager's requests get a priority level without seats. The level still admits a request while it has no other, so
one is sent whose body never ends.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
from tests.controlplane.process import Plane
from tests.kubernetes.manager.replicas import POLL, until

from kuberuntime.client.client import Client
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import STATEFULSETS, Resource
from leaderworkerset.api.metadata import MANAGER
from leaderworkerset.install.installsettings import NAMESPACE

GROUP: Final = "flowcontrol.apiserver.k8s.io"
SCHEMAS: Final = Resource(GROUP, "v1", "flowschemas", "FlowSchema", namespaced=False)
LEVELS: Final = Resource(GROUP, "v1", "prioritylevelconfigurations", "PriorityLevelConfiguration", namespaced=False)
NAME: Final = "tests-refused"
TOO_MANY: Final = 429
FOREVER: Final = aiohttp.ClientTimeout(total=None)


@asynccontextmanager
async def refusing(client: Client, plane: Plane, token: str, groups: Sequence[str]) -> AsyncIterator[None]:
    """Reject all requests with this token of the manager's account for kinds in these API groups."""
    seatless = {"nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0}
    limited = {"type": "Limited", "limited": seatless | {"limitResponse": {"type": "Reject"}}}
    rule = {"verbs": ["*"], "apiGroups": list(groups), "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
    subject = {"kind": "ServiceAccount", "serviceAccount": {"name": MANAGER, "namespace": NAMESPACE}}
    schema = {
        "matchingPrecedence": 2,
        "priorityLevelConfiguration": {"name": NAME},
        "rules": [{"subjects": [subject], "resourceRules": [rule]}],
    }
    await client.create(LEVELS, _build(LEVELS, limited))
    await client.create(SCHEMAS, _build(SCHEMAS, schema))
    try:
        await until(lambda: _is_in_force(client))
        async with _asking(plane, token) as session, asyncio.TaskGroup() as tasks:
            at_work = asyncio.Event()
            busy = tasks.create_task(_keep_busy(session, at_work))
            await at_work.wait()
            yield
            busy.cancel()
    finally:
        await client.delete(SCHEMAS, ObjectKey("", NAME))
        await client.delete(LEVELS, ObjectKey("", NAME))


def _build(resource: Resource, spec: dict[str, Any]) -> JSONObject:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": NAME}, "spec": spec}


def _asking(plane: Plane, token: str) -> aiohttp.ClientSession:
    """Return a session that sends requests in the same way as the manager."""
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(plane.authority)))
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    return aiohttp.ClientSession(plane.server, connector=connector, headers=headers, timeout=FOREVER)


async def _keep_busy(session: aiohttp.ClientSession, at_work: asyncio.Event) -> None:
    """Keep one request in progress. Send a new request after a rejection or a timeout."""
    while True:
        # The API server requests the body only after it has admitted the request to a queue.
        async with session.post(f"{STATEFULSETS.path('default')}?dryRun=All", data=_endless(at_work), expect100=True):
            await asyncio.sleep(POLL)


async def _endless(asked: asyncio.Event) -> AsyncIterator[bytes]:
    asked.set()
    yield b"{"
    await asyncio.Event().wait()


async def _is_in_force(client: Client) -> bool:
    """Return whether the API server has observed the schema's priority level. It then applies both objects."""
    conditions = meta.status(await client.get(SCHEMAS, ObjectKey("", NAME))).get("conditions") or []
    return any(condition["type"] == "Dangling" and condition["status"] == "False" for condition in conditions)
