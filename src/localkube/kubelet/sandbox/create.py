"""Chooses the runner of pods."""

from pathlib import Path

from localkube.kubelet.processes.runner import Network, ProcessRunner
from localkube.kubelet.sandbox.launch import Isolation
from localkube.kubelet.sandbox.runner import SandboxRunner


def create_runner(*, network: Network, state_directory: Path, isolation: Isolation = "namespaces") -> ProcessRunner:
    """Return the runner for this machine.

    `isolation="plain"` forces plain processes; otherwise they are what is left when namespaces are refused. Use one
    `state_directory` per cluster: the launcher's log is there, and an empty directory that it mounts on.
    """
    return SandboxRunner(network=network, state_directory=state_directory, isolation=isolation)
