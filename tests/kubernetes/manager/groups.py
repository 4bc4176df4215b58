"""Creates LeaderWorkerSets in a separate namespace, and checks that each of their objects exists once."""

import re
from collections import Counter
from dataclasses import dataclass

from testkit.clusters.kubernetes import restart_patch
from tests.integration.clusters import objects
from tests.kubernetes.manager.replicas import until
from tests.scenario import Scenario

from kuberuntime.client.client import Client
from kuberuntime.errors import NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import (
    CONTROLLER_REVISIONS,
    NAMESPACES,
    PODS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFULSETS,
    Resource,
)
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS


@dataclass(frozen=True)
class CheckedNamespace(Scenario):
    """A namespace, with methods that send requests and check results."""

    client: Client
    namespace: str

    async def open(self) -> "CheckedNamespace":
        """Create the namespace, and wait until pods can be created in it."""
        obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        await self.client.create(NAMESPACES, obj)
        await until(self._has_account)
        return self

    async def create_groups(self, name: str, *, replicas: int, size: int) -> JSONObject:
        """Create a LeaderWorkerSet."""
        return await self.create(objects.lws(name, replicas=replicas, size=size))

    async def forbid_statefulsets(self) -> None:
        """Set a quota that does not permit StatefulSets in the namespace."""
        quotas = Resource("", "v1", "resourcequotas", "ResourceQuota")
        metadata = {"name": "none", "namespace": self.namespace}
        spec = {"hard": {"count/statefulsets.apps": "0"}}
        await self.client.create(quotas, {"apiVersion": "v1", "kind": quotas.kind, "metadata": metadata, "spec": spec})

    async def ready_groups(self, name: str) -> int:
        """Return the number of ready groups in the status."""
        lws = await self.get(LEADERWORKERSETS, name)
        return int(meta.status(lws).get("readyReplicas") or 0)

    async def await_ready(self, name: str, replicas: int) -> None:
        """Wait until `count` groups are ready and the LeaderWorkerSet status reports it."""

        async def is_ready() -> bool:
            lws = await self.get(LEADERWORKERSETS, name)
            return (
                meta.status(lws).get("readyReplicas") == replicas
                and meta.status(lws).get("observedGeneration") == meta.generation(lws)
                and meta.is_condition_true(lws, "Available")
            )

        await until(is_ready)

    async def names(self, resource: Resource) -> list[str]:
        """Return the names of all objects of LeaderWorkerSets that have this kind."""
        listing = await self.client.list(resource, namespace=self.namespace, label_selector=labels.NAME)
        return sorted(meta.name(obj) for obj in listing.items)

    async def await_retired(self, count: int) -> None:
        """Wait until at most `count` revisions remain.

        The previous revision is deleted after its rollout is reported.
        """

        async def are_retired() -> bool:
            return len(await self._own_revisions()) <= count

        await until(are_retired)

    async def assert_whole(self, *names: str, replicas: int, size: int) -> None:
        """Assert that exactly the expected objects of these LeaderWorkerSets exist."""
        leaders = [f"{name}-{group}" for name in names for group in range(replicas)]
        workers = [f"{leader}-{rank}" for leader in leaders for rank in range(1, size)]
        assert await self.names(PODS) == sorted(leaders + workers)
        assert await self.names(STATEFULSETS) == sorted([*names, *leaders])
        assert await self.names(SERVICES) == sorted(names)
        assert len(await self._own_revisions()) == len(names)
        assert await self._changed_workers() == []

    async def fail(self, pod: str) -> None:
        """Make kwok report that the first container of a pod failed and restarted."""
        await self.client.patch(PODS, self.key(pod), restart_patch(await self.get(PODS, pod), 1), kind="merge")

    async def _own_revisions(self) -> list[str]:
        selector = f"{labels.NAME},!controller.kubernetes.io/hash"
        listing = await self.client.list(CONTROLLER_REVISIONS, namespace=self.namespace, label_selector=selector)
        return [meta.name(obj) for obj in listing.items]

    async def _changed_workers(self) -> list[str]:
        """Return worker StatefulSets that were written more than once. They must only be created (R-ARC-3)."""
        listing = await self.client.list(STATEFULSETS, namespace=self.namespace, label_selector=labels.GROUP_INDEX)
        return [meta.name(obj) for obj in listing.items if meta.generation(obj) != 1]

    async def _has_account(self) -> bool:
        try:
            await self.client.get(SERVICE_ACCOUNTS, ObjectKey(self.namespace, "default"))
        except NotFoundError:
            return False
        return True


async def space_with_groups(client: Client, namespace: str, *, replicas: int, size: int) -> CheckedNamespace:
    """Return a new namespace with the LeaderWorkerSet `web`, in which all groups are ready."""
    space = await CheckedNamespace(client, namespace).open()
    await space.create_groups("web", replicas=replicas, size=size)
    await space.await_ready("web", replicas)
    return space


def counter(text: str, name: str) -> Counter[str]:
    """Return the samples of a metric by label."""
    found: Counter[str] = Counter()
    for line in text.splitlines():
        match = re.fullmatch(rf"{name}(\{{.*\}})? (\S+)", line)
        if match:
            found[match[1] or ""] = int(float(match[2]))
    return found
