"""The requests of the runner to the launcher, as messages; `launcher/launchedpods.py` reads them."""

from localkube.kubelet.processes.runner import ContainerSpec, SandboxSpec
from localkube.kubelet.sandbox.launcher.link import Message


def create(spec: SandboxSpec, address: str) -> Message:
    """Return the request for a pod's sandbox."""
    return {
        "pod": {
            "id": spec.id,
            "hostname": spec.hostname,
            "address": address,
            "directory": str(spec.directory.absolute()),
            "hosts_directory": str(spec.hosts_directory.absolute()),
            "host_network": spec.host_network,
            "share_processes": spec.share_process_namespace,
        }
    }


def start(spec: ContainerSpec) -> Message:
    """Return the request for a container."""
    return {
        "key": spec.id,
        "pod": spec.sandbox_id,
        "container": {
            "id": spec.id,
            "program": {
                "argv": list(spec.argv),
                "env": dict(spec.env),
                "cwd": spec.cwd,
                "user": spec.run_as_user,
                "group": spec.run_as_group,
                "limits": dict(spec.limits),
            },
            "mounts": [
                [str(mount.source.absolute()), mount.target, mount.read_only, mount.sub_path] for mount in spec.mounts
            ],
            "root": None if spec.root is None else str(spec.root.absolute()),
            "read_only_root": spec.read_only_root,
            "stub_ports": list(spec.stub_ports),
        },
    }
