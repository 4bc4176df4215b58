"""Reads the log of one pod, based on options, and the last lines of a failed rank."""

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
from kuberuntime.texts import removedlogs
from lwsctl.model.diagnosis import FailedContainer
from lwsctl.model.failedcontainers import silent_failure
from lwsctl.model.leaderworkerset import View
from lwsctl.observation import podsecrets
from lwsctl.views.podcontainers import default_container, missing_log_reason

LAST_LINES: Final = 5
"""The number of lines that are quoted for a failed container, as in the kubelet's termination message."""

LONGEST_LINE: Final = 2000
"""The maximum number of bytes per line that are searched for an error."""

PATIENCE: Final = 5.0
"""The timeout in seconds for a kubelet to return the lines."""


class LogError(KubeError):
    """Raised if a log is missing or access is denied. The message contains the pod and its state."""


class LostLogError(LogError):
    """Raised if the log of a run is no longer available because its node has deleted it."""


class NotStartedError(LogError):
    """Raised if a container has no log because it never ran. `reason` is what the container waits for."""

    def __init__(self, pod: str, reason: str) -> None:
        super().__init__(f"{pod} has {reason}")
        self.pod = pod
        self.reason = reason


class PodLogOptions(Struct, frozen=True, kw_only=True):
    """The options of a request for `/log`."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    container: str | None = None
    tail: int | None = None
    since: int | None = None
    since_time: str = ""
    """A timestamp in RFC 3339 format, as an alternative to `since`."""

    def query(self, container: str) -> Query:
        """Build the query for the log of one container."""
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
"""A function that receives one log line of a pod."""


async def read(client: Client, pod: JSONObject, options: PodLogOptions) -> AsyncIterator[bytes]:
    """Yield the log lines of a pod.

    Raise `NotStartedError` if the pod is not scheduled or the container never ran. Raise `LostLogError` if the node
    has deleted the log.
    """
    container = options.container or default_container(pod)
    never_ran = missing_log_reason(pod, options.container)
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
    if not has_lines and removedlogs.is_removed(rest):
        raise LostLogError(f"{meta.name(pod)} ({podstate.state(pod)}): its node has deleted its log")
    if rest:
        yield rest
    if is_empty and never_ran:
        raise NotStartedError(meta.name(pod), never_ran)


async def silent_lines(client: Client, views: Iterable[View], most: int) -> list[str]:
    """Return the last lines of ranks that failed without a message. At most `most` sets are included."""
    failures = [failed for view in views if (failed := silent_failure(view)) is not None]
    return [text for failed in failures[:most] if (text := await last_lines(client, failed))]


async def last_lines(client: Client, failed: FailedContainer, tail: int = LAST_LINES) -> str:
    """Return the name, the first error and the last lines of a failed container, or no lines if unreadable."""
    lines = await log_tail(client, failed)
    title = f"the last lines of {meta.name(failed.pod)}, container {failed.container}:"
    return "\n".join([title, *(f"  {line}" for line in errorlines.error_excerpt(lines, tail))]) if lines else ""


async def log_tail(client: Client, failed: FailedContainer) -> list[str]:
    """Return the masked end of a failed container's log, to find its error. If it is unreadable, return no lines."""
    options = PodLogOptions(container=failed.container, previous=failed.is_previous_run, tail=errorlines.JUDGED)
    try:
        async with timeouts.within(PATIENCE):
            output = [line[:LONGEST_LINE].decode(errors="replace") async for line in read(client, failed.pod, options)]
    except (KubeError, TimeoutError):
        return []
    mask = await podsecrets.build_mask(client, [failed.pod])
    return mask.lines(line.rstrip() for line in output if line.strip())
