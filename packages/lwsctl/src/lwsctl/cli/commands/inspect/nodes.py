"""`lws nodes`: shows nodes and their free resources. For named nodes, it also shows labels, conditions and pods."""

from collections.abc import Iterator, Sequence

import click

from kuberuntime.errors import ForbiddenError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.quantity import ZERO
from kuberuntime.objects.resources import NODES, PODS
from kuberuntime.texts.masking import masked
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.errors import UsageError
from lwsctl.cli.views import formats, output
from lwsctl.cli.views.terminal import print_text
from lwsctl.diagnosis import nodeamounts
from lwsctl.diagnosis.causes.closednodes import taint_text
from lwsctl.diagnosis.causes.scheduling import amount_text
from lwsctl.diagnosis.nodeamounts import FIRST, ByNode, allocatable, asked, by_node, held, share
from lwsctl.views import devices


@click.command("nodes")
@click.argument("names", nargs=-1, metavar="[NODE]...")
@click.option("-l", "--selector", default="", metavar="LABELS", help="Label selector to filter nodes.")
@click.option("--show-labels", is_flag=True, help="Show the labels of each node.")
@formats.output_option("Output format. Defaults to a table.")
@click.pass_obj
def command(target: Target, /, names: tuple[str, ...], *, selector: str, show_labels: bool, form: str | None) -> None:
    """List nodes with their free CPU, memory, pods and accelerators, and their taints.

    If nodes are named, also show their labels, conditions, and pods with their resource requests.
    """
    if names and selector:
        raise UsageError("names cannot be combined with --selector")

    async def act(session: Session) -> None:
        nodes = await nodes_of(session, names, selector)
        if form:
            click.echo(formats.filled(form, nodes, is_one=len(names) == 1), nl=False)
            return
        pods = await pods_of(session)
        print_text(*node_table(nodes, pods, show_labels=show_labels))
        for node in nodes if names else ():
            print_text("", *description(node, pods or {}))
        if not nodes:
            print_text("No nodes found.", err=True)
        if pods is None:
            print_text(
                "note: free resources are unknown, because you are not permitted to list pods in all namespaces",
                err=True,
            )

    target.run(act)


async def nodes_of(session: Session, names: Sequence[str], selector: str) -> list[JSONObject]:
    """Return the named nodes or the nodes with these labels, sorted by name."""
    if names:
        return [await session.client.get(NODES, ObjectKey("", name.removeprefix("node/"))) for name in names]
    return sorted((await session.client.list(NODES, label_selector=selector)).items, key=meta.key)


async def pods_of(session: Session) -> ByNode | None:
    """Return the pods in all namespaces by node, or None if the user does not have permission to list them."""
    try:
        return by_node((await session.client.list(PODS)).items)
    except ForbiddenError:
        return None


def node_table(nodes: Sequence[JSONObject], pods: ByNode | None, *, show_labels: bool) -> list[str]:
    """Return a line for each node with its status, free resources and taints.

    If pods are unknown, show the capacity instead.
    """
    if not nodes:
        return []
    names = nodeamounts.names(nodes)
    word = "" if pods is None else "FREE "
    header = ["NODE", "STATUS", *(f"{word}{name.upper() if name in FIRST else name}" for name in names), "TAINTS"]
    rows = []
    for node in nodes:
        has, requests = allocatable(node), None if pods is None else held(pods.get(meta.name(node), ()))
        cells = (share(name, has.get(name, ZERO), requests) for name in names)
        rows.append(
            [
                meta.name(node),
                nodeamounts.status(node),
                *cells,
                ", ".join(map(taint_text, meta.spec(node).get("taints") or [])) or "-",
            ]
        )
    if show_labels:
        header.append("LABELS")
        for row, node in zip(rows, nodes, strict=True):
            row.append(",".join(_labels(node)))
    return output.table(header, rows)


def description(node: JSONObject, pods: ByNode) -> Iterator[str]:
    """Yield the labels, conditions and resources of a node, and its pods."""
    requests = held(pods.get(meta.name(node), ()))
    parts = {
        "Labels": _labels(node),
        "Conditions": [_condition(condition) for condition in meta.status(node).get("conditions") or []],
        "Free": [f"{name}: {share(name, value, requests)}" for name, value in sorted(allocatable(node).items())],
        "Pods": [f"{meta.key(pod)}: {_request(pod)}" for pod in pods.get(meta.name(node), ())],
    }
    yield f"{meta.name(node)}:"
    for title, lines in parts.items():
        yield f"  {title}:" if lines else f"  {title}: none"
        yield from (f"    {line}" for line in lines)


def _request(pod: JSONObject) -> str:
    requests = {name: value for name, value in sorted(asked(pod).items()) if name != "pods"}
    words = ", ".join(f"{name} {amount_text(value, name)}" for name, value in requests.items()) or "no requests"
    own = devices.of_pod(pod)
    return f"{words} ({', '.join(own)})" if own else words


def _labels(node: JSONObject) -> list[str]:
    return [f"{key}={value}" for key, value in sorted(meta.labels(node).items())]


def _condition(condition: JSONObject) -> str:
    message = masked(str(condition.get("message") or ""))
    return f"{condition.get('type')} is {condition.get('status')}" + (f": {message}" if message else "")
