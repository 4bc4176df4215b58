"""Runs an embedded cluster with LeaderWorkerSets, for `lws up` and `lws run`."""

import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from msgspec import Struct

import lwsctl
from kuberuntime import tlsbuffers
from kuberuntime.access import kubeconfig
from kuberuntime.client.client import Client
from kuberuntime.client.http import HTTPTransport
from kuberuntime.clock import SystemClock
from kuberuntime.objects import meta
from leaderworkerset.decisions.episoderecords import EpisodeStore
from leaderworkerset.decisions.installedkinds import full_definitions, managed_kinds
from leaderworkerset.decisions.localmanager import (
    DISRUPTION,
    MOVES,
    ProgressFollower,
    ReadFiles,
    manager_controllers,
    manager_webhooks,
    record_failures,
)
from leaderworkerset.decisions.nodemaintenance import DisruptionSettings, MaintenanceSettings
from localkube import cluster as localkube
from localkube.cluster import DamagedDataError, Devices, LocalkubeError, Nodes, RunningCluster, Settings, SettingsError
from lwsctl.cli import logging
from lwsctl.cli.cluster import clusterdirectories
from lwsctl.cli.cluster.clusterdirectories import ClusterDirectory
from lwsctl.cli.cluster.target import OpenChannels, WarningTransport, print_warning
from lwsctl.cli.errors import CommandError, UsageError
from lwsctl.cli.local.clusteroptions import AUTO, ClusterOptions
from lwsctl.cli.local.imagemappings import ImageMappings
from lwsctl.cli.process import garbagecollection
from lwsctl.cli.rehearsal.nodepools import Pool

CONNECTIONS: Final = 8
"""The number of connections for controller requests. Both ends of each connection are in this process."""

CONFIGURED: Final = {DISRUPTION: DisruptionSettings(), MOVES: MaintenanceSettings()}
"""The empty manager configuration for a local cluster. LeaderWorkerSets enable features with annotations."""

PROGRESS_PACE: Final = 1.0
"""The interval in seconds at which a leader writes its progress."""

SAID: Final = ".noted"
"""The file that contains the last note about this machine that was printed."""

OPTIONS_OF_NODES: Final = {
    "labels": "--node-label",
    "taints": "--node-taint",
    "capacity": "--node-capacity",
    "gpus": "--gpus-per-node",
}
"""The command-line option for each field of `Nodes`."""


class LocalCluster(Struct, frozen=True):
    """A running cluster with an HTTP client, and notes about this machine for the user."""

    client: Client
    channels: OpenChannels
    notes: tuple[str, ...]


@asynccontextmanager
async def local_cluster(
    place: ClusterDirectory,
    options: ClusterOptions,
    progress: Callable[[str], None],
    *,
    nodes: Nodes | None = None,
    keep: bool = True,
    hold_completed: bool = False,
) -> AsyncIterator[LocalCluster]:
    """Start the cluster, and stop it when the context exits.

    `nodes` override the nodes in the options. The controllers and webhooks of LeaderWorkerSets use HTTP to connect to
    the API server, as in Kubernetes.
    """
    logging.configure(options.log_level, form="json" if options.log_format == "json" else "text")
    settings = cluster_settings(
        place, options, nodes or node_settings(options), keep=keep, hold_completed=hold_completed
    )
    clock = SystemClock()
    tlsbuffers.reduce_buffer_size()
    with _convert_start_errors(place):
        progress("starting the API server")
        async with localkube.serve(settings) as server:
            access = kubeconfig.load({}, kubeconfig=str(server.kubeconfig))
            agent = f"lws/{lwsctl.__version__}"
            transport = HTTPTransport(access, user_agent=agent, connections=CONNECTIONS)
            client = Client(transport)
            try:
                progress("starting webhooks, controllers and the kubelet")
                kinds = managed_kinds(configured=CONFIGURED)
                follower = ProgressFollower(server.client(), clock, pace=PROGRESS_PACE, wait_reason=server.wait_reason)
                async with (
                    manager_webhooks(client, clock, await full_definitions(client), kinds=kinds),
                    server.work(),
                    record_failures(server.client(), EpisodeStore(place.history), read_logs(server), clock, follower),
                    server.run_manager(lambda: manager_controllers(client, clock, kinds=kinds)),
                ):
                    own = Client(WarningTransport(transport, print_warning), field_validation="Strict")
                    with garbagecollection.exclude_existing_objects(lasting=keep):
                        notes = tuple(f"note: {note}" for note in settings.nodes.devices.notes)
                        yield LocalCluster(
                            own,
                            transport.channels,
                            (*notes, *sandbox_note(server.notes, clusterdirectories.home() / SAID)),
                        )
            finally:
                await client.close()


