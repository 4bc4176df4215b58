"""Tests a second writer that repeatedly changes fields of owned objects, on both clusters (docs/adr/0030)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.disaggregated import disaggregatedset_object, role
from tests.integration.clusters.objects import lws
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State
from tests.integration.lwsctl.explanations import diagnosis, warned

from kuberuntime.errors import ConflictError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import STATEFULSETS, Resource
from leaderworkerset.api import labels
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS
from lwsctl.diagnosis.causes import contention
from lwsctl.model.health import Verdict

FAST = 0.02
"""The interval in seconds at which the other writer checks the field."""


@dataclass
class Rival:
    """Writes a value to a field when the field has a different value."""

    space: LiveScenario
    resource: Resource
    name: str
    patch: JSONObject
    path: tuple[str, ...]
    value: object
    writes: int = 0

    async def run(self) -> None:
        """Write until canceled."""
        key = ObjectKey(self.space.namespace, self.name)
        while True:
            obj = await self.space.client.get(self.resource, key)
            if meta.at(obj, self.path) != self.value:
                try:
                    await self.space.client.patch(self.resource, key, self.patch, kind="merge", manager="rival")
                except ConflictError:
                    continue
                self.writes += 1
            await asyncio.sleep(FAST)


@asynccontextmanager
async def running(rival: Rival) -> AsyncIterator[Rival]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(rival.run())
        yield rival
        task.cancel()


async def test_field_that_is_taken_back_is_written_rarely(space: LiveScenario) -> None:
    """An event and `lws explain` show both writers. User changes are not delayed."""
    await space.bring_up(lws(replicas=1, size=2))
    patch = {"metadata": {"labels": {labels.ROLE: "rival"}}}
    rival = Rival(space, STATEFULSETS, "web", patch, ("metadata", "labels", labels.ROLE), "rival")
    async with running(rival):
        await space.until(warned(f"metadata.labels.{labels.ROLE} is written by lws and by rival (Update)"))
        told = await diagnosis(space)
        assert told.verdict is Verdict.HEALTHY
        assert contention.CODE in told.sentence
        assert "rival (Update)" in told.sentence
        await space.scale(2)
        await space.until(_has_two_groups)
        assert rival.writes <= 25
    assert rival.writes >= 10


def _has_two_groups(state: State) -> None:
    assert meta.status(state.leaderworkersets["web"]).get("readyReplicas") == 2


async def test_size_of_a_role_that_is_taken_back_is_explained(space: LiveScenario) -> None:
    """A user scales the LeaderWorkerSet of a DisaggregatedSet, as an autoscaler may do."""
    whole = disaggregatedset_object([role("prefill", 1), role("decode", 1)]) | {"metadata": {"name": "split"}}
    await space.create(whole, DISAGGREGATED_SETS)
    name = min((await space.until(_has_parts)).leaderworkersets)
    async with running(Rival(space, LEADERWORKERSETS, name, {"spec": {"replicas": 2}}, ("spec", "replicas"), 2)):
        await space.until(warned("spec.replicas is written by this process and by rival (Update)"))


def _has_parts(state: State) -> None:
    assert len(state.leaderworkersets) == 2
