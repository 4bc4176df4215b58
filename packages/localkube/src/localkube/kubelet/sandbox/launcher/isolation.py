"""Runs pods in Linux namespaces, for a launcher for which `linuxnamespaces.enter` succeeded.

Per pod: UTS, IPC and network namespaces, held open by descriptors, and a tmpfs for /dev/shm. Per container: a PID
namespace (or the pod's) and a mount namespace, in which /tmp is a tmpfs with the host's entries bound into it. So pods
can use programs and files in the host's /tmp, and the sockets and files that they create there are separate. The
launcher creates a pod's namespaces by entering new ones and returning, so a pod without containers costs no process.
"""

import os
import signal
import socket
from contextlib import ExitStack, suppress
from typing import NamedTuple, NoReturn

from localkube.kubelet.processes import safeopen
from localkube.kubelet.processes.kernelerrors import RequestError

from .containerinit import adopt_orphans, send_signal
from .kernel import containerdisk, network, packetrules, syscalls
from .kernel.mountplan import Bind, OpenFile, plan
from .kernel.mounts import HostView, Root, build_root
from .kernel.network import BridgeNetwork
from .kernel.packetrules import PacketRule
from .launchspecs import Container, MountRequest, Pod
from .plainhost import NO_OWN_NETWORKS

_HOSTS_INSIDE = "/run/localkube"
_KERNEL_VIEWS = ("/proc", "/sys", "/dev")
_PRIVATE = ("/tmp",)  # noqa: S108 - what this gives a container is its own
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - the same
_MODE_SHM = "mode=1777"
_NO_RESOLVER = (
    "# Pods cannot connect to other networks. Only names in /etc/hosts can be resolved.\nnameserver 127.0.0.1\n"
)


class PodResources(NamedTuple):
    """The open namespaces of a pod."""

    uts: int
    ipc: int
    network: int | None
    init: int | None


