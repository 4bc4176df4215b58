"""`lws logs`: the logs of a LeaderWorkerSet, a group or one rank, each line with its `group/rank`."""

import asyncio
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from typing import Any

import click

from kuberuntime.client.client import Client
from kuberuntime.errors import ConnectionFailedError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from leaderworkerset.cli import targets
from leaderworkerset.cli.cluster.target import Target
from leaderworkerset.cli.durations import seconds
from leaderworkerset.cli.following import Following, OneSet, SetInformers, following
from leaderworkerset.cli.views.loglines import Printer, Sink
from leaderworkerset.observation.logs import LogError, Options, read
from leaderworkerset.views.selection import Selection


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
    chosen = targets.parse(name)
    wanted = Options(**options)

    async def act() -> None:
        async with target.session() as session:
            printer = Printer(bare=chosen.rank is not None)
            if wanted.follow:
                await targets.find(session, chosen.name)
                informers = SetInformers(session.client, ObjectKey(session.namespace, chosen.name))
                async with following(*informers.all, session.lifeline) as objects:
                    await Follower(session.client, chosen, wanted, printer).run(objects, informers)
                return
            for pod in await targets.pods_of(session, chosen):
                async for line in read(session.client, pod, wanted):
                    printer.line(pod, line)

    asyncio.run(act())


class Follower:
    """Follows the logs of the chosen ranks, over restarts of containers and with pods that come later."""

    def __init__(self, client: Client, chosen: Selection, options: Options, sink: Sink) -> None:
        self._client = client
        self._chosen = chosen
        self._options = options
        self._sink = sink
        self._seen: set[tuple[str, int]] = set()
        self._newest: dict[str, bytes] = {}
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._readers: set[asyncio.Task[None]] = set()

    async def run(self, objects: Following, informers: OneSet) -> None:
        """Follow until the set is gone; of pods that are there already, from their current run on."""
        for pod in informers.pods.store.list():
            status = container_status(pod, self._options.container)
            self._seen.add((meta.uid(pod), status.get("restartCount", 0) - 1))
        async with asyncio.TaskGroup() as tasks:

            def look() -> bool | None:
                for pod in filter(self._chosen.covers, informers.pods.store.list()):
                    self._begin(tasks, pod)
                return True if informers.object is None else None

            await objects.until(look)

    async def drained(self, timeout: float) -> None:
        """Wait until the logs that are being read have come to their end, at most `timeout` seconds."""
        if self._readers:
            await asyncio.wait(self._readers, timeout=timeout)

    def _begin(self, tasks: asyncio.TaskGroup, pod: JSONObject) -> None:
        status = container_status(pod, self._options.container)
        uid, number = meta.uid(pod), status.get("restartCount", 0)
        if (uid, number) in self._seen or not has_log(status):
            return
        # A run that began and ended between two states of the pod left its log as that of the previous run.
        was_missed = number > 0 and (uid, number - 1) not in self._seen and runs(status)
        self._seen |= {(uid, number), (uid, number - 1)}
        task = tasks.create_task(self._copy(pod, after_previous=was_missed))
        self._readers.add(task)
        task.add_done_callback(self._readers.discard)

    async def _copy(self, pod: JSONObject, *, after_previous: bool) -> None:
        try:
            async with self._turns[meta.uid(pod)]:
                if after_previous:
                    with suppress(LogError):  # there is no such log any more
                        await self._copy_run(pod, replace(self._options, follow=False, previous=True))
                await self._copy_run(pod, self._options)
        except (NotFoundError, ConnectionFailedError):
            return  # the pod is gone, and its log with it

    async def _copy_run(self, pod: JSONObject, options: Options) -> None:
        """Pass on the lines of a run that are newer than those of earlier runs: which run is read can change meanwhile."""
        uid = meta.uid(pod)
        bound = self._newest.get(uid, b"")
        async for line in read(self._client, pod, replace(options, timestamps=True)):
            stamp, _, text = line.partition(b" ")
            moment = comparable(stamp)
            if moment > bound:
                self._newest[uid] = max(moment, self._newest.get(uid, b""))
                self._sink.line(pod, line if options.timestamps else text)


def container_status(pod: JSONObject, container: str | None) -> JSONObject:
    """Return the status of a container (None: the first one), empty before there is one."""
    name = container or meta.spec(pod)["containers"][0]["name"]
    status = meta.status(pod)
    statuses = [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]
    return next((entry for entry in statuses if entry.get("name") == name), {})


def comparable(stamp: bytes) -> bytes:
    """Return a time stamp of the log in a form that compares as it was written: with all nine digits of the fraction.

    >>> comparable(b"2026-01-01T00:00:00.5Z") < comparable(b"2026-01-01T00:00:00.51Z")
    True
    """
    whole, _, fraction = stamp.rstrip(b"Z").partition(b".")
    return whole + b"." + fraction.ljust(9, b"0")


def has_log(status: JSONObject) -> bool:
    """Return whether the container has started: it runs, has ended, or waits after its end for the next start."""
    return any("running" in state or "terminated" in state for state in (_state(status), status.get("lastState") or {}))


def runs(status: JSONObject) -> bool:
    """Return whether the container runs."""
    return "running" in _state(status)


def _state(status: JSONObject) -> JSONObject:
    return status.get("state") or {}
