"""The log of one pod: its options, its lines, and the last lines of a rank that failed."""

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final, TypeAlias

from msgspec import Struct

from kuberuntime import timeouts
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Query
from kuberuntime.errors import APIError, BadRequestError, KubeError, NotFoundError
from kuberuntime.objects import errorlines, meta, podstate
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from kuberuntime.texts import lostlogs
from lwsctl.observation import podsecrets
from lwsctl.views.groups import View
from lwsctl.views.outcome import FailedContainer, silent_failure
from lwsctl.views.podcontainers import default_container, unlogged

LAST_LINES: Final = 5
"""The number of quoted lines of a failed container, like in the kubelet's termination message."""

LONGEST_LINE: Final = 2000
"""The bytes of a line from which an error is judged."""

PATIENCE: Final = 5.0
"""Seconds that a kubelet may take to return the lines."""


class LogError(KubeError):
    """A log that the server does not have or refuses; the text names the pod and its state."""


class LostLogError(LogError):
    """The log of a run that its node has removed: it is not available any more."""


class NotStartedError(LogError):
    """A container without a log, because it never ran; `pod` is the name of its pod, `reason` is what it waits for."""

    def __init__(self, pod: str, reason: str) -> None:
        super().__init__(f"{pod} has {reason}")
        self.pod = pod
        self.reason = reason


class PodLogOptions(Struct, frozen=True, kw_only=True):
    """The options of a request to `/log`."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    container: str | None = None
    tail: int | None = None
    since: int | None = None
    since_time: str = ""
    """An alternative to `since`: an RFC 3339 time."""

    def query(self, container: str) -> Query:
        """Build the query of one container's log."""
        pairs = {
            "container": container,
            "follow": "true" if self.follow else "",
            "previous": "true" if self.previous else "",
            "timestamps": "true" if self.timestamps else "",
            "tailLines": "" if self.tail is None else str(self.tail),
            "sinceSeconds": "" if self.since is None or self.since_time else str(self.since),
            "sinceTime": self.since_time,
        }
        return tuple((key, value) for key, value in pairs.items() if value)


Sink: TypeAlias = Callable[[JSONObject, bytes], None]
"""Accepts one line of a pod."""


async def read(client: Client, pod: JSONObject, options: PodLogOptions) -> AsyncIterator[bytes]:
    """Yield the lines of one pod's log.

    An API server returns an empty log for a pod without a node, and none for a container that never ran. Both raise
    `NotStartedError`. A log that the node has removed raises `LostLogError`.
    """
    container = options.container or default_container(pod)
    never_ran = unlogged(pod, options.container)
    is_empty, has_lines = True, False
    path = PODS.path(meta.namespace(pod), meta.name(pod), "log")
    rest = b""
    try:
        async with client.stream("GET", path, options.query(container)) as response:
            async for chunk in response.chunks:
                is_empty = False
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    has_lines = True
                    yield line
    except BadRequestError as error:
        if never_ran:
            raise NotStartedError(meta.name(pod), never_ran) from error
        raise LogError(f"{meta.name(pod)} ({podstate.state(pod)}): {error}") from error
    except APIError as error:
        if isinstance(error, NotFoundError):
            raise
        raise LogError(f"{meta.name(pod)}: {error}") from error
    if not has_lines and lostlogs.is_lost(rest):
        raise LostLogError(f"{meta.name(pod)} ({podstate.state(pod)}): its node no longer has its log")
    if rest:
        yield rest
    if is_empty and never_ran:
        raise NotStartedError(meta.name(pod), never_ran)


async def silent_lines(client: Client, views: Iterable[View], most: int) -> list[str]:
    """Return the last lines of ranks that failed without a message, for at most `most` sets."""
    failures = [failed for view in views if (failed := silent_failure(view)) is not None]
    return [text for failed in failures[:most] if (text := await last_lines(client, failed))]


async def last_lines(client: Client, failed: FailedContainer, tail: int = LAST_LINES) -> str:
    """Return the first error and the last lines of a failed container, indented under its name; empty if unreadable."""
    lines = await judged_lines(client, failed)
    title = f"the last lines of {meta.name(failed.pod)}, container {failed.container}:"
    return "\n".join([title, *(f"  {line}" for line in errorlines.excerpt(lines, tail))]) if lines else ""


async def judged_lines(client: Client, failed: FailedContainer) -> list[str]:
    """Return the end of a failed container's log from which its error is judged, masked; empty if it is unreadable."""
    options = PodLogOptions(container=failed.container, previous=failed.previous, tail=errorlines.JUDGED)
    try:
        async with timeouts.within(PATIENCE):
            output = [line[:LONGEST_LINE].decode(errors="replace") async for line in read(client, failed.pod, options)]
    except (KubeError, TimeoutError):
        return []
    mask = await podsecrets.mask_for(client, [failed.pod])
    return mask.lines(line.rstrip() for line in output if line.strip())
