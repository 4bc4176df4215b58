"""Tests which failures the recorder stores as episodes on an in-memory API server, and its errors."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from testkit.inprocess import api
from tests import builders

from kuberuntime.client.client import Client
from kuberuntime.clock import SystemClock
from kuberuntime.errors import ForbiddenError
from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, PODS, SECRETS
from leaderworkerset.api import labels, recreationrecord
from leaderworkerset.api.episode import Episode, Outcome
from leaderworkerset.api.recreationrecord import Failure, Recreation, RecreationState
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.recording import filestore, logsource, recorder
from leaderworkerset.recording.filestore import Store

pytestmark = pytest.mark.slow

SAID = b"out of luck\n"


class RecordedCluster:
    """An API server with the LeaderWorkerSet CRD, a set, and pods with statuses that a kubelet would report."""

    def __init__(self, client: Client, directory: Path) -> None:
        self.client = client
        self.directory = directory
        self.asked: list[tuple[str, int, int]] = []
        self.namespace = "default"
        """The namespace in which objects are created."""
        self.answers = Event()
        """Cleared while log requests for the namespace `noisy` and for `slow` pods receive no response."""
        self.answers.set()
        self.slow: set[str] = set()
        """The UIDs of additional pods whose log requests receive no response."""

    def read_logs(self, pod: JSONObject, container: str, lines: int, size: int) -> Sequence[bytes]:
        """Return the log of one run."""
        if meta.namespace(pod) == "noisy" or meta.uid(pod) in self.slow:
            self.answers.wait()
        self.asked.append((f"{meta.name(pod)}/{container}", lines, size))
        return [SAID]

    def recording(self) -> Any:
        """Return the context manager in which failures are recorded."""
        return recorder.recording(self.client, Store(self.directory), self.read_logs, SystemClock())

    async def make_set(self, policy: str = "RecreateGroupOnPodRestart") -> None:
        """Create the LeaderWorkerSet `web`."""
        obj = builders.leaderworkerset_object(template={"restartPolicy": policy})
        await self.client.create(LEADERWORKERSETS, obj | {"metadata": {"name": "web", "namespace": self.namespace}})

    async def make_pod(self, rank: int, group: int = 0) -> JSONObject:
        """Create a pod of a group, and return it."""
        own = {labels.NAME: "web", labels.GROUP_INDEX: str(group), labels.WORKER_INDEX: str(rank)}
        name = f"web-{group}-{rank}" if rank else f"web-{group}"
        obj = {"metadata": {"name": name, "namespace": self.namespace, "labels": own}}
        spec = {"containers": [{"name": "app", "image": "app:1"}]}
        return await self.client.create(PODS, {"apiVersion": "v1", "kind": "Pod"} | obj | {"spec": spec})

    async def fail(self, pod: JSONObject, code: int = 3, restarts: int = 1) -> None:
        """Report a run that exited with an error."""
        end = {
            "exitCode": code,
            "reason": "Error",
            "finishedAt": timestamps.render(SystemClock().now()),
            "containerID": f"x://{restarts}",
        }
        status = {"name": "app", "restartCount": restarts, "lastState": {"terminated": end}, "image": "", "imageID": ""}
        patch = {"status": {"containerStatuses": [status | {"ready": False}]}}
        await self.client.patch(PODS, meta.key(pod), patch, kind="merge", subresource="status")

    async def condemn(self, leader: JSONObject, state: RecreationState, count: int = 1) -> None:
        """Write a recreation record."""
        failure = Failure(pod="web-0-1", description="app: exit code 3")
        made = Recreation(
            leader=meta.uid(leader), revision="", count=count, due_at=builders.NOW, failure=failure, state=state
        )
        told = dict(recreationrecord.write(made))
        own = {"name": "web-0-recreations", "namespace": self.namespace, "annotations": told}
        record = {
            "metadata": own | {"labels": {labels.NAME: "web", labels.GROUP_INDEX: "0"}},
            "revision": 0,
            "data": {},
        }
        await self.client.apply(
            CONTROLLER_REVISIONS, {"apiVersion": "apps/v1", "kind": "ControllerRevision"} | record, manager="test"
        )

    async def remove(self, *pods: JSONObject) -> None:
        """Delete pods immediately."""
        for pod in pods:
            await self.client.delete(PODS, meta.key(pod), grace_period=0)

    def episodes(self) -> list[Episode]:
        """Return the stored episodes."""
        return [found for place in filestore.places(self.directory) if (found := filestore.read(place))]

    async def until(self, check: Callable[[list[Episode]], Any]) -> list[Episode]:
        """Wait until the stored episodes satisfy the condition. The timeout of the test limits the wait."""
        while not check(self.episodes()):  # noqa: ASYNC110 - a file sends no notification
            await asyncio.sleep(0.02)
        return self.episodes()


@asynccontextmanager
async def furnished(directory: Path) -> AsyncIterator[RecordedCluster]:
    """Run an API server that contains a LeaderWorkerSet."""
    async with api() as client:
        for definition in MANAGED.definitions():
            await client.apply(CUSTOM_RESOURCE_DEFINITIONS, definition, manager="test")
        yield RecordedCluster(client, directory)


async def test_eviction_is_an_episode_without_a_container(tmp_path: Path) -> None:
    async with furnished(tmp_path) as house:
        await house.make_set()
        async with house.recording():
            leader = await house.make_pod(0)
            status = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}
            await house.client.patch(PODS, meta.key(leader), {"status": status}, kind="merge", subresource="status")
            await house.remove(leader)
            (seen,) = await house.until(bool)
            assert (seen.failed_pod, seen.failure) == ("web-0", f"deleted: Evicted: {status['message']}")


async def test_recreation_of_a_deleted_leader_is_an_episode(
    tmp_path: Path,
) -> None:
    async with furnished(tmp_path) as house:
        await house.make_set()
        async with house.recording():
            leader, worker = await house.make_pod(0), await house.make_pod(1)
            await house.fail(worker)
            (seen,) = await house.until(bool)
            assert (seen.outcome, seen.first_rank, seen.failed_pod) == (Outcome.FAILED, 1, "web-0-1")
            await house.remove(worker, leader)
            await house.condemn(leader, RecreationState.RECREATED)
            (done,) = await house.until(lambda found: found[0].outcome is Outcome.RECREATED)
            assert (done.number, done.time, done.recreations) == (1, seen.time, 1)
            assert [rank.pod for rank in done.ranks] == ["web-0", "web-0-1"]
            assert done.ranks[1].containers[0].logs == (("out of luck",),)
            leader = await house.make_pod(0)
            await house.fail(leader)
            assert [one.number for one in await house.until(lambda found: len(found) == 2)] == [1, 2]


async def test_overwritten_record_remains_a_separate_episode(
    tmp_path: Path,
) -> None:
    async with furnished(tmp_path) as house:
        await house.make_set()
        async with house.recording():
            leader, worker = await house.make_pod(0), await house.make_pod(1)
            await house.fail(worker)
            await house.remove(worker, leader)
            await house.condemn(leader, RecreationState.RECREATED)
            await house.condemn(await house.make_pod(0), RecreationState.WAITING, count=2)
            first, second = await house.until(lambda found: len(found) == 2)
            assert (first.outcome, first.recreations) == (Outcome.RECREATED, 1)
            assert (second.outcome, second.recreations) == (Outcome.FAILED, 2)


async def test_group_that_ends_without_a_failure_is_not_an_episode(tmp_path: Path) -> None:
    async with furnished(tmp_path) as house:
        await house.make_set()
        async with house.recording():
            leader, worker = await house.make_pod(0), await house.make_pod(1)
            await house.remove(worker, leader)
            leader = await house.make_pod(0)
            await house.condemn(leader, RecreationState.WAITING)
            (only,) = await house.until(bool)
            assert (only.outcome, only.number) == (Outcome.FAILED, 1)


async def test_failure_without_a_recreation_is_an_episode(tmp_path: Path) -> None:
    async with furnished(tmp_path) as house:
        await house.make_set("None")
        async with house.recording():
            leader, worker = await house.make_pod(0), await house.make_pod(1)
            await house.fail(worker)
            await house.until(lambda found: len(found) == 1)
            await house.fail(worker, restarts=2, code=4)
            assert [one.failed_pod for one in await house.until(lambda found: len(found) == 2)] == ["web-0-1"] * 2
            await house.remove(worker, leader)  # this deletion is not a failure
            await house.fail(leader := await house.make_pod(0))
            assert len(await house.until(lambda found: len(found) > 2)) == 3
            assert meta.name(leader) == "web-0"


async def test_recorded_episode_is_not_overwritten_without_its_logs(tmp_path: Path) -> None:
    async with furnished(tmp_path) as house:
        await house.make_set()
        async with house.recording():
            leader = await house.make_pod(0)
            await house.condemn(leader, RecreationState.EXHAUSTED)
            before = await house.until(bool)
        house.asked.clear()
        async with house.recording():
            await house.condemn(leader, RecreationState.EXHAUSTED, count=2)
            other = {"metadata": {"name": "web-1", "namespace": "default", "labels": {}}}
            other["metadata"]["labels"] = {labels.NAME: "web", labels.GROUP_INDEX: "1", labels.WORKER_INDEX: "0"}
            spec = {"spec": {"containers": [{"name": "app", "image": "app:1"}]}}
            await house.fail(await house.client.create(PODS, {"apiVersion": "v1", "kind": "Pod"} | other | spec))
            assert (await house.until(lambda found: len(found) == 2))[0] == before[0]
        assert {name for name, _, _ in house.asked} == {"web-1/app"}


class WithoutSecrets(Client):
    """The client of a user who may not list Secrets."""

    async def list(self, resource: Any, **options: Any) -> Any:
        """List objects."""
        if resource == SECRETS:
            raise ForbiddenError({"message": "secrets is forbidden"})
        return await super().list(resource, **options)


async def test_unreadable_secrets_are_noted(tmp_path: Path) -> None:
    async with furnished(tmp_path) as house:
        await house.make_set()
        house.client = WithoutSecrets(house.client._transport)
        async with house.recording():
            (house.directory / "default").write_text("a file where a folder should be")
            leader = await house.make_pod(0)
            await house.fail(leader)
            while not house.asked:  # noqa: ASYNC110 - it is called in a thread
                await asyncio.sleep(0.02)
            await asyncio.sleep(recorder.SETTLING)
            (house.directory / "default").unlink()
            await house.fail(leader, restarts=2, code=4)
            (only,) = await house.until(bool)
            assert "masked only if they look like secrets" in only.notes[0]


async def test_logs_share_the_bytes_of_an_episode(tmp_path: Path) -> None:
    async with furnished(tmp_path) as house:
        await house.make_set()
        async with house.recording():
            pods = [await house.make_pod(rank) for rank in range(64)]
            for pod in pods:
                await house.fail(pod)
            await house.until(lambda found: found and len(found[0].ranks[63].containers) == 1)
        assert house.asked[-1][1:] == (200, logsource.EPISODE_BYTES // 64)


async def test_failures_are_recorded_while_other_logs_wait(tmp_path: Path) -> None:
    async with furnished(tmp_path) as house:
        await house.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "noisy"}})
        house.answers.clear()
        async with house.recording():
            try:
                house.namespace = "noisy"
                await house.make_set()
                for group in range(recorder.AT_ONCE):
                    await house.fail(await house.make_pod(0, group))
                house.namespace = "default"
                await house.make_set()
                await house.fail(await house.make_pod(0))
                (seen,) = await house.until(bool)
                assert seen.namespace == "default"
            finally:
                house.answers.set()
            await house.until(lambda found: len(found) == 1 + recorder.AT_ONCE)


class SlowStore(Store):
    """A store that delays each write, and records the namespaces of the episodes."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.kept: list[str] = []

    async def store(self, episode: Episode, identity: str) -> Episode:
        """Store an episode."""
        self.kept.append(episode.namespace)
        await asyncio.sleep(0.02)
        return await super().store(episode, identity)


