"""`lws must-gather`: writes diagnostic data to a directory."""

import base64
import binascii
import stat
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeAlias

import click
import msgspec

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request
from kuberuntime.errors import APIError, KubeError, NotFoundError
from kuberuntime.objects import meta, podstate, resources
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, SECRETS, Resource
from kuberuntime.texts import removedlogs
from kuberuntime.texts.masking import Mask, mask_message
from leaderworkerset.api import labels
from leaderworkerset.decisions.installedkinds import MANAGED, CertificateError, certificate_expiry
from leaderworkerset.install import rendering
from leaderworkerset.install.installsettings import CERTIFICATES, ISSUERS, NAMESPACE, SERVICE_MONITORS
from leaderworkerset.install.operatornames import OPERATOR, OPERATORS
from lwsctl.cli.cluster import recordings
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.errors import UsageError

OLM: Final = "operators.coreos.com"
OF_NAMESPACE: Final = (
    resources.DEPLOYMENTS,
    resources.PODS,
    resources.SERVICES,
    resources.CONFIG_MAPS,
    resources.SECRETS,
    resources.SERVICE_ACCOUNTS,
    resources.ROLES,
    resources.ROLE_BINDINGS,
    resources.NETWORK_POLICIES,
    resources.POD_DISRUPTION_BUDGETS,
    resources.LEASES,
    resources.EVENTS,
    ISSUERS,
    CERTIFICATES,
    SERVICE_MONITORS,
    Resource(OLM, "v1alpha1", "clusterserviceversions", "ClusterServiceVersion"),
    Resource(OLM, "v1alpha1", "subscriptions", "Subscription"),
    Resource(OLM, "v1alpha1", "installplans", "InstallPlan"),
    Resource(OLM, "v1", "operatorgroups", "OperatorGroup"),
)
"""The kinds whose objects are all collected in the namespaces of the manager and operator."""

OF_CLUSTER: Final = (
    OPERATORS,
    resources.CUSTOM_RESOURCE_DEFINITIONS,
    resources.CLUSTER_ROLES,
    resources.CLUSTER_ROLE_BINDINGS,
    resources.MUTATING_WEBHOOK_CONFIGURATIONS,
    resources.VALIDATING_WEBHOOK_CONFIGURATIONS,
    resources.MUTATING_ADMISSION_POLICIES,
    resources.MUTATING_ADMISSION_POLICY_BINDINGS,
)
"""Cluster-scoped kinds. Only the objects of an installation are collected, by name.

All webhook configurations are collected, because any of them may cause a problem.
"""

OF_GROUPS: Final = (resources.STATEFULSETS, resources.SERVICES, resources.CONTROLLER_REVISIONS, resources.PODS)
NAMED: Final = ("lws", "leaderworkerset", "disaggregatedset")
WHOLE: Final = (OPERATORS, resources.MUTATING_WEBHOOK_CONFIGURATIONS, resources.VALIDATING_WEBHOOK_CONFIGURATIONS)
LOG_BYTES: Final = 10 * 1024 * 1024
"""The maximum number of bytes to collect from the end of a log."""

Write: TypeAlias = Callable[[Resource, JSONObject], None]


class Gatherer(msgspec.Struct):
    """Collects the data of one cluster.

    `notes` lists objects that could not be read, and `unserved` lists kinds that are not served.
    """

    client: Client
    write: Write
    write_log: Callable[[str, bytes], None]
    notes: list[str] = msgspec.field(default_factory=list)
    unserved: set[str] = msgspec.field(default_factory=set)

    async def gather(self, namespaces: Sequence[str]) -> None:
        """Collect the installation in these namespaces and all workloads."""
        for kind in OF_CLUSTER:
            async for obj in self._list(kind):
                if kind in WHOLE or any(word in meta.name(obj) for word in NAMED):
                    self.write(kind, obj)
        for namespace in namespaces:
            await self._namespace(namespace)
        for kind in MANAGED.custom_resources:
            async for obj in self._list(kind):
                self.write(kind, obj)
        for kind in OF_GROUPS:
            async for obj in self._list(kind, selector=labels.NAME):
                self.write(kind, obj)

    async def _namespace(self, namespace: str) -> None:
        async for obj in self._list(resources.NAMESPACES, name=namespace):
            self.write(resources.NAMESPACES, obj)
        for kind in OF_NAMESPACE:
            async for obj in self._list(kind, namespace):
                self.write(kind, obj)
                if kind == resources.PODS:
                    await self._logs(obj)

    async def _list(
        self, kind: Resource, namespace: str = "", *, selector: str = "", name: str = ""
    ) -> AsyncIterator[JSONObject]:
        fields = f"metadata.name={name}" if name else ""
        try:
            listing = await self.client.list(kind, namespace=namespace, label_selector=selector, field_selector=fields)
        except NotFoundError:
            self.unserved.add(kind.group_resource)
            return
        except KubeError as error:
            self.notes.append(f"{kind.group_resource}{f' in {namespace}' if namespace else ''}: {error}")
            return
        for obj in listing.items:
            yield obj

    async def _logs(self, pod: JSONObject) -> None:
        for status in podstate.container_statuses(pod):
            await self._log(pod, status["name"], previous=False)
            if status.get("restartCount"):
                await self._log(pod, status["name"], previous=True)

    async def _log(self, pod: JSONObject, container: str, *, previous: bool) -> None:
        query = (("container", container), ("limitBytes", str(LOG_BYTES)), ("timestamps", "true"))
        more = (("previous", "true"),) if previous else ()
        path = resources.PODS.path(meta.namespace(pod), meta.name(pod), "log")
        target = log_file_path(pod, container, previous=previous)
        try:
            response = await self.client.send(Request("GET", path, (*query, *more)))
        except KubeError as error:
            self.notes.append(f"{target}: {error}")
            return
        if removedlogs.is_removed(response.body):
            self.notes.append(f"{target}: {response.body.decode(errors='replace')}")
        else:
            self.write_log(str(target), response.body)


