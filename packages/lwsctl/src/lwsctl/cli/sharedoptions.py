"""Defines options that several commands share, such as time limits, the container, and `--dry-run`."""

import math
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final, TypeVar

import click
from msgspec.structs import replace

from kuberuntime.objects import duration
from kuberuntime.objects.meta import JSONObject
from lwsctl.cli.views.terminal import print_text


def age(value: str) -> int:
    """Parse an age in whole seconds, as the API server requires. Fractions are rounded up.

    >>> age("1m30s"), age("500ms")
    (90, 1)
    """
    return math.ceil(_validate_range(value, _parse_duration(value, "use a duration such as 30s, 5m or 1h30m")))


def limit(value: str) -> float:
    """Parse a time limit, such as `90`, or `1m30s` as in kubectl.

    >>> limit("1m30s"), limit("90")
    (90.0, 90.0)
    """
    try:
        seconds = float(value)
    except ValueError:
        seconds = _parse_duration(str(value), "use 30s, 5m, 1h30m, or a number of seconds")
    return _validate_range(value, seconds)


def _parse_duration(value: str, hint: str) -> float:
    try:
        return float(duration.parse(value))
    except ValueError as error:
        raise click.BadParameter(f"{value!r}: {hint}") from error


def _validate_range(value: str | float, seconds: float) -> float:
    if not 0 <= seconds <= duration.LONGEST.total_seconds():  # also excludes "nan"
        raise click.BadParameter(f"{value!r}: must be between 0 and a hundred years")
    return seconds


container_option: Final = click.option(
    "-c",
    "--container",
    metavar="NAME",
    help="Container name. Defaults to the `kubectl.kubernetes.io/default-container` annotation, or the first "
    "container.",
)


def print_selected_container(pods: Sequence[JSONObject], container: str | None) -> None:
    """Report the selected container if the pod has several containers and the user did not specify one."""
    from lwsctl.views.podcontainers import (
        default_container_note,
    )  # most commands have different defaults for these options

    if container is None and (note := default_container_note(pods)):
        print_text(note, err=True)


Command = TypeVar("Command", bound=Callable[..., Any])

DRY: Final = " (dry run)"
"""The suffix of lines about a change that is made as a dry run."""


def dry_run_option(help_text: str) -> Callable[[Command], Command]:
    """Return the `--dry-run` option, whose value is passed as `is_trial`."""
    return click.option(
        "--dry-run", "is_trial", type=click.Choice(["server"]), is_flag=False, flag_value="server",
        callback=lambda _ctx, _parameter, value: value is not None, help=help_text,
    )  # fmt: skip


def timeout_option(default: str, help_text: str = "Maximum time to wait.") -> Callable[[Command], Command]:
    """Return the `--timeout` option with this default."""
    return click.option("--timeout", type=limit, default=default, show_default=True, metavar="DURATION", help=help_text)


def ready_for_option(begin: str = "") -> Callable[[Command], Command]:
    """Return the `--ready-for` option. `begin` is the start of its help."""
    text = f"{begin}Minimum time that a group must remain ready after a failure, or the duration of the longest failed run if that is longer. 0 disables the check."
    return click.option("--ready-for", type=limit, default="10s", show_default=True, metavar="DURATION", help=text)


def node_patience_option(command: Command) -> Command:
    """Add the `--node-patience` option, whose value is stored in the target."""

    def put(context: click.Context, _parameter: click.Parameter, seconds: float | None) -> None:
        if seconds is not None:
            context.obj = replace(context.obj, node_patience=timedelta(seconds=seconds))

    return click.option(
        "--node-patience", type=limit, metavar="DURATION", callback=put, expose_value=False,
        help="Time after which a pod that fits on no node counts as stuck, so that an autoscaler can add a node. Defaults to 15m.",
    )(command)  # fmt: skip
