"""`lws uninstall`: removes the manager from a cluster. It deletes only objects that an installation created.

Custom resources prevent this, because they would be deleted together with their CRDs. Either they are kept with the
CRDs (`--keep-crd`), or they are deleted first (`--delete-workloads`). If they are kept, pods with a finalizer of the
manager would remain forever. These pods belong to groups without remaining restarts, which must be recovered first.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

import click

from kuberuntime import timeouts
from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection, select_one
from kuberuntime.errors import ConflictError, NotFoundError
from kuberuntime.objects import meta, resources
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import Resource
from kuberuntime.plan import Propagation
from leaderworkerset.api import groupname, labels, metadata
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.decisions.installedkinds import MANAGED, is_pod_kept, release_pod
from leaderworkerset.install.certmanager import METRICS_SECRET, SERVING_SECRET
from leaderworkerset.install.installsettings import InstallSettings
from leaderworkerset.install.objects import build_all
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.errors import CommandError, TimedOutError, UsageError
from lwsctl.cli.installing.installation import Installer, place, title
from lwsctl.cli.sharedoptions import DRY, dry_run_option, timeout_option
from lwsctl.cli.views import terminal
from lwsctl.cli.watchwarnings import following
from lwsctl.views.wording import join_names

DEPENDENTS: Final = (resources.STATEFULSETS, resources.SERVICES, resources.CONTROLLER_REVISIONS)
"""Kinds that LeaderWorkerSets own directly. The garbage collector can delete them only while the CRD exists."""

TENANTS: Final = (
    *(resources.PODS, resources.STATEFULSETS, resources.DEPLOYMENTS, resources.SERVICES),
    *(resources.CONFIG_MAPS, resources.SECRETS, resources.SERVICE_ACCOUNTS, resources.PERSISTENT_VOLUME_CLAIMS),
)
"""Kinds whose objects prevent the deletion of the namespace if they have a different owner."""

FURNITURE: Final = {
    SERVING_SECRET,
    METRICS_SECRET,
    "kube-root-ca.crt",
    "openshift-service-ca.crt",
    "default",
    "builder",
    "deployer",
}
"""Objects that exist in every namespace, and objects that cert-manager creates for the manager."""


class Remover:
    """Removes the installation in one namespace. Each wait has a limit of `timeout` seconds.

    The order is safe: first the webhook configurations, the manager and its roles, then the pods that the manager kept
    for diagnosis. Only objects with the labels of an installation are removed. A repeated call continues where the
    previous call stopped.

    A dry run only prints the planned actions.
    """

    def __init__(
        self, client: Client, namespace: str, timeout: float, say: Callable[[str], None], *, is_trial: bool = False
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._timeout = timeout
        self._print = say
        self._is_trial = is_trial

    async def list_custom_resources(self) -> list[JSONObject]:
        """Return all custom resources in the cluster."""
        return [obj for resource in MANAGED.custom_resources for obj in await self._list(resource)]

    async def remove_sets(self) -> None:
        """Delete all custom resources, the last kind first. Wait until their dependents are also deleted."""
        for resource in reversed(MANAGED.custom_resources):
            for obj in await self._list(resource):
                await self._delete(resource, obj, "Background")
                self._report(f"{title(resource, str(meta.key(obj)))} deleted")
                await self._wait_until_deleted(resource, meta.key(obj))
        for resource in () if self._is_trial else DEPENDENTS:
            informer = Informer(self._client, Selection(resource, label_selector=labels.NAME))
            await self._wait_until_none(informer, resource, lambda: filter(is_dependent, informer.store.list()))  # noqa: B023 - awaited in the loop

    async def list_evidence(self) -> list[JSONObject]:
        """Return the pods of exhausted groups that are kept for diagnosis and whose sets still exist."""
        names = {meta.key(obj) for obj in await self._list(LEADERWORKERSETS)}
        return [pod for pod in await self._retained_objects() if groupname.lws_key(pod) in names]

    async def release_evidence(self) -> None:
        """Remove the finalizer from pods that deleted LeaderWorkerSets kept for diagnosis, workers first (N-RB-16)."""
        staying = set() if self._is_trial else {meta.uid(pod) for pod in await self.list_evidence()}
        for pod in sorted(await self._retained_objects(), key=groupname.is_finished):
            if meta.uid(pod) not in staying:
                await self._remove_finalizer(pod)
                self._report(
                    f"{title(resources.PODS, str(meta.key(pod)))}: finalizer removed (the pod was kept for diagnosis)"
                )

    async def remove_manager(self) -> None:
        """Delete all objects in reverse order, except the CRDs and the namespace."""
        objects = installation_objects(self._namespace)
        for resource, key in reversed(objects):
            await self._remove(resource, key)
        for resource in (
            resources.CLUSTER_ROLE_BINDINGS,
            resources.CLUSTER_ROLES,
        ):  # including roles for users and for other installers
            for obj in filter(metadata.is_installed, await self._list(resource)):
                if (resource, meta.key(obj)) not in objects:
                    await self._remove(resource, meta.key(obj))
        lease = await self._client.find(resources.LEASES, ObjectKey(self._namespace, metadata.LEASE))
        if lease is not None:
            await self._delete(resources.LEASES, lease)
            self._report(f"{title(resources.LEASES, metadata.LEASE)} deleted")

    async def remove_definitions(self) -> None:
        """Delete the CRDs. No custom resources may exist."""
        for resource in reversed(MANAGED.custom_resources):
            await self._remove(resources.CUSTOM_RESOURCE_DEFINITIONS, ObjectKey("", resource.group_resource))

    async def remove_namespace(self) -> None:
        """Delete the namespace, unless it contains objects of other owners."""
        key = ObjectKey("", self._namespace)
        tenant = await self._other_owner()
        if tenant is not None:
            self._print(f"{title(resources.NAMESPACES, key.name)} not deleted, because it contains {tenant}")
        else:
            await self._remove(resources.NAMESPACES, key)

    async def _retained_objects(self) -> list[JSONObject]:
        pods = await self._client.list(resources.PODS, label_selector=labels.NAME)
        return [pod for pod in pods.items if is_pod_kept(pod)]

    async def _remove_finalizer(self, pod: JSONObject) -> None:
        change = release_pod(pod)
        write = self._client.try_patch if self._is_trial else self._client.patch
        with suppress(NotFoundError, ConflictError):  # it was deleted, and another object may have its name
            await write(change.resource, change.key, change.patch, kind=change.kind)

    def _report(self, line: str) -> None:
        self._print(line + DRY if self._is_trial else line)

    async def _list(self, resource: Resource) -> list[JSONObject]:
        """Return all objects of a kind, or no objects if the kind is not served."""
        try:
            return (await self._client.list(resource)).items
        except NotFoundError:
            return []

    async def _other_owner(self) -> str | None:
        for resource in TENANTS:
            for obj in (await self._client.list(resource, namespace=self._namespace)).items:
                if not (metadata.is_installed(obj) or meta.name(obj) in FURNITURE or meta.is_deleting(obj)):
                    return title(resource, meta.name(obj))
        return None

    async def _remove(self, resource: Resource, key: ObjectKey) -> None:
        """Delete an object if an installation created it, and wait until it is deleted."""
        live = await self._client.find(resource, key)
        if live is None:
            return
        if not metadata.is_installed(live):
            self._print(f"{title(resource, key.name)} not deleted, because it has no installation labels")
            return
        # Manager pods terminate gracefully with their permissions before the permissions are deleted.
        await self._delete(resource, live, "Foreground" if resource == resources.DEPLOYMENTS else "Background")
        await self._wait_until_deleted(resource, key)
        self._report(f"{title(resource, key.name)} deleted")

    async def _delete(self, resource: Resource, live: JSONObject, propagation: Propagation = "Background") -> None:
        if self._is_trial:
            return
        with suppress(NotFoundError):
            await self._client.delete(resource, meta.key(live), propagation=propagation, uid=meta.uid(live))

    async def _wait_until_deleted(self, resource: Resource, key: ObjectKey) -> None:
        if self._is_trial or await self._client.find(resource, key) is None:
            return
        informer = Informer(self._client, select_one(resource, key))
        await self._wait_until_none(informer, resource, informer.store.list)

    async def _wait_until_none(
        self, informer: Informer, resource: Resource, remaining: Callable[[], Iterable[JSONObject]]
    ) -> None:
        try:
            async with timeouts.within(self._timeout), following(informer) as objects:
                await objects.wait_for(lambda: None if any(True for _ in remaining()) else True)
        except TimeoutError as error:
            first = next(iter(remaining()), {})
            finalizers = meta.metadata(first).get("finalizers") if first else None
            reason = f", blocked by finalizers {', '.join(finalizers)}" if finalizers else ""
            name = title(resource, str(meta.key(first))) if first else resource.kind
            raise TimedOutError(
                f"{name} was not deleted within {self._timeout:g} s{reason}; rerun `lws uninstall`"
            ) from error


def is_dependent(obj: JSONObject) -> bool:
    """Return whether a custom resource is the owner of this object with `controller: true`."""
    owner = meta.controller_of(obj)
    return owner is not None and owner["kind"] in {resource.kind for resource in MANAGED.custom_resources}


def installation_objects(namespace: str) -> list[tuple[Resource, ObjectKey]]:
    """Return all objects that an installation can contain, in order, except CRDs and the namespace.

    If this cluster does not serve a kind, it has no objects to remove.
    """
    choices = (
        InstallSettings(namespace=namespace, certificates="cert-manager", prometheus="monitoring"),
        InstallSettings(namespace=namespace),
    )
    objects = [(kind, meta.key(obj)) for settings in choices for kind, obj in build_all(MANAGED, settings)]
    excluded = {resources.NAMESPACES, resources.CUSTOM_RESOURCE_DEFINITIONS}
    # The last position applies, so that webhook configurations are removed first.
    latest = dict.fromkeys(reversed([pair for pair in objects if pair[0] not in excluded]))
    return list(reversed(latest))


NAMED: Final = 3
"""The maximum number of objects in an error message."""


@click.command("uninstall")
@click.option(
    "--delete-workloads",
    "--delete-leaderworkersets",
    "deletes",
    is_flag=True,
    help="Delete all custom resources before the manager is removed.",
)
@click.option("--keep-crd", "keeps", is_flag=True, help="Keep the CRDs and all custom resources.")
@timeout_option("2m", "each object to be deleted")
@dry_run_option("Show the objects that would be deleted, without deleting them.")
@click.pass_obj
def command(target: Target, /, *, is_trial: bool, **options: Any) -> None:
    """Remove the manager from a cluster. If custom resources exist, you must set --delete-workloads or --keep-crd."""
    namespace, deletes, keeps = place(target), bool(options["deletes"]), bool(options["keeps"])
    if deletes and keeps:
        raise UsageError("--delete-workloads and --keep-crd cannot be combined")

    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        terminal.print_text(line)

    async def run_command(session: Session) -> None:
        installer = Installer(session.client, namespace, say)
        await installer.check_operator()
        await installer.check_namespace()
        remover = Remover(session.client, namespace, options["timeout"], say, is_trial=is_trial)
        if not (deletes or keeps):
            require_no_custom_resources(await remover.list_custom_resources())
        if keeps:
            require_no_evidence(await remover.list_evidence(), session.lws)
        await remove(remover, keeps=keeps)
        if keeps:  # the manager was active until it was deleted
            require_no_evidence(await remover.list_evidence(), session.lws)

    target.run(run_command)
    if not lines:
        click.echo("no objects to remove")


async def remove(remover: Remover, *, keeps: bool) -> None:
    """Remove all objects of the installation, or all objects except CRDs and custom resources."""
    if keeps:
        await remover.remove_manager()
        await remover.release_evidence()
        await remover.remove_namespace()
        click.echo(f"{kind_names()} and their pods are kept, but are not reconciled until you install a manager")
        return
    await remover.remove_sets()
    await remover.remove_manager()
    await remover.release_evidence()
    await remover.remove_definitions()
    await remover.remove_namespace()


def require_no_custom_resources(sets: Sequence[JSONObject]) -> None:
    """Raise an error if custom resources would be deleted."""
    if not sets:
        return
    names = join_names([f"{obj['kind'].lower()} {meta.key(obj)}" for obj in sets], NAMED)
    raise CommandError(
        f"custom resources would be deleted with their CRDs: {names}; use --delete-workloads to delete these objects, or --keep-crd to keep them"
    )


def require_no_evidence(evidence: Sequence[JSONObject], lws: str) -> None:
    """Raise an error if finalizers would prevent the deletion of pods. `lws` is the executable name."""
    if not evidence:
        return
    names = join_names([str(meta.key(pod)) for pod in evidence], NAMED)
    owners = dict.fromkeys((meta.namespace(pod), meta.labels(pod)[labels.NAME]) for pod in evidence)
    commands = "; ".join(f"{lws} recover {name} -n {namespace}" for namespace, name in [*owners][:NAMED])
    others = f"; and {len(owners) - NAMED} more" if len(owners) > NAMED else ""
    raise CommandError(
        f"pods of exhausted groups could not be deleted: {names}; recover these groups first ({commands}{others}), or remove finalizer "
        f"{labels.GROUP_RESTART_BUDGET_CLEANUP} from their pods"
    )


def kind_names() -> str:
    """Return the plural names of the kinds that the manager reconciles."""
    return ", ".join(f"{resource.kind}s" for resource in MANAGED.custom_resources)
