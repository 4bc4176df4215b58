"""`lws manager`: run the controllers and webhooks for a Kubernetes cluster (contract section 12).

The flags are the Go manager's, in Go's syntax, so click does not parse them; invalid flags exit with code 2.
`cli/process/managing.py` runs the manager.
"""

from collections.abc import Sequence

import click

from leaderworkerset.cli import gocommand
from leaderworkerset.cli.gocommand import GoCommand
from leaderworkerset.cli.process import managing
from leaderworkerset.manager import buildinfo, managerflags


@click.command("manager", cls=GoCommand, flags=lambda: managerflags.FLAGS)
@click.pass_context
def command(ctx: click.Context, words: Sequence[str]) -> int:
    """Run the controllers and webhooks for a Kubernetes cluster."""
    values = gocommand.read(ctx, words, managerflags.FLAGS)
    if values is None:
        return 0
    if values.get("version"):
        click.echo(buildinfo.describe())
        return 0
    return managing.run(values, values.get("kubeconfig") or (ctx.obj.kubeconfig if ctx.obj else None) or "")
