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
        seconds = _parse_duration(str(value), "use a duration such as 30s, 5m or 1h30m, or a number of seconds")
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
    help="Container name. If omitted, the container in the annotation kubectl.kubernetes.io/default-container is used, or "
    "the first container in the pod.",
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


def timeout_option(default: str, awaited: str) -> Callable[[Command], Command]:
    """Return the `--timeout` option with this default. `awaited` describes what the command waits for."""
    text = f"Maximum time to wait for {awaited}."
    return click.option("--timeout", type=limit, default=default, show_default=True, metavar="DURATION", help=text)


def ready_for_option(condition: str = "") -> Callable[[Command], Command]:
    """Return the `--ready-for` option, which applies only to this condition if one is specified."""
    text = (
        f"{f'With {condition}, the minimum' if condition else 'Minimum'} time for which a group must be ready after a failure. If the group previously ran for longer than this before it failed, the longer time applies. "
        "0 disables the check."
    )
    return click.option("--ready-for", type=limit, default="10s", show_default=True, metavar="DURATION", help=text)


def node_patience_option(command: Command) -> Command:
    """Add the `--node-patience` option, whose value is stored in the target."""

    def put(context: click.Context, _parameter: click.Parameter, seconds: float | None) -> None:
        if seconds is not None:
            context.obj = replace(context.obj, node_patience=timedelta(seconds=seconds))

    return click.option(
        "--node-patience", type=limit, metavar="DURATION", callback=put, expose_value=False,
        help="Time that an autoscaler has to add a node for an unschedulable pod. After this time, the pod is considered stuck. Defaults to 15m.",
    )(command)  # fmt: skip
