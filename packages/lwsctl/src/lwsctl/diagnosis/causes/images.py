"""Finds containers that never started because of their image or configuration. Pure."""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from lwsctl.diagnosis import exits, ranks
from lwsctl.diagnosis.finding import Cause, Finding
from lwsctl.diagnosis.observed import Observed
from lwsctl.diagnosis.patterns import READ, message_values
from lwsctl.model.diagnosis import Person
from lwsctl.model.groups import Rank

PULLING: Final = frozenset({"ErrImagePull", "ImagePullBackOff"})
PULL_EVENTS: Final = ("Failed", "FailedToRetrieveImagePullSecret", "BackOff", "InspectFailed")
CONFIG: Final = frozenset({"CreateContainerConfigError"})
START: Final = frozenset({"CreateContainerError", "RunContainerError", "StartError", "ContainerCannotRun"})


COMMAND: Final = (
    r"(?i)no command specified|set the command of the container|executable file (?:`[^`]*` )?not found"
    r"|\bexec:? \"?[^\s\":]+\"?: (?:stat \S+: )?(?:no such file or directory|permission denied|is a directory)|exec format error"
)
"""Container runtime messages about a missing executable. Messages about other missing files do not match."""


class WaitingContainers(Struct, frozen=True):
    """Finds the first container that waits or terminated with one of the reasons and a matching message.

    The sentence can use named groups of the pattern, `container`, `image` and the values of `message_values`.
    """

    reasons: frozenset[str]
    pattern: str
    sentence: str
    steps: tuple[str, ...]
    events: tuple[str, ...] = ()

    def __call__(self, observed: Observed) -> Finding | None:
        """Search the ranks whose pods are assigned to a node."""
        matches = list(self._matches(observed))
        if not matches:
            return None
        rank, words, text = matches[0]
        words |= {"others": ranks.others_suffix(len({member.pod for member, _, _ in matches}))}
        return Finding(
            subject=ranks.pod_subject(rank),
            sentence=self.sentence.format(**words),
            evidence=(f"{rank.pod}, container {words['container']}: {words['reason']}: {ranks.quote_message(text)}",),
            steps=tuple(step.format(**words) for step in self.steps),
        )

    def _matches(self, observed: Observed) -> Iterator[tuple[Rank, dict[str, str], str]]:
        pattern = re.compile(self.pattern)
        for rank in observed.ranks_at(ranks.is_scheduled_or_recorded):
            for container, reason, message in (*ranks.waiting_containers(rank), *ranks.rejected_starts(rank)):
                if reason not in self.reasons:
                    continue
                for text in (message, *ranks.warning_messages(observed, rank, *self.events)):
                    if match := pattern.search(text[:READ]):
                        own = {
                            "container": container,
                            "reason": reason,
                            "image": container_image(observed, rank, container),
                        }
                        yield rank, message_values(observed, rank, match) | own, text
                        break


def container_image(observed: Observed, rank: Rank, container: str) -> str:
    """Return the image of a rank's container from the pod, or from the template if the pod does not exist."""
    return str(exits.find_container(observed, rank, container).get("image") or "")


INVALID: Final = Cause(
    code="LWS-E062",
    title="the image name is invalid",
    meaning="The image name has an invalid format.",
    remedy="Correct the image name in the pod template.",
    find=WaitingContainers(
        frozenset({"InvalidImageName"}),
        r"",
        '"{image}" of pod {pod} is not a valid image name{others}',
        ("correct the image of container {container} in {template}",),
    ),
)
NO_SECRET: Final = WaitingContainers(
    PULLING,
    r"Unable to retrieve some image pull secrets \((?P<secret>[^)]*)\)",
    "imagePullSecret {secret} of pod {pod} does not exist, and the registry denies access to image {image}{others}",
    (
        "{kubectl} create secret docker-registry {secret} --docker-server=… --docker-username=… --docker-password=…",
        "or correct imagePullSecrets in {template}",
    ),
    PULL_EVENTS,
)
DENIES: Final = WaitingContainers(
    PULLING,
    r"(?i)unauthorized|denied|forbidden|authentication required|no basic auth",
    "the registry denies access to image {image} of pod {pod}{others}",
    (
        "{lws} get {place} -o jsonpath='{{.spec.imagePullSecrets}}'",
        "{kubectl} create secret docker-registry NAME --docker-server=… --docker-username=… --docker-password=…",
    ),
    PULL_EVENTS,
)
LACKS: Final = WaitingContainers(
    PULLING,
    r"(?i)not found|manifest unknown|no match for platform|does not exist|NAME_UNKNOWN",
    "image {image} of pod {pod} does not exist{others}",
    ("correct the image of container {container} in {template}, or push this image to the registry",),
    PULL_EVENTS,
)


def _find_denied(observed: Observed) -> Finding | None:
    """Find an image that the registry denies. Registries also report private images as missing."""
    denied = DENIES(observed)
    return (NO_SECRET(observed) or denied) if denied or LACKS(observed) else None


