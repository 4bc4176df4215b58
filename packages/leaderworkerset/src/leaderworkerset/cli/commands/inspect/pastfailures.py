"""`lws history`: shows the recorded failures of groups, with the data that is kept after their pods are deleted."""

import asyncio
from typing import Any, Final

import click
import msgspec

from kuberuntime.clock import SystemClock
from kuberuntime.objects import decimals
from leaderworkerset.cli import targets
from leaderworkerset.cli.cluster import recordings
from leaderworkerset.cli.cluster.target import Target
from leaderworkerset.cli.errors import CommandError, UsageError
from leaderworkerset.cli.shell import completing
from leaderworkerset.cli.views import episodetable, output
from leaderworkerset.cli.views.terminal import say
from leaderworkerset.recording.episode import Episode
from leaderworkerset.views.document import VERSION
from leaderworkerset.views.selection import Selection

UNLESS: Final = " On this cluster they are only if the manager's configuration has recorder.enable."


@click.command("history")
@click.argument("name", metavar="[LWS[/GROUP[#N]]]", required=False, shell_complete=completing.names)
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="All namespaces.")
@click.option(
    "-o", "--output", "form", type=click.Choice(["json", "yaml"]), help="Machine-readable output instead of text."
)
@click.pass_obj
def command(target: Target, name: str | None, *, everywhere: bool, form: str | None) -> None:
    """List the recorded failures of groups, the newest last, or show one in full: web/0#3 is the third one of group 0.

    A record contains the rank that failed first, exit codes, the last lines of every rank, events, and earlier changes.
    Values that look like secrets are masked. Failures are recorded on clusters of this machine, and can be read after
    their end. On other clusters, they are recorded if the manager's configuration has recorder.enable.
    """
    selection, number = (None, None) if name is None else parse(name)
    if everywhere and number is not None:
        raise UsageError("the number of an episode cannot be combined with -A: choose its namespace with -n")
    recorded = asyncio.run(recordings.read(target, everywhere=everywhere, selection=selection))
    readable = [(place, episode) for place, episode in recorded if number in (None, place.number)]
    for place, episode in readable:
        if episode is None:
            say(f"{place.path}: is not readable, and is left out", err=True)
    episodes = recordings.in_order(readable)
    if number is not None and not episodes:
        raise CommandError(f"there is no episode {name}; `lws history {selection}` lists all names")
    if form is not None:
        value = document(episodes)
        click.echo(output.as_json(value) if form == "json" else output.as_yaml(value))
    elif not episodes:
        say(
            f"No failures of {selection or 'groups'} are recorded.{'' if recordings.directory(target) else UNLESS}",
            err=True,
        )
    else:
        now = SystemClock().now()
        say(
            *(
                episodetable.table(episodes, now, with_namespace=everywhere)
                if number is None
                else episodetable.lines(episodes[0], now)
            )
        )


def parse(words: str) -> tuple[Selection, int | None]:
    """Read `LWS[/GROUP[#N]]`; the former notation `LWS/GROUP/N` is the same.

    >>> parse("web/0#3"), parse("web")
    ((Selection(name='web', group=0, rank=None), 3), (Selection(name='web', group=None, rank=None), None))
    """
    head, slash, last = words.rpartition("#" if "#" in words else "/")
    if slash != "#" and head.count("/") == (1 if head.split("/")[0] in targets.KIND_WORDS else 0):
        return targets.parse(words), None
    number = decimals.natural(last)
    if not slash or number is None:
        raise UsageError(f"{words!r} names no episode: write LWS, LWS/GROUP or LWS/GROUP#N, as in web/0#3")
    return targets.parse(head), number


def document(episodes: list[Episode]) -> dict[str, Any]:
    """Return the document of episodes, with stable names of fields."""
    items = [msgspec.to_builtins(episode) for episode in episodes]
    return {"apiVersion": VERSION, "kind": "EpisodeList", "items": items}
