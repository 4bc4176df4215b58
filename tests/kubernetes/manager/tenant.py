"""Provides a tenant with the `edit` role and additional permissions in one namespace, and another tenant."""

import json
import time
from pathlib import Path
from random import Random
from typing import Final

import msgspec
from deploy.packages import userroles
from testkit.clusters.kubernetes import KubernetesCluster
from tests import attacker
from tests.attacker import Attacker
from tests.integration.clusters import objects
from tests.kubernetes.manager.groups import CheckedNamespace
from tests.kubernetes.manager.replicas import Replica, until
from tests.kubernetes.manager.world import InstalledCluster

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request
from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import (
    CLUSTER_ROLES,
    CONTROLLER_REVISIONS,
    EVENTS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
)
from leaderworkerset.api import metadata
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.gang.native import ALPHA_POD_GROUPS
from leaderworkerset.kinds.managedkinds import MANAGED

ACCOUNT: Final = "default"
GRANTED: Final = (
    *((one, one.plural) for one in (CONTROLLER_REVISIONS, EVENTS, ALPHA_POD_GROUPS)),
    *((one, f"{one.plural}/status") for one in attacker.WITH_STATUS),
)
"""Permissions that some administrators grant in addition to the `edit` role."""

LONGEST: Final = 120.0
"""The timeout in seconds for the rollout of one LeaderWorkerSet on a busy machine."""


async def admit(world: InstalledCluster, namespace: str, seed: int) -> Attacker:
    """Create a namespace, and grant its account the `edit` role in it, with the installed user roles."""
    await CheckedNamespace(world.client, namespace).open()
    for resource, obj in userroles.build(MANAGED):
        await world.client.apply(resource, obj, manager="tests")

    async def is_aggregated() -> bool:
        return LEADERWORKERSETS.plural in str(await world.client.get(CLUSTER_ROLES, ObjectKey("", "edit")))

    await until(is_aggregated)
    rules = [{"apiGroups": [one.group], "resources": [name], "verbs": ["*"]} for one, name in GRANTED]
    await world.client.create(ROLES, metadata.build(ROLES, "granted", namespace, rules=rules))
    subjects = [{"kind": SERVICE_ACCOUNTS.kind, "name": ACCOUNT, "namespace": namespace}]
    for kind, name in ((CLUSTER_ROLES, "edit"), (ROLES, "granted")):
        role = {"apiGroup": kind.group, "kind": kind.kind, "name": name}
        binding = metadata.build(ROLE_BINDINGS, name, namespace, subjects=subjects, roleRef=role)
        await world.client.create(ROLE_BINDINGS, binding)
    kubeconfig = world.directory / f"{namespace}.kubeconfig"
    config = json.loads(Path(world.plane.kubeconfig).read_text())
    config["users"] = [{"name": "admin", "user": {"token": await _token(world.client, namespace)}}]
    kubeconfig.write_text(json.dumps(config))
    return Attacker(Client(KubernetesCluster(kubeconfig).transport("tenant")), namespace, Random(seed))


async def _token(client: Client, namespace: str) -> str:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
    path = SERVICE_ACCOUNTS.path(namespace, ACCOUNT, "token")
    answer = await client.send(
        Request("POST", path, (), {"content-type": "application/json"}, msgspec.json.encode(body))
    )
    return str(msgspec.json.decode(answer.body)["status"]["token"])


async def roll(space: CheckedNamespace, name: str, replicas: int, image: str, manager: Replica) -> float:
    """Change the image of a LeaderWorkerSet. Return the time in seconds until all groups have it and are ready."""
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
