"""`lws restart` and `lws rollout restart`: restart all groups in a rollout, or some groups within limits.

A named group is recreated as after a failure. Its leader is deleted in the foreground, after its workers.
"""

import click

from kuberuntime.clock import SystemClock
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.errors import CommandError
from lwsctl.cli.rollouts import rollouttargets, setchange
from lwsctl.cli.rollouts.grouprestart import Restart, RestartRequest
from lwsctl.cli.rollouts.setchange import Change
from lwsctl.cli.sharedoptions import dry_run_option, timeout_option
from lwsctl.cli.shell import completion
from lwsctl.cli.views.terminal import print_text
from lwsctl.rollout import patches


@click.command("restart")
@click.argument("names", nargs=-1, required=True, metavar="LWS[/GROUP[/RANK]]...", shell_complete=completion.names)
@click.option("--force", is_flag=True, help="Restart all specified groups at the same time, ignoring maxUnavailable.")
@dry_run_option("Show the groups that would be restarted, without restarting them.")
@timeout_option("10m", "the specified groups or rank to be ready")
@click.pass_obj
def command(target: Target, names: tuple[str, ...], *, force: bool, is_trial: bool, timeout: float) -> None:
    """Restart all groups of a LeaderWorkerSet, some of its groups, or one rank.

    If you specify only the LeaderWorkerSet, all groups are restarted in a rollout, as with `kubectl rollout restart`, and
    the command does not wait. If you specify groups, they are recreated immediately, at most maxUnavailable at a time. If
    you specify a rank and the restart policy recreates groups, the whole group of the rank is recreated.

    `lws restart` and `lws rollout restart` are the same command.
    """
    request = RestartRequest.parse(names)

    async def run_command(session: Session) -> str:
        if not request.groups:
            return await restart_all(session, request.name, is_trial=is_trial)
        restart = Restart(session, request, force=force)
        return await (restart.preview() if is_trial else restart.run(timeout))

    print_text(target.run(run_command))


async def restart_all(session: Session, name: str, *, is_trial: bool = False) -> str:
    """Create or validate a new revision without other changes. Return a description."""
    return await setchange.apply_change(session, lambda: restart_change(session, name), is_trial=is_trial)


async def restart_change(session: Session, name: str) -> Change:
    """Return the change that creates a new revision without other changes."""
    obj = await rollouttargets.read_writable(session, name)
    try:
        patch = patches.restart_patch(obj, SystemClock().now())
    except patches.PausedError as error:
        raise CommandError(
            f"no changes were made, because {error}; run `{session.lws} rollout resume {name}` first"
        ) from error
    return Change(
        lws=obj, done=f"{name} is restarting; use `{session.lws} rollout status {name}` to follow it", patch=patch
    )
