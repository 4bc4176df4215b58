"""Reads the nodes, all pods, and the volumes of groups, which determine where groups fit."""

from collections.abc import Iterable
from contextlib import suppress

from kuberuntime.errors import ForbiddenError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from lwsctl.cli.cluster.target import Session
from lwsctl.model.groups import Group
from lwsctl.rollout.relocation import ClusterFacts, group_claims


async def read(session: Session, groups: Iterable[Group]) -> ClusterFacts | None:
    """Return the nodes, all pods, and the volumes of these groups, or None without the permission to list them."""
    client = session.client
    try:
        nodes, pods = (await client.list(NODES)).items, (await client.list(PODS)).items
    except ForbiddenError:
        return None
    volumes: dict[ObjectKey, JSONObject] = {}
    with suppress(ForbiddenError):
        for key in sorted({key for group in groups for key in group_claims(group)}):
            claim = await client.find(PERSISTENT_VOLUME_CLAIMS, key)
            name = meta.spec(claim or {}).get("volumeName")
            if name and (volume := await client.find(PERSISTENT_VOLUMES, ObjectKey("", name))):
                volumes[key] = volume
    return ClusterFacts(nodes=nodes, pods=pods, volumes=volumes)
