"""Nodes as text: what of each is free, by the requests of the pods on it; and all of one node. Pure."""

from collections.abc import Iterator, Sequence

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.quantity import ZERO
from leaderworkerset.cli.views import output
from leaderworkerset.diagnosis import nodeamounts
from leaderworkerset.diagnosis.causes.closednodes import taint_text
from leaderworkerset.diagnosis.nodeamounts import FIRST, ByNode, allocatable, amount, asked, held, share


def table(nodes: Sequence[JSONObject], pods: ByNode | None, *, show_labels: bool) -> list[str]:
    """Return a line for each node: state, what of each resource is free, taints; without pods only what it has."""
    if not nodes:
        return []
    names = nodeamounts.names(nodes)
    word = "" if pods is None else "FREE "
    header = ["NODE", "STATUS", *(f"{word}{name.upper() if name in FIRST else name}" for name in names), "TAINTS"]
    rows = []
    for node in nodes:
        has, taken = allocatable(node), None if pods is None else held(pods.get(meta.name(node), ()))
        cells = (share(name, has.get(name, ZERO), taken) for name in names)
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
    """Yield the labels, the conditions and the resources of a node, and the pods that run on it."""
    taken = held(pods.get(meta.name(node), ()))
    parts = {
        "Labels": _labels(node),
        "Conditions": [
            f"{one.get('type')} is {one.get('status')}" + (f": {one['message']}" if one.get("message") else "")
            for one in meta.status(node).get("conditions") or []
        ],
        "Free": [f"{name}: {share(name, value, taken)}" for name, value in sorted(allocatable(node).items())],
        "Pods": [f"{meta.key(pod)}: {_request(pod)}" for pod in pods.get(meta.name(node), ())],
    }
    yield f"{meta.name(node)}:"
    for title, lines in parts.items():
        yield f"  {title}:" if lines else f"  {title}: none"
        yield from (f"    {line}" for line in lines)


def _request(pod: JSONObject) -> str:
    found = {name: value for name, value in sorted(asked(pod).items()) if name != "pods"}
    return ", ".join(f"{name} {amount(name, value)}" for name, value in found.items()) or "requests nothing"


def _labels(node: JSONObject) -> list[str]:
    return [f"{key}={value}" for key, value in sorted(meta.labels(node).items())]
