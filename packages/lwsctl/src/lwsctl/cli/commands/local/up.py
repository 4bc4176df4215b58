"""`lws up`: starts a local cluster in the foreground or as a detached process."""

import asyncio
import os
import shlex
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from click.core import ParameterSource
from msgspec import Struct
from msgspec.structs import fields, replace

from kuberuntime import lightaiohttp
from kuberuntime.errors import flatten
from lwsctl.cli.cluster import clusterdirectories
from lwsctl.cli.cluster.clusterdirectories import ClusterDirectory
from lwsctl.cli.errors import CommandError, UsageError, describe
from lwsctl.cli.local import clusterlog, imagemappings, savedoptions
from lwsctl.cli.local.clusteroptions import AUTO, ClusterOptions, cluster_options, collect, require_localkube
from lwsctl.cli.views.progress import ProgressLine

READY_DESCRIPTOR = "LWS_READY_FD"
"""The variable that contains the pipe to which a detached cluster reports its progress. The last line is `READY`."""

READY = "ready"
FACT = "="
ERROR = "!"
"""The prefix of lines that contain notes about the cluster or errors instead of progress."""


class Start(Struct, frozen=True):
    """One start of a cluster, with its options and the notes about them."""

    place: ClusterDirectory
    options: ClusterOptions
    specified_options: ClusterOptions
    notes: tuple[str, ...] = ()


@click.command("up")
@click.argument("name", required=False)
@click.option(
    "-d", "--detach", is_flag=True, help="Run the cluster in the background. To stop the cluster, use `lws down`."
)
@click.option(
    "--defaults", is_flag=True, help="Use the default options instead of the options from the previous `lws up`."
)
@cluster_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    name: str | None,
    detach: bool,  # noqa: FBT001 - click passes it
    **options: Any,
) -> None:
    """Start the embedded cluster NAME, which defaults to `default`.

    Objects persist across restarts of the cluster. Options that you do not specify retain the values from the previous
    `lws up`. To add image mappings to a running cluster, use `lws up --image NAME=DIR`.
    """
    require_localkube("up")
    place = clusterdirectories.cluster_directory(ctx.obj.cluster_name(name))
    fresh = bool(options.pop("defaults"))
    typed = collect(options)
    if AUTO in (typed.nodes, typed.gpus_per_node):
        raise UsageError(
            "--nodes auto and --gpus auto require manifests; use `lws run -f FILE --nodes auto --gpus auto`"
        )
    previous = None if fresh else savedoptions.load(place)
    settings = savedoptions.combine(typed, typed_names(ctx), previous)
    again = savedoptions.difference(settings, typed)
    begins_anew = f"Options of the previous `lws up` (use --defaults to reset them): {shlex.join(again)}"
    start = Start(place, settings, typed, (begins_anew,) if again else ())
    if (detach or typed.images) and place.pid() is not None:
        change_running(start, typed_names(ctx))
    elif detach:
        start_detached(start)
    else:
        asyncio.run(serve(start))


def typed_names(ctx: click.Context) -> set[str]:
    """Return the names of the cluster options on the command line."""
    own = {field.name for field in fields(ClusterOptions)}
    return {name for name in own if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE}


async def serve(start: Start) -> None:
    """Run the cluster until it is requested to stop."""
    lightaiohttp.load()
    from kuberuntime.serving.signals import stop_event
    from lwsctl.cli.local import localcluster

    place = start.place
    report = Reporter()
    try:
        with place.hold_lock(), remove_unless_started(place):
            clusterlog.limit_log(place)
            async with (
                stop_event() as stopped,
                localcluster.local_cluster(place, start.options, report.report_progress) as cluster,
            ):
                savedoptions.save(place, start.options)
                report.report_ready([*start.notes, *cluster.notes, *cluster_options_hint(place)])
                await stopped.wait()
                report.report_progress("stopping")
    except Exception as error:
        report.report_failure(error)
        raise


@contextmanager
def remove_unless_started(place: ClusterDirectory) -> Iterator[None]:
    """Delete a new cluster that failed to start, so that it is not listed as stopped."""
    options = place.directory / clusterdirectories.OPTIONS
    is_new = not (place.database.exists() or options.exists())
    try:
        yield
    except BaseException:
        if is_new and not options.exists():  # options are saved after a successful start
            place.remove_unstarted()
        raise


