"""Tests pods of exhausted groups if the operator runs no manager, on the embedded API server."""

from collections.abc import Awaitable, Callable, Sequence

from testkit.virtualtime import VirtualClock, run
from tests import builders
from tests.permissions import missing, needs_of

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response
from kuberuntime.controller.executor import Executor, NoEvents
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, PODS
from kuberuntime.plan import Plan
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.restarts.retention import FINALIZER
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.operator.operatorcontroller import LATER, SOON, RetainedPodReleaser
from localkube.apiserver import builtin
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.server import ApiServer
from localkube.apiserver.storage.store import Store


class Heard(InProcessTransport):
    """Records the requests."""

    asked: Sequence[Request] = ()

    async def request(self, request: Request) -> Response:
        self.asked = (*self.asked, request)
        return await super().request(request)


class AbandonedObjects:
    """An API server with a namespace, and the component of the operator that releases pods."""

    def __init__(self, server: ApiServer) -> None:
        self.client = Client(InProcessTransport(server, "tests"))
        self.operator = Heard(server, "operator")
        own = Client(self.operator)
        self.evidence, self._executor = RetainedPodReleaser(own), Executor(own, NoEvents(), VirtualClock())

    async def release(self) -> Plan:
        plan = await self.evidence.release()
        await self._executor.execute(plan)
        return plan

    async def keep(
        self, name: str, *, of: str, is_leader: bool = True, finalizer: str = FINALIZER, namespace: str = "default"
    ) -> None:
        """Create a terminated pod of a LeaderWorkerSet that has a finalizer."""
        marks = {labels.GROUP_RESTART_BUDGET_EXHAUSTED: "true"} if is_leader else {}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": {labels.NAME: of}, "annotations": marks,
                         "finalizers": [finalizer]},
            "spec": {"containers": [{"name": "main", "image": "app:1"}]},
        }  # fmt: skip
        await self.client.create(PODS, pod)
        await self.client.delete(PODS, ObjectKey(namespace, name), grace_period=0)

    async def left(self) -> set[str]:
        return {meta.name(pod) for pod in (await self.client.list(PODS)).items}


def at_a_site(scenario: Callable[[AbandonedObjects], Awaitable[None]]) -> None:
    async def body() -> None:
        server = ApiServer(Store(), builtin.kinds(), VirtualClock())
        await server.start()
        site = AbandonedObjects(server)
        for definition in MANAGED.definitions():
            await site.client.apply(CUSTOM_RESOURCE_DEFINITIONS, definition, manager="tests")
        await scenario(site)
        await server.close()

    run(body())


def lws(name: str, namespace: str = "default") -> JSONObject:
    obj = builders.leaderworkerset_object(name)
    return obj | {"metadata": {"name": name, "namespace": namespace}}


def test_pods_of_deleted_sets_are_released() -> None:
    """The manager has the permissions. Retained pods are rechecked soon (N-RB-16)."""

    async def scenario(site: AbandonedObjects) -> None:
        await site.client.create(LEADERWORKERSETS, lws("there"))
        await site.keep("there-0", of="there")
        await site.keep("gone-0", of="gone")
        await site.keep("gone-0-1", of="gone", is_leader=False)
        await site.keep("theirs", of="gone", finalizer="example.com/theirs")

        plan = await site.release()

        assert await site.left() == {"there-0", "theirs"}
        assert plan.requeue_after == SOON
        needs = (need for request in site.operator.asked for need in needs_of(request))
        assert missing(MANAGED.permissions, needs) == []

        await site.client.delete(LEADERWORKERSETS, ObjectKey("default", "there"))
        await site.release()
        assert await site.left() == {"theirs"}
        assert await site.release() == Plan(requeue_after=LATER)

    at_a_site(scenario)


def test_pods_of_terminating_namespaces_are_released() -> None:
    """LeaderWorkerSets in such a namespace remain as long as their pods.

    Without the CRD, there are none (N-RB-16).
    """

    async def scenario(site: AbandonedObjects) -> None:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ending"}}
        await site.client.create(NAMESPACES, namespace)
        await site.client.create(LEADERWORKERSETS, lws("there", "ending"))
        await site.keep("there-0", of="there", namespace="ending")
        await site.release()
        assert await site.left() == {"there-0"}
        await site.client.delete(NAMESPACES, ObjectKey("", "ending"))
        await site.release()
        assert await site.left() == set()

    at_a_site(scenario)

    async def without(site: AbandonedObjects) -> None:
        await site.keep("gone-0", of="gone")
        for resource in MANAGED.custom_resources:
            await site.client.delete(CUSTOM_RESOURCE_DEFINITIONS, ObjectKey("", resource.group_resource))
        await site.release()
        assert await site.left() == set()

    at_a_site(without)
