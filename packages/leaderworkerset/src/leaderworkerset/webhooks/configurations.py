"""Builds the two webhook configurations (contract 12.3, R-WHC-1).

Their names are the same for every installation, because a cluster has only one set of configurations, and the manager
finds them by name to write its CA. API servers call configurations in the order of their names, so that these are
called after those of Kueue (R-KQ-10).
"""

import base64
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from msgspec.structs import replace

from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import (
    MUTATING_WEBHOOK_CONFIGURATIONS,
    SECRETS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from kuberuntime.policyrules import Permission
from leaderworkerset.api import metadata
from leaderworkerset.webhooks.spec import ClientConfig, WebhookSpec

MUTATING_NAME: Final = metadata.MUTATING_WEBHOOKS
VALIDATING_NAME: Final = "lws-validating-webhook-configuration"

Objects: TypeAlias = Sequence[tuple[Resource, JSONObject]]


def at_url(url: str, authority: bytes) -> ClientConfig:
    """Return a function that configures webhooks with the address of a server.

    `authority` is the PEM of the CA that signed its certificate.
    """
    bundle = base64.b64encode(authority).decode()
    return lambda path: {"url": f"{url}{path}", "caBundle": bundle}


def at_service(namespace: str, name: str, authority: bytes = b"") -> ClientConfig:
    """Return a function that configures webhooks with a Service, and with a CA unless it is injected later."""
    bundle = {"caBundle": base64.b64encode(authority).decode()} if authority else {}
    return lambda path: {"service": {"namespace": namespace, "name": name, "path": path}} | bundle


def build_configurations(
    webhooks: Iterable[WebhookSpec], client_config: ClientConfig, *, evaluates_cel: bool = False
) -> Objects:
    """Build both configurations, each with its webhooks in order.

    Without `evaluates_cel`, which the API server of one machine does not, webhooks get all objects of their selector.
    """
    declared = [webhook if evaluates_cel else replace(webhook, conditions=()) for webhook in webhooks]
    return [
        (
            resource,
            _configuration(
                resource, name, [webhook for webhook in declared if webhook.mutates is mutates], client_config
            ),
        )
        for resource, name, mutates in (
            (MUTATING_WEBHOOK_CONFIGURATIONS, MUTATING_NAME, True),
            (VALIDATING_WEBHOOK_CONFIGURATIONS, VALIDATING_NAME, False),
        )
    ]


def with_authority(configuration: JSONObject, bundle: str) -> JSONObject:
    """Return a webhook configuration with the CAs `bundle` (base64), or the same object if it contains them."""
    webhooks: list[JSONObject] = configuration.get("webhooks") or []
    if all(webhook.get("clientConfig", {}).get("caBundle") == bundle for webhook in webhooks):
        return configuration
    trusting = [
        webhook | {"clientConfig": (webhook.get("clientConfig") or {}) | {"caBundle": bundle}} for webhook in webhooks
    ]
    return configuration | {"webhooks": trusting}


def other_namespace(configuration: JSONObject, namespace: str) -> str:
    """Return the different namespace of the webhook Service, or an empty string if there is none."""
    clients = [webhook.get("clientConfig") or {} for webhook in configuration.get("webhooks") or []]
    called = {str((client.get("service") or {}).get("namespace") or namespace) for client in clients}
    return min(called - {namespace}, default="")


def _configuration(
    resource: Resource, name: str, webhooks: Iterable[WebhookSpec], client_config: ClientConfig
) -> JSONObject:
    return {
        **resource.type_meta,
        "metadata": {"name": name},
        "webhooks": [webhook.build(client_config) for webhook in webhooks],
    }


SECRET_NAME: Final = "lws-webhook-server-cert"  # noqa: S105 - the name of an object
SERVICE_NAME: Final = "lws-webhook-service"

FOLLOW: Final = ("list", "update", "watch")

CLUSTER: Final = (
    Permission(MUTATING_WEBHOOK_CONFIGURATIONS, FOLLOW, names=(MUTATING_NAME,)),
    Permission(VALIDATING_WEBHOOK_CONFIGURATIONS, FOLLOW, names=(VALIDATING_NAME,)),
)
READ: Final = (
    Permission(MUTATING_WEBHOOK_CONFIGURATIONS, ("list", "watch"), names=(MUTATING_NAME,)),
    Permission(VALIDATING_WEBHOOK_CONFIGURATIONS, ("list", "watch"), names=(VALIDATING_NAME,)),
)
"""The permissions to detect webhooks of a different installation."""

NAMESPACE: Final = (Permission(SECRETS, ("get", *FOLLOW), names=(SECRET_NAME,)), Permission(SECRETS, ("create",)))
"""The permissions, in addition to `CLUSTER`, to maintain the webhook certificate (R-CERT-1).

They name their objects, so a list or watch must select its object by `metadata.name`. A role cannot restrict `create`
to a name. This permission applies in the manager's namespace, where a deleted Secret is recreated.
"""


def certificate_secret(key: ObjectKey) -> JSONObject:
    """Build the Secret of the manager's certificate without data. Existing data is therefore preserved (R-OP-50)."""
    return metadata.build(SECRETS, key.name, key.namespace)
