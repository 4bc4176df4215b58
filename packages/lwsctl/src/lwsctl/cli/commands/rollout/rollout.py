"""`lws rollout`: the verbs of `kubectl rollout` and more, each imported only when it is used."""

import click

from lwsctl.cli.commandtable import COMMANDS, by_name
from lwsctl.cli.shell.lazygroup import LazyGroup


@click.group("rollout", cls=LazyGroup, table=by_name(COMMANDS["rollout"].verbs))
def command() -> None:
    """Manage rollouts: status, history, diff, undo, pause, resume and restart."""
