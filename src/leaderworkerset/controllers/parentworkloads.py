"""Reads the Workload of an owner, for LeaderWorkerSets whose scheduling is delegated to it (N-K8S-16).

Nothing of this is in caches: owners are of any kind, and the manager may read only some. What it may not read is an
answer, too (N-AT-15).
"""

from typing import Final

import msgspec

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request
from kuberuntime.errors import ForbiddenError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey, OwnerReference
from kuberuntime.objects.resources import Resource
from leaderworkerset.core.gang.native import WORKLOADS
from leaderworkerset.core.policies import delegation
from leaderworkerset.core.policies.policy import Parent, SchedulingFailure

DEEPEST: Final = 8
"""How many owners are asked, upwards."""


async def find(client: Client, lws: JSONObject) -> Parent:
    """Return the Workload of the next owner that has one, or why there is none; raise `KubeError` without an answer."""
    try:
        return await _find(client, lws)
    except ValueError as error:
        return SchedulingFailure(delegation.NOT_READY, str(error))
    except (ForbiddenError, NotFoundError) as error:
        return SchedulingFailure(delegation.NOT_READY, f"an owner cannot be read: {error}")


async def _find(client: Client, lws: JSONObject) -> JSONObject:
    workloads = (await client.list(WORKLOADS, namespace=meta.namespace(lws))).items
    obj = lws
    for _ in range(DEEPEST):
        owner = meta.controller_of(obj)
        if owner is None:
            break
        if (found := delegation.of_owner(workloads, owner)) is not None:
            return found
        obj = await _read(client, owner, meta.namespace(lws))
    raise ValueError(f"no owner of LeaderWorkerSet {meta.key(lws)} has a Workload yet")


async def _read(client: Client, owner: OwnerReference, namespace: str) -> JSONObject:
    """Read an owner; raise `ValueError` if it is another object of that name, or of a kind that is not served."""
    version, kind = owner["apiVersion"], owner["kind"]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    listed = msgspec.json.decode((await client.send(Request("GET", base))).body, type=JSONObject)
    served = (one for one in listed.get("resources") or [] if one.get("kind") == kind and "/" not in one["name"])
    plural = next((one["name"] for one in served), None)
    if plural is None:
        raise ValueError(f"the API server serves no {kind} of {version}, which controls it")
    group, _, number = version.rpartition("/")
    obj = await client.get(Resource(group, number, plural, kind), ObjectKey(namespace, owner["name"]))
    if meta.uid(obj) != owner["uid"]:
        raise ValueError(f"{kind} {owner['name']} is not the one that controls it")
    return obj
