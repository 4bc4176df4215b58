"""`lws logs`: the logs of a LeaderWorkerSet, a group or one rank, each line with its `group/rank`."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Protocol

import click

from kuberuntime.client.client import Client
from kuberuntime.client.requests import Query
from kuberuntime.errors import APIError, BadRequestError, ConnectionFailedError, NotFoundError
from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS
from leaderworkerset.cli import selection
from leaderworkerset.cli.cluster.target import Target
from leaderworkerset.cli.errors import CommandError, UsageError
from leaderworkerset.cli.following import Following, SetInformers, following
from leaderworkerset.cli.views.colors import Painter
from leaderworkerset.views.groups import place_of
from leaderworkerset.views.selection import Selection


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What `/log` is asked for."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    container: str | None = None
    tail: int | None = None
    since: int | None = None

    def query(self, container: str) -> Query:
        """Build the query of one container's log."""
        pairs = {
            "container": container,
            "follow": "true" if self.follow else "",
            "previous": "true" if self.previous else "",
            "timestamps": "true" if self.timestamps else "",
            "tailLines": "" if self.tail is None else str(self.tail),
            "sinceSeconds": "" if self.since is None else str(self.since),
        }
        return tuple((key, value) for key, value in pairs.items() if value)


@click.command("logs")
@click.argument("name", metavar="LWS[/GROUP[/RANK]]")
@click.option("-f", "--follow", is_flag=True, help="Go on with new lines, and with ranks that come.")
@click.option("-p", "--previous", is_flag=True, help="The log of the container before its last restart.")
@click.option("--timestamps", is_flag=True, help="Put the time before each line.")
@click.option("-c", "--container", metavar="NAME", help="This container; otherwise the first.")
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="Only the last N lines of each rank.")
@click.option(
    "--since",
    metavar="DURATION",
    callback=lambda _ctx, _option, value: value and seconds(value),
    help="Only what is newer: 30s, 5m, 2h.",
)
@click.pass_obj
def command(target: Target, /, name: str, **options: Any) -> None:
    """Print the logs of ranks, each line after its group/rank; one rank alone is printed bare."""
    chosen = selection.parse(name)
    wanted = Options(**options)

    async def act() -> None:
        async with target.session() as session:
            printer = Printer(bare=chosen.rank is not None)
            if wanted.follow:
                await selection.find(session, chosen.name)
                informers = SetInformers(session.client, ObjectKey(session.namespace, chosen.name))
                async with following(*informers.all) as objects:
                    await Follower(session.client, chosen, wanted, printer).run(objects, informers)
                return
            for pod in await selection.pods_of(session, chosen):
                async for line in read(session.client, pod, wanted):
                    printer.line(pod, line)

    asyncio.run(act())


class Sink(Protocol):
    """Takes log lines."""

    def line(self, pod: JSONObject, line: bytes) -> None:
        """Take one line of a pod."""
        ...


class Printer:
    """Writes log lines to standard output, each after its `group/rank` unless `bare`."""

    def __init__(self, *, bare: bool = False) -> None:
        self._bare = bare
        self._painter = Painter(sys.stdout)

    def line(self, pod: JSONObject, line: bytes) -> None:
        """Write one line of a pod."""
        click.echo(line.decode(errors="replace") if self._bare else prefixed(self._painter, pod, line))


def prefixed(painter: Painter, pod: JSONObject, line: bytes) -> str:
    """Put `group/rank` before a log line."""
    group, rank = place_of(pod) or ("?", "?")
    return f"{painter.rank(f'{group}/{rank}', group)} {line.decode(errors='replace')}"


class Follower:
    """Follows the logs of the chosen ranks, over restarts of containers and with pods that come later."""

    def __init__(self, client: Client, chosen: Selection, options: Options, sink: Sink) -> None:
        self._client = client
        self._chosen = chosen
        self._options = options
        self._sink = sink
        self._seen: set[tuple[str, int]] = set()
        self._readers: set[asyncio.Task[None]] = set()

    async def run(self, objects: Following, informers: SetInformers) -> None:
        """Follow until the LeaderWorkerSet is gone."""
        async with asyncio.TaskGroup() as tasks:

            def look() -> bool | None:
                for pod in filter(self._chosen.covers, informers.pods.store.list()):
                    self._begin(tasks, pod)
                return True if informers.lws() is None else None

            await objects.until(look)

    async def drained(self, timeout: float) -> None:
        """Wait until the logs that are being read have come to their end, at most `timeout` seconds."""
        if self._readers:
            await asyncio.wait(self._readers, timeout=timeout)

    def _begin(self, tasks: asyncio.TaskGroup, pod: JSONObject) -> None:
        status = container_status(pod, self._options.container)
        run = (meta.uid(pod), status.get("restartCount", 0))
        if run in self._seen or not has_log(status):
            return
        self._seen.add(run)
        task = tasks.create_task(self._copy(pod))
        self._readers.add(task)
        task.add_done_callback(self._readers.discard)

    async def _copy(self, pod: JSONObject) -> None:
        try:
            async for line in read(self._client, pod, self._options):
                self._sink.line(pod, line)
        except (NotFoundError, ConnectionFailedError):
            return  # the pod is gone, and its log with it


async def read(client: Client, pod: JSONObject, options: Options) -> AsyncIterator[bytes]:
    """Yield the lines of one pod's log."""
    container = options.container or meta.spec(pod)["containers"][0]["name"]
    path = PODS.path(meta.namespace(pod), meta.name(pod), "log")
    rest = b""
    try:
        async with client.stream("GET", path, options.query(container)) as response:
            async for chunk in response.chunks:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    yield line
    except BadRequestError as error:
        raise CommandError(f"{meta.name(pod)} ({podstate.state(pod)}): {error}") from error
    except APIError as error:
        if isinstance(error, NotFoundError):
            raise
        raise CommandError(f"{meta.name(pod)}: {error}") from error
    if rest:
        yield rest


def container_status(pod: JSONObject, container: str | None) -> JSONObject:
    """Return the status of a container (None: the first one), empty before there is one."""
    name = container or meta.spec(pod)["containers"][0]["name"]
    status = meta.status(pod)
    statuses = [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]
    return next((entry for entry in statuses if entry.get("name") == name), {})


def has_log(status: JSONObject) -> bool:
    """Return whether the container has started."""
    state = status.get("state") or {}
    return "running" in state or "terminated" in state


def seconds(duration: str) -> int:
    """Read 30s, 5m, 2h, or combinations of them.

    >>> seconds("1m30s"), seconds("2h")
    (90, 7200)
    """
    parts = re.findall(r"(\d+)([smh])", duration)
    if not parts or "".join(number + unit for number, unit in parts) != duration:
        raise UsageError(f"--since: Invalid value: {duration!r}: write 30s, 5m or 2h")
    return sum(int(number) * {"s": 1, "m": 60, "h": 3600}[unit] for number, unit in parts)
