"""Runs managers for which an admission policy modifies pods."""

from typing import Any

from tests.kubernetes.admission import members
from tests.kubernetes.manager import installation
from tests.kubernetes.manager.replicas import Replica, until
from tests.kubernetes.manager.world import InstalledCluster

from kuberuntime.client.client import Client
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels
from leaderworkerset.core.policies import identity
from leaderworkerset.kinds.managedkinds import managed_kinds
from leaderworkerset.manager.config import configuration
from leaderworkerset.manager.config.configurationfile import opted_in


async def start_with(world: InstalledCluster, name: str, **settings: Any) -> Replica:
    """Start a manager with the permissions that its settings require."""
    document = {"apiVersion": configuration.API_VERSION, "kind": configuration.KIND, **settings}
    kinds = managed_kinds(configured=opted_in(configuration.decode(document)))
    await installation.install(world.client, world.balancer.port, kinds)
    return await world.start(name, **settings)


async def until_evaluated(client: Client, namespace: str, *, admits: bool = True) -> None:
    """Wait until the policy or, if `admits` is false, only the webhook admits pods.

    The policy concatenates the keys of leaders, and the webhook hashes them.
    """

    async def is_evaluated() -> bool:
        stored = await admitted_leader(client, namespace)
        return identity.is_joined(meta.labels(stored)[labels.GROUP_KEY]) == admits

    await until(is_evaluated)


async def admitted_leader(client: Client, namespace: str) -> JSONObject:
    """Return a leader as it would be stored."""
    template = {"spec": {"containers": [{"name": "main", "image": "app:1"}]}}
    spec = {"leaderWorkerTemplate": {"size": 1, "workerTemplate": template}}
    leader = members.leader_of({"metadata": {"name": "probe", "namespace": namespace}, "spec": spec}, 0)
    leader["metadata"]["namespace"] = namespace
    return await client.create(PODS, leader, dry_run=True)
