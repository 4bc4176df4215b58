"""Reads the data for the checks of a cluster and of this machine.

Data that cannot be read is recorded as unreadable.
"""

import base64
import ctypes
import os
import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request
from kuberuntime.errors import APIError, ForbiddenError, KubeError, UnauthorizedError
from kuberuntime.objects import meta, resources, selectors
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import Resource
from leaderworkerset.api import labels, metadata
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.decisions.installedkinds import (
    MANAGED,
    MUTATING_NAME,
    SECRET_NAME,
    VALIDATING_NAME,
    admission_rejection,
    certificate_expiry,
    is_kind_served,
    read_kubernetes_version,
    split_certificates,
)
from leaderworkerset.decisions.managerconfiguration import (
    Configuration,
    ConfigurationError,
    parse_configuration,
    podpolicy,
)
from leaderworkerset.decisions.nodefit import GANG_PROVIDERS, KUBERNETES, NATIVE_GANG, POD_GROUPS
from leaderworkerset.install import installsettings
from leaderworkerset.install.workload import CONFIGURATION_KEY
from lwsctl.cli.cluster import clusterdirectories
from lwsctl.cli.cluster.accessreviews import Permission, is_allowed
from lwsctl.cli.cluster.target import Session
from lwsctl.cli.doctor.findings import Read, UnreadableObject
from lwsctl.cli.doctor.installationchecks import Access, CertificateExpiry, ClusterState
from lwsctl.cli.doctor.machine import Machine
from lwsctl.cli.doctor.podadmissionchecks import AdmissionFacts

if TYPE_CHECKING:
    from lwsctl.cli.local.hostgpus import GpuReport  # it may not be installed

LOCAL_QUEUES: Final = Resource("kueue.x-k8s.io", "v1beta1", "localqueues", "LocalQueue")
MOST_SETS: Final = 500
"""The maximum number of LeaderWorkerSets whose queue names are checked."""

EMBEDDED: Final = "+localkube"

NEEDED: Final = (
    *(
        Permission(verb, LEADERWORKERSETS.group, "leaderworkersets")
        for verb in ("get", "list", "watch", "create", "patch", "delete")
    ),
    Permission("patch", LEADERWORKERSETS.group, "leaderworkersets", "scale"),
    *(Permission(verb, "", "pods") for verb in ("get", "list", "watch")),
    Permission("get", "", "pods", "log"),
    Permission("create", "", "pods", "exec"),
    Permission("create", "", "pods", "portforward"),
    Permission("list", "", "events"),
    Permission("list", "apps", "controllerrevisions"),
)

TRIES_NAMESPACES: Final = """
import ctypes, os, sys
code = ctypes.CDLL(None, use_errno=True).unshare(0x10000000 | 0x00020000 | 0x20000000 | 0x40000000)
sys.exit(os.strerror(ctypes.get_errno()) if code else 0)
"""
"""The command that creates user, mount, PID and network namespaces, as the pod launcher does."""


async def observe(session: Session) -> ClusterState:
    """Read the data of a cluster."""
    client = session.client
    version = await read_kubernetes_version(client)
    configurations = {
        MUTATING_NAME: await _read(client, resources.MUTATING_WEBHOOK_CONFIGURATIONS, MUTATING_NAME),
        VALIDATING_NAME: await _read(client, resources.VALIDATING_WEBHOOK_CONFIGURATIONS, VALIDATING_NAME),
    }
    namespace = _namespace(configurations.values())
    definitions = MANAGED.definitions()
    kinds = {name: provider.group_objects for name, provider in GANG_PROVIDERS.items()} | {KUBERNETES: (POD_GROUPS,)}
    served = {name: not some or any([await _is_served(client, kind) for kind in some]) for name, some in kinds.items()}
    served["kueue"] = await _is_served(client, LOCAL_QUEUES)
    configured = await _configuration(client, namespace)
    rejection = await admission_rejection(client, session.namespace)
    return ClusterState(
        version=version,
        is_embedded=version.endswith(EMBEDDED),
        namespace=namespace,
        lws=session.lws,
        definitions={
            meta.name(definition): await _read(client, resources.CUSTOM_RESOURCE_DEFINITIONS, meta.name(definition))
            for definition in definitions
        },
        own_definitions=definitions,
        configurations=configurations,
        probe=None if rejection is None else str(rejection),
        certificates=await _certificates(client, namespace, configurations),
        accesses=await _accesses(client, session.namespace),
        deployment=await _read(client, resources.DEPLOYMENTS, metadata.MANAGER, namespace),
        managers=await _list_objects(client, [resources.PODS], namespace, selectors.format_labels(metadata.SELECTOR)),
        other_namespaces=await _other_manager_namespaces(client, namespace),
        lease=await _read(client, resources.LEASES, metadata.LEASE, namespace),
        gates=await _detect_feature_gates(client),
        pods=await _list_objects(client, [resources.PODS], session.namespace),
        pod_groups=await _list_objects(client, NATIVE_GANG.group_objects, session.namespace),
        provider=configured if isinstance(configured, UnreadableObject) else configured.gang_provider,
        served=served,
        queues=await _missing_queues(client, session.namespace, has_kueue=served["kueue"]),
        admission=await _admission(client, configured),
    )