class Reporter:
    """Reports the progress of a start to a terminal, or to the parent process."""

    def __init__(self) -> None:
        descriptor = os.environ.pop(READY_DESCRIPTOR, None)
        self._pipe = os.fdopen(int(descriptor), "w", buffering=1) if descriptor else None
        self._progress = ProgressLine()

    def report_progress(self, text: str) -> None:
        """Report the current step."""
        if self._pipe:
            self._pipe.write(f"{text}\n")
        else:
            self._progress.show(text)

    def report_failure(self, error: Exception) -> None:
        """Report the reason why the cluster failed to start. The log may be on a full disk."""
        if self._pipe:
            lines = "\n".join(map(describe, flatten(error))).split("\n")
            self._pipe.write("".join(f"{ERROR}{line}\n" for line in lines))

    def report_ready(self, lines: list[str]) -> None:
        """Report that the cluster is running, and show notes to the user."""
        self._progress.clear()
        if self._pipe:
            self._pipe.write("".join(f"{FACT}{line}\n" for line in lines) + f"{READY}\n")
            self._pipe.close()
            self._pipe = None
        else:
            click.echo("\n".join(lines))


def cluster_options_hint(place: ClusterDirectory) -> list[str]:
    """Return the options that select this cluster."""
    return [
        f"Cluster {place.name} is running. Use it with `lws … {place.options_text}`, or with any Kubernetes client:",
        f"export KUBECONFIG={shlex.quote(str(place.kubeconfig))}",
    ]


def change_running(start: Start, typed: Collection[str]) -> None:
    """Map additional images in a running cluster. Reject all other options that differ from the cluster's options."""
    place = start.place
    pid = f"process {place.pid()}"
    current = savedoptions.load(place) or ClusterOptions()
    if words := rejections(start, typed, current):
        raise CommandError(
            f"cluster {place.name} is running ({pid}) without {shlex.join(words)}; run `lws down {place.name}`, and then rerun this command"
        )
    click.echo(f"Cluster {place.name} is already running ({pid}).")
    images = imagemappings.merge_mappings(current, start.specified_options)
    if images != current.images:
        savedoptions.save(place, replace(current, images=images))
        for name, directory in start.specified_options.images:
            click.echo(f"Image {name} is now mapped to {directory} for new containers.")
    click.echo("\n".join(cluster_options_hint(place)[1:]))


def rejections(start: Start, typed: Collection[str], current: ClusterOptions) -> list[str]:
    """Return the options that cannot be changed while the cluster is running."""
    desired = savedoptions.combine(start.specified_options, typed, current)
    return savedoptions.difference(replace(desired, images=current.images), current)


def start_detached(start: Start) -> None:
    """Start a detached process, show its progress, and return when the cluster is running. Report a failed start."""
    place = start.place
    place.create_private()
    try:
        log = clusterlog.open_log(place)
    except OSError as error:
        raise clusterdirectories.unusable_directory_error(error) from error
    reader, writer = os.pipe()
    with log, os.fdopen(reader) as lines:
        process = subprocess.Popen(
            [
                sys.executable,
                "-P",  # do not import modules from the working directory
                "-m",
                "lwsctl.cli",
                "up",
                place.name,
                "--defaults",
                *start.options.arguments(),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[writer],
            env=os.environ | {READY_DESCRIPTOR: str(writer)},
            start_new_session=True,
        )
        os.close(writer)
        is_ready, reported = follow_start(lines)
    if not is_ready:
        code = process.wait()
        why = "\n".join(reported) or log_tail(place)
        raise CommandError(f"the cluster did not start (exit code {code}):\n{why}\n(log: {place.log})")
    click.echo("\n".join([*start.notes, *reported]))


def follow_start(lines: Iterable[str]) -> tuple[bool, list[str]]:
    """Show progress until the cluster is ready or has stopped. Return this state, and the notes or errors."""
    progress = ProgressLine()
    facts: list[str] = []
    errors: list[str] = []
    for line in map(str.rstrip, lines):
        if line == READY:
            progress.clear()
            return True, facts
        if line.startswith(FACT):
            facts.append(line.removeprefix(FACT))
        elif line.startswith(ERROR):
            errors.append(line.removeprefix(ERROR))
        else:
            progress.show(line)
    progress.clear()
    return False, errors


def log_tail(place: ClusterDirectory, lines: int = 15) -> str:
    """Return the last lines of the cluster log."""
    return "\n".join(place.log.read_text(errors="replace").strip().splitlines()[-lines:])
