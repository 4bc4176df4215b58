"""Runs a dashboard in the same way as `lws dashboard`, with an in-memory API server."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
from tests.disaggregated import disaggregatedset_object, role
from tests.integration.clusters import objects

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response, StreamResponse
from kuberuntime.clock import SystemClock
from kuberuntime.errors import ConnectionFailedError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES, PODS, Resource
from kuberuntime.serving.bindaddresses import Address
from leaderworkerset.api import labels
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS
from leaderworkerset.core.disaggregatedset.rolehash import revision_of
from leaderworkerset.core.disaggregatedset.roleset import RolePlace
from leaderworkerset.kinds.managedkinds import MANAGED
from localkube.apiserver import builtin
from localkube.apiserver.custom.customresource import kind_from_crd
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.server import ApiServer
from localkube.apiserver.storage.store import Store
from lwsctl.dashboard.livemodel import LiveModel
from lwsctl.dashboard.loginsessions import LoginRejectedError
from lwsctl.dashboard.pages.header import ClusterIdentity
from lwsctl.dashboard.webserver import Dashboard, serve_local, serve_shared
from lwsctl.diagnosis.observed import Commands

NAMESPACE: Final = "default"
LIMIT: Final = 120.0
"""The timeout for all conditions in seconds."""

NODE: Final = "node-0"
UP: Final = {
    "conditions": [{"type": "Ready", "status": "True"}],
    "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"},
}
AVAILABLE: Final = {
    "type": "Available",
    "status": "True",
    "reason": "x",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
READY: Final = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


@dataclass
class CommandLog:
    """Replaces `lws` in actions, and records command lines."""

    calls: list[list[str]] = field(default_factory=list)

    async def __call__(self, arguments: Sequence[str]) -> tuple[bool, str]:
        self.calls.append(list(arguments))
        return True, f"web scaled: {'dry run' if '--dry-run' in arguments else 'done'}"


@dataclass
class ServedDashboard:
    """A running dashboard with its API server."""

    client: Client
    model: LiveModel
    dashboard: Dashboard
    runner: CommandLog | None
    transport: "OddTransport"

    @property
    def base(self) -> str:
        """Return the address of the first page."""
        return f"http://127.0.0.1:{self.dashboard.port}{self.dashboard.request_checks.base}"

    @property
    def states(self) -> dict[str, str]:
        """Return the state of each pod in the latest snapshot."""
        views = self.model.snapshot.views
        return {rank.pod: rank.state for view in views for group in view.groups for rank in group.ranks}

    async def shows(self, **states: str) -> None:
        """Wait until the snapshot contains these pod states. Pod names contain `_` instead of `-`."""
        wanted = {name.replace("_", "-"): state for name, state in states.items()}
        await until(lambda: self.states | wanted == self.states, f"{wanted}")

    async def put_set(
        self,
        name: str = "web",
        *,
        replicas: int = 2,
        size: int = 2,
        ready: int | None = None,
        image: str = "app:1",
        **metadata: Any,
    ) -> None:
        """Create a LeaderWorkerSet with its pods. All groups, or this number of groups, are ready."""
        done = replicas if ready is None else ready
        placed = objects.lws(name, replicas=replicas, size=size, image=image) | _place(name, **metadata)
        made = await self.client.create(LEADERWORKERSETS, placed)
        await self.put_status(made, done)
        for group in range(replicas):
            for rank in range(size):
                await self.put_pod(name, group, rank, is_ready=group < done)

    async def put_whole(self, name: str, roles: Mapping[str, int], *, size: int) -> None:
        """Create a DisaggregatedSet with a LeaderWorkerSet for each role, which has this number of ready groups."""
        entries = [role(one, count, size=size) for one, count in roles.items()]
        whole = disaggregatedset_object(entries, name=name) | _place(name)
        made = await self.client.create(DISAGGREGATED_SETS, whole)
        owner = {"apiVersion": made["apiVersion"], "kind": made["kind"], "name": name, "uid": meta.uid(made)}
        for one, count in roles.items():
            place = RolePlace(name, 0, revision_of(made["spec"]["roles"]), one)
            owners = [owner | {"controller": True}]
            await self.put_set(place.name, replicas=count, size=size, labels=dict(place.labels), ownerReferences=owners)
        status = {
            "observedGeneration": meta.generation(made),
            "roleStatuses": [{"name": one, "updatedReplicas": count} for one, count in roles.items()],
            "conditions": [AVAILABLE],
        }
        change = {"status": status}
        await self.client.patch(
            DISAGGREGATED_SETS, meta.key(made), change, kind="merge", subresource="status", manager="test"
        )

    async def put_status(self, lws: JSONObject, ready: int) -> None:
        """Write the status of a LeaderWorkerSet."""
        desired = lws["spec"]["replicas"]
        available = AVAILABLE | {"status": "True" if ready >= desired else "False"}
        status = {
            "replicas": desired,
            "readyReplicas": ready,
            "updatedReplicas": desired,
            "observedGeneration": meta.generation(lws),
            "conditions": [available],
        }
        change = {"status": status}
        await self.client.patch(
            LEADERWORKERSETS, meta.key(lws), change, kind="merge", subresource="status", manager="test"
        )

    async def put_pod(self, name: str, group: int, rank: int, *, is_ready: bool = True, **container: Any) -> None:
        """Create one pod. Additional arguments are container fields."""
        pod_name = f"{name}-{group}" + (f"-{rank}" if rank else "")
        own = {
            labels.NAME: name,
            labels.GROUP_INDEX: str(group),
            labels.WORKER_INDEX: str(rank),
            labels.TEMPLATE_REVISION_HASH: "r1",
        }
        spec = objects.pod_template()["spec"] | {"nodeName": NODE}
        spec["containers"][0] |= container
        pod = {"apiVersion": "v1", "kind": "Pod", "spec": spec} | _place(pod_name, labels=own)
        await self.client.create(PODS, pod)
        await self.set_pod(pod_name, READY if is_ready else {"phase": "Pending"})

    async def set_pod(self, name: str, status: JSONObject) -> None:
        """Write the status of a pod."""
        key = ObjectKey(NAMESPACE, name)
        await self.client.patch(PODS, key, {"status": status}, kind="merge", subresource="status", manager="test")

    async def crash(self, name: str, code: int = 3, message: str = "out of luck", *, restarts: int = 3) -> None:
        """Make the container of a pod crash repeatedly."""
        ended = {
            "terminated": {
                "exitCode": code,
                "reason": "Error",
                "message": message,
                "finishedAt": "2026-01-01T00:00:00Z",
            }
        }
        state = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed container"}}
        status = {
            "name": "main",
            "restartCount": restarts,
            "ready": False,
            "image": "app:1",
            "imageID": "",
            "state": state,
        }
        unready = {"type": "Ready", "status": "False"}
        running = {"phase": "Running", "conditions": [unready], "containerStatuses": [status | {"lastState": ended}]}
        await self.set_pod(name, running)

    @asynccontextmanager
    async def browser(self) -> AsyncIterator[aiohttp.ClientSession]:
        """Open the link in the same way as a browser. Yield a session with its cookie."""
        jar = aiohttp.CookieJar(unsafe=True)  # the address has no host name
        async with aiohttp.ClientSession(cookie_jar=jar, connector=aiohttp.TCPConnector(limit=0)) as session:
            async with session.get(self.dashboard.link) as response:
                assert response.status == 200, await response.text()
            yield session

    async def text(self, session: aiohttp.ClientSession, path: str = "", *, status: int = 200) -> str:
        """Return a page."""
        async with session.get(self.base + path) as response:
            assert response.status == status, (path, response.status)
            return await response.text()


@dataclass
class Tokens:
    """The cluster of a shared dashboard, with the user of each token, and the commands that each user ran."""

    users: dict[str, str] = field(default_factory=lambda: {"token-of-ann": "ann", "token-of-bob": "bob"})
    runners: dict[str, CommandLog] = field(default_factory=dict)

    async def admit(self, token: str) -> str:
        """Return the user for a token."""
        if token not in self.users:
            raise LoginRejectedError("The API server rejected this token. The token might have expired.")
        return self.users[token]

    def runner(self, token: str) -> CommandLog:
        """Return the function that runs commands as a user."""
        return self.runners.setdefault(self.users[token], CommandLog())


@asynccontextmanager
async def open_house(
    *, actions: bool = False, tokens: Tokens | None = None, seconds: float = LIMIT
) -> AsyncIterator[ServedDashboard]:
    """Serve a dashboard of all namespaces for at most this time. If there are tokens, it is shared."""
    async with asyncio.timeout(seconds), api_server() as transport:
        serve = serving(transport, CommandLog() if actions else None) if tokens is None else sharing(transport, tokens)
        async with serve as house:
            yield house


@asynccontextmanager
async def api_server() -> AsyncIterator["OddTransport"]:
    """Run an in-memory API server with one node. Yield a transport to it."""
    kinds = [*builtin.kinds(), *map(kind_from_crd, MANAGED.definitions())]
    server = ApiServer(Store(), kinds, SystemClock())
    await server.start()
    try:
        transport = OddTransport(server)
        client = Client(transport)
        await client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
        await client.patch(
            NODES, ObjectKey("", NODE), {"status": UP}, kind="merge", subresource="status", manager="test"
        )
        yield transport
    finally:
        await server.close()


class OddTransport(InProcessTransport):
    """Rejects node lists unless they are permitted, and returns unusual responses for these paths."""

    def __init__(self, server: ApiServer) -> None:
        super().__init__(server, "test")
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.is_down = False
        """Whether requests fail, and open streams lose their connection without notice."""
        self.seconds = 0.0
        """The duration of each request."""
        self.odd: Resource | None = None
        self.said = b""
        """The log of each container. If it is empty, logs cannot be read because no node is running."""
        self.logs: dict[str, bytes] = {}
        """The logs of these pods, which replace the log of each container."""

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        said = self.logs.get(request.path.split("/")[-2], self.said) if request.path.endswith("/log") else b""
        if said and request.path.split("/")[-2] in self.logs and ("timestamps", "true") not in request.query:
            said = b"".join(line.partition(b" ")[2] for line in said.splitlines(keepends=True))
        if said:
            yield StreamResponse(200, {}, _pieces(said))
            return
        self._fail_if_down()
        async with super().stream(request) as response:
            yield StreamResponse(response.status, response.headers, self._while_up(response.chunks))

    async def _while_up(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            if self.is_down:
                await asyncio.Event().wait()
            yield chunk

    def _fail_if_down(self) -> None:
        if self.is_down:
            raise ConnectionFailedError("connection refused")

    async def request(self, request: Request) -> Response:
        self._fail_if_down()
        await asyncio.sleep(self.seconds)
        if request.path == NODES.path():
            await self.may_answer.wait()
        if self.odd is not None and request.path.endswith(f"/{self.odd.plural}"):
            return Response(200, {}, b'{"metadata": {}, "items": [{"metadata": 1}]}')
        return await super().request(request)


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    yield content


@asynccontextmanager
async def serving(transport: OddTransport, runner: CommandLog | None = None) -> AsyncIterator[ServedDashboard]:
    """Serve a dashboard in the same way as the command."""
    client = Client(transport)
    model = LiveModel(client, "", Commands())
    async with serve_local(model, runner, 0) as dashboard:
        yield ServedDashboard(client, model, dashboard, runner, transport)


@asynccontextmanager
async def sharing(transport: OddTransport, tokens: Tokens) -> AsyncIterator[ServedDashboard]:
    """Serve a shared dashboard in the same way as the command with --listen."""
    client = Client(transport)
    model = LiveModel(client, "", Commands())
    async with serve_shared(model, tokens, Address("127.0.0.1", 0), ClusterIdentity(cluster="west-1")) as dashboard:
        yield ServedDashboard(client, model, dashboard, None, transport)


async def until(check: Any, what: str) -> None:
    """Wait until a check succeeds."""
    for _ in range(int(LIMIT / 0.05)):
        if check():
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"not in {LIMIT} s: {what}")


def topic(path: str, ident: str = "") -> dict[str, str]:
    """Return the query parameters with which a stream starts to follow a page or logs."""
    return {"key": "1", "of": path, "from": ident}


def events(chunks: Iterable[bytes]) -> list[tuple[str, str]]:
    """Return the names and data of the events in a stream. Omit the first event, which contains its number."""
    found = []
    for block in b"".join(chunks).decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line and not line.startswith(":"))
        if "event" in lines and lines["event"] != "opened":
            found.append((lines["event"], lines["data"]))
    return found


def _place(name: str, **metadata: Any) -> JSONObject:
    return {"metadata": {"name": name, "namespace": NAMESPACE} | metadata}
