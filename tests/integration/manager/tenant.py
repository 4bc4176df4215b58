"""A tenant with the role `edit` in one namespace, and with revisions, which some grant; who stores hostile objects, and what is asked of another tenant's set."""

import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

import msgspec
from deploy.packages import userroles
from tests.integration.clusters import objects
from tests.integration.clusters.cluster import transport
from tests.integration.clusters.kubernetes import KubernetesCluster
from tests.integration.manager import hostile
from tests.integration.manager.groups import Space
from tests.integration.manager.replicas import Replica, until
from tests.integration.manager.world import World

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request
from kuberuntime.errors import APIError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import (
    CLUSTER_ROLES,
    CONTROLLER_REVISIONS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    Resource,
)
from leaderworkerset.api import metadata
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.kinds.managed import MANAGED

ACCOUNT: Final = "default"
LATER: Final = 0.5
"""The share of objects that get our labels only after their creation, when no webhook looks at them."""

KEPT: Final = 100
"""Objects that are there at the same time; earlier ones are deleted."""

LONGEST: Final = 120.0
"""Seconds in which a rollout of one set ends on a busy machine."""


@dataclass
class Tenant:
    """The attacker: what was `tried`, how much of each kind was `stored`, and what the API server `refused`."""

    space: Space
    client: Client
    chance: Random
    tried: int = 0
    stored: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)

    async def attack(self, at_once: int = 4) -> None:
        """Store objects until this is cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(self._store())

    async def _store(self) -> None:
        kept: list[tuple[Resource, ObjectKey]] = []
        while True:
            self.tried += 1
            resource, obj = hostile.make(self.chance, self.space.namespace, self.tried)
            try:
                await self._create(resource, obj)
                self.stored[resource.plural] += 1
                kept.append((resource, meta.key(obj)))
                if self.chance.random() < 0.2:
                    await self._scale()
                if len(kept) > KEPT:
                    await self.client.delete(*kept.pop(self.chance.randrange(KEPT)))
            except APIError as error:
                self.refused[f"{resource.plural}: {error}"[:200]] += 1

    async def _create(self, resource: Resource, obj: JSONObject) -> None:
        if resource != PODS or self.chance.random() > LATER:
            await self.client.create(resource, obj)
            return
        whole = meta.metadata(obj)
        plain = {name: value for name, value in whole.items() if name not in {"labels", "annotations"}}
        await self.client.create(resource, obj | {"metadata": plain})
        added = {"metadata": {name: whole[name] for name in ("labels", "annotations")}}
        await self.client.patch(resource, meta.key(obj), added, kind="merge")

    async def _scale(self) -> None:
        """Scale a set to and fro, as an autoscaler without stabilisation does."""
        key = ObjectKey(self.space.namespace, f"s{self.chance.randrange(self.tried + 1)}")
        patch = {"spec": {"replicas": self.chance.randrange(2)}}
        await self.client.patch(LEADERWORKERSETS, key, patch, kind="merge", subresource="scale")


async def admit(world: World, namespace: str, seed: int) -> Tenant:
    """Make a namespace, and give its account the role `edit` there, with what is installed for users."""
    space = Space(world.client, namespace)
    await space.open()
    for resource, obj in userroles.build(MANAGED):
        await world.client.apply(resource, obj, manager="tests")

    async def is_aggregated() -> bool:
        return LEADERWORKERSETS.plural in str(await world.client.get(CLUSTER_ROLES, ObjectKey("", "edit")))

    await until(is_aggregated)
    rules = [{"apiGroups": ["apps"], "resources": [CONTROLLER_REVISIONS.plural], "verbs": ["*"]}]
    await world.client.create(ROLES, metadata.build(ROLES, "revisions", namespace, rules=rules))
    subjects = [{"kind": SERVICE_ACCOUNTS.kind, "name": ACCOUNT, "namespace": namespace}]
    for kind, name in ((CLUSTER_ROLES, "edit"), (ROLES, "revisions")):
        role = {"apiGroup": kind.group, "kind": kind.kind, "name": name}
        binding = metadata.build(ROLE_BINDINGS, name, namespace, subjects=subjects, roleRef=role)
        await world.client.create(ROLE_BINDINGS, binding)
    kubeconfig = world.directory / f"{namespace}.kubeconfig"
    config = json.loads(Path(world.plane.kubeconfig).read_text())
    config["users"] = [{"name": "admin", "user": {"token": await _token(world.client, namespace)}}]
    kubeconfig.write_text(json.dumps(config))
    return Tenant(space, Client(transport(KubernetesCluster(kubeconfig), "tenant")), Random(seed))


async def _token(client: Client, namespace: str) -> str:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
    path = SERVICE_ACCOUNTS.path(namespace, ACCOUNT, "token")
    answer = await client.send(
        Request("POST", path, (), {"content-type": "application/json"}, msgspec.json.encode(body))
    )
    return str(msgspec.json.decode(answer.body)["status"]["token"])


async def roll(space: Space, name: str, replicas: int, image: str, manager: Replica) -> float:
    """Give a set another image; return after how many seconds all its groups have it and are ready."""
    begun = time.monotonic()
    key = ObjectKey(space.namespace, name)
    template = {"workerTemplate": objects.pod_template(image)}
    patch = {"spec": {"leaderWorkerTemplate": template}}
    generation = meta.generation(await space.client.patch(LEADERWORKERSETS, key, patch, kind="merge"))

    async def is_over() -> bool:
        status = meta.status(await space.client.get(LEADERWORKERSETS, key))
        return (
            status.get("observedGeneration") == generation
            and status.get("updatedReplicas") == status.get("readyReplicas") == replicas
        )

    await until(is_over, manager, seconds=LONGEST)
    return time.monotonic() - begun
