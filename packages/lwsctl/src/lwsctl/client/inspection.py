"""Client functions that explain an object, list its events, and execute commands in a rank.

A path is a string, as in commands: `web`, `web/0` (a group) or `web/0/2` (a rank).
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from kuberuntime.client.client import Client
from kuberuntime.client.requests import Query
from kuberuntime.errors import ConnectionFailedError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from leaderworkerset.api.resources import LEADERWORKERSETS
from lwsctl.diagnosis.observed import Commands
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.leaderworkerset import View, view
from lwsctl.observation import selectedpods
from lwsctl.views import selection as selections
from lwsctl.views.podcontainers import default_container
from lwsctl.views.selection import Filter, Selection

if TYPE_CHECKING:
    from kuberuntime.client.channels import Channels

OpenChannels: TypeAlias = Callable[[str, Query, str], AbstractAsyncContextManager["Channels"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event with its last time, its count, and its group and rank, if any."""

    time: datetime
    reason: str
    message: str
    object: str
    count: int = 1
    is_warning: bool = False
    group: int | str | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command in a rank. Exit code 0 means success."""

    exit_code: int
    stdout: str
    stderr: str


def parse_path(place: str) -> Selection:
    """Parse the path of a LeaderWorkerSet, group or rank. Raise ValueError if it is invalid."""
    selection = selections.read(place)
    if selection is None:
        raise ValueError(f"{place!r} is not a valid path; use NAME, NAME/GROUP or NAME/GROUP/RANK, such as web/0/2")
    return selection


async def view_of(client: Client, namespace: str, name: str) -> View:
    """Return a LeaderWorkerSet with its groups and ranks."""
    lws = await client.get(LEADERWORKERSETS, ObjectKey(namespace, name))
    return view(lws, await selectedpods.read(client, namespace, Filter(Selection(name))))


async def explain(client: Client, namespace: str, place: str) -> Diagnosis:
    """Return the root cause for a path. It is based on the same evidence as `lws explain`."""
    from lwsctl.observation import diagnosisinput, evidence
    from lwsctl.observation.lists import Lists

    selection = parse_path(place)
    view = await view_of(client, namespace, selection.name)
    if selection.group is not None and not any(map(selection.covers, view.pods)):
        raise _without_pod(selection)
    diagnosis = await diagnosisinput.diagnose_one(Lists(client), view, selection, Commands())
    return await evidence.with_evidence(client, diagnosis)


async def events(client: Client, namespace: str, place: str) -> list[Event]:
    """Return the events of a path in chronological order, including events of deleted pods."""
    from lwsctl.observation import eventlog

    selection = parse_path(place)
    happened = await eventlog.read(client, await view_of(client, namespace, selection.name), selection)
    return [
        Event(
            time=event.last,
            reason=event.reason,
            message=event.message,
            object=event.object,
            count=event.count,
            is_warning=event.is_warning,
            group=event.place[0],
            rank=event.place[1],
        )
        for event in happened
    ]


async def pod_at(client: Client, namespace: str, place: str) -> JSONObject:
    """Return the pod of a rank. The default is the leader of the first group."""
    selection = parse_path(place)
    await client.get(LEADERWORKERSETS, ObjectKey(namespace, selection.name))
    leader_or_rank = Selection(selection.name, selection.group, selection.rank or 0)
    pods = await selectedpods.read(client, namespace, Filter(leader_or_rank))
    if not pods:
        raise _without_pod(selection)
    return pods[0]


async def execute(
    channels_of: OpenChannels, pod: JSONObject, command: Sequence[str], *, container: str | None, stdin: bytes
) -> CommandResult:
    """Execute a command in a container until it exits, and return its output."""
    from kuberuntime.client import channels

    name = container or default_container(pod)
    path, query = channels.exec_address(pod, name, command, stdout=True, stderr=True, stdin=bool(stdin))
    outputs = {channels.STDOUT: bytearray(), channels.STDERR: bytearray()}
    async with channels_of(path, query, channels.EXEC_PROTOCOL) as streams:
        if stdin:
            await streams.send(channels.STDIN, stdin)
            await streams.close_stream(channels.STDIN)
        while piece := await streams.receive():
            channel, data = piece
            if channel == channels.STATUS:
                texts = (text.decode(errors="replace") for text in outputs.values())
                return CommandResult(channels.exit_code(data), *texts)
            if channel in outputs:
                outputs[channel] += data
    raise ConnectionFailedError(f"{meta.name(pod)}: the connection was closed before the command exited")


def _without_pod(selection: Selection) -> NotFoundError:
    return NotFoundError({"code": 404, "reason": "NotFound", "message": f"{selection} has no pod"})
