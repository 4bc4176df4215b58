"""The seam between the API server and admission webhooks: one review, one response.

There are two implementations: HTTPS (`webhook_https.py`) and, in simulations, a direct call of the webhook's function,
so that webhooks run in the thread and the virtual time of the API server. The caller applies time-outs and failure
policies.
"""

from dataclasses import dataclass, field
from typing import Protocol

from kuberuntime.client.transport import Response


class WebhookConnectionError(Exception):
    """A webhook did not respond; the text gives the reason, without the address."""


@dataclass(frozen=True, slots=True)
class WebhookRequest:
    """One AdmissionReview to be sent to a webhook.

    `ca_bundle` (base64 of PEM) verifies the certificate of the server; if it is empty, the system's authorities do.
    """

    url: str
    body: bytes = field(repr=False)
    timeout_seconds: int
    ca_bundle: str = field(default="", repr=False)


class WebhookTransport(Protocol):
    """Sends reviews to webhooks. Raises `WebhookConnectionError` if there is no response."""

    async def request(self, request: WebhookRequest) -> Response:
        """Send one review and return the complete response, of any status."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...
