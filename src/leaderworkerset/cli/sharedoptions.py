"""The option `-c`, and what is said where it is left out and a pod has several containers."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import click

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.cli.views.terminal import say
from leaderworkerset.views.podcontainers import note_of_choice

container_option: Final = click.option(
    "-c", "--container", metavar="NAME", help="This container; otherwise the one its pod names, or the first."
)


def say_choice(pods: Sequence[JSONObject], container: str | None) -> None:
    """Say which container was taken, if there are others and none was named."""
    if container is None and (note := note_of_choice(pods)):
        say(note, err=True)


Command = TypeVar("Command", bound=Callable[..., Any])

DRY: Final = " (dry run)"
"""The end of lines that say what would be."""


def dry_run_option(help_text: str) -> Callable[[Command], Command]:
    """Return the option; it arrives as `is_trial`."""
    return click.option(
        "--dry-run", "is_trial", type=click.Choice(["server"]), is_flag=False, flag_value="server",
        callback=lambda _ctx, _parameter, value: value is not None, help=help_text,
    )  # fmt: skip
