"""`lws rollout`: the subcommands of `kubectl rollout` and additional ones. They are imported when they are used."""

import click

from lwsctl.cli.commandtable import COMMANDS, index_by_name
from lwsctl.cli.shell.lazygroup import LazyGroup


@click.group("rollout", cls=LazyGroup, table=index_by_name(COMMANDS["rollout"].verbs))
def command() -> None:
    """Manage rollouts: status, history, diff, undo, pause, resume and restart."""
