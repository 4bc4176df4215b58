"""Runs webhooks in the thread of the API server. Reviews are encoded as over HTTPS, but without a connection."""

import asyncio
from collections.abc import Callable, Collection
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from kuberuntime.client.transport import Response
from localkube.apiserver.admission.webhook_transport import WebhookConnectionError, WebhookRequest

Answer: TypeAlias = Callable[[str, bytes], bytes]
"""Respond to the review that was sent to a path."""

HEADERS: Final = {"content-type": "application/json"}


class InProcessWebhooks:
    """Implements `WebhookTransport` for one host.

    While it `is_down` it refuses connections; answers take `delay` seconds.
    """

    def __init__(self, host: str, paths: Collection[str], answer: Answer) -> None:
        self.is_down = False
        self.delay = 0.0
        self.asked: list[str] = []
        self._host = host
        self._answers = dict.fromkeys(paths, answer)
        self._refused: Collection[str] = ()

    def serve(self, paths: Collection[str], answer: Answer) -> None:
        """Also respond to requests for another server."""
        self._answers |= dict.fromkeys(paths, answer)

    def refuse(self, paths: Collection[str]) -> None:
        """Reject requests to these paths, as if their server were down."""
        self._refused = paths

    def accept(self) -> None:
        """Respond on all paths."""
        self._refused = ()

    async def request(self, request: WebhookRequest) -> Response:
        """Respond to one admission review."""
        url = urlsplit(request.url)
        if self.is_down or url.hostname != self._host or url.path in self._refused:
            raise WebhookConnectionError(f"dial tcp {url.netloc}: connect: connection refused")
        if self.delay:
            await asyncio.sleep(self.delay)
        self.asked.append(url.path)
        answer = self._answers.get(url.path)
        if answer is None:
            return Response(404, HEADERS, b"404: Not Found")
        return Response(200, HEADERS, answer(url.path, request.body))

    async def close(self) -> None:
        """Do not release anything."""