async def test_failure_waits_for_one_episode_of_a_noisy_tenant(tmp_path: Path) -> None:
    """Counts the other tenant's episodes that are stored after the reads and before the tenant's own episode."""
    async with furnished(tmp_path) as house:
        slow = SlowStore(house.directory)
        await house.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "noisy"}})
        await house.make_set()
        quiet = await house.make_pod(0)
        house.namespace = "noisy"
        await house.make_set()
        noisy = [await house.make_pod(0, group) for group in range(40)]
        house.answers.clear()
        async with recorder.recording(house.client, slow, house.read_logs, SystemClock()):
            for pod in noisy:
                await house.fail(pod)
            await house.fail(quiet)
            house.answers.set()
            while len(slow.kept) <= len(noisy):  # noqa: ASYNC110 - a store sends no notification
                await asyncio.sleep(0.02)
        assert slow.kept.index("default") <= 2 * recorder.OF_A_NAMESPACE


async def test_episodes_of_a_group_are_numbered_by_failure(tmp_path: Path) -> None:
    async with furnished(tmp_path) as house:
        house.answers.clear()
        await house.make_set()
        async with house.recording():
            try:
                first = await house.make_pod(0)
                house.slow.add(meta.uid(first))
                await house.fail(first)
                await house.remove(first)
                await house.fail(await house.make_pod(0), code=4)
                await house.fail(await house.make_pod(0, group=1))
                (seen,) = await house.until(bool)
                assert seen.group == "1"
            finally:
                house.answers.set()
            episodes = await house.until(lambda found: len(found) == 3)
        codes = {one.number: one.ranks[0].containers[0].ends[0].exit_code for one in episodes if one.group == "0"}
        assert codes == {1: 3, 2: 4}
