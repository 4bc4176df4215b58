"""`lws move`: move one group off its nodes, or off one of them."""

import click

from leaderworkerset.cli import targets
from leaderworkerset.cli.cluster.target import Session, Target
from leaderworkerset.cli.errors import UsageError
from leaderworkerset.cli.rollouts.moving import GroupMove
from leaderworkerset.cli.sharedoptions import dry_run_option, timeout_option
from leaderworkerset.cli.shell import completing
from leaderworkerset.cli.views.terminal import say


@click.command("move")
@click.argument("name", metavar="LWS/GROUP", shell_complete=completing.names)
@click.option(
    "--off", "node", default="", metavar="NODE", help="Leave this node only; without a pod there, do nothing."
)
@dry_run_option("Show which nodes the group would leave; write nothing.")
@timeout_option(600.0)
@click.pass_obj
def command(target: Target, name: str, *, node: str, is_trial: bool, timeout: float) -> None:
    """Move one group off its nodes: the manager recreates it elsewhere, within the budget of the rollout and with its surge.

    Maintenance has to be enabled in the manager. Until all pods of the group have nodes again, a taint keeps new pods off
    those that it leaves.

    \b
    lws move web/3
    lws move web/3 --off node-7
    """  # noqa: D301 - click reads the \b
    chosen = targets.parse(name)
    if chosen.group is None or chosen.rank is not None:
        raise UsageError("name one group, as in web/3: it moves as a whole")

    async def act(session: Session) -> str:
        move = await GroupMove.of(session, chosen, node.removeprefix("node/"))
        return move.preview() if is_trial else await move.run(timeout)

    say(target.run(act))
