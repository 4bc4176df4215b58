"""`lws history`: shows recorded failures of groups, with data that is kept after their pods are deleted."""

import asyncio
from typing import Any, Final

import click
import msgspec

from kuberuntime.clock import SystemClock
from kuberuntime.objects import decimals
from leaderworkerset.api.episode import Episode
from lwsctl.cli import targets
from lwsctl.cli.cluster import recordings
from lwsctl.cli.cluster.target import Target
from lwsctl.cli.errors import CommandError, UsageError
from lwsctl.cli.shell import completion
from lwsctl.cli.views import episodetable, output
from lwsctl.cli.views.terminal import print_text
from lwsctl.views.document import VERSION
from lwsctl.views.selection import Selection

UNLESS: Final = " This cluster records failures only if recorder.enable is set in the manager configuration."


@click.command("history")
@click.argument("name", metavar="[LWS[/GROUP[#N]]]", required=False, shell_complete=completion.names)
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="List failures across all namespaces.")
@click.option("-o", "--output", "form", type=click.Choice(["json", "yaml"]), help="Output format. Defaults to text.")
@click.pass_obj
def command(target: Target, name: str | None, *, everywhere: bool, form: str | None) -> None:
    """List the recorded failures of groups, sorted by time. Use LWS/GROUP#N to show the details of failure N.

    A record includes the rank that failed first, the exit codes, the last log lines of each rank, events, and preceding
    changes. Values that look like secrets are masked.

    Local clusters record all failures, and the records remain available after the cluster is stopped. In other clusters,
    failures are recorded if recorder.enable is set in the manager configuration.
    """
    selection, number = (None, None) if name is None else parse(name)
    if everywhere and number is not None:
        raise UsageError("a failure number cannot be combined with -A; use -n to select the namespace")
    recorded = asyncio.run(recordings.read(target, everywhere=everywhere, selection=selection))
    readable = [(place, episode) for place, episode in recorded if number in (None, place.number)]
    for place, episode in readable:
        if episode is None:
            print_text(f"skipping {place.path}, which cannot be read", err=True)
    episodes = recordings.sort_episodes(readable)
    if number is not None and not episodes:
        raise CommandError(
            f"failure {name} is not recorded; use `lws history {selection}` to list the recorded failures"
        )
    if form is not None:
        value = document(episodes)
        click.echo(output.as_json(value) if form == "json" else output.as_yaml(value))
    elif not episodes:
        print_text(
            f"No failures of {selection or 'groups'} are recorded.{'' if recordings.episode_directory(target) else UNLESS}",
            err=True,
        )
    else:
        now = SystemClock().now()
        print_text(
            *(
                episodetable.episode_table(episodes, now, with_namespace=everywhere)
                if number is None
                else episodetable.episode_lines(episodes[0], now)
            )
        )


def parse(words: str) -> tuple[Selection, int | None]:
    """Parse `LWS[/GROUP[#N]]`. The previous notation `LWS/GROUP/N` is also accepted.

    >>> parse("web/0#3"), parse("web")
    ((Selection(name='web', group=0, rank=None), 3), (Selection(name='web', group=None, rank=None), None))
    """
    head, slash, last = words.rpartition("#" if "#" in words else "/")
    if slash != "#" and head.count("/") == (1 if head.split("/")[0] in targets.KIND_WORDS else 0):
        return targets.parse(words), None
    number = decimals.natural(last)
    if not slash or number is None:
        raise UsageError(f"{words!r} is not a valid failure; use LWS, LWS/GROUP or LWS/GROUP#N, such as web/0#3")
    return targets.parse(head), number


def document(episodes: list[Episode]) -> dict[str, Any]:
    """Return the episodes as machine-readable data with stable field names."""
    items = [msgspec.to_builtins(episode) for episode in episodes]
    return {"apiVersion": VERSION, "kind": "EpisodeList", "items": items}
