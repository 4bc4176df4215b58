"""Formats the amounts of nodes. Pure."""

from collections.abc import Iterable
from typing import Final

from kuberuntime.objects.quantity import ZERO
from lwsctl.diagnosis.causes.scheduling import format_amount
from lwsctl.model.nodestate import Node

FIRST: Final = ("cpu", "memory", "pods")
SELDOM: Final = ("ephemeral-storage", "hugepages-", "attachable-volumes-")
"""Resources that are shown only in a node description."""


def resource_names(nodes: Iterable[Node]) -> list[str]:
    """Return the names of displayed resources. Common resources are first, and others are in alphabetical order."""
    others = {name for node in nodes for name in node.allocatable if not name.startswith(SELDOM)}
    return [*FIRST, *sorted(others.difference(FIRST))]


def format_share(node: Node, name: str) -> str:
    """Return the free and the total amount. If the pods are unknown, return only the total."""
    allocatable = format_amount(node.allocatable.get(name, ZERO), name)
    return allocatable if node.pods is None else f"{format_amount(node.free(name), name)} of {allocatable}"
