"""Tests handovers from the Go controller during rollouts with failures, without unnecessary replacements.

Played are recorded histories: what the Go controller left at rest, the recorded edit, and its first steps of the
rollout, up to the moment when it ends. Then a group fails, and our manager takes over.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import pytest
from tests.parity.clusters import ParityCluster
from tests.parity.conftest import Start
from tests.parity.handover import Stage, lws_of
from tests.parity.replay import NAMESPACE, Case, Watched, clear, load, watching
from tests.parity.test_adoption import play

from kuberuntime.cache.informer import Change
from kuberuntime.client.client import Client
from kuberuntime.objects import meta
from kuberuntime.objects.gotypes.canonicaljson import canonical_json
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS, STATEFULSETS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS

ROLLED: Final = 1
"""The number of creations of each leader in a rollout."""


def suitable(case: Case) -> bool:
    """Return whether the change of the case updates several groups in sequence.

    The groups must have a policy that recreates them after failures.
    """
    spec, before = lws_of(case)["spec"], _spec_before(case)
    template, rolling = spec["leaderWorkerTemplate"], spec["rolloutStrategy"]["rollingUpdateConfiguration"]
    return bool(
        spec["replicas"] == before["replicas"] > 1
        and min(template["size"], before["leaderWorkerTemplate"]["size"]) > 1
        and template["restartPolicy"] == "RecreateGroupOnPodRestart"
        and (rolling["partition"], rolling["maxSurge"]) == (0, 0)
        and template != before["leaderWorkerTemplate"]
        and labels.EXCLUSIVE_TOPOLOGY not in meta.annotations(case["input"])
    )


def _spec_before(case: Case) -> JSONObject:
    (lws,) = (obj for obj in case["created"] if obj["kind"] == LEADERWORKERSETS.kind)
    spec: JSONObject = lws["spec"]
    return spec


class Births:
    """The UIDs of all observed leaders, by pod name."""

    def __init__(self, watched: Watched) -> None:
        self._uids: dict[str, set[str]] = defaultdict(set)
        (pods,) = (one for one in watched.informers if one.resource == PODS)
        pods.subscribe(self._note)

    def counts(self) -> Counter[str]:
        """Return the number of observed leaders by pod name."""
        return Counter({name: len(uids) for name, uids in self._uids.items()})

    def _note(self, change: Change) -> None:
        if meta.labels(change.object).get(labels.WORKER_INDEX) == labels.LEADER_WORKER_INDEX:
            self._uids[meta.name(change.object)].add(meta.uid(change.object))


@dataclass(frozen=True, slots=True)
class Rollout:
    """Simulates the Go controller while the recorded change of a case is applied."""

    client: Client
    stage: Stage

    @property
    def replicas(self) -> int:
        """Return the number of groups."""
        return int(lws_of(self.stage.case)["spec"]["replicas"])

    async def edit(self) -> None:
        """Change the spec to the recorded spec."""
        live = await self.client.get(LEADERWORKERSETS, self.stage.key)
        await self.client.update(LEADERWORKERSETS, live | {"spec": lws_of(self.stage.case)["spec"]})

    async def record(self) -> None:
        """Create the new revision."""
        revision = self.stage.current_revision()
        owner = await self.client.get(LEADERWORKERSETS, self.stage.key)
        body: JSONObject = {
            "apiVersion": CONTROLLER_REVISIONS.api_version,
            "kind": CONTROLLER_REVISIONS.kind,
            "metadata": {
                "name": f"{revision['name'].removesuffix('-N')}-2",
                "namespace": NAMESPACE,
                "labels": revision["labels"],
                "ownerReferences": [meta.controller_reference(owner)],
            },
            "data": revision["data"],
            "revision": 2,
        }
        await self.client.create(CONTROLLER_REVISIONS, body, body=canonical_json(body))

    async def move(self, partition: int) -> None:
        """Apply the leader StatefulSet with the new template and a partition."""
        owner = await self.client.get(LEADERWORKERSETS, self.stage.key)
        body = self.stage.leader_set(owner)
        body["spec"]["updateStrategy"]["rollingUpdate"]["partition"] = partition
        await self.client.apply(STATEFULSETS, body, manager=labels.FIELD_MANAGER)

    async def fail(self, name: str) -> None:
        """Report that the containers of a pod were restarted."""
        pod = await self.client.get(PODS, ObjectKey(NAMESPACE, name))
        restarted = [
            {"name": one["name"], "image": one["image"], "imageID": "", "ready": True, "restartCount": 1}
            for one in meta.spec(pod)["containers"]
        ]
        patch: JSONObject = {"metadata": {"uid": meta.uid(pod)}, "status": {"containerStatuses": restarted}}
        await self.client.patch(PODS, meta.key(pod), patch, kind="merge", subresource="status")

    async def recreate(self, name: str) -> None:
        """Delete a leader because its group failed."""
        await self.client.delete(PODS, ObjectKey(NAMESPACE, name), propagation="Foreground")

    def is_done(self) -> bool:
        """Return whether all groups are updated and ready, as at the end of the recording."""
        watched = self.stage.watched.objects()
        (lws,) = (one for one in watched if one["kind"] == LEADERWORKERSETS.kind and meta.name(one) == self.stage.name)
        status = meta.status(lws)
        counted = (status.get("observedGeneration"), status.get("updatedReplicas"), status.get("readyReplicas"))
        return self.stage.is_up() and counted == (meta.generation(lws), self.replicas, self.replicas)


Moment: TypeAlias = Callable[[Rollout], Awaitable[None]]


async def until_recorded(rollout: Rollout) -> None:
    """Stop when the new revision exists."""
    await rollout.record()


async def until_held(rollout: Rollout) -> None:
    """Stop when the StatefulSet has the new template, but no group may be replaced."""
    await rollout.record()
    await rollout.move(rollout.replicas)


async def until_rolling(rollout: Rollout) -> None:
    """Stop when the last group may be replaced."""
    await until_held(rollout)
    await rollout.move(rollout.replicas - 1)


async def until_recreating(rollout: Rollout) -> None:
    """Stop when the first group has failed and was therefore deleted."""
    await until_held(rollout)
    await rollout.fail(f"{rollout.stage.name}-0-1")
    await rollout.recreate(f"{rollout.stage.name}-0")


MOMENTS: Final = (until_recorded, until_held, until_rolling, until_recreating)
"""The steps after which the Go controller stops. The first group then fails, unless it has already failed."""


async def take_over(cluster: ParityCluster, watched: Watched, cases: Sequence[Case], moment: Moment) -> None:
    """Hand over the cases during their rollout. Count the leaders that are created after the change."""
    go = Client(cluster.agent)
    await play(go, watched, [{**case, "edited": case["created"]} for case in cases])
    await watched.settle(lambda: True)
    births = Births(watched)
    before = births.counts()
    rollouts = [Rollout(go, Stage(go, watched, case)) for case in cases]
    for rollout in rollouts:
        await rollout.edit()
        await moment(rollout)
        if moment is not until_recreating:
            await rollout.fail(f"{rollout.stage.name}-0-1")
    async with cluster.manager():
        await watched.settle(lambda: all(rollout.is_done() for rollout in rollouts))
    assert [rollout.stage.name for rollout in rollouts if not rollout.is_done()] == []
    born = births.counts() - before
    for rollout in rollouts:
        name = rollout.stage.name
        least = {f"{name}-{index}": ROLLED for index in range(rollout.replicas)}
        most = least | {f"{name}-0": ROLLED + 1}
        found = {leader: born[leader] for leader in least}
        assert all(least[leader] <= found[leader] <= most[leader] for leader in least), found
    await clear(cluster.client, watched, cases)


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment.__name__)
def test_adopted_group_restarts_once_for_update_and_failure(start: Start, moment: Moment) -> None:
    """The adopting manager completes the unfinished steps without repeating any of them (R-POD-5, R-ROLL-6)."""

    async def scenario() -> None:
        cases = [case for case in load() if suitable(case)]
        assert len(cases) >= 2
        async with start() as one, watching(one.client) as watched:
            await take_over(one, watched, cases, moment)

    asyncio.run(scenario())
