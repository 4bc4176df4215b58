"""Defines the interface between the API server and admission webhooks.

One implementation uses HTTPS (`webhook_https.py`). In simulations, the webhook's function is called directly, so that
webhooks run in the thread and the virtual time of the API server. The caller applies timeouts and failure policies.
"""

from dataclasses import dataclass, field
from typing import Protocol

from kuberuntime.client.transport import Response


class WebhookConnectionError(Exception):
    """A webhook did not respond. The message contains the reason, but not the address."""


@dataclass(frozen=True, slots=True)
class WebhookRequest:
    """An AdmissionReview that is sent to a webhook.

    `ca_bundle` (base64 of PEM) verifies the certificate of the server. If it is empty, the system's CAs are used.
    """

    url: str
    body: bytes = field(repr=False)
    timeout_seconds: int
    ca_bundle: str = field(default="", repr=False)


class WebhookTransport(Protocol):
    """Sends reviews to webhooks. Raises `WebhookConnectionError` if a webhook does not respond."""

    async def request(self, request: WebhookRequest) -> Response:
        """Send one review and return the complete response, with any status."""

    async def close(self) -> None:
        """Close the connections of the inner transport."""
