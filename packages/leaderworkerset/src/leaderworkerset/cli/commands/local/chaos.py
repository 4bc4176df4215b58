"""`lws chaos`: faults on purpose, on clusters of this machine; one at a time, a storm from a file, or one from a seed."""

import click

from leaderworkerset.cli.commandtable import COMMANDS, named
from leaderworkerset.cli.shell.lazygroup import LazyGroup


@click.group("chaos", cls=LazyGroup, table=named(COMMANDS["chaos"].verbs))
def command() -> None:
    """Rehearse failure on a cluster of this machine: faults that end by themselves, with a report.

    Every fault ends after its time, by Ctrl-C, and when this command is killed. At the end stands what failed first, what was
    recreated, and when all was ready again. Exit 1 if a fault could not begin, or if not all ranks became ready.
    """
