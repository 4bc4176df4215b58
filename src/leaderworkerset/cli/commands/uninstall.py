"""`lws uninstall`: remove the manager from a cluster, and nothing that an installation did not create.

Objects of the manager's kinds prevent that, as they would be deleted with their definitions. Either they stay with the
definitions (`--keep-crd`), or they are deleted first (`--delete-workloads`).
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import click

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.cli import durations
from leaderworkerset.cli.cluster.target import Target
from leaderworkerset.cli.errors import CommandError, UsageError
from leaderworkerset.cli.installing.installation import Installer, place
from leaderworkerset.cli.installing.removal import Remover
from leaderworkerset.cli.views import terminal
from leaderworkerset.kinds.managed import MANAGED

NAMED: Final = 3
"""The maximum number of objects that a refusal names."""


@click.command("uninstall")
@click.option(
    "--delete-workloads",
    "--delete-leaderworkersets",
    "deletes",
    is_flag=True,
    help="Delete all objects of the manager's kinds first.",
)
@click.option("--keep-crd", "keeps", is_flag=True, help="Keep the definitions, and with them all their objects.")
@click.option(
    "--timeout",
    type=durations.limit,
    default=120.0,
    show_default=True,
    metavar="DURATION",
    help="The maximum time to wait for the deletion of one object.",
)
@click.pass_obj
def command(target: Target, /, **options: Any) -> None:
    """Remove the manager; while its kinds have objects, only with an option that says what happens to them."""
    namespace, deletes, keeps = place(target), bool(options["deletes"]), bool(options["keeps"])
    if deletes and keeps:
        raise UsageError("--delete-workloads and --keep-crd cannot be combined")

    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        terminal.say(line)

    async def act() -> None:
        async with target.session() as session:
            installer = Installer(session.client, namespace, say)
            await installer.check_operator()
            await installer.check_place()
            remover = Remover(session.client, namespace, options["timeout"], say)
            if not (deletes or keeps):
                refuse_loss(await remover.sets())
            await remove(remover, keeps=keeps)

    asyncio.run(act())
    if not said:
        click.echo("there is nothing to remove")


async def remove(remover: Remover, *, keeps: bool) -> None:
    """Remove all objects, or all except the definitions and their objects."""
    if keeps:
        await remover.remove_manager()
        click.echo(
            f"{kinds()} and their pods stay; nothing recreates, scales or updates them until it is installed again"
        )
        return
    await remover.remove_sets()
    await remover.remove_manager()
    await remover.remove_definitions()
    await remover.remove_namespace()


def refuse_loss(sets: Sequence[JSONObject]) -> None:
    """Raise an error if objects would be lost."""
    if not sets:
        return
    names = ", ".join(f"{obj['kind'].lower()} {meta.key(obj)}" for obj in sets[:NAMED])
    more = f" and {len(sets) - NAMED} more" if len(sets) > NAMED else ""
    raise CommandError(
        f"objects would be deleted with their definitions: {names}{more}; delete them first, or use --delete-workloads"
        " to delete them, or --keep-crd to keep them and their definitions"
    )


def kinds() -> str:
    """Return the kinds of the manager, in the plural."""
    return ", ".join(f"{resource.kind}s" for resource in MANAGED.defined)
