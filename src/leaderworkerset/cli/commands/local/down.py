"""`lws down`: stop an embedded cluster and every process in it."""

import os
import select
import signal

import click

from leaderworkerset.cli.cluster import places
from leaderworkerset.cli.cluster.places import Place
from leaderworkerset.cli.errors import TimedOutError
from leaderworkerset.cli.views.progress import Progress


@click.command("down")
@click.argument("name", default=places.DEFAULT)
@click.option("--delete", "deletes", is_flag=True, help="Delete its objects, logs and volumes too.")
@click.option("--timeout", type=click.FloatRange(min=0), default=30.0, show_default=True, metavar="SECONDS")
def command(name: str, deletes: bool, timeout: float) -> None:  # noqa: FBT001 - click passes it
    """Stop the embedded cluster NAME (default: default). Its objects stay, unless --delete is given."""
    place = places.place(name)
    was_running = stop(place, timeout)
    if deletes and place.directory.exists():
        place.remove()
        click.echo(f"Cluster {name} {'stopped and ' if was_running else ''}deleted.")
    else:
        click.echo(f"Cluster {name} {'stopped' if was_running else 'does not run'}.")


def stop(place: Place, timeout: float) -> bool:
    """End the process of the cluster: politely, and after `timeout` seconds by force. False if none runs."""
    pid = place.pid()
    if pid is None:
        return False
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    progress = Progress()
    progress.show(f"stopping cluster {place.name}")
    try:
        signal.pidfd_send_signal(process, signal.SIGTERM)
        if not ended(process, timeout):
            signal.pidfd_send_signal(process, signal.SIGKILL)  # the kernel ends its pods with it
            if not ended(process, 10):
                raise TimedOutError(f"process {pid} of cluster {place.name} does not end")
    finally:
        progress.clear()
        os.close(process)
    return True


def ended(process: int, timeout: float) -> bool:
    """Wait for the end of a process by its descriptor."""
    poller = select.poll()
    poller.register(process, select.POLLIN)
    return bool(poller.poll(timeout * 1000))
