"""`lws chaos`: causes faults on clusters of this machine: single faults, a storm from a file, or a random storm."""

import click

from leaderworkerset.cli.commandtable import COMMANDS, by_name
from leaderworkerset.cli.shell.lazygroup import LazyGroup


@click.group("chaos", cls=LazyGroup, table=by_name(COMMANDS["chaos"].verbs))
def command() -> None:
    """Rehearse failure on a cluster of this machine: faults that end by themselves, with a report.

    The cluster ends every fault after its time, also if this command is killed (`kill -9`). Ctrl-C and `lws chaos undo` end it
    at once. The report names what failed first, what was recreated, and when all was ready again. Exit 1 if a fault could not
    begin, or if a rank that was ready before did not become ready.
    """
