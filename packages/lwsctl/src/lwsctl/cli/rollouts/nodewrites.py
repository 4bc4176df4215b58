"""Cordons and uncordons nodes, and taints them during a move."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from typing import Final

from kuberuntime import randomness
from kuberuntime.errors import NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES
from leaderworkerset.api import labels
from lwsctl.cli.cluster.target import Session
from lwsctl.cli.errors import CommandError
from lwsctl.cli.rollouts import rollouttargets

PATIENCE: Final = 10.0
"""The time in seconds within which a manager with maintenance enabled reports that groups must be moved.

This is the longest wait without a response, because a disabled or stopped manager never reports. The help of both
commands contains this value.
"""

TAINT: Final[JSONObject] = {"key": labels.MOVING, "effect": "NoSchedule"}


async def set_cordoned(session: Session, node: JSONObject, *, is_closed: bool) -> bool:
    """Cordon or uncordon a node. Return whether the node changed."""
    if bool(meta.spec(node).get("unschedulable")) == is_closed:
        return False
    patch = {"metadata": {"uid": meta.uid(node)}, "spec": {"unschedulable": is_closed or None}}
    await session.client.patch(NODES, meta.key(node), patch, kind="merge", manager=rollouttargets.MANAGER)
    return True


@asynccontextmanager
async def taint_nodes(session: Session, nodes: Collection[str]) -> AsyncIterator[None]:
    """Taint nodes while the context is active, so that no new pods are scheduled on the nodes.

    The taint value is unique for each move, so that the taint is recognized if the response to the write was lost.
    """
    own, tried = TAINT | {"value": randomness.uid()}, list[str]()
    try:
        for name in sorted(nodes):
            tried.append(name)
            await _set_taint(session, name, own, is_tainted=True)
        yield
    finally:
        for name in tried:
            with suppress(NotFoundError):
                await _set_taint(session, name, own, is_tainted=False)


async def _set_taint(session: Session, name: str, own: JSONObject, *, is_tainted: bool) -> None:
    async def attempt() -> str:
        node = await session.client.get(NODES, ObjectKey("", name))
        taints = meta.spec(node).get("taints") or []
        others = [taint for taint in taints if taint != own]
        if is_tainted and any(other.get("key") == labels.MOVING for other in others):
            raise CommandError(
                f"node {name} has taint {labels.MOVING} of another move; if that move was killed, use `{session.kubectl or 'kubectl'} taint nodes {name} "
                f"{labels.MOVING}-`"
            )
        if (own in taints) != is_tainted:
            guard = {"uid": meta.uid(node), "resourceVersion": meta.resource_version(node)}
            patch = {"metadata": guard, "spec": {"taints": [*others, own] if is_tainted else others}}
            await session.client.patch(NODES, meta.key(node), patch, kind="merge", manager=rollouttargets.MANAGER)
        return name

    await rollouttargets.retry_conflicts(attempt)
