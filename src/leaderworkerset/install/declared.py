"""The facts about the manager's kinds that an installation needs; the registry of kinds has them."""

from collections.abc import Sequence
from typing import Protocol

from kuberuntime.objects.meta import JSONObject
from kuberuntime.policyrules import Permission
from leaderworkerset.webhooks.spec import WebhookSpec


class Declared(Protocol):
    """The declarations of kinds, as values."""

    @property
    def permissions(self) -> Sequence[Permission]:
        """Return the permissions of the controllers."""

    @property
    def webhooks(self) -> Sequence[WebhookSpec]:
        """Return the webhooks."""

    def definitions(self) -> Sequence[JSONObject]:
        """Build the definitions, without descriptions."""
