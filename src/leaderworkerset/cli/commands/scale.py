"""`lws scale`: change the number of groups through the scale subresource, as an autoscaler does."""

import asyncio

import click

from kuberuntime.client import requests
from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.cli import serverside, targets
from leaderworkerset.cli.cluster.target import Session, Target
from leaderworkerset.cli.errors import CommandError, UsageError
from leaderworkerset.cli.views.terminal import say
from leaderworkerset.views.wording import counted


@click.command("scale")
@click.argument("name", metavar="LWS")
@click.option("--replicas", type=click.IntRange(min=0), required=True, metavar="N", help="The number of groups.")
@click.option("--current-replicas", type=click.IntRange(min=0), metavar="N", help="Only if there are N groups now.")
@click.pass_obj
def command(target: Target, name: str, replicas: int, current_replicas: int | None) -> None:
    """Change the number of groups."""
    chosen = targets.parse(name)
    if chosen.group is not None:
        raise UsageError(f"{name!r} names a group: groups do not scale by themselves, a LeaderWorkerSet does")

    async def act() -> int:
        async with target.session() as session:
            return await scale(session, chosen.name, replicas, current_replicas)

    before = asyncio.run(act())
    say(conclusion(chosen.name, before, replicas))


async def scale(session: Session, name: str, replicas: int, current: int | None = None) -> int:
    """Set the number of groups, as a field manager that `lws apply` knows; return the number of before."""
    now = meta.spec(await targets.find(session, name)).get("replicas", 1)
    if current is not None and now != current:
        raise CommandError(f"{name} has {counted(now, 'group')}, not {current}: nothing was changed")
    change = requests.patch(
        LEADERWORKERSETS,
        ObjectKey(session.namespace, name),
        {"spec": {"replicas": replicas}},
        kind="merge",
        subresource="scale",
        manager=serverside.SCALER,
    )
    await session.client.send(change)
    return int(now)


def conclusion(name: str, before: int, replicas: int) -> str:
    """Say what was changed.

    >>> conclusion("web", 2, 1), conclusion("web", 1, 1)
    ('web scaled from 2 to 1 group', 'web has 1 group already')
    """
    groups = counted(replicas, "group")
    return f"{name} has {groups} already" if before == replicas else f"{name} scaled from {before} to {groups}"
