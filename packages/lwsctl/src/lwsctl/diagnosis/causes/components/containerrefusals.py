"""Finds containers that a kubelet or container runtime rejects, based on a message table. Pure.

The input is messages of waiting containers, of runs that never started, and of Warning events, as the kubelet,
containerd, CRI-O, runc and crun write them. A message without a matching row is quoted unchanged (LWS-E067).
"""

import re
from collections.abc import Iterator
from re import Match
from typing import Final

from msgspec import Struct

from lwsctl.diagnosis import ranks
from lwsctl.diagnosis.causes.images import container_image
from lwsctl.diagnosis.finding import Cause, Find, Finding
from lwsctl.diagnosis.observed import Observed
from lwsctl.diagnosis.patterns import READ, message_values
from lwsctl.diagnosis.ranks import is_scheduled_or_recorded
from lwsctl.model.diagnosis import Person
from lwsctl.model.groups import Rank

WAITING: Final = frozenset(
    {"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError", "CrashLoopBackOff"}
)

OF_SANDBOXES: Final = "FailedCreatePodSandBox"


class CreationError(Struct, frozen=True):
    """A component's message, what it means for the container, and the next step."""

    pattern: str
    meaning: str
    next_step: str


SECURITY: Final = (
    CreationError(
        r"runAsNonRoot and image has non-numeric user \((?P<user>[^)]*)\)",
        "runAsNonRoot is set, but user {user} of image {image} is not numeric",
        "set runAsUser of container {container} to the numeric ID of user {user} in {template}",
    ),
    CreationError(
        r"runAsNonRoot",
        "runAsNonRoot is set, but image {image} runs as root",
        "set runAsUser to a nonzero value in {template}, use an image with a user, or remove runAsNonRoot",
    ),
    CreationError(
        r"(?i)seccomp.*?\"?(?P<profile>/?[\w./-]+\.json)",
        "node {node} has no seccomp profile {profile}",
        "add the profile to /var/lib/kubelet/seccomp on every node, or use seccompProfile type RuntimeDefault in {template}",
    ),
    CreationError(
        r"(?i)apparmor.*?(?:profile not found|not loaded|failed to apply|not enabled)",
        "node {node} does not have its AppArmor profile",
        "load the profile on every node, or correct appArmorProfile in {template}",
    ),
)
DEVICES: Final = (
    CreationError(
        r"no runtime for \"(?P<runtime>[^\"]+)\" is configured|failed to find runtime handler (?P<handler>\S+)",
        "the container runtime of node {node} has no runtime handler {runtime}{handler}",
        "install the runtime on node {node} (for nvidia, the GPU operator), or correct runtimeClassName in {template}",
    ),
    CreationError(
        r"exec: \"?(?P<tool>nvidia-container-[\w-]+)\"?: executable file not found|(?P<path>\S*nvidia-container-runtime\S*): no such file",
        "node {node} does not have {tool}{path}, which is required for GPUs",
        "install the NVIDIA container toolkit on node {node}, or drain the node: {anywhere} drain {node}",
    ),
    CreationError(
        r"libnvidia-ml\.so|nvidia-container-cli: (?:initialization|driver|detection|mount) error|nvml error",
        "the NVIDIA driver on node {node} does not work",
        "install or repair the driver on node {node}, or drain the node: {anywhere} drain {node}",
    ),
    CreationError(
        r"unresolvable CDI devices? (?P<device>\S+?)(?:[:,\s]|$)",
        "the container runtime of node {node} cannot resolve CDI device {device}",
        "restart the device plugin or DRA driver on node {node} to regenerate the CDI specification",
    ),
    CreationError(
        r"(?P<device>/dev/[\w./-]+)\"?:? (?:\w+: )*no such (?:file|device)",
        "node {node} has no device {device}",
        "load the driver for {device} on node {node}, or select other nodes with nodeSelector in {template}",
    ),
)
PATHS: Final = (
    CreationError(
        r"failed to (?:create|prepare) subPath(?: directory)? for volumeMount \"(?P<volume>[^\"]+)\"",
        "the subPath of volumeMount {volume} cannot be created in the volume",
        "create the directory in the volume, or correct subPath of volumeMount {volume} in {template}",
    ),
    CreationError(
        r"volumeMounts\[\]\.subPath(?:Expr)?: (?P<why>.+)",
        "the subPath of a volumeMount is invalid: {why}",
        "correct subPath in {template}",
    ),
    CreationError(
        r"error mounting \"(?P<source>[^\"]+)\" to rootfs at \"(?P<target>[^\"]+)\"|mount destination (?P<path>\S+) not absolute",
        "the mount at {target}{path} was rejected",
        "correct mountPath or subPath in {template}; files and directories cannot be mounted over each other",
    ),
    CreationError(
        r"chdir to cwd \(\"(?P<directory>[^\"]+)\"\)|mkdir (?:cwd )?(?P<cwd>/[^\s:]*)",
        "its working directory {directory}{cwd} is not accessible in image {image}",
        "correct workingDir of container {container} in {template}",
    ),
)
FIELDS: Final = (
    CreationError(
        r"container \"[^\"]+\" does not declare a port named \"(?P<port>[^\"]+)\"",
        "its probe or hook uses port {port}, which the container does not declare",
        "declare a port with this name in container {container} in {template}, or use the port number",
    ),
    CreationError(
        r"gRPC probes are not supported on the embedded cluster",
        "gRPC probes are not supported on the embedded cluster",
        "use an httpGet, tcpSocket or exec probe on the embedded cluster",
    ),
)


