"""Implements the output of `lws scale --prefer-broken` and the actions of `--recreate-broken`.

In groups with indexes, the highest indexes are deleted, whether they are ready or not. Remaining unready groups are
recreated after these deletions, when resources are free. As a result, the desired number of groups is ready.
"""

import asyncio
from collections.abc import Sequence

from kuberuntime import timeouts
from kuberuntime.objects.meta import ObjectKey
from leaderworkerset.api.groupname import GroupName
from lwsctl.cli import targets
from lwsctl.cli.cluster.target import Session
from lwsctl.cli.errors import CommandError, TimedOutError
from lwsctl.cli.rollouts import rollouttargets
from lwsctl.cli.rollouts.grouprestart import Restart, RestartRequest
from lwsctl.cli.watchwarnings import following
from lwsctl.model.leaderworkerset import View
from lwsctl.observation.conditionwatch import SetInformers
from lwsctl.rollout import scaledown
from lwsctl.rollout.scaledown import ScaleDown
from lwsctl.views.wording import format_count, format_groups


async def forecast_scale_down(session: Session, name: str, replicas: int) -> ScaleDown:
    """Return the groups that will be deleted. Raise an error if there are none."""
    view = await targets.read_view(session, await rollouttargets.read_writable(session, name))
    if replicas >= view.desired:
        raise CommandError(
            f"{name} has {format_count(view.desired, 'group')}, and --prefer-broken requires a smaller value of --replicas; no changes were made"
        )
    return scaledown.forecast(view, replicas)


def report(session: Session, name: str, scale_down: ScaleDown, *, recreates: bool) -> list[str]:
    """Return lines about the deleted and remaining groups, and about actions for unready groups."""
    lines = list(scaledown.lines(name, scale_down))
    if scale_down.exhausted_remaining:
        lines.append(f"use `{session.lws} recover {name}/{scale_down.exhausted_remaining[0]}` to recover it")
    if scale_down.unready_remaining and not recreates:
        lines.append("use --recreate-broken to recreate the unready groups after scaling")
    return lines


async def recreate(session: Session, name: str, scale_down: ScaleDown, timeout: float) -> str:
    """Recreate the remaining unready groups after the other groups are deleted. Return a description."""
    if not scale_down.unready_remaining:
        return f"{name}: all remaining groups are ready"
    loop = asyncio.get_running_loop()
    begin = loop.time()
    await _wait_until_deleted(session, name, scale_down.deleted, timeout)
    view = await targets.read_view(session, await rollouttargets.read(session, name))
    still = tuple(
        group.name for group in view.groups if group.name in scale_down.unready_remaining and not group.is_ready
    )
    if not still:
        return f"{name}: {format_groups(scale_down.unready_remaining)} became ready in the meantime"
    remaining = max(timeout - (loop.time() - begin), 0)
    return await Restart(session, RestartRequest(name, still)).run(remaining)


async def _wait_until_deleted(session: Session, name: str, going: Sequence[GroupName], timeout: float) -> None:
    informers = SetInformers(session.client, ObjectKey(session.namespace, name))

    def are_gone() -> bool | None:
        view = informers.view()
        return True if view is None or not _exist(view, going) else None

    try:
        async with timeouts.within(timeout), following(*informers.all, session.keepalive) as objects:
            await objects.wait_for(are_gone)
    except TimeoutError as error:
        raise TimedOutError(
            f"{format_groups(going)} of {name} not deleted within {timeout:g} s; no groups were recreated"
        ) from error


def _exist(view: View, going: Sequence[GroupName]) -> bool:
    return any(rank.object is not None for group in view.groups if group.name in going for rank in group.ranks)