class NamespaceHost:
    """Pods in namespaces. `run` is an empty host directory, on which the launcher mounts a separate tmpfs."""

    def __init__(self, run: str, gateway: str | None) -> None:
        syscalls.mount(None, None, "/", syscalls.MS_REC | syscalls.MS_SLAVE)
        self._run = run
        self._pods_directory = f"{run}/pods"
        self._point = f"{run}/root"
        syscalls.mount("tmpfs", "tmpfs", run, syscalls.MS_NOSUID | syscalls.MS_NODEV, "mode=755")
        for path in (self._pods_directory, self._point):
            os.mkdir(path)
        syscalls.mount("tmpfs", "tmpfs", self._pods_directory, syscalls.MS_NOSUID | syscalls.MS_NODEV, "mode=755")
        self.host_proc: int | None = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        syscalls.mount("proc", "proc", "/proc", syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC)
        syscalls.require_read_only_mounts()
        self._home = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        self._resources: dict[str, PodResources] = {}
        self._resolver = _NO_RESOLVER
        self._bridge: BridgeNetwork | None = None
        if gateway is not None:
            syscalls.unshare(syscalls.CLONE_NEWNET)
            self._bridge = BridgeNetwork(gateway)

    def own_pid(self) -> int:
        """Return the launcher's PID on the host."""
        return int(os.readlink("self", dir_fd=self.host_proc))

    def create(self, pod: Pod) -> None:
        """Create the namespaces of the pod and the files that its containers share. If a step fails, create none."""
        with ExitStack() as undo:
            undo.callback(self._remove_files, pod)
            self._make_files(pod)
            connected = None
            if self._bridge and not pod.host_network:
                connected = self._bridge.create(pod.address)
                undo.callback(self._bridge.remove, connected)
            uts, ipc = _make_names(pod.hostname)
            for fd in (uts, ipc):
                undo.callback(os.close, fd)
            init = self._fork_pod_init() if pod.share_process_namespace else None
            self._resources[pod.id] = PodResources(uts, ipc, connected, init)
            undo.pop_all()

    def remove(self, pod: Pod) -> None:
        """Release the pod's namespaces and files."""
        resources = self._resources.pop(pod.id)
        if resources.init is not None:
            send_signal(resources.init, signal.SIGKILL)
        os.close(resources.uts)
        os.close(resources.ipc)
        if self._bridge and resources.network is not None:
            self._bridge.remove(resources.network)
        self._remove_files(pod)

    def fork(self, pod: Pod) -> int:
        """Fork a child as PID 1 of a new namespace, or as a process in the namespace of the pod."""
        init = self._resources[pod.id].init
        if init is None:
            syscalls.unshare(syscalls.CLONE_NEWPID)
        else:
            handle = os.pidfd_open(init)
            syscalls.setns(handle, syscalls.CLONE_NEWPID)
            os.close(handle)
        return self._fork_and_return()

    def enter(self, pod: Pod, container: Container) -> None:
        """Move the forked child into the namespaces of the pod and a separate file system."""
        resources = self._resources[pod.id]
        syscalls.setns(resources.uts, syscalls.CLONE_NEWUTS)
        syscalls.setns(resources.ipc, syscalls.CLONE_NEWIPC)
        if resources.network is not None:
            syscalls.setns(resources.network, syscalls.CLONE_NEWNET)
        if resources.init is not None:
            adopt_orphans()
        syscalls.unshare(syscalls.CLONE_NEWNS)
        syscalls.mount(None, None, self._run, syscalls.MS_UNBINDABLE)  # so that the container's / does not repeat it
        build_root(self._plan_root(pod, container))

    def join(self, pod: Pod, first: int) -> None:
        """Move a forked child into a running container."""
        kinds = syscalls.CLONE_NEWNS | syscalls.CLONE_NEWPID | syscalls.CLONE_NEWUTS | syscalls.CLONE_NEWIPC
        if self._resources[pod.id].network is not None:
            kinds |= syscalls.CLONE_NEWNET
        handle = os.pidfd_open(first)
        syscalls.setns(handle, kinds)
        os.close(handle)

    def open_socket(self, pod: Pod | None) -> socket.socket:
        """Return a TCP socket in the network of the pod, or of the bridge."""
        connected = self._resources[pod.id].network if pod else None
        if connected is None:
            return socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        with network.inside(connected):
            return socket.socket(socket.AF_INET, socket.SOCK_STREAM)

    def stub_address(self, pod: Pod) -> str:
        """Return the wildcard address if the pod has a separate network, or the address of the pod otherwise."""
        return "0.0.0.0" if self._resources[pod.id].network is not None else pod.address  # noqa: S104 - of a namespace nobody else is in

    def attach(self, interface: str, gateway: str | None, nameserver: str) -> None:
        """Use this interface of the launcher's network to connect later pods to other networks."""
        if self._bridge is not None:
            self._bridge.attach(interface, gateway)
            self._resolver = f"nameserver {nameserver}\n"

    def lose(self, rules: list[PacketRule]) -> None:
        """Drop only the packets between pods that match these rules."""
        if self._bridge is not None:
            packetrules.replace(rules)
        elif rules:
            raise RequestError(NO_OWN_NETWORKS)

    def delay(self, pod: Pod, seconds: float) -> None:
        """Delay every packet to the pod by this time, or stop the delay if it is 0."""
        network = self._resources[pod.id].network
        if self._bridge is None or network is None:
            raise RequestError(NO_OWN_NETWORKS)
        self._bridge.delay(network, seconds)

    def bound(self, first: int, path: str, size: int) -> int:
        """Resize an in-memory file system of a running container, and return the previous size."""
        return containerdisk.resize(first, path, size)

    def _files(self, pod: Pod) -> str:
        return f"{self._pods_directory}/{pod.id}"

    def _make_files(self, pod: Pod) -> None:
        files = self._files(pod)
        os.makedirs(f"{files}/shm")
        syscalls.mount("tmpfs", "tmpfs", f"{files}/shm", syscalls.MS_NOSUID | syscalls.MS_NODEV, _MODE_SHM)
        for path, size in pod.memory:
            limit = f"mode=0777,size={size}" if size else "mode=0777"
            syscalls.mount("tmpfs", "tmpfs", path, syscalls.MS_NOSUID | syscalls.MS_NODEV, limit)
        os.symlink(f"{pod.hosts_directory}/hosts", f"{files}/hosts")
        os.symlink(f"{_HOSTS_INSIDE}/hosts", f"{files}/hosts-inside")
        _write(f"{files}/hostname", f"{pod.hostname}\n")
        _write(f"{files}/resolv.conf", self._resolver)

    def _remove_files(self, pod: Pod) -> None:
        files = self._files(pod)
        for path, _ in pod.memory:
            with suppress(OSError):  # not mounted, because creating the files failed
                syscalls.unmount(path)
        with suppress(OSError):  # not mounted, because creating the files failed
            syscalls.unmount(f"{files}/shm")
        with suppress(FileNotFoundError):
            os.rmdir(f"{files}/shm")
        for name in os.listdir(files):
            os.unlink(f"{files}/{name}")
        os.rmdir(files)

    def _fork_pod_init(self) -> int:
        syscalls.unshare(syscalls.CLONE_NEWPID)
        pid = self._fork_and_return()
        if pid == 0:
            _idle()
        return pid

    def _fork_and_return(self) -> int:
        pid = -1
        try:
            pid = os.fork()
        finally:
            if pid != 0:
                syscalls.setns(self._home, syscalls.CLONE_NEWPID)
        return pid

    def _plan_root(self, pod: Pod, container: Container) -> Root:
        source = os.path.realpath(container.root or "/")
        private = _PRIVATE if container.root is None and container.argv else ()  # a stub does not write files
        return Root(
            source=source,
            point=self._point,
            plan=plan(HostView(), source, self._mounts(pod, container), private=private),
            read_only=container.read_only_root,
            own_sysfs=self._bridge is not None,
            guard_kernel=os.geteuid() == 0,
        )

    def _mounts(self, pod: Pod, container: Container) -> list[Bind]:
        files = self._files(pod)
        memory = {os.path.realpath(path) for path, _ in pod.memory}
        own_mounts = [_open(mount, memory) for mount in container.mounts]
        mounts = [] if container.root is None else [Bind(view, view) for view in _KERNEL_VIEWS]
        if container.root is None and container.run_as_user is None and not _hides(own_mounts, pod.hosts_directory):
            mounts.append(Bind(f"{files}/hosts", "/etc/hosts"))
        else:
            mounts += [
                Bind(pod.hosts_directory, _HOSTS_INSIDE, read_only=True),
                Bind(f"{files}/hosts-inside", "/etc/hosts"),
            ]
        if self._bridge:
            mounts.append(Bind(f"{files}/resolv.conf", "/etc/resolv.conf"))
        elif container.root is not None:
            mounts.append(Bind(os.path.realpath("/etc/resolv.conf"), "/etc/resolv.conf"))
        return [
            *mounts,
            Bind(f"{files}/hostname", "/etc/hostname"),
            Bind(f"{files}/shm", _SHARED_MEMORY),
            *own_mounts,
        ]


