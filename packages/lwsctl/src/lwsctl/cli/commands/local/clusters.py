"""`lws clusters`: lists the local clusters of this user, including stopped clusters."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click
from msgspec import Struct

from kuberuntime import timeouts
from kuberuntime.clock import SystemClock
from kuberuntime.errors import KubeError
from kuberuntime.objects import timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import NODES, PODS
from lwsctl.cli.cluster import clusterdirectories
from lwsctl.cli.cluster.clusterdirectories import ClusterDirectory
from lwsctl.cli.cluster.target import Target
from lwsctl.cli.errors import CommandError
from lwsctl.cli.local import savedoptions
from lwsctl.cli.views import output
from lwsctl.cli.views.terminal import print_text
from lwsctl.views import wording

ANSWER: Final = 5.0
"""The time limit in seconds for reading the nodes and pods of a cluster."""

HEADER: Final = ("NAME", "STATE", "SINCE", "NODES", "PODS", "DIRECTORY")

RUNNING: Final = "running"
STOPPED: Final = "stopped"
SILENT: Final = "not responding"
LEFT: Final = "left over"
"""The state of a killed `lws run`. The next `lws run` deletes its directory."""


class ClusterRow(Struct, frozen=True, kw_only=True):
    """A cluster in the list. If a value is unknown, it is None."""

    name: str
    state: str
    directory: Path
    pid: int | None = None
    since: datetime | None = None
    nodes: int | None = None
    pods: int | None = None

    def row(self, now: datetime) -> tuple[str, ...]:
        """Return the cluster as a table row."""
        since = wording.duration(now - self.since) if self.since else "-"
        counts = ("-" if count is None else str(count) for count in (self.nodes, self.pods))
        return (self.name, self.state, since, *counts, str(self.directory))

    def document(self) -> JSONObject:
        """Return the cluster as machine-readable data."""
        return {
            "name": self.name,
            "state": self.state,
            "since": timestamps.render(self.since) if self.since else None,
            "pid": self.pid,
            "nodes": self.nodes,
            "pods": self.pods,
            "directory": str(self.directory),
        }


@click.command("clusters")
@click.option("-o", "--output", "form", type=click.Choice(["json", "yaml"]), help="Output format. Defaults to a table.")
@click.pass_obj
def command(target: Target, form: str | None) -> None:
    """List local clusters with their states, ages, directories, and numbers of nodes and pods."""
    target.cluster_name(None)
    clusters = asyncio.run(read([place for place in clusterdirectories.all_directories() if place.is_cluster]))
    if form:
        items = [cluster.document() for cluster in clusters]
        document = {"apiVersion": "lws/v1", "kind": "ClusterList", "items": items}
        click.echo(output.as_json(document) if form == "json" else output.as_yaml(document))
    elif clusters:
        print_text(*output.table(HEADER, [cluster.row(SystemClock().now()) for cluster in clusters]))
    else:
        click.echo("There are no local clusters. Start one with `lws up`.", err=True)


async def read(directories: Sequence[ClusterDirectory]) -> list[ClusterRow]:
    """Read the state of all clusters concurrently."""
    return list(await asyncio.gather(*map(_read, directories)))


async def _read(place: ClusterDirectory) -> ClusterRow:
    pid = place.pid()
    if pid is None:
        try:
            options = savedoptions.load(place)
        except CommandError:  # a cluster is listed even if it cannot start; `lws up` reports the error
            options = None
        state = LEFT if place.marker_file.is_file() else STOPPED
        return ClusterRow(
            name=place.name, state=state, directory=place.directory, nodes=options.nodes if options else None
        )
    since = datetime.fromtimestamp(place.lock.stat().st_mtime, UTC)
    counts = await _counts(place)
    return ClusterRow(
        name=place.name,
        state=RUNNING if counts else SILENT,
        directory=place.directory,
        pid=pid,
        since=since,
        nodes=counts[0] if counts else None,
        pods=counts[1] if counts else None,
    )


async def _counts(place: ClusterDirectory) -> tuple[int, int] | None:
    """Return the number of nodes and pods in a cluster, or None if it does not respond in time."""
    try:
        async with timeouts.within(ANSWER), Target(local=place.name).session() as session:
            nodes, pods = await session.client.list(NODES), await session.client.list(PODS)
    except (CommandError, KubeError, TimeoutError):  # starting, stopping or unresponsive
        return None
    return len(nodes.items), len(pods.items)
