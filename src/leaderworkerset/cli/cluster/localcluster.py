"""An embedded cluster with LeaderWorkerSets: what `lws up` and `lws run` start."""

import gc
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

import leaderworkerset
from kuberuntime.access import kubeconfig
from kuberuntime.client.client import Client
from kuberuntime.client.http import HTTPTransport
from kuberuntime.clock import SystemClock
from leaderworkerset.cli import logging
from leaderworkerset.cli.cluster.clusteroptions import ClusterOptions
from leaderworkerset.cli.cluster.places import Place
from leaderworkerset.cli.cluster.target import OpenChannels
from leaderworkerset.cli.errors import CommandError, UsageError
from leaderworkerset.cli.installing.definition import full_definitions
from leaderworkerset.manager import lwsmanager
from localkube import cluster as embedded
from localkube.apiserver.front.http import ListenError
from localkube.apiserver.storage import copies
from localkube.apiserver.storage.errors import DamagedError, StoreError
from localkube.cluster import ClusterSettings
from localkube.controllers.nodes.labeltemplate import parse_label
from localkube.controllers.nodes.nodes import GPU, NodeSettings
from localkube.controllers.nodes.nodewords import parse_capacity, parse_taint
from localkube.identity import IdentityError
from localkube.statedirectory import StateDirectoryError

CONNECTIONS: Final = 8
"""Connections for the controllers' requests. Both ends are in this process and take 300 KiB each."""


@dataclass(frozen=True, slots=True)
class LocalCluster:
    """A cluster that is up: a client that speaks HTTP to it, and what its users should know of this machine."""

    client: Client
    channels: OpenChannels
    notes: tuple[str, ...]


@asynccontextmanager
async def local_cluster(
    place: Place,
    options: ClusterOptions,
    progress: Callable[[str], None],
    *,
    keep: bool = True,
    hold_completed: bool = False,
) -> AsyncIterator[LocalCluster]:
    """Start everything, and end everything when the context is left.

    The controllers and webhooks of LeaderWorkerSets speak HTTP to the API server, as they do on Kubernetes.
    """
    logging.configure(options.log_level)
    settings = settings_of(place, options, keep=keep, hold_completed=hold_completed)
    clock = SystemClock()
    try:
        progress("starting the API server")
        async with embedded.serving(settings, clock) as cluster:
            access = kubeconfig.load({}, kubeconfig=str(settings.kubeconfig))
            agent = f"lws/{leaderworkerset.__version__}"
            transport = HTTPTransport(access, user_agent=agent, connections=CONNECTIONS)
            client = Client(transport)
            try:
                progress("starting webhooks, controllers and kubelet")
                async with (
                    lwsmanager.webhooks(client, clock, await full_definitions(client)),
                    embedded.working(cluster) as granted,
                    lwsmanager.controllers(client, clock),
                ):
                    gc.freeze()  # what the start made stays; looking through it again and again would delay events
                    yield LocalCluster(Client(transport, field_validation="Strict"), transport.channels, granted.lost)
            finally:
                gc.unfreeze()
                await client.close()
    except DamagedError as error:
        raise CommandError(f"{error}\n{offer(place, clock.now())}") from error
    except (ListenError, StoreError, IdentityError, StateDirectoryError) as error:
        raise CommandError(str(error)) from error


def offer(place: Place, now: datetime) -> str:
    """Return what to do about a damaged file: which copy there is, and how to restore it."""
    found = copies.find(place.database)
    if not found:
        return f"there is no copy of it; `lws down {place.name} --delete` makes room for an empty cluster"
    return f"`lws up {place.name} --restore` restores {found[0].describe(now)} and keeps the damaged file"


def restore(place: Place) -> str:
    """Put a copy in the place of the objects; return what was done."""
    try:
        restored = copies.restore(place.database, SystemClock().now())
    except StoreError as error:
        raise CommandError(str(error)) from error
    kept = f"; the file of before is {restored.aside}" if restored.aside else ""
    return f"Restored {restored.source}{kept}"


def settings_of(place: Place, options: ClusterOptions, *, keep: bool, hold_completed: bool) -> ClusterSettings:
    """Turn the words of the command line into settings."""
    return ClusterSettings(
        name=place.name,
        directory=place.directory,
        keep=keep,
        port=options.port,
        nodes=nodes_of(options),
        network="shared" if options.network == "shared" else "isolated",
        images=dict(options.images),
        stub=options.stub,
        hold_completed=hold_completed,
        max_pods=options.max_pods,
        environment=host_environment(os.environ, Path(sys.prefix)),
    )


def nodes_of(options: ClusterOptions) -> NodeSettings:
    """Turn the words on nodes into settings; what is wrong with them is told with the option they came by."""
    nodes = NodeSettings(count=options.nodes)
    with _blaming("--node-label"):
        nodes = replace(nodes, labels=tuple(map(parse_label, options.node_labels)))
        nodes.check()
    with _blaming("--node-taint"):
        nodes = replace(nodes, taints=tuple(map(parse_taint, options.node_taints)))
        nodes.check()
    with _blaming("--node-capacity"):
        nodes = replace(nodes, capacity=parse_capacity(options.node_capacity))
    if not options.gpus_per_node:
        return nodes
    if GPU in nodes.capacity:
        raise UsageError(f"--node-capacity: {GPU} is given by --gpus-per-node too; leave one out")
    return nodes.with_gpus(options.gpus_per_node)


@contextmanager
def _blaming(option: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error


def host_environment(environment: Mapping[str, str], prefix: Path) -> dict[str, str]:
    """Return the environment of this process, with the virtual environment that it runs in made active.

    So containers find the packages installed beside `lws`, also when its full path was typed.
    """
    active = dict(environment)
    if (prefix / "pyvenv.cfg").exists():
        search = active.get("PATH", "").split(os.pathsep)
        programs = str(prefix / "bin")
        active["PATH"] = os.pathsep.join([programs, *(path for path in search if path != programs)])
        active["VIRTUAL_ENV"] = str(prefix)
    return active
