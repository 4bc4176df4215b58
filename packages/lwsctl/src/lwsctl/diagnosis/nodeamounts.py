"""Formats the amounts of nodes. Pure."""

from collections.abc import Iterable
from typing import Final

from kuberuntime.objects.quantity import ZERO
from lwsctl.diagnosis.causes.scheduling import amount_text
from lwsctl.model.nodestate import Node

FIRST: Final = ("cpu", "memory", "pods")
SELDOM: Final = ("ephemeral-storage", "hugepages-", "attachable-volumes-")
"""Resources that are shown only in a node description."""


def names(nodes: Iterable[Node]) -> list[str]:
    """Return the names of displayed resources. Common resources are first, and others are in alphabetical order."""
    others = {name for node in nodes for name in node.allocatable if not name.startswith(SELDOM)}
    return [*FIRST, *sorted(others.difference(FIRST))]


def share(node: Node, name: str) -> str:
    """Return the free and the total amount. If the pods are unknown, return only the total."""
    whole = amount_text(node.allocatable.get(name, ZERO), name)
    return whole if node.pods is None else f"{amount_text(node.free(name), name)} of {whole}"
