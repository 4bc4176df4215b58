"""`lws uninstall`: remove the manager from a cluster, and nothing that an installation did not create.

Objects of the manager's kinds prevent that, as they would be deleted with their definitions. Either they stay with the
definitions (`--keep-crd`), or they are deleted first (`--delete-workloads`). Where they stay, so would pods that only the
manager lets go: those of groups that used up their restarts, which therefore have to be recovered before.
"""

from collections.abc import Sequence
from typing import Any, Final

import click

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.cli import durations
from leaderworkerset.cli.cluster.target import Session, Target
from leaderworkerset.cli.dryrun import dry_run_option
from leaderworkerset.cli.errors import CommandError, UsageError
from leaderworkerset.cli.installing.installation import Installer, place
from leaderworkerset.cli.installing.removal import Remover
from leaderworkerset.cli.views import terminal
from leaderworkerset.kinds.managed import MANAGED
from leaderworkerset.views.wording import listed

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
@dry_run_option("Print what would be removed; write nothing.")
@click.pass_obj
def command(target: Target, /, *, is_trial: bool, **options: Any) -> None:
    """Remove the manager; while its kinds have objects, only with an option that says what happens to them."""
    namespace, deletes, keeps = place(target), bool(options["deletes"]), bool(options["keeps"])
    if deletes and keeps:
        raise UsageError("--delete-workloads and --keep-crd cannot be combined")

    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        terminal.say(line)

    async def act(session: Session) -> None:
        installer = Installer(session.client, namespace, say)
        await installer.check_operator()
        await installer.check_place()
        remover = Remover(session.client, namespace, options["timeout"], say, is_trial=is_trial)
        if not (deletes or keeps):
            refuse_loss(await remover.sets())
        if keeps:
            refuse_stranding(await remover.evidence(), session.lws)
        await remove(remover, keeps=keeps)
        if keeps:  # until it was gone, the manager went on
            refuse_stranding(await remover.evidence(), session.lws)

    target.run(act)
    if not said:
        click.echo("there is nothing to remove")


async def remove(remover: Remover, *, keeps: bool) -> None:
    """Remove all objects, or all except the definitions and their objects."""
    if keeps:
        await remover.remove_manager()
        await remover.release_evidence()
        click.echo(
            f"{kinds()} and their pods stay; nothing recreates, scales or updates them until it is installed again"
        )
        return
    await remover.remove_sets()
    await remover.remove_manager()
    await remover.release_evidence()
    await remover.remove_definitions()
    await remover.remove_namespace()


def refuse_loss(sets: Sequence[JSONObject]) -> None:
    """Raise an error if objects would be lost."""
    if not sets:
        return
    names = listed([f"{obj['kind'].lower()} {meta.key(obj)}" for obj in sets], NAMED)
    raise CommandError(
        f"objects would be deleted with their definitions: {names}; delete them first, or use --delete-workloads"
        " to delete them, or --keep-crd to keep them and their definitions"
    )


def refuse_stranding(evidence: Sequence[JSONObject], lws: str) -> None:
    """Raise an error if pods would be kept that nobody lets go any more; `lws` is what the program is called by."""
    if not evidence:
        return
    names = listed([str(meta.key(pod)) for pod in evidence], NAMED)
    owners = dict.fromkeys((meta.namespace(pod), meta.labels(pod)[labels.NAME]) for pod in evidence)
    commands = "; ".join(f"{lws} recover {name} -n {namespace}" for namespace, name in [*owners][:NAMED])
    others = f"; and {len(owners) - NAMED} more" if len(owners) > NAMED else ""
    raise CommandError(
        f"pods of groups that used up their restarts would stay for ever, and with them their namespaces: {names};"
        f" recover these groups while the manager runs ({commands}{others}), or, where none does, take the finalizer"
        f" {labels.GROUP_RESTART_BUDGET_CLEANUP} off the pods"
    )


def kinds() -> str:
    """Return the kinds of the manager, in the plural."""
    return ", ".join(f"{resource.kind}s" for resource in MANAGED.defined)
