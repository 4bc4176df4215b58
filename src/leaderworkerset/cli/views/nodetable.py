"""Nodes as text: what of each is free, by the requests of the pods on it; and all of one node. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from kuberuntime.objects import meta, quantity
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.quantity import ZERO, Quantity
from leaderworkerset.cli.views import output
from leaderworkerset.core.gang import demand
from leaderworkerset.core.gang.demand import Demand
from leaderworkerset.diagnosis.causes.closednodes import taint_text
from leaderworkerset.diagnosis.causes.scheduling import FINISHED, amount_text

ByNode: TypeAlias = Mapping[str, Sequence[JSONObject]]
"""The pods of each node."""

FIRST: Final = ("cpu", "memory", "pods")
SELDOM: Final = ("ephemeral-storage", "hugepages-", "attachable-volumes-")
"""Resources that only the description of a node shows."""

GIBIBYTE: Final = 2**30


def table(nodes: Sequence[JSONObject], pods: ByNode | None, *, show_labels: bool) -> list[str]:
    """Return a line for each node: state, what of each resource is free, taints; without pods only what it has."""
    if not nodes:
        return []
    names = [*FIRST, *sorted({name for node in nodes for name in _allocatable(node) if _is_shown(name)})]
    word = "" if pods is None else "FREE "
    header = ["NODE", "STATUS", *(f"{word}{name.upper() if name in FIRST else name}" for name in names), "TAINTS"]
    rows = []
    for node in nodes:
        has, held = _allocatable(node), None if pods is None else _held(node, pods)
        cells = (_cell(name, has.get(name, ZERO), held) for name in names)
        rows.append(
            [
                meta.name(node),
                status(node),
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
    held = _held(node, pods)
    parts = {
        "Labels": _labels(node),
        "Conditions": [
            f"{one.get('type')} is {one.get('status')}" + (f": {one['message']}" if one.get("message") else "")
            for one in meta.status(node).get("conditions") or []
        ],
        "Free": [f"{name}: {_cell(name, amount, held)}" for name, amount in sorted(_allocatable(node).items())],
        "Pods": [f"{meta.key(pod)}: {_request(pod)}" for pod in pods.get(meta.name(node), ())],
    }
    yield f"{meta.name(node)}:"
    for title, lines in parts.items():
        yield f"  {title}:" if lines else f"  {title}: none"
        yield from (f"    {line}" for line in lines)


def by_node(pods: Iterable[JSONObject]) -> ByNode:
    """Return the pods that hold something of a node, by its name."""
    found: dict[str, list[JSONObject]] = {}
    for pod in sorted(pods, key=meta.key):
        node = meta.spec(pod).get("nodeName")
        if node and meta.status(pod).get("phase") not in FINISHED:
            found.setdefault(node, []).append(pod)
    return found


def status(node: JSONObject) -> str:
    """Return the state of a node in kubectl's words."""
    word = "Ready" if meta.is_condition_true(node, "Ready") else "NotReady"
    return f"{word},SchedulingDisabled" if meta.spec(node).get("unschedulable") else word


def _held(node: JSONObject, pods: ByNode) -> Demand:
    return demand.add(*map(_asked, pods.get(meta.name(node), ())))


def _asked(pod: JSONObject) -> Demand:
    return demand.of_pod(meta.spec(pod)) | {"pods": quantity.parse("1")}


def _request(pod: JSONObject) -> str:
    asked = {name: amount for name, amount in sorted(_asked(pod).items()) if name != "pods"}
    return ", ".join(f"{name} {_amount(name, amount)}" for name, amount in asked.items()) or "requests nothing"


def _allocatable(node: JSONObject) -> Mapping[str, Quantity]:
    return quantity.parse_list(meta.status(node).get("allocatable"))


def _is_shown(name: str) -> bool:
    return name not in FIRST and not name.startswith(SELDOM)


def _cell(name: str, has: Quantity, held: Demand | None) -> str:
    whole = _amount(name, has)
    return whole if held is None else f"{_amount(name, has - held.get(name, ZERO))} of {whole}"


def _amount(name: str, amount: Quantity) -> str:
    """Return an amount as people read it: memory and storage from 1 Gi on in Gi."""
    if name in {"memory", "ephemeral-storage"} and amount.ceil() >= GIBIBYTE:
        return f"{amount.ceil() / GIBIBYTE:.1f}".removesuffix(".0") + "Gi"
    return amount_text(amount)


def _labels(node: JSONObject) -> list[str]:
    return [f"{key}={value}" for key, value in sorted(meta.labels(node).items())]
