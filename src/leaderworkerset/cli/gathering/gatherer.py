"""Reads the data that help to diagnose an installation or its groups, and passes them to a writer.

Nothing is changed. What may not be read is noted and skipped, as an incomplete collection is better than none; kinds that
are not served are listed.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request
from kuberuntime.errors import KubeError, NotFoundError
from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    EVENTS,
    LEASES,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    NAMESPACES,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFULSETS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from leaderworkerset.api import labels
from leaderworkerset.cli.gathering.layout import log_place
from leaderworkerset.install.foreign import CERTIFICATES, ISSUERS, SERVICE_MONITORS
from leaderworkerset.kinds.managed import MANAGED
from leaderworkerset.operator.operatornames import OPERATORS

OLM: Final = "operators.coreos.com"
OF_NAMESPACE: Final = (
    DEPLOYMENTS,
    PODS,
    SERVICES,
    CONFIG_MAPS,
    SECRETS,
    SERVICE_ACCOUNTS,
    ROLES,
    ROLE_BINDINGS,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    LEASES,
    EVENTS,
    ISSUERS,
    CERTIFICATES,
    SERVICE_MONITORS,
    Resource(OLM, "v1alpha1", "clusterserviceversions", "ClusterServiceVersion"),
    Resource(OLM, "v1alpha1", "subscriptions", "Subscription"),
    Resource(OLM, "v1alpha1", "installplans", "InstallPlan"),
    Resource(OLM, "v1", "operatorgroups", "OperatorGroup"),
)
"""The kinds of which all objects in the namespaces of manager and operator are read."""

OF_CLUSTER: Final = (
    OPERATORS,
    CUSTOM_RESOURCE_DEFINITIONS,
    CLUSTER_ROLES,
    CLUSTER_ROLE_BINDINGS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
"""The kinds of which objects with our names are read; of webhook configurations all, since others may be the cause."""

OF_GROUPS: Final = (STATEFULSETS, SERVICES, CONTROLLER_REVISIONS, PODS)
NAMED: Final = ("lws", "leaderworkerset", "disaggregatedset")
WHOLE: Final = (OPERATORS, MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS)
LOG_BYTES: Final = 10 * 1024 * 1024
"""The maximum bytes of a log, from its end."""

Write: TypeAlias = Callable[[Resource, JSONObject], None]


@dataclass
class Gatherer:
    """Gathers the data of one cluster; `notes` lists what could not be read, `unserved` the kinds that are not there."""

    client: Client
    write: Write
    write_log: Callable[[str, bytes], None]
    notes: list[str] = field(default_factory=list)
    unserved: set[str] = field(default_factory=set)

    async def gather(self, namespaces: Sequence[str]) -> None:
        """Gather the installation in these namespaces, and all workloads."""
        for kind in OF_CLUSTER:
            async for obj in self._list(kind):
                if kind in WHOLE or any(word in meta.name(obj) for word in NAMED):
                    self.write(kind, obj)
        for namespace in namespaces:
            await self._namespace(namespace)
        for kind in MANAGED.defined:
            async for obj in self._list(kind):
                self.write(kind, obj)
        for kind in OF_GROUPS:
            async for obj in self._list(kind, selector=labels.NAME):
                self.write(kind, obj)

    async def _namespace(self, namespace: str) -> None:
        async for obj in self._list(NAMESPACES, name=namespace):
            self.write(NAMESPACES, obj)
        for kind in OF_NAMESPACE:
            async for obj in self._list(kind, namespace):
                self.write(kind, obj)
                if kind == PODS:
                    await self._logs(obj)

    async def _list(
        self, kind: Resource, namespace: str = "", *, selector: str = "", name: str = ""
    ) -> AsyncIterator[JSONObject]:
        fields = f"metadata.name={name}" if name else ""
        try:
            found = await self.client.list(kind, namespace=namespace, label_selector=selector, field_selector=fields)
        except NotFoundError:
            self.unserved.add(kind.group_resource)
            return
        except KubeError as error:
            self.notes.append(f"{kind.group_resource}{f' in {namespace}' if namespace else ''}: {error}")
            return
        for obj in found.items:
            yield obj

    async def _logs(self, pod: JSONObject) -> None:
        for status in podstate.container_statuses(pod):
            await self._log(pod, status["name"], previous=False)
            if status.get("restartCount"):
                await self._log(pod, status["name"], previous=True)

    async def _log(self, pod: JSONObject, container: str, *, previous: bool) -> None:
        query = (("container", container), ("limitBytes", str(LOG_BYTES)), ("timestamps", "true"))
        more = (("previous", "true"),) if previous else ()
        path = PODS.path(meta.namespace(pod), meta.name(pod), "log")
        target = log_place(pod, container, previous=previous)
        try:
            answer = await self.client.send(Request("GET", path, (*query, *more)))
        except KubeError as error:
            self.notes.append(f"{target}: {error}")
        else:
            self.write_log(str(target), answer.body)
