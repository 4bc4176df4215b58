"""The seam between the API server and admission webhooks: one review, one answer.

Two implementations stand behind it: HTTPS (`webhook_https.py`) and, in simulations, a call of the function that decides,
so that webhooks run in the thread and the time of the API server. Time-outs and failure policies are the caller's.
"""

from dataclasses import dataclass, field
from typing import Protocol

from kuberuntime.client.transport import Response


class WebhookConnectionError(Exception):
    """No answer came from a webhook; the text says why, without its address."""


@dataclass(frozen=True, slots=True)
class WebhookRequest:
    """One AdmissionReview on its way to a webhook.

    `ca_bundle` (base64 of PEM) signed the certificate of the server, the system's authorities where it is empty;
    `server_name` is the name to check there, None for the one in the URL.
    """

    url: str
    body: bytes = field(repr=False)
    timeout_seconds: int
    ca_bundle: str = field(default="", repr=False)
    server_name: str | None = None


class WebhookTransport(Protocol):
    """Carries reviews to webhooks. Whatever prevents an answer raises `WebhookConnectionError`."""

    async def request(self, request: WebhookRequest) -> Response:
        """Send one review and return the whole answer, of any status."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...