def find_rejection(rows: tuple[CreationError, ...]) -> Find:
    """Return a function that finds the first container whose rejection matches a table row."""
    patterns = [(row, re.compile(row.pattern)) for row in rows]

    def find(observed: Observed) -> Finding | None:
        matches = [
            (rank, container, text, row, match)
            for rank in observed.ranks_at(is_scheduled_or_recorded)
            for container, text in _rejection_messages(observed, rank)
            for row, pattern in patterns
            if (match := pattern.search(text[:READ]))
        ]
        if not matches:
            return None
        rank, container, text, row, match = matches[0]
        words = _template_values(observed, rank, container, match)
        count = len({other.pod for other, *_ in matches})
        what = f"container {container} of pod {rank.pod}" if container else f"pod {rank.pod}"
        return Finding(
            subject=ranks.pod_subject(rank),
            sentence=f"{what} cannot be started{ranks.others_suffix(count)}: {row.meaning.format(**words)}",
            evidence=(f"{rank.pod}{f', container {container}' if container else ''}: {ranks.quote_message(text)}",),
            steps=(row.next_step.format(**words), f"{words['lws']} describe {words['place']}"),
        )

    return find


def _rejection_messages(observed: Observed, rank: Rank) -> Iterator[tuple[str, str]]:
    """Yield the container and message of each rejection.

    If the message is about the whole pod, there is no container.
    """
    events = None
    for container, reason, message in ranks.waiting_containers(rank):
        if reason not in WAITING:
            continue
        yield container, message
        if events is None:
            events = ranks.warning_messages(observed, rank, "Failed")
        yield from ((container, text) for text in events)
    yield from ((container, text) for container, _, text in ranks.rejected_starts(rank))
    if not rank.is_ready:
        yield from (("", text) for text in ranks.warning_messages(observed, rank, OF_SANDBOXES))


def _template_values(observed: Observed, rank: Rank, container: str, match: Match[str]) -> dict[str, str]:
    image = container_image(observed, rank, container)
    return message_values(observed, rank, match) | {"container": container, "image": image, "node": rank.node or "NODE"}


INSECURE: Final = Cause(
    code="LWS-E112",
    title="a security setting prevents a container from starting",
    meaning="The node rejects the securityContext of a container. Typical causes are an image that runs as root, and a missing seccomp or AppArmor profile.",
    remedy="Correct securityContext in the pod template, use an image that does not run as root, or install the profile on the nodes.",
    find=find_rejection(SECURITY),
)
NO_DEVICE: Final = Cause(
    code="LWS-E113",
    title="a driver, a runtime or a device is missing on the node",
    meaning="The node does not have a driver, a runtime handler or a device that the container requires. The image is not the cause.",
    person=Person.ADMINISTRATOR,
    remedy="Repair or drain the node.",
    find=find_rejection(DEVICES),
)
BAD_PATH: Final = Cause(
    code="LWS-E114",
    title="a path in a container is invalid",
    meaning="A subPath, mountPath or working directory is invalid for the volume or image of the container.",
    remedy="Correct the path in the pod template, or create the directory in the volume.",
    find=find_rejection(PATHS),
)
BAD_FIELD: Final = Cause(
    code="LWS-E117",
    title="a probe or hook of a container is invalid",
    meaning="A probe or hook uses a port that the container does not declare, or a probe type that this cluster does not support.",
    remedy="Correct the probe or hook in the pod template.",
    find=find_rejection(FIELDS),
)
