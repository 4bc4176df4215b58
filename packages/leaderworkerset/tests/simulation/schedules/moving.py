"""Provides LeaderWorkerSets whose groups are moved off closed nodes.

In: families as `playing.py` has them. Beside what happens to every LeaderWorkerSet, nodes are closed and opened again, and groups are
marked to move, also while a rollout is in progress.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Final

from tests.simulation.checks.moves import MoveInvariants
from tests.simulation.schedules import happenings
from tests.simulation.schedules.forking import Send
from tests.simulation.schedules.kubelet import NODES, SLOW_PODS
from tests.simulation.schedules.lean import LeanCluster
from tests.simulation.schedules.play import Happening, Play
from tests.simulation.schedules.playing import (
    Verdict,
    draw_leaderworkerset,
    draw_script,
    play,
    play_branches,
    start_managers,
)

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import groupname, labels
from leaderworkerset.capabilities import names
from leaderworkerset.capabilities.moves.maintenancesettings import ON, MaintenanceSettings
from leaderworkerset.kinds.managedkinds import managed_kinds

CLOSABLE: Final = NODES[1:]
"""The nodes that are closed. The first node always accepts pods, except while it is lost."""


async def close(play: Play) -> None:
    """Close a node."""
    await _set(play, play.random.choice(CLOSABLE), closed=True)


async def open_again(play: Play) -> None:
    """Reopen a node."""
    await _set(play, play.random.choice(CLOSABLE), closed=False)


async def close_in_passing(play: Play) -> None:
    """Close a node, and reopen it when groups start to move."""
    node = play.random.choice(CLOSABLE)
    await _set(play, node, closed=True)
    await asyncio.sleep(play.random.choice((0.0, 0.05, 1.0, 4.0)))
    await _set(play, node, closed=False)


async def roll_and_close(play: Play) -> None:
    """Change the image, and close a node during the rollout."""
    await happenings.roll(play)
    await asyncio.sleep(play.random.uniform(0.0, 3.0))
    await close(play)


async def mark(play: Play) -> None:
    """Request the move of a group."""
    leaders = [pod for pod in play.pods() if groupname.is_leader(pod)]
    if leaders:
        leader = play.random.choice(leaders)
        play.note("user", "marks", f"pod {meta.name(leader)}")
        patch: JSONObject = {"metadata": {"uid": meta.uid(leader), "annotations": {labels.MOVE_GROUP: "true"}}}
        await play.attempt(play.world.patch(patch, meta.name(leader), resource=PODS))


MOVES: Final[Sequence[Happening]] = (close, close, open_again, close_in_passing, roll_and_close, mark)
EDITS: Final[Sequence[Happening]] = (*happenings.EDITS, *MOVES, *MOVES)


async def _set(play: Play, node: str, *, closed: bool) -> None:
    assert isinstance(play.checks, MoveInvariants)
    play.note("user", "closes" if closed else "opens", node)
    play.checks.close(node, closed=closed)
    await play.world.cordon(node, unschedulable=closed)


async def play_moves(world: LeanCluster, name: str, branches: Sequence[int], send: Send) -> None:
    """Play branches of a family, and send every verdict."""
    world.reseed(name)
    random = Random(name)
    lws = draw_leaderworkerset(random)
    annotations = (lws["metadata"].get("annotations") or {}) | {labels.MOVE_OFF_CLOSED_NODES: ON}
    managers = random.choice((1, 1, 2))
    if random.random() < 0.5:
        world.kubelet.pace = SLOW_PODS
    kinds = managed_kinds(configured={names.MOVES: MaintenanceSettings()})
    world.settings = replace(world.settings, kinds=kinds)
    start_managers(world, managers)
    await asyncio.sleep(3.0)
    await world.create(lws | {"metadata": lws["metadata"] | {"annotations": annotations}})
    await world.at_rest()

    async def one(seed: str) -> Verdict:
        random = Random(seed)
        script = draw_script(random, managers, None)
        picked = [(0.0, random.choice(MOVES)), *happenings.draw(random, EDITS)]
        return await play(world, seed, replace(script, picked=picked), MoveInvariants)

    await play_branches(name, branches, send, one)