DENIED: Final = Cause(
    code="LWS-E061",
    title="the registry denies access to the image",
    meaning="The registry requires credentials, or rejects the credentials. Often, the imagePullSecret is missing.",
    person=Person.ADMINISTRATOR,
    remedy="Create the Secret and reference it in imagePullSecrets, or correct the image name. Registries often deny access to an image that does not exist.",
    find=_find_denied,
)
NOT_FOUND: Final = Cause(
    code="LWS-E060",
    title="the image does not exist",
    meaning="The registry does not have an image with this name, tag and platform.",
    person=Person.AUTHOR,
    remedy="Correct the image name in the pod template, or push the image to the registry.",
    find=LACKS,
)
UNREACHABLE: Final = Cause(
    code="LWS-E059",
    title="the registry cannot be reached",
    meaning="The node cannot connect to the registry, or cannot resolve the name of the registry.",
    person=Person.ADMINISTRATOR,
    remedy="Check the registry name. On the node, check the network and the proxy settings.",
    find=WaitingContainers(
        PULLING,
        r"(?i)no such host|i/o timeout|connection refused|x509|tls|dial tcp|deadline exceeded",
        "node {node} cannot reach the registry of image {image}, which pod {pod} needs{others}",
        ("{lws} describe {place}",),
        PULL_EVENTS,
    ),
)
NOT_PULLED: Final = Cause(
    code="LWS-E058",
    title="the image cannot be pulled",
    meaning="The image cannot be pulled for an unknown reason, or for a reason that has no separate code.",
    person=Person.AUTHOR,
    remedy="Fix the problem that the message describes.",
    find=WaitingContainers(
        PULLING,
        r"",
        "image {image} of pod {pod} cannot be pulled{others}",
        ("{lws} describe {place}",),
        PULL_EVENTS,
    ),
)
NEVER_PULLED: Final = Cause(
    code="LWS-E063",
    title="the image is not on the node",
    meaning="The field imagePullPolicy is set to Never, but the node does not have the image.",
    person=Person.ADMINISTRATOR,
    remedy="Load the image onto the node, or change imagePullPolicy.",
    find=WaitingContainers(
        frozenset({"ErrImageNeverPull"}),
        r"",
        "image {image} is not on node {node}, and pod {pod} has imagePullPolicy Never{others}",
        ("load the image onto node {node}, or change imagePullPolicy in {template}",),
    ),
)
UNMAPPED: Final = WaitingContainers(
    frozenset({"ImageNotMapped", "ProgramNotFound", "InvalidImageMapping"}),
    r"(?P<why>.+)",
    "pod {pod} has no executable on this machine{others}: {why}",
    ("map image {image} to a directory of executables: --image {image}=DIR",),
)
MISTYPED: Final = WaitingContainers(
    frozenset({"ProgramNotFound"}),
    r"(?P<why>.*\b(?:does not contain program|or correct the command)\b.*)",
    "pod {pod} has no executable on this machine{others}: {why}",
    ("correct command of container {container} in {template}, or install the executable",),
)


def _find_no_program(observed: Observed) -> Finding | None:
    """Find a container whose image is not mapped, or whose command does not exist in the mapped directory."""
    return MISTYPED(observed) or UNMAPPED(observed)


NO_PROGRAM: Final = Cause(
    code="LWS-E057",
    title="this machine has no executable for the image",
    meaning="The embedded cluster runs executables on this machine instead of images. No executable for the image is installed.",
    remedy="Install the executable, map the image to a directory with `--image NAME=DIR`, or use `--stub`.",
    find=_find_no_program,
)
NO_COMMAND: Final = Cause(
    code="LWS-E065",
    title="the container has no command",
    meaning="Neither the pod template nor the image specifies a command. Alternatively, the image does not contain the executable of the command.",
    remedy="Set the command in the pod template to an executable in the image.",
    find=WaitingContainers(
        START | {"CommandMissing", "CrashLoopBackOff"},
        COMMAND,
        "container {container} of pod {pod} has no command that image {image} can run{others}",
        ("correct command of container {container} in {template}",),
        ("Failed",),
    ),
)
BAD_CONFIG: Final = Cause(
    code="LWS-E066",
    title="a Secret or ConfigMap that a container references is missing",
    meaning="An environment variable of a container refers to a Secret, ConfigMap or key that does not exist.",
    remedy="Create the missing object or key, or mark the reference as optional.",
    find=WaitingContainers(
        CONFIG,
        r"(?P<why>(?:secret|configmap) \S+ not found.*|couldn't find key .+|references non-existent .+|\S+ \S+ has no key .+)",
        "container {container} of pod {pod} cannot be configured{others}: {why}",
        ("create the missing object or key in namespace {namespace}: {why}",),
    ),
)
NOT_STARTED: Final = Cause(
    code="LWS-E067",
    title="a container cannot be started",
    meaning="The container runtime cannot start a container.",
    remedy="Fix the error in the message. Typical causes are an incorrect command, working directory, device or mount.",
    find=WaitingContainers(
        START | CONFIG | {"PortConflict"},
        r"(?P<why>.+)",
        "container {container} of pod {pod} cannot be started{others}: {why}",
        ("{lws} describe {place}",),
    ),
)
