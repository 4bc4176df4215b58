"""Tests rollouts in batches on both clusters, whose StatefulSet controllers do not support maxUnavailable."""

import asyncio
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from tests import builders
from tests.parity.conftest import Start
from tests.parity.replay import Watched, remove, watching

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS, STATEFULSETS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.leaderworkerset import groupstate

GROUPS = 20
SIZE = 4
UNAVAILABLE = 5
KEY = ObjectKey(builders.NAMESPACE, "web")


@dataclass
class Witness:
    """Checks the LeaderWorkerSets after each change, and records the worst state."""

    watched: Watched
    fewest: int = GROUPS
    leaders: dict[str, set[str]] = field(default_factory=dict)
    mixed: set[str] = field(default_factory=set)

    def look(self) -> None:
        """Count the available groups. Record leader UIDs, and ready groups that have pods of two revisions.

        Only workers of this very leader make its group ready: two watches have no common order, and the workers of the
        leader before may still be seen.
        """
        objects = {(obj["kind"], meta.name(obj)): obj for obj in self.watched.objects()}
        ready = [leader for leader in self._leaders(objects) if _is_ready(leader, objects)]
        self.fewest = min(self.fewest, len(ready))
        for leader in self._leaders(objects):
            self.leaders.setdefault(meta.name(leader), set()).add(meta.uid(leader))
        for leader in ready:
            if len({_key(pod) for pod in _pods(leader, objects)}) != 1:
                self.mixed.add(meta.name(leader))

    def _leaders(self, objects: dict[tuple[str, str], JSONObject]) -> Iterator[JSONObject]:
        for index in range(GROUPS):
            leader = objects.get((PODS.kind, f"web-{index}"))
            if leader is not None:
                yield leader


def _is_ready(leader: JSONObject, objects: dict[tuple[str, str], JSONObject]) -> bool:
    workers = objects.get((STATEFULSETS.kind, meta.name(leader)))
    is_own = _owner(workers) == meta.uid(leader)
    return (
        not meta.is_deleting(leader) and is_own and builders.is_group_ready(groupstate.describe(leader, workers), SIZE)
    )


def _pods(leader: JSONObject, objects: dict[tuple[str, str], JSONObject]) -> list[JSONObject]:
    own = meta.uid(objects[STATEFULSETS.kind, meta.name(leader)])
    workers = [objects.get((PODS.kind, f"{meta.name(leader)}-{index}")) for index in range(1, SIZE)]
    return [leader, *(pod for pod in workers if pod is not None and _owner(pod) == own)]


def _owner(obj: JSONObject | None) -> str | None:
    return None if obj is None else (meta.controller_of(obj) or {}).get("uid")


def _key(obj: JSONObject) -> str:
    return meta.labels(obj).get(labels.TEMPLATE_REVISION_HASH, "")


def _is_available(watched: Watched, generation: int) -> bool:
    lws = next((obj for obj in watched.objects() if obj["kind"] == LEADERWORKERSETS.kind), {})
    status = meta.status(lws)
    is_seen = status.get("observedGeneration") == generation
    return is_seen and meta.is_condition_true(lws, "Available") and status.get("updatedReplicas") == GROUPS


@pytest.mark.slow
def test_fleet_rolls_a_quarter_at_a_time(start: Start) -> None:
    """20 groups of 4 pods are updated with `maxUnavailable: 25%` (R-ROLL-1, R-ROLL-7, R-ARC-4, R-POD-10).

    At most 5 are unavailable, every group is replaced once, in a few waves, and every ready group has one revision.
    """

    async def scenario() -> None:
        async with start() as one, watching(one.client) as watched, one.manager():
            fleet = builders.leaderworkerset_object(replicas=GROUPS, size=SIZE, rollout={"maxUnavailable": "25%"})
            filled = {"uid", "resourceVersion", "generation"}
            metadata = {name: value for name, value in fleet["metadata"].items() if name not in filled}
            await one.client.create(LEADERWORKERSETS, fleet | {"metadata": metadata})
            await watched.settle(lambda: _is_available(watched, 1))
            assert _is_available(watched, 1)
            witness = Witness(watched)
            watched.on_change(witness.look)
            one.agent.writes.clear()
            spec = builders.leaderworkerset_object(size=SIZE, image="app:2")["spec"]
            patch = {"spec": {"leaderWorkerTemplate": spec["leaderWorkerTemplate"]}}
            await one.client.patch(LEADERWORKERSETS, KEY, patch, kind="merge")
            await watched.settle(lambda: _is_available(watched, 2))
            assert _is_available(watched, 2)
            assert_waves(witness)
            assert one.agent.writes["PATCH", STATEFULSETS.path(KEY.namespace, KEY.name)] >= math.ceil(
                GROUPS / UNAVAILABLE
            )
            await remove(one.client, watched, KEY)

    asyncio.run(scenario())


def assert_waves(witness: Witness) -> None:
    """Assert that each group was replaced once within the budget, and that the full budget was used."""
    assert witness.fewest >= GROUPS - UNAVAILABLE
    assert witness.fewest < GROUPS - UNAVAILABLE / 2, "the budget is used"
    assert witness.mixed == set()
    assert {len(uids) for uids in witness.leaders.values()} == {2}
    assert len(witness.leaders) == GROUPS