async def _read(client: Client, kind: Resource, name: str, namespace: str = "") -> Read:
    try:
        return await client.find(kind, ObjectKey(namespace, name))
    except APIError as error:
        return UnreadableObject(str(error))


def _namespace(configurations: Iterable[Read]) -> str:
    """Return the namespace of the webhook Service, or the default namespace."""
    for configuration in configurations:
        if isinstance(configuration, dict):
            for hook in configuration.get("webhooks") or []:
                service = (hook.get("clientConfig") or {}).get("service") or {}
                if service.get("namespace"):
                    return str(service["namespace"])
    return installsettings.NAMESPACE


async def _certificates(
    client: Client, namespace: str, configurations: Mapping[str, Read]
) -> list[CertificateExpiry] | UnreadableObject:
    """Return the expiry times of the CA certificates in webhook configurations and of the serving certificate."""
    pems: dict[bytes, str] = {}
    for name, configuration in configurations.items():
        for hook in (configuration.get("webhooks") or []) if isinstance(configuration, dict) else []:
            bundle = (hook.get("clientConfig") or {}).get("caBundle") or ""
            for pem in split_certificates(base64.b64decode(bundle)) if bundle else ():
                pems.setdefault(pem, f"a CA in {name}")
    secret = await _read(client, resources.SECRETS, SECRET_NAME, namespace)
    if isinstance(secret, dict) and (chain := (secret.get("data") or {}).get("tls.crt")):
        for pem in split_certificates(base64.b64decode(chain))[:1]:
            pems[pem] = "the webhook certificate"
    if not pems:
        return UnreadableObject(secret.reason) if isinstance(secret, UnreadableObject) else []
    try:
        return [CertificateExpiry(what, certificate_expiry(pem)) for pem, what in pems.items()]
    except ValueError as error:
        return UnreadableObject(str(error))


async def _accesses(client: Client, namespace: str) -> list[Access] | UnreadableObject:
    accesses = []
    for permission in NEEDED:
        try:
            allowed = await is_allowed(client, permission, namespace)
        except APIError as error:
            return UnreadableObject(str(error))
        accesses.append(Access(permission.verb, permission.title, allowed))
    return accesses


async def _detect_feature_gates(client: Client) -> dict[str, bool] | UnreadableObject:
    try:
        response = await client.send(Request("GET", "/metrics"))
    except APIError as error:
        return UnreadableObject(str(error))
    gates = {}
    for line in response.body.splitlines():
        if line.startswith(b'kubernetes_feature_enabled{name="'):
            name = line.split(b'"')[1].decode(errors="replace")
            gates[name] = line.rstrip().endswith(b" 1")
    return gates


async def _other_manager_namespaces(client: Client, namespace: str) -> list[str]:
    """Return other namespaces with a manager Deployment. Return none without the permission to list Deployments."""
    with suppress(APIError):
        managers = await client.list(resources.DEPLOYMENTS, field_selector=f"metadata.name={metadata.MANAGER}")
        return sorted({meta.namespace(obj) for obj in managers.items} - {namespace})
    return []


async def _list_objects(
    client: Client, kinds: Iterable[Resource], namespace: str, selector: str = labels.NAME
) -> list[JSONObject]:
    """Return the objects of these kinds for LeaderWorkerSets. If a kind cannot be read, it has no objects."""
    objects: list[JSONObject] = []
    for kind in kinds:
        with suppress(APIError):
            objects += (await client.list(kind, namespace=namespace, label_selector=selector)).items
    return objects


