"""`lws nodes`: shows nodes and their free resources. For named nodes, it also shows labels, conditions and pods."""

from collections.abc import Iterator, Sequence

import click

from kuberuntime.errors import ForbiddenError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES, PODS
from kuberuntime.texts.masking import mask_message
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.errors import UsageError
from lwsctl.cli.views import formats, output
from lwsctl.cli.views.terminal import print_text
from lwsctl.diagnosis import nodeamounts
from lwsctl.diagnosis.causes.closednodes import taint_text
from lwsctl.diagnosis.causes.scheduling import format_amount
from lwsctl.diagnosis.nodeamounts import FIRST, format_share
from lwsctl.model.nodestate import Node, nodes_of, pod_requests
from lwsctl.views import devices


@click.command("nodes")
@click.argument("names", nargs=-1, metavar="[NODE]...")
@click.option("-l", "--selector", default="", metavar="LABELS", help="Label selector to filter nodes.")
@click.option("--show-labels", is_flag=True, help="Show the labels of each node.")
@formats.output_option("Output format. Defaults to a table.")
@click.pass_obj
def command(target: Target, /, names: tuple[str, ...], *, selector: str, show_labels: bool, form: str | None) -> None:
    """List nodes with their taints and their free resources, which are CPU, memory, pods and accelerators.

    If you specify node names, the labels, the conditions, and the pods with their resource requests are also shown.
    """
    if names and selector:
        raise UsageError("names cannot be combined with --selector")

    async def run_command(session: Session) -> None:
        objects = await list_nodes(session, names, selector)
        if form:
            click.echo(formats.render_objects(form, objects, is_one=len(names) == 1), nl=False)
            return
        pods = await list_pods(session)
        nodes = nodes_of(objects, pods)
        print_text(*node_table(nodes, show_labels=show_labels))
        for node in nodes if names else ():
            print_text("", *describe_node(node))
        if not nodes:
            print_text("No nodes found.", err=True)
        if pods is None:
            print_text(
                "note: free resources are unknown, because you are not permitted to list pods in all namespaces",
                err=True,
            )

    target.run(run_command)


async def list_nodes(session: Session, names: Sequence[str], selector: str) -> list[JSONObject]:
    """Return the named nodes or the nodes with these labels."""
    if names:
        return [await session.client.get(NODES, ObjectKey("", name.removeprefix("node/"))) for name in names]
    return sorted((await session.client.list(NODES, label_selector=selector)).items, key=meta.key)


async def list_pods(session: Session) -> list[JSONObject] | None:
    """Return the pods in all namespaces, or None if the user does not have permission to list them."""
    try:
        return (await session.client.list(PODS)).items
    except ForbiddenError:
        return None


def node_table(nodes: Sequence[Node], *, show_labels: bool) -> list[str]:
    """Return a line for each node with its status, free resources and taints.

    If pods are unknown, show the capacity instead.
    """
    if not nodes:
        return []
    names = nodeamounts.resource_names(nodes)
    word = "" if nodes[0].pods is None else "FREE "
    header = ["NODE", "STATUS", *(f"{word}{name.upper() if name in FIRST else name}" for name in names), "TAINTS"]
    rows = [
        [
            node.name,
            node.status,
            *(format_share(node, name) for name in names),
            ", ".join(map(taint_text, meta.spec(node.object).get("taints") or [])) or "-",
        ]
        for node in nodes
    ]
    if show_labels:
        header.append("LABELS")
        for row, node in zip(rows, nodes, strict=True):
            row.append(",".join(_labels(node)))
    return output.table(header, rows)


def describe_node(node: Node) -> Iterator[str]:
    """Yield the labels, conditions and resources of a node, and its pods."""
    parts = {
        "Labels": _labels(node),
        "Conditions": [_condition(condition) for condition in meta.status(node.object).get("conditions") or []],
        "Free": [f"{name}: {format_share(node, name)}" for name in sorted(node.allocatable)],
        "Pods": [f"{meta.key(pod)}: {_request(pod)}" for pod in node.pods or ()],
    }
    yield f"{node.name}:"
    for title, lines in parts.items():
        yield f"  {title}:" if lines else f"  {title}: none"
        yield from (f"    {line}" for line in lines)


def _request(pod: JSONObject) -> str:
    requests = {name: value for name, value in sorted(pod_requests(pod).items()) if name != "pods"}
    words = ", ".join(f"{name} {format_amount(value, name)}" for name, value in requests.items()) or "no requests"
    own = devices.pod_devices(pod)
    return f"{words} ({', '.join(own)})" if own else words


def _labels(node: Node) -> list[str]:
    return [f"{key}={value}" for key, value in sorted(meta.labels(node.object).items())]


def _condition(condition: JSONObject) -> str:
    message = mask_message(str(condition.get("message") or ""))
    return f"{condition.get('type')} is {condition.get('status')}" + (f": {message}" if message else "")
