"""`lws rollout history`: shows the revisions of a LeaderWorkerSet, their change causes, and their groups."""

from collections.abc import Sequence
from datetime import datetime

import click

from kuberuntime.clock import SystemClock
from leaderworkerset.decisions.revisioncontent import RevisionEntry, revision_content
from lwsctl.cli import targets
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.rollouts import rollouttargets
from lwsctl.cli.shell import completion
from lwsctl.cli.views import output
from lwsctl.cli.views.terminal import print_text
from lwsctl.rollout import revisionhistory
from lwsctl.views.wording import age, places

HEADER = ("REVISION", "KEY", "AGE", "GROUPS", "CHANGE-CAUSE")


@click.command("history")
@click.argument("name", metavar="LWS", shell_complete=completion.names)
@click.option(
    "--revision",
    "number",
    type=click.IntRange(min=1),
    metavar="N",
    help="Show the details of revision N, including the pod template.",
)
@click.option("-o", "--output", "form", type=click.Choice(["json"]), help="Output format. Defaults to a table.")
@click.pass_obj
def command(target: Target, name: str, number: int | None, form: str | None) -> None:
    """List the revisions of a LeaderWorkerSet with their age, their change cause, and the groups that use them.

    The change cause is the value of the annotation kubernetes.io/change-cause. The latest revision is listed last.
    """
    name = targets.set_name(name, "rollout")

    async def run_command(session: Session) -> list[RevisionEntry]:
        entries = await rollouttargets.read_history(session, name)
        return entries if number is None else [rollouttargets.read_entry(session, name, entries, number)]

    entries = target.run(run_command)
    if form:
        click.echo(output.as_json(revisionhistory.document(name, entries)))
    elif number is not None:
        print_text(output.as_yaml(revision_content(entries[0])))
    else:
        print_text(*table(entries, SystemClock().now()))


def table(entries: Sequence[RevisionEntry], now: datetime) -> list[str]:
    """Return one line for each revision, with a mark on the current revision."""
    rows = [
        (
            f"{entry.number}{' *' if entry.is_current else ''}",
            entry.key,
            age(entry.created, now),
            places(entry.groups) or "-",
            entry.cause or "-",
        )
        for entry in entries
    ]
    return [*output.table(HEADER, rows), *(["* marks the revision of new groups"] if rows else [])]