def read_logs(server: RunningCluster) -> ReadFiles:
    """Return the function that reads the logs of existing and deleted pods for the recorder."""
    return lambda pod, container, lines, size: server.last_lines(meta.uid(pod), container, lines, size)


def sandbox_note(missing: Sequence[str], path: Path) -> tuple[str, ...]:
    """Return a note about sandbox features that this machine does not support.

    The result is empty if the file `path` contains the same note.
    """
    note = f"Note: without {'; without '.join(missing)}" if missing else ""
    try:
        if path.exists() and path.read_text() == note:
            return ()
        path.write_text(note)
    except OSError:  # repeated at the next start
        pass
    return (note,) if note else ()


@contextmanager
def _convert_start_errors(place: ClusterDirectory) -> Iterator[None]:
    """Convert a start error to a command error. The error gives advice about damaged objects."""
    try:
        yield
    except DamagedDataError as error:
        raise CommandError(
            f"{error}\nuse `lws down {place.name} --delete` to delete the cluster, and then restart it"
        ) from error
    except LocalkubeError as error:
        raise CommandError(str(error)) from error


def cluster_settings(
    place: ClusterDirectory, options: ClusterOptions, nodes: Nodes, *, keep: bool, hold_completed: bool
) -> Settings:
    """Convert the command-line options to settings."""
    return Settings(
        name=place.name,
        directory=place.directory,
        keep=keep,
        port=options.port,
        nodes=nodes,
        network="shared" if options.network == "shared" else "isolated",
        images=ImageMappings(place, options),
        stub=bool(options.stub),
        stub_images=frozenset(options.stub),
        hold_completed=hold_completed,
        quote_failures=True,
        memory_limits=not options.ignore_memory_limits,
        max_pods=options.max_pods,
        environment=host_environment(os.environ, Path(sys.prefix)),
    )


def node_settings(options: ClusterOptions) -> Nodes:
    """Convert the node options to settings. Errors contain the option whose value is invalid."""
    gpus = options.gpus_per_node
    nodes = Nodes(
        count=options.nodes,
        labels=options.node_labels,
        taints=options.node_taints,
        capacity=options.node_capacity,
        gpus=gpus if isinstance(gpus, int) else 0,
    )
    if isinstance(gpus, int):
        if options.expose_gpus:
            raise UsageError(
                "--expose-gpus requires --gpus host (use --defaults to reset the options of the previous `lws up`)"
            )
        return _validate_nodes(nodes)
    return _validate_nodes(
        replace(nodes, devices=replace(_host_devices(gpus, options.nodes), are_exposed=options.expose_gpus))
    )


def _host_devices(argument: str, nodes: int) -> Devices:
    """Return the GPUs of this machine. Errors contain the command-line option."""
    if nodes == AUTO:
        raise UsageError(f"--gpus {argument} requires --nodes N, because the GPUs are divided among the nodes")
    try:
        return localkube.host_gpus(argument, nodes, os.environ.get("CUDA_VISIBLE_DEVICES"))
    except SettingsError as error:
        raise UsageError(f"--gpus {argument}: {error.message}") from error
    except LocalkubeError as error:
        raise CommandError(f"--gpus {argument}: {error}") from error


def pool_settings(pools: Sequence[Pool]) -> Nodes:
    """Convert node pools to settings."""
    first, *others = [
        Nodes(count=pool.count, labels=pool.labels, taints=pool.taints, capacity=pool.capacity) for pool in pools
    ]
    return _validate_nodes(replace(first, also=tuple(others)))


def _validate_nodes(nodes: Nodes) -> Nodes:
    try:
        nodes.check()
    except SettingsError as error:
        raise UsageError(f"{OPTIONS_OF_NODES[error.setting]}: {error.message}") from error
    return nodes


def host_environment(environment: Mapping[str, str], prefix: Path) -> dict[str, str]:
    """Return the environment of this process with its virtual environment activated.

    Containers can then find the packages that are installed next to `lws`, even if it was called by its full path.
    """
    active = dict(environment)
    if (prefix / "pyvenv.cfg").exists():
        search = active.get("PATH", "").split(os.pathsep)
        programs = str(prefix / "bin")
        active["PATH"] = os.pathsep.join([programs, *(path for path in search if path != programs)])
        active["VIRTUAL_ENV"] = str(prefix)
    return active
