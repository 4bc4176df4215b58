"""Checks of this machine, for the clusters that `lws up` and `lws run` start. Pure: facts in, results out."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from leaderworkerset.cli.doctor.findings import CheckResult, Level

if TYPE_CHECKING:
    from leaderworkerset.cli.local.hostgpus import GpuReport  # it may not be installed

OLDEST_PYTHON: Final = (3, 11)
FILES_OF_A_POD: Final = 8
"""The maximum open files of a pod, those of the cluster's process and of the launcher together."""

FEW_PODS: Final = 100
LEAST_SPACE: Final = 512 * 2**20
LONGEST_PATH: Final = 60
"""The maximum bytes of the state directory's path: sockets are below it, whose paths the kernel limits to 107 bytes."""


class Machine(Struct, frozen=True, kw_only=True):
    """The observed facts. `namespaces`: None if they can be made, else why not; `directory_error` likewise."""

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


def findings(found: Machine) -> Iterator[CheckResult]:
    """Yield the results for this machine."""
    yield _python(found)
    if not found.has_localkube:
        text = "the package localkube is not installed: no clusters of this machine"
        fix = "pip install 'leaderworkerset[local]', if you want them"
        yield CheckResult("LWS-D002", Level.NOTE, "localkube", text, fix)
        return
    yield _namespaces(found)
    yield _files(found)
    yield from _directory(found)
    if found.port_error:
        text = f"no port of 127.0.0.1 can be listened on: {found.port_error}"
        fix = "see `ip address show lo` and the firewall of this machine"
        yield CheckResult("LWS-D006", Level.ERROR, "ports", text, fix)
    else:
        yield CheckResult("LWS-D006", Level.OK, "ports", "ports of 127.0.0.1 can be listened on")
    if found.gpus is not None:
        yield from _gpus(found.gpus)


def _gpus(found: "GpuReport") -> Iterator[CheckResult]:
    """Yield the results for the GPUs of this machine, which `--gpus host` gives to containers."""
    if found.problem or not found.count:
        text = found.problem or "the driver answers, and no GPU is visible"
        fix = "see `nvidia-smi -L` and CUDA_VISIBLE_DEVICES, if you want --gpus host"
        yield CheckResult("LWS-D009", Level.NOTE, "gpus", text, fix)
        return
    yield CheckResult("LWS-D009", Level.OK, "gpus", f"{found.count} can be given to containers; driver {found.driver}")
    if found.failing:
        text = f"GPUs that do not answer: {'; '.join(found.failing)}"
        yield CheckResult(
            "LWS-D010", Level.WARNING, "gpus", text, "see `dmesg` for the XID; a reset or a restart may help"
        )
    if found.busy:
        text = f"other programs use GPUs: {'; '.join(found.busy)}"
        yield CheckResult(
            "LWS-D011", Level.WARNING, "gpus", text, "`nvidia-smi` lists the programs; end those you do not need"
        )
    if found.apart:
        text = f"{len(found.apart)} pairs of GPUs have no peer access, such as {found.apart[0]}: NCCL copies through memory"
        yield CheckResult("LWS-D012", Level.NOTE, "gpus", text, "see `nvidia-smi topo -p2p r`")


def _python(found: Machine) -> CheckResult:
    version = ".".join(map(str, found.python))
    if found.python[:2] < OLDEST_PYTHON:
        return CheckResult("LWS-D001", Level.ERROR, "python", f"{version} is too old", "use Python 3.11 or newer")
    return CheckResult("LWS-D001", Level.OK, "python", version)


def _namespaces(found: Machine) -> CheckResult:
    if found.namespaces is None:
        return CheckResult("LWS-D003", Level.OK, "namespaces", "pods can have namespaces of their own")
    if found.system != "Linux":
        text = f"{found.system} has no namespaces: pods run as plain processes"
        return CheckResult("LWS-D003", Level.NOTE, "namespaces", text)
    text = f"pods cannot have namespaces of their own ({found.namespaces}): they run as plain processes, on ports they share"
    fix = (
        "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1, "
        "kernel.apparmor_restrict_unprivileged_userns=0, user.max_user_namespaces above 0; in a container, its security options"
    )
    return CheckResult("LWS-D003", Level.WARNING, "namespaces", text, fix)


def _files(found: Machine) -> CheckResult:
    pods = found.hard_files // FILES_OF_A_POD
    text = f"{found.hard_files} open files are allowed: enough for about {pods} pods"
    if pods < FEW_PODS:
        fix = "raise the hard limit: `ulimit -Hn`, or LimitNOFILE= of systemd"
        return CheckResult("LWS-D004", Level.WARNING, "limits", text, fix)
    return CheckResult("LWS-D004", Level.OK, "limits", text)


def _directory(found: Machine) -> Iterator[CheckResult]:
    hint = "set LWS_STATE_HOME to a directory that you may write to"
    if found.directory_error:
        yield CheckResult("LWS-D005", Level.ERROR, "state", f"{found.directory}: {found.directory_error}", hint)
    elif len(found.directory.encode()) > LONGEST_PATH:
        text = f"{found.directory} is a long path, and the kernel takes no more than 107 bytes for a socket"
        yield CheckResult("LWS-D007", Level.WARNING, "state", text, "set LWS_STATE_HOME to a shorter path")
    elif found.free_bytes < LEAST_SPACE:
        text = f"{found.directory} has {found.free_bytes // 2**20} MiB left"
        fix = "free some space: a full disk costs log lines and writes"
        yield CheckResult("LWS-D008", Level.WARNING, "state", text, fix)
    else:
        yield CheckResult("LWS-D005", Level.OK, "state", f"{found.directory} can be written")
