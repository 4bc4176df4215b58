"""Installs the objects of `lws install` except the Deployment.

Managers run as processes with the account's permissions.

The webhook service is an ExternalName for this machine, and the configurations name the port of a balancer.
"""

import base64
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request
from kuberuntime.errors import NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    DEPLOYMENTS,
    LEASES,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from leaderworkerset.api.metadata import LEASE, MANAGER, METRICS_SERVICE, build
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.install.installsettings import CERTIFICATES, ISSUERS, NAMESPACE, Certificates, InstallSettings
from leaderworkerset.install.objects import build_all
from leaderworkerset.install.rbac import METRICS_READER, service_account
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.kinds.registry import Registry
from leaderworkerset.webhooks import certificates
from leaderworkerset.webhooks.certificates import Certificate
from leaderworkerset.webhooks.configurations import SECRET_NAME, SERVICE_NAME, with_authority

PLAYED: Final = (DEPLOYMENTS, ISSUERS, CERTIFICATES)
"""Kinds that are not installed, because the tests start processes and issue certificates."""

CONFIGURATIONS: Final = (MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS)
SECRET: Final = ObjectKey(NAMESPACE, SECRET_NAME)
HOST: Final = f"{SERVICE_NAME}.{NAMESPACE}.svc"
"""The host name with which API servers call the webhooks."""

SCRAPER: Final = "scraper"
"""An account that may read metrics. The manager's account may not."""

ACCOUNT: Final = f"system:serviceaccount:{NAMESPACE}:{MANAGER}"
"""The user name in the manager's requests."""


async def install(
    client: Client,
    port: int,
    kinds: Registry = MANAGED,
    certificates: Certificates = "internal",
    names: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Apply all objects. API servers call the webhooks at `port` on this machine.

    `names` are other names for objects, as an administrator sets them in the configuration.
    """
    await _remove(client, SECRETS, SECRET)
    await _remove(client, LEASES, ObjectKey(NAMESPACE, LEASE))
    objects = build_all(kinds, InstallSettings(certificates=certificates))
    await apply(client, port, [(resource, _renamed(obj, names)) for resource, obj in objects])
    await allow_scraping(client)


async def apply(client: Client, port: int, objects: Iterable[tuple[Resource, JSONObject]]) -> None:
    """Apply the objects of an installation of any version, except the kinds that the tests replace."""
    for resource, obj in objects:
        if resource not in PLAYED:
            await client.apply(resource, _adapted(resource, obj, port), manager="tests")


async def allow_scraping(client: Client) -> None:
    """Create an account, and bind it to the role that reads metrics."""
    subject = {"kind": SERVICE_ACCOUNTS.kind, "name": SCRAPER, "namespace": NAMESPACE}
    role = {"apiGroup": CLUSTER_ROLES.group, "kind": CLUSTER_ROLES.kind, "name": METRICS_READER}
    for resource, obj in (
        (SERVICE_ACCOUNTS, build(SERVICE_ACCOUNTS, SCRAPER, NAMESPACE)),
        (CLUSTER_ROLE_BINDINGS, build(CLUSTER_ROLE_BINDINGS, SCRAPER, subjects=[subject], roleRef=role)),
    ):
        await client.apply(resource, obj, manager="tests")


async def clear(client: Client) -> None:
    """Remove the webhook configurations and all LeaderWorkerSets before the next test."""
    for resource, obj in build_all(MANAGED, InstallSettings()):
        if resource in CONFIGURATIONS:
            await _remove(client, resource, meta.key(obj))
    for lws in (await client.list(LEADERWORKERSETS)).items:
        await _remove(client, LEADERWORKERSETS, meta.key(lws))


async def write_kubeconfig(client: Client, admin: Path, target: Path, *, seconds: int = 3600) -> None:
    """Write a kubeconfig with a token for the manager's account."""
    config = json.loads(admin.read_text())
    config["users"] = [{"name": "admin", "user": {"tokenFile": str(target.with_suffix(".token"))}}]
    await write_token(client, MANAGER, target.with_suffix(".token"), seconds=seconds)
    target.write_text(json.dumps(config))


async def write_token(client: Client, account: str, target: Path, *, seconds: int = 3600) -> None:
    """Write a new token of an account atomically."""
    fresh = target.with_suffix(".new")
    fresh.write_text(await token_of(client, account, seconds=seconds))
    fresh.replace(target)


async def token_of(client: Client, account: str, *, seconds: int = 3600) -> str:
    """Return a new token of an account in the manager's namespace."""
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": max(seconds, 600)},
    }
    path = SERVICE_ACCOUNTS.path(NAMESPACE, account, "token")
    headers = {"content-type": "application/json"}
    answer = await client.send(Request("POST", path, (), headers, msgspec.json.encode(body)))
    return str(msgspec.json.decode(answer.body)["status"]["token"])


async def recreate_account(client: Client) -> None:
    """Recreate the manager's account, so that tokens of the old account are rejected."""
    await client.delete(SERVICE_ACCOUNTS, ObjectKey(NAMESPACE, MANAGER))
    await client.create(SERVICE_ACCOUNTS, service_account(NAMESPACE))


async def trust(client: Client, bundle: bytes) -> None:
    """Configure API servers to trust these CAs when they call webhooks, in the same way as cert-manager."""
    for resource in CONFIGURATIONS:
        for found in (await client.list(resource)).items:
            await client.update(resource, with_authority(found, base64.b64encode(bundle).decode()))


def write_certificate(
    directory: Path, authority: Certificate, host: str = HOST, algorithm: certificates.Algorithm = "ec"
) -> None:
    """Write a webhook certificate to a directory in the layout that the kubelet mounts."""
    serving = certificates.issue(authority, [host], datetime.now(UTC), algorithm=algorithm)
    directory.mkdir(exist_ok=True)
    (directory / "tls.crt").write_bytes(serving.certificate)
    (directory / "tls.key").write_bytes(serving.key)


def _renamed(obj: JSONObject, names: Mapping[str, str]) -> JSONObject:
    text = json.dumps(obj)
    for old, new in names.items():
        text = text.replace(f'"{old}"', f'"{new}"')
    renamed: JSONObject = json.loads(text)
    return renamed


def _adapted(resource: Resource, obj: JSONObject, port: int) -> JSONObject:
    if resource == SERVICES and meta.name(obj) != METRICS_SERVICE:
        return obj | {"spec": {"type": "ExternalName", "externalName": "localhost"}}
    if resource in CONFIGURATIONS:
        return obj | {"webhooks": [_at_port(webhook, port) for webhook in obj["webhooks"]]}
    return obj


def _at_port(webhook: JSONObject, port: int) -> JSONObject:
    config = webhook["clientConfig"]
    return webhook | {"clientConfig": config | {"service": config["service"] | {"port": port}}}


async def _remove(client: Client, resource: Resource, key: ObjectKey) -> None:
    try:
        await client.delete(resource, key)
    except NotFoundError:
        return
