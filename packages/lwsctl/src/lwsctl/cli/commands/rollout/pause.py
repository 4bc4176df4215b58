"""`lws rollout pause` and `resume`: pauses a rollout by setting its partition, and resumes it."""

import click

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject
from leaderworkerset.api import groupname
from leaderworkerset.api.resources import LEADERWORKERSETS
from lwsctl.cli import targets
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.errors import CommandError
from lwsctl.cli.rollouts import rollouttargets
from lwsctl.cli.sharedoptions import DRY, dry_run_option
from lwsctl.cli.shell import completion
from lwsctl.cli.views.terminal import print_text
from lwsctl.rollout import patches
from lwsctl.views.wording import format_count

MANAGER = "lws-pause"
"""The field manager for the partition of a paused rollout. `lws apply` does not change its fields."""


@click.command("pause")
@click.argument("name", metavar="LWS", shell_complete=completion.names)
@dry_run_option("Validate the change on the API server without persisting it.")
@click.pass_obj
def command(target: Target, name: str, *, is_trial: bool) -> None:
    """Pause a rollout. Groups that are already updated are kept, and no more groups are updated.

    The command increases the partition and records the previous value, which `lws rollout resume` restores.
    """
    name = targets.set_name(name, "rollout")
    print_text(target.run(lambda session: pause(session, name, is_trial=is_trial)))


@click.command("resume")
@click.argument("name", metavar="LWS", shell_complete=completion.names)
@dry_run_option("Validate the change on the API server without persisting it.")
@click.pass_obj
def resume(target: Target, name: str, *, is_trial: bool) -> None:
    """Resume a paused rollout by restoring the previous value of the partition."""
    name = targets.set_name(name, "rollout")
    print_text(target.run(lambda session: resume_rollout(session, name, is_trial=is_trial)))


async def pause(session: Session, name: str, *, is_trial: bool = False) -> str:
    """Raise the partition, and return a description of the change."""

    async def attempt() -> str:
        obj = await rollouttargets.read_writable(session, name)
        if groupname.uses_random_keys(obj):
            raise CommandError(
                f"the rollout of {name} cannot be paused, because groups with random keys do not support partitions; use `{session.lws} rollout undo {name}` to "
                "undo the change"
            )
        statefulset = await rollouttargets.read_leader_workload(session.client, obj)
        patch = patches.pause_patch(await targets.read_view(session, obj), statefulset)
        if patch is None:
            return f"{name} is already paused"
        groups = format_count(await _write(session, obj, patch, is_trial=is_trial), "group")
        return f"{name} paused; the partition blocks {groups}{DRY if is_trial else ''}"

    return await rollouttargets.retry_conflicts(attempt)


async def resume_rollout(session: Session, name: str, *, is_trial: bool = False) -> str:
    """Restore the partition, and return a description of the change."""

    async def attempt() -> str:
        obj = await rollouttargets.read_writable(session, name)
        patch = patches.resume_patch(obj)
        if patch is None:
            return f"{name} is not paused"
        partition = await _write(session, obj, patch, is_trial=is_trial)
        note = f"; the partition still blocks {format_count(partition, 'group')}" if partition else ""
        return f"{name} resumed{note}{DRY if is_trial else ''}"

    return await rollouttargets.retry_conflicts(attempt)


async def _write(session: Session, obj: JSONObject, patch: JSON, *, is_trial: bool) -> int:
    """Write or validate the patch. Return the new partition."""
    write = session.client.try_patch if is_trial else session.client.patch
    return patches.partition(await write(LEADERWORKERSETS, meta.key(obj), patch, kind="merge", manager=MANAGER))
