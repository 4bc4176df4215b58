"""Provides the parts of the product that the simulation runs. No other module of this package builds them."""

from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Final

import msgspec
from testkit.virtualtime import SingleThreadLoop, VirtualClock, run
from tests.simulation.webhooks import InProcessWebhooks

from kuberuntime.client.client import Client
from kuberuntime.client.fence import FencedTransport
from kuberuntime.client.transport import Transport
from kuberuntime.clock import Clock
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from kuberuntime.serving.leaderelection import ElectionSettings, LeaderElection
from leaderworkerset.controllers.instruments import NO_INSTRUMENTS, Instruments
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.kinds.registry import Registry
from leaderworkerset.manager.controllers import Controllers
from leaderworkerset.manager.lwsmanager import INSTALLER
from leaderworkerset.webhooks import configurations, review
from localkube.apiserver import builtin
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.server import ApiServer
from localkube.apiserver.storage.store import Change, Store

WEBHOOK_HOST: Final = "webhooks.simulated"
LEASE: Final = ObjectKey("default", "lws")


def webhooks(kinds: Registry = MANAGED) -> InProcessWebhooks:
    """Return the webhooks of the product."""
    decisions = kinds.decisions
    return InProcessWebhooks(
        WEBHOOK_HOST, decisions, lambda path, body: review.respond_to_review(body, decisions[path])
    )


def _installation(kinds: Registry) -> list[tuple[Resource, JSONObject]]:
    at = configurations.at_url(f"https://{WEBHOOK_HOST}", b"")
    return [
        *((CUSTOM_RESOURCE_DEFINITIONS, one) for one in kinds.definitions()),
        *configurations.build_configurations(kinds.webhooks, at),
    ]


async def install(client: Client, kinds: Registry = MANAGED) -> None:
    """Create the kinds of the product, and register its webhooks with the API server."""
    for resource, obj in _installation(kinds):
        await client.apply(resource, obj, manager=INSTALLER)


_INSTALLED: Final[dict[bytes, Sequence[Change]]] = {}
"""The objects that each installation creates, by installation."""


async def restore(server: ApiServer, kinds: Registry) -> None:
    """Store the objects of an installation with UIDs of this server."""
    for change in _installed(kinds):
        own = change.object["metadata"] | {"uid": server.backend.identities.uid()}
        server.backend.store.create(change.key, change.object | {"metadata": own})
        await server.backend.store.wait_committed()


def _installed(kinds: Registry) -> Sequence[Change]:
    """Build the objects of an installation only once, because this takes longer than most scenarios.

    A thread builds them in a separate loop, so that the first simulation of a process has the same times as later ones.
    """
    if (key := _key(kinds)) not in _INSTALLED:
        with ThreadPoolExecutor(1) as thread:
            _INSTALLED[key] = thread.submit(run, _stored(VirtualClock(), kinds), SingleThreadLoop).result()
    return _INSTALLED[key]


def _key(kinds: Registry) -> bytes:
    return msgspec.json.encode([obj for _, obj in _installation(kinds)])


async def _stored(clock: Clock, kinds: Registry) -> Sequence[Change]:
    changes = list[Change]()
    server = ApiServer(Store(), builtin.kinds(), clock)
    await server.start()
    server.backend.store.subscribe(changes.extend)
    await install(Client(InProcessTransport(server, "scenario")), kinds)
    await server.close()
    # omit the updates with which the server accepts the names of the definitions
    return [change for change in changes if change.type == "ADDED"]


class _Silence:
    """Ignores changes of the leader."""

    def leading(self, *, is_leader: bool) -> None: ...


async def run_manager(
    transport: Transport, clock: Clock, name: str, begins: Callable[[], None], *, elected: bool, kinds: Registry
) -> None:
    """Run one manager replica until it is cancelled. With leader election, the replica uses the lease and the fence.

    `begins` is called whenever its controllers start, with empty caches.
    """

    async def work(client: Client) -> None:
        begins()
        await Controllers(kinds, client, clock=clock, instance=name).run()

    if not elected:
        await work(Client(transport))
        return
    election = LeaderElection(Client(transport), ElectionSettings(LEASE, name), clock, _Silence())
    fenced = Client(FencedTransport(transport, election))
    await election.run(lambda: work(fenced))


@asynccontextmanager
async def controllers(
    client: Client, clock: Clock, instruments: Instruments = NO_INSTRUMENTS, kinds: Registry = MANAGED
) -> AsyncIterator[None]:
    """Run the controllers within the `with` block, after their caches are filled."""
    running = Controllers(kinds, client, clock=clock, instance="test", instruments=instruments)
    async with running.running():
        yield
