"""Counts the manager's function calls for one event, request or review, which do not depend on the machine.

    python -m bench.manager calls

Calls of functions in Python and C are counted (`sys.setprofile`), from the socket on and TLS included. An event is
counted until its pod is in the cache. A request is a creation, from the client to the socket. The reviews are about
pods: one webhook completes them, and another one allows them. The API server runs in a separate thread, which is not
counted.
"""

import asyncio
import ssl
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Final

import msgspec
from aiohttp import ClientSession, web
from bench.record import report
from testkit import certificates
from tests import builders

from kuberuntime.access.access import TLS, Access
from kuberuntime.access.credentials import Credentials
from kuberuntime.client.client import Client
from kuberuntime.client.fence import FencedTransport
from kuberuntime.client.http import HTTPTransport
from kuberuntime.client.ratelimit import LimitedTransport, TokenBucket
from kuberuntime.clock import SystemClock
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from kuberuntime.serving.bindaddresses import Address
from kuberuntime.serving.metrics import Metrics, ObservedTransport
from leaderworkerset.api import labels
from leaderworkerset.controllers import indexes
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.webhooks.handlers import MUTATE_POD, VALIDATE_POD
from leaderworkerset.webhooks.server import WebhookOptions, WebhookServer

TIMES: Final = 200
GAP: Final = 0.005
"""The interval in seconds between two events, so that each event is processed separately."""


class Calls:
    """Counts the function calls of a thread while the `counting` context is active."""

    def __init__(self) -> None:
        self.count = 0
        self.counting = False

    def __call__(self, _frame: FrameType, event: str, _argument: object) -> None:
        """Count one event of the interpreter."""
        self.count += self.counting and event in {"call", "c_call"}

    async def per(self, times: int, work: Awaitable[object]) -> float:
        """Return the number of calls of some work, divided by its repetitions."""
        self.count, self.counting = 0, True
        await work
        self.counting = False
        return round(self.count / times, 1)


class Bearer:
    """Credentials with a token."""

    async def get(self) -> Credentials:
        """Return the credentials."""
        return Credentials(token="token")

    async def renew(self, _refused: Credentials) -> bool:
        """Return that there are no other credentials."""
        return False


def main() -> None:
    """Count, and print raw data."""
    with tempfile.TemporaryDirectory() as directory:
        pair = certificates.issue()
        path = Path(directory) / "tls.pem"
        path.write_bytes(pair.chain)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        port = serve(context)
        asyncio.run(client_side(f"https://127.0.0.1:{port}"))
    reviewing = Calls()
    threading.setprofile(reviewing)
    asyncio.run(server_side(reviewing, pair.chain))


def pods(count: int) -> list[JSONObject]:
    """Return pods in the form that an API server stores."""
    leader = builders.leader_pod(builders.leaderworkerset_object())
    return [
        builders.worker_pod(leader) | {"metadata": builders.worker_pod(leader)["metadata"] | version}
        for version in ({"name": f"web-0-{index}", "resourceVersion": str(100 + index)} for index in range(count))
    ]


def serve(context: ssl.SSLContext) -> int:
    """Run an API server that only serves pods in a separate thread, and return its port."""
    stored = pods(TIMES)
    bookmark = {"metadata": {"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}}}

    async def watched(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for kind, obj in [("BOOKMARK", bookmark), *(("ADDED", pod) for pod in stored), *later(stored)]:
            await response.write(msgspec.json.encode({"type": kind, "object": obj}) + b"\n")
            await asyncio.sleep(1.0 if kind == "BOOKMARK" else GAP)
        await asyncio.sleep(3600)
        return response

    async def created(request: web.Request) -> web.Response:
        return web.Response(status=201, body=await request.read(), content_type="application/json")

    started = threading.Event()
    ports: list[int] = []

    async def run() -> None:
        served = web.Application()
        served.add_routes([web.get("/api/v1/pods", watched), web.post("/api/v1/namespaces/{_}/pods", created)])
        runner = web.AppRunner(served)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        ports.append(runner.addresses[0][1])
        started.set()
        await asyncio.sleep(3600)

    threading.Thread(target=lambda: asyncio.run(run()), daemon=True).start()
    started.wait()
    return ports[0]


def later(stored: list[JSONObject]) -> list[tuple[str, JSONObject]]:
    """Return the events with which all pods change their status."""
    return [
        (
            "MODIFIED",
            obj
            | {"metadata": obj["metadata"] | {"resourceVersion": str(1000 + index)}}
            | {"status": obj["status"] | {"phase": "Succeeded"}},
        )
        for index, obj in enumerate(stored)
    ]


async def client_side(server: str) -> None:
    """Count the calls of events and of requests."""
    calls, clock, metrics = Calls(), SystemClock(), Metrics()
    access = Access(server, Bearer(), TLS(authority=certificates.TRUSTED))
    transport = HTTPTransport(access, user_agent="bench", fence=Open())
    limited = LimitedTransport(
        FencedTransport(ObservedTransport(transport, server, metrics), Open()),
        TokenBucket(1e6, 10**6),
        clock,
        metrics.record_throttling,
    )
    client = Client(limited)
    sys.setprofile(calls)
    informer = indexes.POD_CACHE.open(client)
    seen = [asyncio.Event(), asyncio.Event()]
    informer.on_progress(lambda: note(informer.version, seen))
    following = asyncio.create_task(informer.run())
    await informer.wait_synced()
    report("calls", of="event: a new pod", calls=await calls.per(TIMES, seen[0].wait()))
    report("calls", of="event: a pod changes", calls=await calls.per(TIMES, seen[1].wait()))
    following.cancel()
    (pod,) = pods(1)
    await client.create(PODS, pod)
    report("calls", of="request: a creation", calls=await calls.per(TIMES, repeat(lambda: client.create(PODS, pod))))
    sys.setprofile(None)
    await client.close()


class Open:
    """A lease check that always permits writes."""

    def remaining(self) -> float:
        """Return that there is time left."""
        return 10.0


def note(version: str, seen: list[asyncio.Event]) -> None:
    """Record the events up to a version."""
    if version == str(99 + TIMES):
        seen[0].set()
    if version == str(999 + TIMES):
        seen[1].set()


async def repeat(work: Callable[[], Awaitable[object]]) -> None:
    """Repeat the same work sequentially."""
    for _ in range(TIMES):
        await work()


async def server_side(calls: Calls, chain: bytes) -> None:
    """Count the calls of reviews, in the thread of the webhooks."""
    pod = builders.leader_pod(builders.leaderworkerset_object(), annotations={labels.SIZE: "2"})
    request = {"uid": "bench", "operation": "CREATE", "namespace": "default", "object": pod}
    body = msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
    async with webhooks(chain) as url, ClientSession() as session:

        async def ask(path: str) -> None:
            async with session.post(url + path, data=body, ssl=False) as response:
                verdict = msgspec.json.decode(await response.read())
            assert verdict["response"]["allowed"], verdict

        for path in (MUTATE_POD, VALIDATE_POD):
            await ask(path)
            report("calls", of=f"review: {path}", calls=await calls.per(TIMES, repeat(partial(ask, path))))


@asynccontextmanager
async def webhooks(chain: bytes) -> AsyncIterator[str]:
    """Serve the webhooks, and yield their address."""
    options = WebhookOptions(observe=Metrics().count_webhook_request)
    async with WebhookServer(Address("127.0.0.1", 0), chain, MANAGED.decisions, options) as server:
        yield server.url
