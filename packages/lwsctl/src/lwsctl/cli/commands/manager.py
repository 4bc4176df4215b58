"""`lws manager`: runs the controllers and webhooks for a Kubernetes cluster (contract section 12).

The flags are the same as for the Go manager, in Go's syntax, so click does not parse them. For invalid flags, the exit
code is 2. `manager/managerprogram.py` runs the manager.
"""

from collections.abc import Sequence

import click

from leaderworkerset.decisions.managercommand import MANAGER_FLAGS, run_manager
from lwsctl.cli import gocommand
from lwsctl.cli.gocommand import GoCommand


@click.command("manager", cls=GoCommand, flags=lambda: MANAGER_FLAGS)
@click.pass_context
def command(ctx: click.Context, words: Sequence[str]) -> int:
    """Run the controllers and webhooks for a Kubernetes cluster."""
    values = gocommand.read(ctx, words, MANAGER_FLAGS)
    if values is None:
        return 0
    return run_manager(values, values.get("kubeconfig") or (ctx.obj.kubeconfig if ctx.obj else None) or "")
