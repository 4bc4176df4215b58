"""The language of scenarios: the actions of users, autoscalers and administrators in one namespace of a cluster.

Each back end extends `Scenario` with its own way to wait: virtual time, the embedded cluster, or Kubernetes.
"""

from typing import Any, Final

from kuberuntime.client.client import Client
from kuberuntime.client.requests import PatchKind
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES, PODS, Resource
from kuberuntime.plan import Propagation
from leaderworkerset.api.resources import LEADERWORKERSETS

FILLED: Final = {"uid", "resourceVersion", "generation"}
"""The fields of metadata that the API server fills in."""


class Scenario:
    """Requests in one namespace. Without a resource, they concern LeaderWorkerSets; without a name, the set `web`."""

    client: Client
    namespace: str

    def key(self, name: str) -> ObjectKey:
        """Return the key of an object of the namespace."""
        return ObjectKey(self.namespace, name)

    async def create(
        self, obj: JSONObject, resource: Resource = LEADERWORKERSETS, *, dry_run: bool = False
    ) -> JSONObject:
        """Create an object in the namespace, or return the result of a dry run."""
        metadata = {name: value for name, value in obj["metadata"].items() if name not in FILLED}
        placed = obj | {"metadata": metadata | {"namespace": self.namespace}}
        return await self.client.create(resource, placed, dry_run=dry_run)

    async def patch(self, patch: Any, name: str = "web", *, resource: Resource = LEADERWORKERSETS) -> JSONObject:
        """Change an object by a merge patch, or by a JSON patch if a list is given."""
        kind: PatchKind = "json" if isinstance(patch, list) else "merge"
        return await self.client.patch(resource, self.key(name), patch, kind=kind)

    async def edit(self, name: str = "web", **spec: Any) -> JSONObject:
        """Change fields of the spec of a LeaderWorkerSet."""
        return await self.patch({"spec": spec}, name)

    async def edit_template(self, name: str = "web", **template: Any) -> JSONObject:
        """Change fields of the group's template."""
        return await self.edit(name, leaderWorkerTemplate=template)

    async def replace_worker_template(self, template: JSONObject, name: str = "web") -> JSONObject:
        """Replace the whole template of workers."""
        path = "/spec/leaderWorkerTemplate/workerTemplate"
        return await self.patch([{"op": "replace", "path": path, "value": template}], name)

    async def scale(self, replicas: int, name: str = "web") -> JSONObject:
        """Set the number of groups through the scale subresource, as an autoscaler does."""
        scale = {"spec": {"replicas": replicas}}
        return await self.client.patch(LEADERWORKERSETS, self.key(name), scale, kind="merge", subresource="scale")

    async def get(self, resource: Resource, name: str, *, subresource: str = "") -> JSONObject:
        """Read an object."""
        return await self.client.get(resource, self.key(name), subresource=subresource)

    async def objects(self, resource: Resource) -> list[JSONObject]:
        """Read all objects of a kind."""
        return (await self.client.list(resource, namespace=self.namespace)).items

    async def uids(self, resource: Resource = PODS) -> dict[str, str]:
        """Return the UIDs of all objects of a kind by name."""
        return {meta.name(obj): meta.uid(obj) for obj in await self.objects(resource)}

    async def delete(
        self, name: str = "web", resource: Resource = LEADERWORKERSETS, *, propagation: Propagation | None = None
    ) -> None:
        """Delete an object."""
        await self.client.delete(resource, self.key(name), propagation=propagation)

    async def evict(self, pod: str) -> None:
        """Evict a pod, as draining a node does."""
        metadata = {"name": pod, "namespace": self.namespace}
        evictions = Resource("", "v1", f"pods/{pod}/eviction", "Eviction")
        await self.client.create(evictions, {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata})

    async def force(self, pod: str) -> None:
        """Remove a pod without waiting for its node, as `kubectl delete --force` does."""
        await self.client.delete(PODS, self.key(pod), grace_period=0)

    async def cordon(self, node: str, *, unschedulable: bool = True) -> None:
        """Exclude new pods from a node, or permit them again."""
        spec = {"spec": {"unschedulable": unschedulable}}
        await self.client.patch(NODES, ObjectKey("", node), spec, kind="merge")
