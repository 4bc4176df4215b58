"""`lws operator`: installs the manager according to the LeaderWorkerSetOperator `cluster` (R-OP-9).

The flags are the same as for the Go operator, in Go's syntax. `operator/operatorprogram.py` runs the operator.
"""

from collections.abc import Sequence

import click

from leaderworkerset.decisions.operatorcommand import operator_flags, run_operator
from lwsctl.cli import gocommand
from lwsctl.cli.gocommand import GoCommand


@click.command("operator", cls=GoCommand, flags=operator_flags)
@click.pass_context
def command(ctx: click.Context, words: Sequence[str]) -> int:
    """Run the operator, which installs the manager as specified by the LeaderWorkerSetOperator `cluster`."""
    values = gocommand.read(ctx, words, operator_flags())
    if values is None:
        return 0
    # `lws` parses these two options at any position. `lws-operator operator` does not.
    above = {"kubeconfig": ctx.obj.kubeconfig, "namespace": ctx.obj.namespace} if ctx.obj else {}
    return run_operator({**{name: text for name, text in above.items() if text}, **values})
