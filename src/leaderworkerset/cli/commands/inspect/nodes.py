"""`lws nodes`: the nodes of the cluster, what of each is free, and for a named one its labels, state and pods."""

import asyncio
from collections.abc import Sequence

import click

from kuberuntime.errors import ForbiddenError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES, PODS
from leaderworkerset.cli.cluster.target import Session, Target
from leaderworkerset.cli.errors import UsageError
from leaderworkerset.cli.views import formats, nodetable
from leaderworkerset.cli.views.terminal import say
from leaderworkerset.diagnosis.nodeamounts import ByNode, by_node


@click.command("nodes")
@click.argument("names", nargs=-1, metavar="[NODE]...")
@click.option("-l", "--selector", default="", metavar="LABELS", help="Only nodes with these labels.")
@click.option("--show-labels", is_flag=True, help="A column of labels.")
@formats.output_option("The format instead of a table.")
@click.pass_obj
def command(target: Target, /, names: tuple[str, ...], *, selector: str, show_labels: bool, form: str | None) -> None:
    """Show nodes: what of cpu, memory, pods and accelerators no pod requests, and the taints.

    Of named nodes, also the labels, the conditions, and the pods with what they request.
    """
    if names and selector:
        raise UsageError("names cannot be combined with --selector")

    async def act() -> None:
        async with target.session() as session:
            found = await nodes_of(session, names, selector)
            if form:
                click.echo(formats.filled(form, found, is_one=len(names) == 1), nl=False)
                return
            pods = await pods_of(session)
            for line in nodetable.table(found, pods, show_labels=show_labels):
                say(line)
            for one in found if names else ():
                for line in ("", *nodetable.description(one, pods or {})):
                    say(line)
            if not found:
                say("No nodes found.", err=True)
            if pods is None:
                say("note: what is free is not known: pods of all namespaces may not be listed", err=True)

    asyncio.run(act())


async def nodes_of(session: Session, names: Sequence[str], selector: str) -> list[JSONObject]:
    """Return the named nodes, or those with these labels by name."""
    if names:
        return [await session.client.get(NODES, ObjectKey("", name.removeprefix("node/"))) for name in names]
    return sorted((await session.client.list(NODES, label_selector=selector)).items, key=meta.key)


async def pods_of(session: Session) -> ByNode | None:
    """Return the pods of all namespaces by node, None if they may not be listed."""
    try:
        return by_node((await session.client.list(PODS)).items)
    except ForbiddenError:
        return None
