"""Runs the real Kueue, if it was built, with its CRDs, a manager process, and local webhooks.

    async with kueue_manager(kubeconfig, client, directory): …

It is the program of tests/kubernetes/programs/kueue with the manifests of the same module, so that definitions and program agree.
"""

import asyncio
import base64
import contextlib
import os
import subprocess
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from tests.controlplane.process import StartError, free_ports, stop
from tests.kubernetes.programs import build
from tests.kueue.webhooks import FRAMEWORK

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request
from kuberuntime.clock import SystemClock
from kuberuntime.manifests.yamltext import SafeLoader
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    NAMESPACES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from leaderworkerset.webhooks import certificates

LOOPBACK: Final = "127.0.0.1"
NAMESPACE: Final = "kueue-system"
GROUP: Final = "kueue.x-k8s.io"
DISCOVERY: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
START_SECONDS: Final = 60.0
POLL: Final = 0.1

SERVED: Final = ("leaderworkerset", "pod", "clusterqueue", "localqueue", "resourceflavor", "workload", "topology")
"""The kinds, as prefixes of webhook names, that these tests use. The CRDs of other kinds are not installed."""

PLACED: Final = """
mount -t tmpfs tmpfs /etc
mkdir -p /etc/kueue/metrics
ln -s "$1" /etc/kueue/metrics/certs
shift
exec "$@"
"""
"""Kueue always reads its metrics certificate from a fixed path, so it runs with a separate `/etc`."""

CONFIGURATIONS: Final = {
    "MutatingWebhookConfiguration": MUTATING_WEBHOOK_CONFIGURATIONS,
    "ValidatingWebhookConfiguration": VALIDATING_WEBHOOK_CONFIGURATIONS,
}


@asynccontextmanager
async def kueue_manager(kubeconfig: Path, client: Client, directory: Path) -> AsyncIterator[None]:
    """Install Kueue, and run its manager within the `with` block. Raise StartError if it does not start."""
    program = build.KUEUE.find()
    assert program is not None, build.KUEUE.missing
    webhook, health = free_ports(2)
    now = SystemClock().now()
    authority = certificates.create_authority(now)
    serving = certificates.issue(authority, [LOOPBACK], now)
    (directory / "tls.crt").write_bytes(serving.certificate)
    (directory / "tls.key").write_bytes(serving.key)
    (directory / "config.yaml").write_text(yaml.safe_dump(configuration(directory, webhook, health)))
    manifests = program.parent / build.MANIFESTS
    url = f"https://{LOOPBACK}:{webhook}"
    made = list(definitions(manifests, access(url, "/convert", authority.certificate)))
    for definition in made:
        await client.apply(CUSTOM_RESOURCE_DEFINITIONS, definition, manager="kueue")
    async with asyncio.timeout(START_SECONDS):
        await _await_discovered(client, {meta.spec(definition)["names"]["plural"] for definition in made})
    await client.apply(NAMESPACES, typed(NAMESPACES) | named(NAMESPACE), manager="kueue")
    process = _start(program, kubeconfig, directory)
    try:
        await _await_ready(process, health, directory / "kueue.log")
        for configured in webhooks(manifests, url, authority.certificate):
            await client.apply(CONFIGURATIONS[configured["kind"]], configured, manager="kueue")
        yield
    finally:
        await asyncio.to_thread(stop, process)


def configuration(directory: Path, webhook: int, health: int) -> JSONObject:
    """Build the configuration of Kueue, which manages LeaderWorkerSets through their pods."""
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": f"{LOOPBACK}:{health}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": LOOPBACK, "port": webhook, "certDir": str(directory)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "clientConnection": {"qps": 300, "burst": 500},
        "integrations": {"frameworks": ["pod", FRAMEWORK]},
    }


def definitions(manifests: Path, converter: JSONObject) -> Iterator[JSONObject]:
    """Yield the CRDs of Kueue's kinds, with their conversion webhooks."""
    crd = manifests / "crd"
    patches = {Path(one["path"]).stem for one in _load(crd / "kustomization.yaml")["patches"]}
    conversion = {"strategy": "Webhook", "webhook": {"clientConfig": converter, "conversionReviewVersions": ["v1"]}}
    for path in sorted((crd / "bases").glob("*.yaml")):
        definition = _load(path)
        if f"webhook_in_{meta.spec(definition)['names']['plural']}" in patches:
            meta.spec(definition)["conversion"] = conversion
        yield definition


def webhooks(manifests: Path, url: str, authority: bytes) -> Iterator[JSONObject]:
    """Yield Kueue's webhook configurations under their released names. The used webhooks have a URL."""
    text = (manifests / "webhook" / "manifests.yaml").read_text()
    for obj in yaml.load_all(text, Loader=SafeLoader):
        served = [one for one in obj["webhooks"] if one["name"][1:].startswith(SERVED)]
        for one in served:
            one["clientConfig"] = access(url, one["clientConfig"]["service"]["path"], authority)
        yield obj | named(f"kueue-{meta.name(obj)}") | {"webhooks": served}


def access(url: str, path: str, authority: bytes) -> JSONObject:
    """Return the `clientConfig` of a webhook."""
    return {"url": url + path, "caBundle": base64.b64encode(authority).decode()}


def _load(path: Path) -> JSONObject:
    found: JSONObject = yaml.load(path.read_text(), Loader=SafeLoader)
    return found


def named(name: str) -> dict[str, Any]:
    """Return the metadata of an object with this name."""
    return {"metadata": {"name": name}}


def typed(resource: Resource) -> JSONObject:
    """Return the API version and kind of an object of this kind."""
    return {"apiVersion": resource.api_version, "kind": resource.kind}


def _start(program: Path, kubeconfig: Path, directory: Path) -> "subprocess.Popen[bytes]":
    with (directory / "kueue.log").open("wb") as log:
        return subprocess.Popen(
            [
                *("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", PLACED, "kueue", str(directory)),
                str(program),
                f"--config={directory / 'config.yaml'}",
                "--feature-gates=VisibilityOnDemand=false",
                "--zap-log-level=2",
            ],
            env=os.environ | {"KUBECONFIG": str(kubeconfig), "GOGC": "300"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


async def _await_discovered(client: Client, plurals: set[str]) -> None:
    """Wait until clients can discover these kinds."""
    asked = Request("GET", "/apis", (), {"accept": DISCOVERY})
    while True:
        groups = msgspec.json.decode((await client.send(asked)).body)["items"]
        found = {
            resource["resource"]
            for group in groups
            if group["metadata"]["name"] == GROUP
            for version in group["versions"]
            for resource in version.get("resources", [])
        }
        if plurals <= found:
            return
        await asyncio.sleep(POLL)


async def _await_ready(process: "subprocess.Popen[bytes]", health: int, log: Path) -> None:
    """Wait until the manager is ready."""
    deadline = asyncio.get_running_loop().time() + START_SECONDS
    while not await _is_ready(health):
        if process.poll() is not None or asyncio.get_running_loop().time() > deadline:
            raise StartError(f"Kueue is not ready: {_end_of(log)}")
        await asyncio.sleep(POLL)


async def _is_ready(health: int) -> bool:
    return await asyncio.to_thread(_answers, f"http://{LOOPBACK}:{health}/readyz")


def _answers(url: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=2) as answer:
        return bool(answer.status == 200)
    return False


def _end_of(log: Path) -> str:
    return log.read_text(errors="replace")[-3000:]
