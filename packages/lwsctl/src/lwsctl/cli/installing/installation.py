"""Reads the namespace and objects of an installation in a cluster, and applies new objects.

The input is the objects that `install/` builds. The output is a line for each object, which is passed to `say`, or
one error that lists the objects that were applied before it.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from kuberuntime.client.client import Client
from kuberuntime.errors import (
    APIError,
    ConnectionFailedError,
    ForbiddenError,
    InvalidError,
    ServerTimeoutError,
    ServiceUnavailableError,
    TooManyRequestsError,
)
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CLUSTER_ROLE_BINDINGS, CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, Resource
from leaderworkerset.api import metadata
from leaderworkerset.decisions.installedkinds import read_operator_object
from leaderworkerset.install import installsettings
from leaderworkerset.install.operatornames import OPERATORS, SINGLETON
from leaderworkerset.install.workload import CONFIGURATION_KEY
from lwsctl.cli.applying import serverside
from lwsctl.cli.applying.serverside import ApplyResult
from lwsctl.cli.cluster.target import Target
from lwsctl.cli.errors import CommandError, UsageError

Objects: TypeAlias = Sequence[tuple[Resource, JSONObject]]

FIELD_MANAGER: Final = "lws-install"
BINDING: Final = ObjectKey("", "lws-manager-rolebinding")
"""The binding whose subject contains the namespace of the manager that owns the cluster-scoped objects."""


TRANSIENT: Final = (ConnectionFailedError, ServerTimeoutError, ServiceUnavailableError, TooManyRequestsError)
"""HTTP status codes after which an apply is retried."""

PAUSES: Final = (1.0, 2.0, 4.0, 8.0)
"""The delays in seconds before each retry."""


def place(target: Target) -> str:
    """Return the namespace of the installation. Embedded clusters do not have an installation."""
    if target.local:
        raise UsageError(
            "the embedded cluster runs its own manager; select a different cluster with --context or --kubeconfig"
        )
    return target.namespace or installsettings.NAMESPACE


def title(resource: Resource, name: str) -> str:
    """Return `kind/name` for messages.

    >>> from kuberuntime.objects.resources import SERVICES
    >>> title(SERVICES, "lws-webhook-service")
    'service/lws-webhook-service'
    """
    return f"{resource.kind.lower()}/{name}"


class Installer:
    """Installs the manager in one namespace, with one field manager."""

    def __init__(self, client: Client, namespace: str, say: Callable[[str], None]) -> None:
        self._client = client
        self._namespace = namespace
        self._print = say

    async def check_namespace(self) -> None:
        """Raise an error if the manager is installed in a different namespace.

        Its roles and webhooks are cluster-scoped.
        """
        binding = await self._client.find(CLUSTER_ROLE_BINDINGS, BINDING)
        subjects = (binding or {}).get("subjects") or []
        there = {str(subject["namespace"]) for subject in subjects if subject.get("namespace")}
        if there and self._namespace not in there:
            raise CommandError(
                f"LeaderWorkerSet is installed in namespace {', '.join(sorted(there))}, not in {self._namespace}; use -n {min(there)}, or uninstall it first"
            )

    async def check_operator(self) -> None:
        """Raise an error if the operator manages the installation, because it would revert all changes.

        The user does not need permission to read the operator's object, because an installation does not use it.
        """
        try:
            cluster = await self._client.find(OPERATORS, SINGLETON)
        except ForbiddenError:
            return
        if cluster is not None and read_operator_object(cluster).is_managed:
            raise CommandError(
                f"the operator manages this installation; change or delete {OPERATORS.group_resource}/{SINGLETON.name}, or set its spec.managementState to Unmanaged"
            )

    async def configuration(self) -> str | None:
        """Return the installed configuration, or None if no configuration exists."""
        config_map = await self._client.find(CONFIG_MAPS, ObjectKey(self._namespace, metadata.CONFIGURATION))
        text: str | None = ((config_map or {}).get("data") or {}).get(CONFIGURATION_KEY)
        return text

    async def without_foreign_namespace(self, objects: Objects) -> Objects:
        """Omit the namespace if it has a different owner, so that its labels remain unchanged."""
        live = await self._client.find(NAMESPACES, ObjectKey("", self._namespace))
        if live is None or metadata.is_installed(live):
            return objects
        self._print(f"{title(NAMESPACES, self._namespace)} unchanged, because it was not created by an installer")
        return [(resource, obj) for resource, obj in objects if resource != NAMESPACES]

    async def check(self, objects: Objects) -> list[ApplyResult]:
        """Validate all objects on the API server before any is applied, and raise all errors together.

        Objects in a nonexistent namespace cannot be validated, and are returned unchanged.
        """
        is_new = await self._client.find(NAMESPACES, ObjectKey("", self._namespace)) is None
        checked: list[ApplyResult] = []
        failures: list[str] = []
        for resource, obj in objects:
            if is_new and resource.namespaced:
                checked.append(ApplyResult("not checked, because its namespace does not exist", None, obj))
                continue
            try:
                checked.append(await self._apply(resource, obj, dry_run=True))
            except APIError as error:
                failures.append(describe(resource, obj, error))
        if failures:
            raise CommandError("\n".join([*failures, "no objects were installed"]))
        return checked

    async def apply(self, objects: Objects) -> None:
        """Apply the objects in order.

        After an error, applied objects remain. Call this function again to continue.
        """
        for resource, obj in objects:
            try:
                result = await self._apply(resource, obj)
            except APIError as error:
                raise CommandError(f"{describe(resource, obj, error)}\nfix the problem, and then retry") from error
            self._print(f"{title(resource, meta.name(obj))} {result.verb}")

    async def _apply(self, resource: Resource, obj: JSONObject, *, dry_run: bool = False) -> ApplyResult:
        """Apply an object. Retry while the API server is overloaded or restarting."""
        for pause in PAUSES:
            try:
                return await self._send(resource, obj, dry_run=dry_run)
            except TRANSIENT as error:
                self._print(f"{title(resource, meta.name(obj))}: {error}; retrying in {pause:g} s")
                await asyncio.sleep(pause)
        return await self._send(resource, obj, dry_run=dry_run)

    async def _send(self, resource: Resource, obj: JSONObject, *, dry_run: bool) -> ApplyResult:
        return await serverside.apply(self._client, resource, obj, manager=FIELD_MANAGER, force=True, dry_run=dry_run)


def describe(resource: Resource, obj: JSONObject, error: APIError) -> str:
    """Build the message for a rejected object from its name, the server's message, and advice if available."""
    advice = ""
    if resource == DEPLOYMENTS and isinstance(error, InvalidError) and "field is immutable" in str(error):
        advice = f". The deployment was created by a different installer with different labels; delete deployment {meta.name(obj)} first"
    return f"{title(resource, meta.name(obj))}: {error}{advice}"
