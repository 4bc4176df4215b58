"""`lws chaos`: injects single faults, fault sequences from a file, or random faults into a local cluster."""

import click

from lwsctl.cli.commandtable import COMMANDS, index_by_name
from lwsctl.cli.shell.lazygroup import LazyGroup


@click.group("chaos", cls=LazyGroup, table=index_by_name(COMMANDS["chaos"].verbs))
def command() -> None:
    """Inject faults into a local cluster, and report the effects.

    Each fault stops after its duration, even if this command is killed. To stop faults immediately, press Ctrl-C or use
    `lws chaos undo`. The report includes the first failure, the recreated groups, and the time until all ranks were ready again.
    The exit code is 1 if a fault cannot be injected, or if a rank that was ready does not become ready again.
    """
