"""The option `-c`, and what is said where it is left out and a pod has several containers."""

from collections.abc import Sequence
from typing import Final

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
