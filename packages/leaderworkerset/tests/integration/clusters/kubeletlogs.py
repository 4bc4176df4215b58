"""Serves pod logs for a simulated kwok node to kube-apiserver, as a kubelet does."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from aiohttp import web

from kuberuntime.client.client import Client
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import NODES
from kuberuntime.serving.serving import server_context
from leaderworkerset.webhooks import certificates

LOOPBACK = "127.0.0.1"


@asynccontextmanager
async def logs_on(client: Client, node: str, lines: Mapping[str, str]) -> AsyncIterator[None]:
    """Make each container with one of these names on a node print one line within the `with` block."""
    now = datetime.now(UTC)

    async def answer(request: web.Request) -> web.Response:
        stamp = f"{now.isoformat()} " if request.query.get("timestamps") else ""
        return web.Response(text=f"{stamp}{lines[request.match_info['container']]}\n")

    application = web.Application()
    application.router.add_get("/containerLogs/{namespace}/{pod}/{container}", answer)
    chain = certificates.issue(certificates.create_authority(now), [LOOPBACK], now).chain
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, LOOPBACK, 0, ssl_context=server_context(chain)).start()
    status = {
        "addresses": [{"type": "InternalIP", "address": LOOPBACK}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": runner.addresses[0][1]}},
    }
    try:
        await client.patch(NODES, ObjectKey("", node), {"status": status}, kind="merge", subresource="status")
        yield
    finally:
        await runner.cleanup()
