"""Calls webhooks over HTTPS with keep-alive connections and the CA bundle of the webhook configuration."""

import base64
import os
import ssl
from functools import lru_cache
from typing import Final

import aiohttp

from kuberuntime.client.transport import Response
from localkube.apiserver.admission.webhook_transport import WebhookConnectionError, WebhookRequest

CONNECTIONS: Final = 8
"""The maximum number of connections to a webhook. A connection needs about 300 KiB on each side."""

LARGEST_ANSWER: Final = 8 * 2**20
"""The maximum response size in bytes, which is sufficient for a base64 patch of the largest object."""

HEADERS: Final = {"content-type": "application/json", "accept": "application/json"}


class HTTPSWebhookTransport:
    """Implements `WebhookTransport`. Opens the first connection when it sends the first review."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def request(self, request: WebhookRequest) -> Response:
        """Post one review. Retry if an idle connection is already closed."""
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit_per_host=CONNECTIONS))
        try:
            context = tls_context(request.ca_bundle)
            try:
                return await _post(self._session, request, context)
            except aiohttp.ServerDisconnectedError:
                # The webhook closed an idle connection. Reviews can be repeated.
                return await _post(self._session, request, context)
        except TimeoutError:
            raise
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise WebhookConnectionError(_reason(error)) from error

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()


async def _post(session: aiohttp.ClientSession, request: WebhookRequest, context: ssl.SSLContext) -> Response:
    async with session.post(
        request.url,
        data=request.body,
        params={"timeout": f"{request.timeout_seconds}s"},
        headers=HEADERS,
        ssl=context,
        allow_redirects=False,
    ) as response:
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Response(response.status, headers, await _read_body(response))


async def _read_body(response: aiohttp.ClientResponse) -> bytes:
    """Read the body of a response. Raise an error if it is too large."""
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > LARGEST_ANSWER:
            raise ValueError(f"the response is larger than {LARGEST_ANSWER >> 20} MiB")
    return bytes(body)


@lru_cache(maxsize=64)
def tls_context(ca_bundle: str) -> ssl.SSLContext:
    """Return a TLS context that trusts the CA bundle (base64 of PEM), or the system's CAs if it is empty."""
    bundle = base64.b64decode(ca_bundle).decode() if ca_bundle else None
    context = ssl.create_default_context(cadata=bundle)
    # Many CAs do not have the key identifiers that Python 3.13 requires. kube-apiserver accepts such CAs.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _reason(error: Exception) -> str:
    """Describe an error with the same message as Go's client, which kube-apiserver uses."""
    match error:
        case aiohttp.ClientSSLError():
            return f"tls: {error}"
        case aiohttp.ClientConnectorError():
            cause = os.strerror(error.errno).lower() if error.errno else str(error.os_error)
            return f"dial tcp {error.host}:{error.port}: connect: {cause}"
        case _:
            return str(error) or type(error).__name__
