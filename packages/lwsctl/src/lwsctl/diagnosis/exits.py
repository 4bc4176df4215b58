"""Describes how a run terminated, and gives advice for its exit code. Pure.

The advice depends on the run and on the template. It does not depend on the current pod with that name, which may be
new or missing.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.terminations import ContainerFailure
from leaderworkerset.decisions.failureevents import FailureReason
from lwsctl.diagnosis import logerrors
from lwsctl.diagnosis.observed import Observed
from lwsctl.model.groups import Rank
from lwsctl.views.podcontainers import container_status

NO_MEMORY: Final = "OOMKilled"

KILLED: Final = 137
SIGNALS: Final[Mapping[int, str]] = {
    129: "SIGHUP",
    130: "SIGINT",
    131: "SIGQUIT",
    132: "SIGILL",
    133: "SIGTRAP",
    134: "SIGABRT",
    135: "SIGBUS",
    136: "SIGFPE",
    KILLED: "SIGKILL",
    139: "SIGSEGV",
    141: "SIGPIPE",
    143: "SIGTERM",
}
"""The signals that terminate a process by exit code, which is 128 plus the signal number."""

BY_OTHERS: Final = frozenset({129, 130, 131, KILLED, 143})
"""Exit codes for signals that other processes send. All other signals result from errors in the process."""

OWN_FAULTS: Final[Mapping[int, str]] = {
    132: "the executable uses an instruction that this CPU does not support; use an image for this CPU",
    134: "the program or one of its libraries aborted; check its last log lines",
    135: "a memory access failed; often /dev/shm or a volume is full, or a mapped file was truncated",
    136: "the program divided by zero, or an integer operation overflowed",
    139: "the program accessed invalid memory; for Python, set PYTHONFAULTHANDLER=1 to print the location",
}
"""The meanings of signals that result from errors in the process."""

NOT_EXECUTABLE: Final = 126
NOT_FOUND: Final = 127
LACKING: Final = frozenset({2, NOT_FOUND})
"""Exit codes of interpreters and shells if an executable or a file is not found."""

OF_THE_MACHINE: Final = "host://"
"""The imageID prefix of containers whose image is not mapped. They run executables of the host."""

ON_PURPOSE: Final = "host"
"""The image name that explicitly selects executables of the host."""


def signal_name(end: JSONObject) -> str:
    """Return the signal that terminated a run.

    Return an empty string if there is none, or the reason is more specific.
    """
    return SIGNALS.get(end.get("exitCode") or 0, "") if end.get("reason") != NO_MEMORY else ""


def describe_exit(end: JSONObject) -> str:
    """Return the exit code of a run with its reason and signal.

    >>> describe_exit({"exitCode": 139, "reason": "Error"}), describe_exit({"exitCode": 1})
    ('exit code 139 (Error, killed by SIGSEGV)', 'exit code 1')
    """
    name = signal_name(end)
    words = ", ".join(filter(None, (end.get("reason"), name and f"killed by {name}")))
    return f"exit code {end.get('exitCode')}{f' ({words})' if words else ''}"


def declared_containers(observed: Observed, rank: Rank) -> list[JSONObject]:
    """Return the containers of a rank, init containers first. If the rank has no pod, use its template."""
    spec = meta.spec(rank.object or {})
    if not spec.get("containers"):
        spec = meta.spec(observed.view.pod_template(is_leader=rank.index == 0))
    return [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]


def find_container(observed: Observed, rank: Rank, name: str) -> JSONObject:
    """Return the container with this name, or an empty object if it is not declared."""
    return next((container for container in declared_containers(observed, rank) if container.get("name") == name), {})


def exit_advice(observed: Observed, rank: Rank, death: ContainerFailure) -> Iterator[str]:
    """Yield the meaning of an exit code, such as the sender of the signal or a missing executable or file."""
    code = death.end.get("exitCode") or 0
    container = find_container(observed, rank, death.container)
    if name := signal_name(death.end):
        yield _signal_advice(observed, rank, container, code, name)
    image = str(container.get("image") or "")
    reason = next((candidate for candidate in FailureReason if candidate == code), None)
    is_unmapped = _is_unmapped(observed, rank, death.container, image)
    if code in LACKING and is_unmapped and image != ON_PURPOSE:
        yield (f"if a file is missing, map the image with --image {image}=DIR, or use --stub={image}")
    elif reason is not None and _is_rendezvous(container, death.end):
        yield f"exit code {code} of the rendezvous means that {reason.description}. {reason.advice}"
    elif code == NOT_FOUND and not is_unmapped:
        yield f"exit code 127 means that an executable was not found in image {image}, or is not on PATH"
    elif code == NOT_EXECUTABLE:
        yield "exit code 126 means that a file is not executable; set its mode to 0755, and add an interpreter line"


def log_steps(observed: Observed, rank: Rank, death: ContainerFailure) -> Iterator[str]:
    """Yield the command that shows the log of a run.

    If no lines remain, yield a step to preserve those of the next run.

    In a local cluster, the log of a deleted pod is available from the next pod with the same name. In other clusters,
    the command follows the log of the next pod.
    """
    container = f" -c {death.container}" if len(declared_containers(observed, rank)) > 1 else ""
    keeps = not observed.commands.kubectl
    is_earlier = death.is_over or (death.is_recorded and keeps)
    which = " --previous" if is_earlier else " --follow" if death.is_recorded else ""
    yield observed.lws(f"logs {observed.view.name}/{rank.place}{container}{which}")
    if death.is_recorded and not keeps and not podstate.last_lines(death.end):
        yield f"{logerrors.NO_LINES}{death.container}"


def _signal_advice(observed: Observed, rank: Rank, container: JSONObject, code: int, name: str) -> str:
    if code in OWN_FAULTS:
        return f"{name}: {OWN_FAULTS[code]}"
    if code not in BY_OTHERS:
        return f"{name} terminated the program"
    probes = [kind for kind in ("liveness", "startup") if container.get(f"{kind}Probe")]
    events = observed.lws(f"events {observed.view.name}/{rank.place} --warnings")
    node = f"node {rank.node}" if rank.node else "its node"
    memory = f", or by the kernel if {node} was out of memory (see dmesg)" if code == KILLED else ""
    probe_text = (
        f", or because of its {probes[0]} probe: {events}" if probes else "; it has no liveness or startup probe"
    )
    return f"{name} was sent by a user, or because the container was stopped{memory}{probe_text}"


def _is_unmapped(observed: Observed, rank: Rank, container: str, image: str) -> bool:
    """Return whether a container ran executables of the host because its image is not mapped."""
    if observed.commands.images is not None:
        return not any(is_mapped(name, image) for name in observed.commands.images)
    return str(container_status(rank.object or {}, container).get("imageID")).startswith(OF_THE_MACHINE)


def is_mapped(name: str, image: str) -> bool:
    """Return whether a mapping applies to an image, which may have a tag or a digest.

    >>> is_mapped("reg:5000/vllm", "reg:5000/vllm:v1"), is_mapped("reg", "reg:5000/vllm"), is_mapped("vllm", "vllm-openai")
    (True, False, False)
    """
    rest = image.removeprefix(name)
    return image == name or (rest != image and rest[0] in ":@" and "/" not in rest)


def _is_rendezvous(container: JSONObject, end: JSONObject) -> bool:
    """Return whether the rendezvous caused the exit code, based on the container's command or last message."""
    words = [*(container.get("command") or []), *(container.get("args") or []), end.get("message")]
    return any("rendezvous" in str(word) for word in words)
