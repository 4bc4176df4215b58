"""Manages the hosts files of the cluster, which replace DNS.

Every namespace has one file, which all its pods share; a pod with `hostAliases` has its own. A file contains

- each pod of the namespace under its host name,
- each pod with hostname and subdomain that a Service backs, as `<hostname>.<subdomain>.<namespace>`, with
  `.svc` and `.svc.<cluster domain>`, and within its namespace also as `<hostname>.<subdomain>`,
- each Service's name, in the same forms, with the addresses of all its pods: no Service has an address of its own.

A Service has the addresses of ready pods, or of all if it publishes addresses that are not ready. Only lines that
changed are built again; a file is replaced by rename. Pods that start together share one write of the files. The pause
between two writes grows with the size of the files: a thousand pods must not write a thousand files of a thousand
lines.
"""

import asyncio
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import structlog
from msgspec import Struct, field

from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import UID, JSONObject
from kuberuntime.objects.selectors import selects
from localkube.kubelet.spec import podspec

RETRY: Final = 10.0
"""The time in seconds until files are rewritten after an error such as a full disk."""

REST: Final = 4
"""The pause after writing the files, as a multiple of the duration of the write."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

HEADER: Final = """\
127.0.0.1 localhost
::1 localhost ip6-localhost ip6-loopback
"""
"""The first lines of each file.

