"""The objects that tell an API server which webhooks to call (contract 12.3, R-WHC-1)."""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import (
    MUTATING_WEBHOOK_CONFIGURATIONS,
    PODS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.webhooks import handlers

MUTATING_NAME: Final = "lws-mutating-webhook-configuration"
VALIDATING_NAME: Final = "lws-validating-webhook-configuration"

ClientConfig: TypeAlias = Callable[[str], JSONObject]
"""Build the `clientConfig` of a webhook from its path."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """One entry: its name, its path, and which writes of what it sees."""

    name: str
    path: str
    resource: Resource
    operations: tuple[str, ...]
    selects_members: bool = False

    def build(self, client_config: ClientConfig) -> JSONObject:
        """Build the entry of a configuration; `selects_members` keeps pods of others out of our way."""
        rule = {
            "apiGroups": [self.resource.group],
            "apiVersions": [self.resource.version],
            "operations": list(self.operations),
            "resources": [self.resource.plural],
        }
        entry = {
            "name": self.name,
            "admissionReviewVersions": ["v1"],
            "clientConfig": client_config(self.path),
            "failurePolicy": "Fail",
            "rules": [rule],
            "sideEffects": "None",
        }
        members = {"matchExpressions": [{"key": labels.NAME, "operator": "Exists"}]}
        return entry | ({"objectSelector": members} if self.selects_members else {})


MUTATING: Final = (
    Webhook("mleaderworkerset.kb.io", handlers.MUTATE_LEADERWORKERSET, LEADERWORKERSETS, ("CREATE", "UPDATE")),
    Webhook("mpod.kb.io", handlers.MUTATE_POD, PODS, ("CREATE",), selects_members=True),
)
VALIDATING: Final = (
    Webhook("vleaderworkerset.kb.io", handlers.VALIDATE_LEADERWORKERSET, LEADERWORKERSETS, ("CREATE", "UPDATE")),
    Webhook("vpod.kb.io", handlers.VALIDATE_POD, PODS, ("CREATE", "UPDATE"), selects_members=True),
)


def at_url(url: str, authority: bytes) -> ClientConfig:
    """Call a server by its address; `authority` is the PEM certificate that signed its own."""
    bundle = base64.b64encode(authority).decode()
    return lambda path: {"url": f"{url}{path}", "caBundle": bundle}


def at_service(namespace: str, name: str, authority: bytes = b"") -> ClientConfig:
    """Call a service of the cluster; without `authority` somebody else injects it later."""
    bundle = {"caBundle": base64.b64encode(authority).decode()} if authority else {}
    return lambda path: {"service": {"namespace": namespace, "name": name, "path": path}} | bundle


def mutating_configuration(client_config: ClientConfig) -> JSONObject:
    """Build the MutatingWebhookConfiguration."""
    return _configuration(MUTATING_WEBHOOK_CONFIGURATIONS, MUTATING_NAME, MUTATING, client_config)


def validating_configuration(client_config: ClientConfig) -> JSONObject:
    """Build the ValidatingWebhookConfiguration."""
    return _configuration(VALIDATING_WEBHOOK_CONFIGURATIONS, VALIDATING_NAME, VALIDATING, client_config)


def _configuration(
    resource: Resource, name: str, webhooks: tuple[Webhook, ...], client_config: ClientConfig
) -> JSONObject:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name},
        "webhooks": [webhook.build(client_config) for webhook in webhooks],
    }