def _open(mount: MountRequest, memory: set[str]) -> Bind:
    """Return the mount with its sub-path opened, because the containers of the pod could replace it.

    In a directory in memory, the sub-path is created here: the kubelet has no access to that file system.
    """
    source = os.path.realpath(mount.source)
    if not mount.sub_path:
        return Bind(source, mount.target, mount.read_only)
    try:
        handle = safeopen.open_inside(
            source, mount.sub_path, safeopen.OpenOptions(creates_directories=source in memory)
        )
    except safeopen.PathEscapeError as error:
        raise RequestError(
            f'mount {source}: subPath "{mount.sub_path}" leads outside the volume through a symbolic link'
        ) from error
    opened = OpenFile(handle, safeopen.is_directory(handle))
    return Bind(f"{source}/{mount.sub_path}", mount.target, mount.read_only, opened)


def _hides(mounts: list[Bind], path: str) -> bool:
    return any(f"{path}/".startswith(mount.target.rstrip("/") + "/") for mount in mounts)


def _make_names(hostname: str) -> tuple[int, int]:
    """Create UTS and IPC namespaces by entering them briefly."""
    kinds = (("/proc/self/ns/uts", syscalls.CLONE_NEWUTS), ("/proc/self/ns/ipc", syscalls.CLONE_NEWIPC))
    homes = [os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path, _ in kinds]
    try:
        syscalls.unshare(syscalls.CLONE_NEWUTS | syscalls.CLONE_NEWIPC)
        syscalls.set_hostname(hostname)
        uts, ipc = (os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path, _ in kinds)
    finally:
        for home, (_, kind) in zip(homes, kinds, strict=True):
            syscalls.setns(home, kind)
            os.close(home)
    return uts, ipc


def _idle() -> NoReturn:
    """Run as the PID 1 that the containers of a pod share, and reap children until killed."""
    syscalls.set_process_name("kube-pod")
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    os.closerange(0, 1 << 16)
    while True:
        signal.pause()


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
