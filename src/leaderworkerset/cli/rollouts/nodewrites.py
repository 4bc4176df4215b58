"""Writes to nodes by commands: closed and opened again, and tainted for the time of one move."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from typing import Final

from kuberuntime.errors import NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES
from leaderworkerset.api import labels
from leaderworkerset.cli.cluster.target import Session
from leaderworkerset.cli.errors import CommandError
from leaderworkerset.cli.rollouts import subjects

TAINT: Final[JSONObject] = {"key": labels.MOVING, "effect": "NoSchedule"}


async def close(session: Session, node: JSONObject, *, is_closed: bool) -> bool:
    """Cordon a node, or open it again; return whether that changed anything."""
    if bool(meta.spec(node).get("unschedulable")) == is_closed:
        return False
    patch = {"metadata": {"uid": meta.uid(node)}, "spec": {"unschedulable": is_closed or None}}
    await session.client.patch(NODES, meta.key(node), patch, kind="merge", manager=subjects.MANAGER)
    return True


@asynccontextmanager
async def repelled(session: Session, nodes: Collection[str]) -> AsyncIterator[None]:
    """Keep new pods off nodes by a taint as long as the context lasts."""
    ours: list[str] = []
    try:
        for name in sorted(nodes):
            await _taint(session, name)
            ours.append(name)
        yield
    finally:
        for name in ours:
            with suppress(NotFoundError):
                await _set_taints(session, name, is_tainted=False)


async def _taint(session: Session, name: str) -> None:
    node = await session.client.get(NODES, ObjectKey("", name))
    if any(one.get("key") == labels.MOVING for one in meta.spec(node).get("taints") or []):
        raise CommandError(
            f"node {name} has the taint {labels.MOVING} already: another move is under way, or was killed; "
            f"then remove it: `{session.kubectl or 'kubectl'} taint nodes {name} {labels.MOVING}-`"
        )
    await _set_taints(session, name, is_tainted=True)


async def _set_taints(session: Session, name: str, *, is_tainted: bool) -> None:
    async def attempt() -> str:
        node = await session.client.get(NODES, ObjectKey("", name))
        others = [one for one in meta.spec(node).get("taints") or [] if one.get("key") != labels.MOVING]
        guard = {"uid": meta.uid(node), "resourceVersion": meta.resource_version(node)}
        patch = {"metadata": guard, "spec": {"taints": [*others, TAINT] if is_tainted else others}}
        await session.client.patch(NODES, meta.key(node), patch, kind="merge", manager=subjects.MANAGER)
        return name

    await subjects.persistently(attempt)
