"""Tests the handover of LeaderWorkerSets to the Go manager and back, during rollouts with failing groups.

Users can return to the Go manager at any time: it continues from the objects that our manager leaves, and replaces no
group without need. Skipped if the Go manager was not built (`make extras`).
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import pytest
from tests.controlplane.process import Plane
from tests.integration.clusters import objects
from tests.kubernetes.manager.admission import until_evaluated
from tests.kubernetes.programs import build
from tests.parity import clusters
from tests.parity.clusters import ParityCluster
from tests.parity.gomanager import go_manager
from tests.parity.replay import NAMESPACE, Watched, watching
from tests.parity.test_handover_under_fire import Births

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, PODS
from leaderworkerset.api import disaggregatedset_crd, labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.policies import identity
from leaderworkerset.manager import lwsmanager

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(build.LWS.find() is None, reason=build.LWS.missing),
]

Manager: TypeAlias = Callable[[], AbstractAsyncContextManager[object]]

REPLICAS: Final = 3
SIZE: Final = 2
ROLLED: Final = ("rolled-0", "rolled-1")
FAILED: Final = "failed"
BOTH: Final = "both"
UNTOUCHED: Final = "untouched"
FLEET: Final = (*ROLLED, FAILED, BOTH, UNTOUCHED)
PATIENCE: Final = 60.0
"""The time without a change after which the LeaderWorkerSets count as stuck, in seconds."""


class Fleet:
    """LeaderWorkerSets that are changed and damaged under any manager."""

    def __init__(self, cluster: ParityCluster, watched: Watched) -> None:
        self._client = cluster.client
        self._watched = watched
        self._births = Births(watched)
        self._seen: Counter[str] = Counter()
        self._image = "app:0"

    async def create(self) -> None:
        """Create all LeaderWorkerSets, and wait until they are ready."""
        for name in FLEET:
            lws = objects.lws(name, replicas=REPLICAS, size=SIZE, image=self._image)
            lws["metadata"]["namespace"] = NAMESPACE
            await self._client.create(LEADERWORKERSETS, lws)
        await self.await_ready()

    async def begin(self, image: str) -> None:
        """Update some LeaderWorkerSets, and make a worker of each fail.

        Return when the first group of each rollout is deleted.
        """
        self._image = image
        self._seen = self._births.counts()
        template = {"workerTemplate": objects.pod_template(image)}
        for name in (*ROLLED, BOTH):
            patch = {"spec": {"leaderWorkerTemplate": template}}
            await self._client.patch(LEADERWORKERSETS, ObjectKey(NAMESPACE, name), patch, kind="merge")
        await self._until(lambda: all(self.born()[f"{name}-{REPLICAS - 1}"] for name in (*ROLLED, BOTH)))
        for name in (FAILED, BOTH):
            await self._fail(f"{name}-0-1")

    async def await_ready(self) -> None:
        """Wait until all groups are ready and have the latest template."""
        await self._watched.settle(self._is_ready, patience=PATIENCE)
        assert self._is_ready()

    def born(self) -> Counter[str]:
        """Return the number of creations of each leader since the last change."""
        return self._births.counts() - self._seen

    def check(self) -> None:
        """Assert that each leader was created at most once for the change, and once for its failure."""
        indexes = range(REPLICAS)
        once = {f"{name}-{index}": 1 for name in (*ROLLED, BOTH) for index in indexes} | {f"{FAILED}-0": 1}
        born = self.born()
        twice = born - Counter(once)
        assert {name: born[name] for name in once} == once | {f"{BOTH}-0": born[f"{BOTH}-0"]}
        assert set(twice) <= {f"{BOTH}-0"}
        assert born[f"{BOTH}-0"] in (1, 2)

    def is_by_policy(self) -> bool:
        """Return whether a policy admitted the pods of the last group."""
        pods = [pod for pod in self._watched.objects() if meta.name(pod) == f"{FLEET[-1]}-{REPLICAS - 1}-{SIZE - 1}"]
        return all(identity.is_joined(meta.labels(pod)[labels.GROUP_KEY]) for pod in pods)

    async def delete(self) -> None:
        """Delete all LeaderWorkerSets, and wait until no dependent remains."""
        for name in FLEET:
            await self._client.delete(LEADERWORKERSETS, ObjectKey(NAMESPACE, name))
        await self._until(lambda: not any(labels.NAME in meta.labels(one) for one in self._watched.objects()))

    async def _fail(self, name: str) -> None:
        """Report that the containers of a pod were restarted. A rollout may have replaced the pod just before."""
        await self._until(lambda: name in {meta.name(one) for one in self._watched.objects() if _is_started(one)})
        pod = await self._client.get(PODS, ObjectKey(NAMESPACE, name))
        restarted = [{**one, "restartCount": one["restartCount"] + 1} for one in meta.status(pod)["containerStatuses"]]
        patch: JSONObject = {"metadata": {"uid": meta.uid(pod)}, "status": {"containerStatuses": restarted}}
        await self._client.patch(PODS, meta.key(pod), patch, kind="merge", subresource="status")

    async def _until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                self._watched.changed.clear()
                await self._watched.changed.wait()

    def _is_ready(self) -> bool:
        found = self._watched.objects()
        sets = {meta.name(one): one for one in found if one["kind"] == LEADERWORKERSETS.kind}
        pods = [one for one in found if one["kind"] == PODS.kind]
        return set(sets) == set(FLEET) and all(map(_is_done, sets.values())) and not any(map(_is_hurt, pods))


def _is_done(lws: JSONObject) -> bool:
    counted = [meta.status(lws).get(field) for field in ("readyReplicas", "updatedReplicas")]
    return counted == [REPLICAS, REPLICAS] and meta.is_condition_true(lws, "Available")


def _is_started(obj: JSONObject) -> bool:
    return "containerStatuses" in meta.status(obj)


def _is_hurt(pod: JSONObject) -> bool:
    """Return whether a container of the pod restarted, or the pod is terminating."""
    restarts = [one["restartCount"] for one in meta.status(pod).get("containerStatuses") or ()]
    return meta.is_deleting(pod) or any(restarts)


@pytest.mark.parametrize("by_policy", [False, True], ids=["webhook", "policy"])
def test_rolling_fleet_moves_to_the_go_manager_and_back(plane: Plane, tmp_path: Path, *, by_policy: bool) -> None:
    """In both directions, each group is recreated once per change and once per failure (R-REV-17, R-MGR-7)."""

    async def scenario() -> None:
        async with clusters.kubernetes(plane, by_policy=by_policy) as cluster, watching(cluster.client) as watched:
            for definition in (disaggregatedset_crd.disaggregatedset_crd(), disaggregatedset_crd.role_scaler_crd()):
                await cluster.client.apply(CUSTOM_RESOURCE_DEFINITIONS, definition, manager=lwsmanager.INSTALLER)
            fleet = Fleet(cluster, watched)
            ours: Manager = cluster.manager
            go: Manager = partial(go_manager, plane.kubeconfig, tmp_path)
            async with ours():
                if by_policy:
                    await until_evaluated(cluster.client, NAMESPACE)
                await fleet.create()
                assert fleet.is_by_policy() is by_policy
            for number, (before, after) in enumerate([(ours, go), (go, ours)]):
                async with before():
                    await fleet.begin(f"app:{number + 1}")
                async with after():
                    await fleet.await_ready()
                    fleet.check()
            await fleet.delete()

    asyncio.run(scenario())