It has no comment: nss_wrapper, which resolves names for plain processes, rejects comments.
"""


class HostsLines(Struct, frozen=True):
    """The lines of one pod, for its namespace and for other namespaces."""

    own_namespace: str
    other_namespaces: str


NOTHING: Final = HostsLines("", "")


def is_published(service: JSONObject, pod: JSONObject) -> bool:
    """Return whether the name of the Service includes the address of the pod."""
    if meta.spec(service).get("type") == "ExternalName" or not selects(service, pod):
        return False
    ready = podstate.stays_ready(pod)
    return ready or bool(meta.spec(service).get("publishNotReadyAddresses"))


def pod_lines(pod: JSONObject, ip: str, services: Iterable[JSONObject], domain: str) -> HostsLines:
    """Return the lines of one pod. `services` are the Services of its namespace."""
    if not ip or podstate.has_ended(pod):
        return NOTHING
    near, far = [], []
    own_names = [podspec.hostname(pod)]
    for service in sorted(filter(lambda service: is_published(service, pod), services), key=meta.name):
        names = _names(meta.name(service), pod, domain)
        near.append(names)
        far.append(names[:-1])
        if meta.spec(pod).get("hostname") and meta.spec(pod).get("subdomain") == meta.name(service):
            own = _names(f"{podspec.hostname(pod)}.{meta.name(service)}", pod, domain)
            own_names = [*own, *own_names]
            far.append(own[:-1])
    return HostsLines(_hosts_file(ip, [own_names, *near]), _hosts_file(ip, far))


def _names(name: str, pod: JSONObject, domain: str) -> list[str]:
    """Return the forms of a name, from the full name to the short name for its namespace."""
    namespace = meta.namespace(pod)
    return [f"{name}.{namespace}.svc.{domain}", f"{name}.{namespace}.svc", f"{name}.{namespace}", name]


def _hosts_file(ip: str, lines: Iterable[list[str]]) -> str:
    return "".join(f"{ip} {' '.join(names)}\n" for names in lines)


class _Namespace(Struct):
    pods: dict[UID, tuple[JSONObject, str]] = field(default_factory=dict)
    services: dict[str, JSONObject] = field(default_factory=dict)
    lines: dict[UID, HostsLines] = field(default_factory=dict)
    private: dict[UID, str] = field(default_factory=dict)
    by_label: dict[tuple[str, str], dict[str, JSONObject]] = field(default_factory=dict)

    def put_service(self, service: JSONObject) -> None:
        """Add a Service, indexed by one of the labels in its selector."""
        self.remove_service(meta.name(service))
        self.services[meta.name(service)] = service
        for label in _first_label(service):
            self.by_label.setdefault(label, {})[meta.name(service)] = service

    def remove_service(self, name: str) -> None:
        """Remove a Service."""
        service = self.services.pop(name, None)
        for label in _first_label(service or {}):
            self.by_label[label].pop(name)
            if not self.by_label[label]:
                del self.by_label[label]

    def services_of(self, pod: JSONObject) -> list[JSONObject]:
        """Return the Services that can select the pod according to the index. This does not check all Services."""
        return [service for label in meta.labels(pod).items() for service in self.by_label.get(label, {}).values()]


def _first_label(service: JSONObject) -> list[tuple[str, str]]:
    selector: Mapping[str, str] = meta.spec(service).get("selector") or {}
    return sorted(selector.items())[:1]


class HostsFiles:
    """Updates the files in `root`."""

    def __init__(self, root: Path, domain: str) -> None:
        self._root = root
        self._domain = domain
        self._namespaces: dict[str, _Namespace] = {}
        self._stale: set[str] = set()
        self._changed = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []

    def directory(self, pod: JSONObject) -> Path:
        """Return the directory of the pod's hosts file, and create the file if required."""
        namespace = meta.namespace(pod)
        aliases = _alias_lines(pod)
        if not aliases:
            return self._shared_path(namespace)
        self._namespace(namespace).private[meta.uid(pod)] = aliases
        self._mark_changed(namespace)
        return self._private(pod)

    def set_pod(self, pod: JSONObject, ip: str) -> None:
        """Record a pod and its address, which is an empty string if the pod has no address yet."""
        namespace = self._namespace(meta.namespace(pod))
        namespace.pods[meta.uid(pod)] = (pod, ip)
        self._set_lines(meta.namespace(pod), pod, ip)

    def remove_pod(self, pod: JSONObject) -> None:
        """Remove a pod."""
        namespace = self._namespace(meta.namespace(pod))
        namespace.pods.pop(meta.uid(pod), None)
        if namespace.private.pop(meta.uid(pod), None) is not None:
            shutil.rmtree(self._private(pod), ignore_errors=True)
        self._mark_changes(meta.namespace(pod), namespace.lines.pop(meta.uid(pod), NOTHING), NOTHING)
        self._forget_empty(meta.namespace(pod))

    def set_service(self, service: JSONObject) -> None:
        """Record a Service."""
        namespace = self._namespace(meta.namespace(service))
        old = namespace.services.get(meta.name(service), service)
        namespace.put_service(service)
        self._rebuild_lines(meta.namespace(service), old, service)

    def remove_service(self, service: JSONObject) -> None:
        """Remove a Service."""
        self._namespace(meta.namespace(service)).remove_service(meta.name(service))
        self._rebuild_lines(meta.namespace(service), service)
        self._forget_empty(meta.namespace(service))

    def flush(self) -> None:
        """Write the files whose content changed.

        After an `OSError`, the remaining files are written the next time.
        """
        self._changed.clear()
        while self._stale:
            name = next(iter(self._stale))
            namespace = self._namespaces[name]
            content = self._render(name)
            _write(self._shared_path(name), content)
            for uid, aliases in namespace.private.items():
                _write(self._private(namespace.pods[uid][0]), content + aliases)
            self._stale.discard(name)

    async def wait_until_written(self) -> None:
        """Wait until the files contain the current state. Raise the `OSError` if they cannot be written."""
        if self._stale:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter

    async def run(self) -> None:
        """Write files after each change, until cancelled."""
        clock = asyncio.get_running_loop().time
        while True:
            await self._changed.wait()
            begin = clock()
            try:
                self.flush()
            except OSError as error:  # no space on the disk
                log.warning("failed to update hosts files, retrying", error=str(error))
                self._release(error)
                self._changed.set()
                await asyncio.sleep(RETRY)
            else:
                self._release(None)
                await asyncio.sleep(REST * (clock() - begin))

    def _release(self, error: OSError | None) -> None:
        waiters, self._waiting = self._waiting, []
        for waiter in waiters:
            if waiter.done():  # the waiting task was cancelled
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)

    def _namespace(self, name: str) -> _Namespace:
        if name not in self._namespaces:
            self._namespaces[name] = _Namespace()
            self._stale.add(name)
        return self._namespaces[name]

    def _forget_empty(self, name: str) -> None:
        """Remove a namespace without pods and Services, and its file, which is no longer read."""
        namespace = self._namespaces[name]
        if namespace.pods or namespace.services:
            return
        del self._namespaces[name]
        self._stale.discard(name)
        shutil.rmtree(self._shared_path(name), ignore_errors=True)

    def _rebuild_lines(self, name: str, *services: JSONObject) -> None:
        """Rebuild the lines of the pods that a Service selects, or selected before the change."""
        for pod, ip in self._namespaces[name].pods.values():
            if any(selects(service, pod) for service in services):
                self._set_lines(name, pod, ip)

    def _set_lines(self, name: str, pod: JSONObject, ip: str) -> None:
        namespace = self._namespaces[name]
        lines = pod_lines(pod, ip, namespace.services_of(pod), self._domain)
        old = namespace.lines.get(meta.uid(pod), NOTHING)
        namespace.lines[meta.uid(pod)] = lines
        self._mark_changes(name, old, lines)

    def _mark_changes(self, name: str, old: HostsLines, new: HostsLines) -> None:
        if new.own_namespace != old.own_namespace:
            self._mark_changed(name)
        if new.other_namespaces != old.other_namespaces:
            for other in self._namespaces:
                self._mark_changed(other)

    def _mark_changed(self, name: str) -> None:
        self._stale.add(name)
        self._changed.set()

    def _render(self, name: str) -> str:
        near = [lines.own_namespace for lines in self._namespaces[name].lines.values()]
        others = [namespace for other, namespace in self._namespaces.items() if other != name]
        far = [lines.other_namespaces for namespace in others for lines in namespace.lines.values()]
        return "".join([HEADER, *near, *far])

    def _shared_path(self, namespace: str) -> Path:
        return self._root / namespace

    def _private(self, pod: JSONObject) -> Path:
        return self._root / f"{meta.namespace(pod)}.{meta.uid(pod)}"


def _alias_lines(pod: JSONObject) -> str:
    aliases = meta.spec(pod).get("hostAliases") or []
    return "".join(f"{alias['ip']} {' '.join(alias.get('hostnames') or [])}\n" for alias in aliases)


def _write(directory: Path, content: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    fresh = directory / "hosts.new"
    fresh.write_text(content)
    fresh.replace(directory / "hosts")
