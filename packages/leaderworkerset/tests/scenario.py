"""The language of scenarios: the actions of users, autoscalers and administrators in one namespace of a cluster.

Each back end extends `Scenario` with its own way to fail containers and to wait: virtual time, the embedded cluster, or
Kubernetes. `test_scenario.py` lists the back ends and the verbs that all of them have.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from kuberuntime.client.client import Client
from kuberuntime.client.requests import PatchKind
from kuberuntime.errors import APIError, ConflictError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, NODES, PODS, SERVICES, STATEFULSETS, Resource
from kuberuntime.plan import Propagation
from leaderworkerset.api.resources import LEADERWORKERSETS

FILLED: Final = {"uid", "resourceVersion", "generation"}
"""The fields of metadata that the API server fills in."""

TOO_MANY_REQUESTS: Final = 429


class Scenario:
    """Requests in one namespace. Without a resource, they concern LeaderWorkerSets; without a name, the set `web`."""

    client: Client
    namespace: str
    limit = 60.0
    """The timeout in seconds of each condition."""
    poll = 0.2
    """The interval in seconds between two reads of a condition."""
    quiet = 3.0
    """The time in seconds without a write after which a cluster is at rest."""
    managed_resources: Sequence[Resource] = (LEADERWORKERSETS, STATEFULSETS, PODS, SERVICES, CONTROLLER_REVISIONS)
    """The kinds of objects that the manager writes, or that others write because of it."""

    def key(self, name: str) -> ObjectKey:
        """Return the key of an object of the namespace."""
        return ObjectKey(self.namespace, name)

    async def create(
        self, obj: JSONObject, resource: Resource = LEADERWORKERSETS, *, dry_run: bool = False
    ) -> JSONObject:
        """Create an object in the namespace, or return the result of a dry run."""
        return await self.client.create(resource, self._placed(obj), dry_run=dry_run)

    async def apply(self, obj: JSONObject, resource: Resource = LEADERWORKERSETS) -> JSONObject:
        """Create or change an object by a server-side apply, as `lws apply` does."""
        return await self.client.apply(resource, self._placed(obj), manager="tests")

    def _placed(self, obj: JSONObject) -> JSONObject:
        metadata = {name: value for name, value in obj["metadata"].items() if name not in FILLED}
        return obj | {"metadata": metadata | {"namespace": self.namespace}}

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

    async def fail(self, pod: str) -> None:
        """Make the first container of a running pod exit with an error. The kubelet restarts the container."""
        raise NotImplementedError

    async def evict(self, pod: str) -> bool:
        """Evict a pod. Return whether the eviction was granted or the pod no longer exists."""
        try:
            await self.request_eviction(pod)
        except NotFoundError:
            return True
        except APIError as error:
            if not isinstance(error, ConflictError) and error.code != TOO_MANY_REQUESTS:
                raise
            return False
        return True

    async def request_eviction(self, pod: str) -> None:
        """Evict a pod. Raise the error of the API server if the eviction is rejected."""
        metadata = {"name": pod, "namespace": self.namespace}
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        await self.client.create(PODS, eviction, subresource="eviction")

    async def pods_on(self, node: str) -> list[JSONObject]:
        """Read the pods of the namespace that are bound to a node."""
        return [pod for pod in await self.objects(PODS) if meta.spec(pod).get("nodeName") == node]

    async def drain(self, node: str) -> None:
        """Cordon a node, and request the eviction of each of its pods once."""
        await self.cordon(node)
        pods = [meta.name(pod) for pod in await self.pods_on(node) if not meta.is_deleting(pod)]
        await asyncio.gather(*map(self.evict, pods))

    async def force(self, pod: str) -> None:
        """Remove a pod without waiting for its node, as `kubectl delete --force` does."""
        await self.client.delete(PODS, self.key(pod), grace_period=0)

    async def cordon(self, node: str, *, unschedulable: bool = True) -> None:
        """Exclude new pods from a node, or permit them again."""
        spec = {"spec": {"unschedulable": unschedulable}}
        await self.client.patch(NODES, ObjectKey("", node), spec, kind="merge")

    async def until_objects(self, resource: Resource, holds: Callable[[list[JSONObject]], bool]) -> list[JSONObject]:
        """Wait until the objects of a kind satisfy the condition, and return them."""
        found: list[JSONObject] = []
        try:
            async with asyncio.timeout(self.limit):
                while not holds(found := await self.objects(resource)):  # noqa: ASYNC110 - Kubernetes has no event
                    await asyncio.sleep(self.poll)
                return found
        except TimeoutError:
            last = [(meta.name(one), meta.status(one)) for one in found]
            raise AssertionError(f"{resource.kind}s: the condition is false after {self.limit:.0f} s: {last}") from None

    async def versions(self) -> dict[str, str]:
        """Return the resource version of each object that a reconcile can write."""
        return {
            f"{resource.kind} {meta.name(obj)}": meta.resource_version(obj)
            for resource in self.managed_resources
            for obj in await self.objects(resource)
        }

    async def at_rest(self) -> None:
        """Wait until there has been no write for `quiet` seconds."""
        async with asyncio.timeout(self.limit + self.quiet):
            before: dict[str, str] | None = None
            while before != (before := await self.versions()):  # noqa: ASYNC110 - Kubernetes has no event
                await asyncio.sleep(self.quiet)
