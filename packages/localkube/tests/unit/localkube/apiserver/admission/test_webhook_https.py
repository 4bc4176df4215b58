"""Tests the maximum size of webhook responses."""

import asyncio

import pytest
from aiohttp import web

from kuberuntime.client.transport import Response
from localkube.apiserver.admission.webhook_https import LARGEST_ANSWER, HTTPSWebhookTransport
from localkube.apiserver.admission.webhook_transport import WebhookConnectionError, WebhookRequest


def answered(size: int) -> Response:
    """Return the result for a response of this size in bytes, which is sent in chunks without a content length."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"x" * size)
        return response

    async def scenario() -> Response:
        application = web.Application()
        application.router.add_post("/", answer)
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        transport = HTTPSWebhookTransport()
        try:
            return await transport.request(WebhookRequest(f"http://{host}:{port}/", b"{}", 10))
        finally:
            await transport.close()
            await runner.cleanup()

    return asyncio.run(scenario())


def test_answer_below_the_limit_is_read_completely() -> None:
    assert answered(100_000).body == b"x" * 100_000


def test_answer_above_the_limit_is_an_error() -> None:
    """Without a limit, a webhook could exhaust the memory of the API server."""
    with pytest.raises(WebhookConnectionError, match="the response is larger than 8 MiB"):
        answered(LARGEST_ANSWER + 1)