async def _admission(client: Client, configured: Configuration | UnreadableObject) -> AdmissionFacts:
    """Read the policy that mutates pods at admission."""
    mode = configured if isinstance(configured, UnreadableObject) else configured.pod_admission
    if not all([await _is_served(client, kind) for kind in podpolicy.KINDS]):
        return AdmissionFacts(mode=mode)
    objects = {kind.kind: await _read(client, kind, podpolicy.NAME) for kind in podpolicy.KINDS}
    return AdmissionFacts(mode=mode, is_served=True, objects=objects)


async def _configuration(client: Client, namespace: str) -> Configuration | UnreadableObject:
    """Return the manager configuration, or the default configuration if none is installed."""
    config_map = await _read(client, resources.CONFIG_MAPS, metadata.CONFIGURATION, namespace)
    if not isinstance(config_map, dict):
        return config_map if isinstance(config_map, UnreadableObject) else Configuration()
    try:
        return parse_configuration(str((config_map.get("data") or {}).get(CONFIGURATION_KEY, "")).encode())
    except ConfigurationError as error:
        return UnreadableObject(str(error))


async def _is_served(client: Client, kind: Resource) -> bool:
    try:
        return await is_kind_served(client, kind)
    except (ForbiddenError, UnauthorizedError):
        return False


async def _missing_queues(client: Client, namespace: str, *, has_kueue: bool) -> list[str]:
    """Return the LeaderWorkerSets in the namespace whose LocalQueue does not exist."""
    try:
        sets = await client.list(
            LEADERWORKERSETS, namespace=namespace, label_selector=labels.QUEUE_NAME, limit=MOST_SETS
        )
        queues = await client.list(LOCAL_QUEUES, namespace=namespace) if has_kueue else None
    except KubeError:
        return []
    names = {meta.name(queue) for queue in queues.items} if queues else set()
    return [meta.name(lws) for lws in sets.items if meta.labels(lws)[labels.QUEUE_NAME] not in names]


def observe_machine() -> Machine:
    """Test the features of this machine that a local cluster requires."""
    directory = clusterdirectories.home()
    error, free = _check_directory(directory)
    return Machine(
        system=platform.system(),
        python=sys.version_info[:3],
        has_localkube=find_spec("localkube") is not None,
        namespaces=_check_namespaces(),
        hard_files=_hard_file_limit(),
        directory=str(directory),
        directory_error=error,
        free_bytes=free,
        port_error=_check_port(),
        gpus=_gpu_report(),
    )


def _hard_file_limit() -> int:
    """Return the hard limit for open files, or a large number if it is unlimited."""
    unlimited = 2**20
    try:
        import resource
    except ModuleNotFoundError:  # on Windows
        return unlimited
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return unlimited if hard == resource.RLIM_INFINITY else hard


def _gpu_report() -> "GpuReport | None":
    """Return a report about the GPUs of this machine, or None if there are no GPUs."""
    if find_spec("localkube") is None:
        return None
    from lwsctl.cli.local import hostgpus

    return hostgpus.report()


def _check_directory(directory: Path) -> tuple[str | None, int]:
    """Return the reason why the directory or its nearest parent is not writable, and the free space in bytes."""
    there = next(path for path in (directory, *directory.parents) if path.exists())
    if not there.is_dir():
        return f"{there} is not a directory", 0
    if not os.access(there, os.W_OK | os.X_OK):
        return f"{there} is not writable", 0
    return None, shutil.disk_usage(there).free


def _check_port() -> str | None:
    try:
        socket.create_server(("127.0.0.1", 0)).close()
    except OSError as error:
        return error.strerror or str(error)
    return None


def _check_namespaces() -> str | None:
    """Return the reason why namespaces cannot be created, which is tested in a separate process."""
    if platform.system() != "Linux" or not hasattr(ctypes, "CDLL"):
        return "not Linux"
    words = [sys.executable, "-I", "-c", TRIES_NAMESPACES]
    try:
        tried = subprocess.run(words, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if tried.returncode == 0 else tried.stderr.strip() or f"exit code {tried.returncode}"
