"""Checks whether this machine supports the clusters of `lws up` and `lws run`, based on observed data. Pure."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from lwsctl.cli.doctor.findings import CheckResult, Level

if TYPE_CHECKING:
    from lwsctl.cli.local.hostgpus import GpuReport  # it may not be installed

OLDEST_PYTHON: Final = (3, 11)
FILES_OF_A_POD: Final = 8
"""The maximum number of files that one pod opens in the cluster process and the launcher."""

FEW_PODS: Final = 100
LEAST_SPACE: Final = 512 * 2**20
LONGEST_PATH: Final = 60
"""The maximum length of the state directory path in bytes, because socket paths are limited to 107 bytes."""


class Machine(Struct, frozen=True, kw_only=True):
    """The observed state of this machine.

    `namespaces` and `directory_error` are None, or contain the reason why creating them fails.
    """

    system: str
    python: tuple[int, int, int]
    has_localkube: bool
    namespaces: str | None
    hard_files: int
    directory: str
    directory_error: str | None
    free_bytes: int
    port_error: str | None
    gpus: "GpuReport | None" = None


def findings(machine: Machine) -> Iterator[CheckResult]:
    """Yield the results of the checks of this machine."""
    yield _check_python(machine)
    if not machine.has_localkube:
        text = "local clusters are not available, because the package localkube is not installed"
        fix = "to use local clusters, run `pip install 'lwsctl[local]'`"
        yield CheckResult("LWS-D002", Level.NOTE, "localkube", text, fix)
        return
    yield _check_namespaces(machine)
    yield _check_file_limit(machine)
    yield from _check_directory(machine)
    if machine.port_error:
        text = f"cannot listen on 127.0.0.1: {machine.port_error}"
        fix = "check `ip address show lo` and the firewall of this machine"
        yield CheckResult("LWS-D006", Level.ERROR, "ports", text, fix)
    else:
        yield CheckResult("LWS-D006", Level.OK, "ports", "can listen on 127.0.0.1")
    if machine.gpus is not None:
        yield from _check_gpus(machine.gpus)


def _check_gpus(report: "GpuReport") -> Iterator[CheckResult]:
    """Yield the results for the GPUs of this machine, which `--gpus host` provides to containers."""
    if report.problem or not report.count:
        text = report.problem or "the driver responds, but no GPU is visible"
        fix = "to use --gpus host, check `nvidia-smi -L` and CUDA_VISIBLE_DEVICES"
        yield CheckResult("LWS-D009", Level.NOTE, "gpus", text, fix)
        return
    yield CheckResult("LWS-D009", Level.OK, "gpus", f"{report.count} available for containers; driver {report.driver}")
    if report.failing:
        text = f"GPUs that do not respond: {'; '.join(report.failing)}"
        yield CheckResult(
            "LWS-D014",
            Level.WARNING,
            "gpus",
            text,
            "check `dmesg` for XID errors, and reset the GPU or restart the machine",
        )
    if report.busy:
        text = f"other processes use GPUs: {'; '.join(report.busy)}"
        yield CheckResult(
            "LWS-D015",
            Level.WARNING,
            "gpus",
            text,
            "list the processes with `nvidia-smi`, and stop unneeded processes",
        )
    if report.apart:
        text = f"{len(report.apart)} pairs of GPUs have no peer access, such as {report.apart[0]}, so NCCL copies data through host memory"
        yield CheckResult("LWS-D016", Level.NOTE, "gpus", text, "to show the peer access, run `nvidia-smi topo -p2p r`")


def _check_python(machine: Machine) -> CheckResult:
    version = ".".join(map(str, machine.python))
    if machine.python[:2] < OLDEST_PYTHON:
        return CheckResult("LWS-D001", Level.ERROR, "python", f"{version} is too old", "use Python 3.11 or newer")
    return CheckResult("LWS-D001", Level.OK, "python", version)


def _check_namespaces(machine: Machine) -> CheckResult:
    if machine.namespaces is None:
        return CheckResult("LWS-D003", Level.OK, "namespaces", "pods can have separate namespaces")
    if machine.system != "Linux":
        text = f"{machine.system} does not support namespaces, so pods run as plain processes"
        return CheckResult("LWS-D003", Level.NOTE, "namespaces", text)
    text = (
        f"pods cannot have separate namespaces ({machine.namespaces}), so they run as plain processes on shared ports"
    )
    fix = "to allow user namespaces, set the sysctls kernel.unprivileged_userns_clone=1 and kernel.apparmor_restrict_unprivileged_userns=0, and set user.max_user_namespaces to a value greater than 0; if lws runs in a container, also change its security options"
    return CheckResult("LWS-D003", Level.WARNING, "namespaces", text, fix)


def _check_file_limit(machine: Machine) -> CheckResult:
    pods = machine.hard_files // FILES_OF_A_POD
    text = f"{machine.hard_files} open files are allowed, which is enough for about {pods} pods"
    if pods < FEW_PODS:
        fix = "increase the hard limit with `ulimit -Hn`, or with LimitNOFILE= in systemd"
        return CheckResult("LWS-D004", Level.WARNING, "limits", text, fix)
    return CheckResult("LWS-D004", Level.OK, "limits", text)


def _check_directory(machine: Machine) -> Iterator[CheckResult]:
    hint = "set LWS_STATE_HOME to a writable directory"
    if machine.directory_error:
        yield CheckResult("LWS-D005", Level.ERROR, "state", f"{machine.directory}: {machine.directory_error}", hint)
    elif len(machine.directory.encode()) > LONGEST_PATH:
        text = f"{machine.directory} is too long, because socket paths are limited to 107 bytes"
        yield CheckResult("LWS-D007", Level.WARNING, "state", text, "set LWS_STATE_HOME to a shorter path")
    elif machine.free_bytes < LEAST_SPACE:
        text = f"{machine.directory} has {machine.free_bytes // 2**20} MiB of free space"
        fix = "free disk space"
        yield CheckResult("LWS-D008", Level.WARNING, "state", text, fix)
    else:
        yield CheckResult("LWS-D005", Level.OK, "state", f"{machine.directory} is writable")
