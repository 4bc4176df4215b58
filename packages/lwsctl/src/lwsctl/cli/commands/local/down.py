"""`lws down`: stops a local cluster and all of its processes."""

import os
import select
import signal

import click

from lwsctl.cli.cluster import clusterdirectories
from lwsctl.cli.cluster.clusterdirectories import ClusterDirectory
from lwsctl.cli.cluster.target import Target
from lwsctl.cli.errors import CommandError, TimedOutError, UsageError
from lwsctl.cli.sharedoptions import timeout_option
from lwsctl.cli.suggestions import hint
from lwsctl.cli.views.progress import ProgressLine


@click.command("down")
@click.argument("name", required=False)
@click.option("--all", "every", is_flag=True, help="Stop all clusters started with `lws up`.")
@click.option("--delete", "deletes", is_flag=True, help="Delete the objects, logs and volumes of the cluster.")
@timeout_option("30s", "the cluster to stop")
@click.pass_obj
def command(target: Target, name: str | None, every: bool, deletes: bool, timeout: float) -> None:  # noqa: FBT001 - click passes it
    """Stop the embedded cluster NAME, which defaults to `default`. Its objects are kept unless --delete is set."""
    if every and (name or target.local):
        raise UsageError("--all stops all clusters, and cannot be combined with a name")
    own = target.cluster_name(name)
    directories = clusters(deletes=deletes) if every else [clusterdirectories.cluster_directory(own)]
    if not directories:
        click.echo("There are no clusters to delete." if deletes else "No clusters are running.")
    for place in directories:
        stop_and_report(place, timeout, deletes=deletes)


def clusters(*, deletes: bool) -> list[ClusterDirectory]:
    """Return the clusters that --all selects.

    These are running clusters, or all clusters with --delete. Clusters of `lws run` are excluded.
    """
    own = [
        place for place in clusterdirectories.all_directories() if place.is_cluster and not place.marker_file.is_file()
    ]
    return [place for place in own if deletes or place.pid() is not None]


def stop_and_report(place: ClusterDirectory, timeout: float, *, deletes: bool) -> None:
    """Stop a cluster and print the result. If requested, delete the cluster."""
    name = place.name
    was_running = stop(place, timeout)
    if deletes and place.directory.exists():
        place.remove()
        click.echo(f"Cluster {name} {'stopped and ' if was_running else ''}deleted.")
    elif was_running or place.is_cluster:
        click.echo(f"Cluster {name} {'stopped' if was_running else 'is not running'}.")
    else:
        there = [directory.name for directory in clusterdirectories.all_directories() if directory.is_cluster]
        click.echo(f"Cluster {name} does not exist (existing: {', '.join(there) or 'none'}){hint(name, there)}")


def stop(place: ClusterDirectory, timeout: float) -> bool:
    """Terminate the cluster process, and kill it after `timeout` seconds. Return False if it was not running.

    Only a process that has opened the lock is terminated, because the PID may have been reused.
    """
    pid = place.pid()
    if pid is None:
        return False
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    progress = ProgressLine()
    progress.show(f"stopping cluster {place.name}")
    try:
        if not place.is_locked_by(pid):
            if place.pid() is None:  # it has exited in the meantime
                return False
            raise CommandError(
                f"process {pid} in {place.lock} is not cluster {place.name}, so it was not stopped; use `fuser {place.lock}` to find the process"
            )
        signal.pidfd_send_signal(process, signal.SIGTERM)
        if not wait_for_exit(process, timeout):
            signal.pidfd_send_signal(process, signal.SIGKILL)  # the kernel kills its pods at the same time
            if not wait_for_exit(process, 10):
                raise TimedOutError(f"process {pid} of cluster {place.name} did not exit after SIGKILL")
    finally:
        progress.clear()
        os.close(process)
    return True


def wait_for_exit(process: int, timeout: float) -> bool:
    """Wait with a process file descriptor until the process exits."""
    poller = select.poll()
    poller.register(process, select.POLLIN)
    return bool(poller.poll(timeout * 1000))
