"""What an installation has to know of the kinds that the manager serves; the registry of kinds has it."""

from collections.abc import Sequence
from typing import Protocol

from kuberuntime.objects.meta import JSONObject
from kuberuntime.permissions import Permission
from leaderworkerset.webhooks.spec import WebhookSpec


class Declared(Protocol):
    """The declarations of kinds, as values."""

    @property
    def permissions(self) -> Sequence[Permission]:
        """Return what the controllers ask of the API server."""
        ...

    @property
    def webhooks(self) -> Sequence[WebhookSpec]:
        """Return the webhooks."""
        ...

    def definitions(self) -> Sequence[JSONObject]:
        """Build the definitions, without descriptions."""
        ...
