"""`lws drain`: close nodes, and wait until the manager has moved their groups elsewhere."""

import click

from leaderworkerset.cli.cluster.target import Session, Target
from leaderworkerset.cli.errors import UsageError
from leaderworkerset.cli.rollouts.draining import Drain
from leaderworkerset.cli.sharedoptions import dry_run_option, timeout_option
from leaderworkerset.cli.views.terminal import say


@click.command("drain")
@click.argument("names", nargs=-1, required=True, metavar="NODE...")
@click.option("--cancel", is_flag=True, help="Open the nodes again instead.")
@dry_run_option("Show which groups would move, in which order, and what would stay; write nothing.")
@timeout_option(1800.0)
@click.pass_obj
def command(target: Target, names: tuple[str, ...], *, cancel: bool, is_trial: bool, timeout: float) -> None:
    """Cordon nodes, and wait until no group of a LeaderWorkerSet is there any more.

    The manager moves groups as a whole, within the budget of their rollouts, where maintenance is enabled. Pods of no group
    stay: `kubectl drain` ends them. When the command ends early, the nodes stay cordoned, and groups go on moving.

    \b
    lws drain node-7 node-8
    lws drain node-7 --dry-run
    lws drain node-7 --cancel
    """  # noqa: D301 - click reads the \b
    if cancel and is_trial:
        raise UsageError("--cancel cannot be combined with --dry-run")

    async def act(session: Session) -> str:
        drain = await Drain.of(session, names)
        if cancel:
            return await drain.cancel()
        return await (drain.preview() if is_trial else drain.run(timeout))

    say(target.run(act))