CLUSTER: Final = PurePosixPath("cluster-scoped-resources")
NAMESPACES: Final = PurePosixPath("namespaces")
NOTES: Final = PurePosixPath("gather.log")
HISTORY: Final = PurePosixPath("history")
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def file_path(kind: Resource, obj: JSONObject) -> PurePosixPath:
    """Return the file path for an object.

    >>> str(file_path(PODS, {"metadata": {"namespace": "lws-system", "name": "web-0"}}))
    'namespaces/lws-system/pods/web-0/web-0.yaml'
    """
    name = meta.name(obj)
    if kind == PODS:
        return NAMESPACES / meta.namespace(obj) / kind.plural / name / f"{name}.yaml"
    folder = NAMESPACES / meta.namespace(obj) if kind.namespaced else CLUSTER
    return folder / (kind.group or "core") / kind.plural / f"{name}.yaml"


def log_file_path(pod: JSONObject, container: str, *, previous: bool) -> PurePosixPath:
    """Return the file path for a container log."""
    folder = NAMESPACES / meta.namespace(pod) / PODS.plural / meta.name(pod) / container / container / "logs"
    return folder / ("previous.log" if previous else "current.log")


def without_secrets(kind: Resource, obj: JSONObject) -> JSONObject:
    """Return an object without managed fields and possible secrets.

    For Secrets, only names and expiry times are kept.

    CRDs, roles and webhook configurations do not contain secrets, so their certificates are kept.
    """
    annotations = {name: text for name, text in meta.annotations(obj).items() if name != LAST_APPLIED}
    own = {name: value for name, value in meta.metadata(obj).items() if name not in {"managedFields", "annotations"}}
    head: dict[str, Any] = {**kind.type_meta, "metadata": own}
    if annotations:
        own["annotations"] = annotations
    if kind == SECRETS:
        keys = {name: _file_suffix(name, text) for name, text in sorted((obj.get("data") or {}).items())}
        return head | {"type": obj.get("type", ""), "keys": keys}
    rest = {name: value for name, value in obj.items() if name not in head}
    if kind in OF_CLUSTER and kind != OPERATORS:
        return head | rest
    mask = Mask()
    if kind == resources.CONFIG_MAPS:
        rest["data"] = mask.data(obj.get("data") or {})
    masked_object: JSONObject = mask.object(head | rest)
    return masked_object


def _file_suffix(name: str, text: str) -> str:
    if not name.endswith(".crt"):
        return "not shown"
    try:
        return f"a certificate that expires at {certificate_expiry(base64.b64decode(text)).isoformat()}"
    except (CertificateError, binascii.Error):
        return "no certificate"


PLACES: Final = (NAMESPACE, OPERATOR)
"""The default namespaces of the manager and operator. `-n` overrides them."""


@click.command("must-gather")
@click.option(
    "--dest-dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("must-gather"),
    show_default=True,
    help="Directory to write the files to. If the directory exists, it must be empty.",
)
@click.pass_obj
def command(target: Target, /, directory: Path) -> None:
    """Collect the objects and logs of the manager, and all LeaderWorkerSets, in a directory.

    The recorded failures of groups are included. For Secrets, only their names and the expiration dates of their
    certificates are collected. Values that look like secrets are masked in objects and logs. Other secret values, such as a
    key in a variable with an unusual name, might not be detected. Therefore, only the current user can read the files.
    """
    if directory.exists() and any(directory.iterdir()):
        raise UsageError(f"{directory} is not empty; specify a different directory with --dest-dir")
    _make_private(directory)
    directory.chmod(stat.S_IRWXU)
    files = 0

    def write(path: str, text: bytes) -> None:
        nonlocal files
        place = directory / path
        _make_private(place.parent)
        place.touch(mode=0o600)
        place.write_bytes(text)
        files += 1

    def write_object(kind: Resource, obj: JSONObject) -> None:
        write(str(file_path(kind, obj)), rendering.document(without_secrets(kind, obj)).encode())

    def write_log(path: str, text: bytes) -> None:
        write(path, mask_message(text.decode(errors="replace")).encode())

    async def run_command(session: Session) -> Gatherer:
        gatherer = Gatherer(session.client, write_object, write_log)
        await gatherer.gather((target.namespace,) if target.namespace else PLACES)
        try:
            episodes = await recordings.read_session(session, target.namespace or "")
        except APIError as error:
            gatherer.notes.append(f"recorded failures: {error}")
            return gatherer
        for episode in episodes:
            names = (episode.namespace, episode.lws, episode.group, f"{episode.number}.json")
            write(str(HISTORY.joinpath(*names)), msgspec.json.encode(episode))
        return gatherer

    gatherer = target.run(run_command)
    notes = gatherer.notes
    unserved = [f"not served: {', '.join(sorted(gatherer.unserved))}"] if gatherer.unserved else []
    write(str(NOTES), "".join(f"{note}\n" for note in [*notes, *unserved]).encode())
    click.echo(f"{directory}: {files} files; {len(notes)} kinds or logs could not be read ({NOTES})")
    click.echo("review the files before you share them, because only known forms of secrets are masked")


def _make_private(directory: Path) -> None:
    """Create a directory and its parents with access only for this user, regardless of the umask."""
    for missing in (*reversed(directory.parents), directory):
        if not missing.is_dir():
            missing.mkdir(mode=stat.S_IRWXU)
