"""Tests which leaders are followed, their progress annotations and write rates, and hanging groups."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final

import pytest
from testkit import virtualtime
from tests import builders
from tests.unit.leaderworkerset.controllers.cluster import NodelessCluster
from tests.unit.localkube.apiserver.frontend.test_podstreams import FakeNode

from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection
from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels, progressannotations
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.recording import progressfollower
from leaderworkerset.recording.progressfollower import ProgressFollower
from localkube.podaccess import LogOptions, NodeError

PACE: Final = 10.0
ALWAYS: Final = {"restartPolicy": "Always"}
WATCHED: Final = {labels.PROGRESS_TIMEOUT: "60s"}


class Talking(FakeNode):
    """A node whose containers printed `said`, with a time for each line. A pod in `mute` has no log.

    The containers of a pod are `main`, and sidecars with the name `POD/CONTAINER`.
    """

    def __init__(self, cluster: NodelessCluster) -> None:
        super().__init__()
        self.cluster = cluster
        self.said: dict[str, list[str]] = {}
        self.mute: set[str] = set()
        self.asked = 0

    def say(self, pod: str, text: str) -> None:
        """Add a line with the current timestamp."""
        self.said.setdefault(pod, []).append(f"{self.cluster.clock.now().isoformat()} {text}\n")

    async def logs(self, pod: JSONObject, options: LogOptions) -> AsyncIterator[bytes]:
        """Yield all lines, or only the last lines."""
        self.asked += 1
        if meta.name(pod) in self.mute:
            raise NodeError("no log")
        name = meta.name(pod) if options.container == "main" else f"{meta.name(pod)}/{options.container}"
        lines = self.said.get(name, [])
        for line in lines[-(options.tail_lines or 10_000) :]:
            yield line.encode()


@asynccontextmanager
async def following(cluster: NodelessCluster, **options: Any) -> AsyncIterator[None]:
    client = Client(cluster.client._transport)
    pods, sets = (
        Informer(client, Selection(PODS, label_selector=labels.NAME)),
        Informer(client, Selection(LEADERWORKERSETS)),
    )
    follower = ProgressFollower(client, cluster.clock, pace=PACE, **options)
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(one) for one in (pods.run(), sets.run(), follower.run(pods, sets))]
        yield
        for task in running:
            task.cancel()


async def start(cluster: NodelessCluster, annotations: dict[str, str], *sidecars: str) -> None:
    """Create a group of two ranks whose containers start now."""
    template = builders.pod_template()
    before = [{"name": "prepare", "image": "i"}, *({"name": name, "image": "i", **ALWAYS} for name in sidecars)]
    template["spec"]["initContainers"] = before
    made = builders.leaderworkerset_object(
        replicas=1, size=2, metadata={"annotations": annotations}, template={"workerTemplate": template}
    )
    await cluster.create(made)
    await cluster.settle(5)
    for number, name in enumerate(("web-0", "web-0-1")):
        await cluster.bind(name, f"node-{number}")
        await begin(cluster, name, number)


async def begin(cluster: NodelessCluster, name: str, number: int) -> None:
    run = {"name": "main", "restartCount": 0, "ready": True, "image": "i", "imageID": "i"}
    since = timestamps.render(cluster.clock.now())
    status = {
        "phase": "Running",
        "podIP": f"10.0.0.{number}",
        "containerStatuses": [run | {"state": {"running": {"startedAt": since}}}],
    }
    key = meta.key(await cluster.get(PODS, name))
    await cluster.client.patch(PODS, key, {"status": status}, kind="merge", subresource="status")


async def annotations(cluster: NodelessCluster) -> dict[str, str]:
    return dict(meta.annotations(await cluster.get(PODS, "web-0")))


def run(scenario: Callable[[NodelessCluster, Talking], Awaitable[None]]) -> None:
    async def opened() -> None:
        async with NodelessCluster().running() as cluster:
            node = Talking(cluster)
            cluster.server.attach_node(node)
            async with cluster.managed():
                await scenario(cluster, node)

    virtualtime.run(opened(), virtualtime.SingleThreadLoop)


@pytest.mark.slow
def test_progress_is_written_at_intervals() -> None:
    async def scenario(cluster: NodelessCluster, node: Talking) -> None:
        await start(cluster, {labels.FOLLOW_PROGRESS: "true"})
        versions = set()
        async with following(cluster):
            for number in range(100):
                node.say("web-0", "\x00 noise " + "x" * 9000)
                node.say("web-0", f"::lws progress step={number} total=100")
                await cluster.settle(1)
                versions.add((await annotations(cluster)).get(labels.PROGRESS))
        assert 8 <= len(versions) <= 12
        found = progressannotations.parse_annotation((await annotations(cluster))[labels.PROGRESS])
        assert found is not None
        assert found.step >= 85
        assert 0.9 < found.rate < 1.1
        assert labels.HANG not in await annotations(cluster)

    run(scenario)


def test_logs_are_read_only_while_the_annotation_exists() -> None:
    async def scenario(cluster: NodelessCluster, node: Talking) -> None:
        await start(cluster, {})
        async with following(cluster):
            await cluster.settle(60)
            assert node.asked == 0
            key = ObjectKey(builders.NAMESPACE, "web")
            for value, is_followed in (("true", True), (None, False)):
                patch = {"metadata": {"annotations": {labels.FOLLOW_PROGRESS: value}}}
                await cluster.client.patch(LEADERWORKERSETS, key, patch, kind="merge")
                await cluster.settle(20)
                asked = node.asked
                await cluster.settle(60)
                assert (node.asked > asked) is is_followed
            await cluster.delete("web-0", PODS)
            await cluster.settle(20)

    run(scenario)


def test_group_without_progress_hangs_and_blames_a_rank() -> None:
    def waits(uid: str) -> tuple[str, str]:
        return ("data or buffer space on a socket,", "10.0.0.1:7000") if uid == leader[0] else ("a lock (futex)", "")

    leader: list[str] = []

    async def scenario(cluster: NodelessCluster, node: Talking) -> None:
        await start(cluster, WATCHED)
        leader.append((await cluster.uids())["web-0"])
        async with following(cluster, wait_reason=waits):
            node.say("web-0-1", "step 1")
            await cluster.settle(5)
            node.say("web-0", "::lws progress step=1 total=9")
            since = cluster.clock.now()
            await cluster.settle(55)
            assert labels.HANG not in await annotations(cluster)
            await cluster.settle(20)
            hang = progressannotations.parse_hang((await annotations(cluster))[labels.HANG])
            assert hang is not None
            assert abs(hang.since - since) < timedelta(seconds=1)
            assert [(one.pod, one.rank, one.waits) for one in hang.ranks] == [
                ("web-0-1", 1, "a lock (futex)"),
                ("web-0", 0, "data or buffer space on a socket, web-0-1 (10.0.0.1:7000)"),
            ]
            version = meta.resource_version(await cluster.get(PODS, "web-0"))
            await cluster.settle(300)
            assert meta.resource_version(await cluster.get(PODS, "web-0")) == version
            node.say("web-0", "::lws progress step=2 total=9")
            await cluster.settle(60)
            assert labels.HANG not in await annotations(cluster)

    run(scenario)


def test_sidecar_output_counts_as_progress_of_its_rank_only() -> None:
    async def scenario(cluster: NodelessCluster, node: Talking) -> None:
        await start(cluster, WATCHED, "progress")
        async with following(cluster):
            await cluster.settle(5)
            node.say("web-0/prepare", "::lws progress step=8 total=9")
            node.say("web-0/progress", "::lws progress step=1 total=9")
            node.say("web-0-1/progress", "::lws progress step=1 total=9")
            await cluster.settle(30)
            node.say("web-0/progress", "connected")
            found = progressannotations.parse_annotation((await annotations(cluster))[labels.PROGRESS])
            assert found is not None
            assert found.step == 1
            await cluster.settle(50)
            hang = progressannotations.parse_hang((await annotations(cluster))[labels.HANG])
            assert hang is not None
            assert [one.pod for one in hang.ranks] == ["web-0", "web-0-1"]

    run(scenario)


def test_silent_group_hangs_from_its_start() -> None:
    async def scenario(cluster: NodelessCluster, node: Talking) -> None:
        node.mute |= {"web-0", "web-0-1"}
        await start(cluster, WATCHED)
        await cluster.settle(30)
        await begin(cluster, "web-0", 0)
        async with following(cluster):
            await cluster.settle(80)
            hang = progressannotations.parse_hang((await annotations(cluster))[labels.HANG])
            assert hang is not None
            assert (hang.longest_silent_rank.pod, hang.longest_silent_rank.waits) == ("web-0-1", "")

    run(scenario)


def test_incomplete_group_does_not_hang() -> None:
    async def scenario(cluster: NodelessCluster, node: Talking) -> None:
        await cluster.create(builders.leaderworkerset_object(replicas=1, size=2, metadata={"annotations": WATCHED}))
        await cluster.settle(5)
        await cluster.bind("web-0", "node-0")
        await begin(cluster, "web-0", 0)
        async with following(cluster):
            await cluster.settle(600)
            assert labels.HANG not in await annotations(cluster)

    run(scenario)


def test_namespaces_take_turns() -> None:
    def leader(namespace: str) -> JSONObject:
        return {"metadata": {"name": "web-0", "namespace": namespace}}

    leaders = {f"a{number}": leader("a") for number in range(5)} | {"b0": leader("b"), "c0": leader("c")}
    assert progressfollower._interleave_namespaces([*leaders], leaders)[:4] == ["a0", "b0", "c0", "a1"]


def test_container_without_a_start_time_has_not_started() -> None:
    pod = builders.leader_pod(builders.leaderworkerset_object(), annotations={labels.SIZE: "1"})
    for started in (None, "", "soon", "2026-01-01T00:00:00"):
        status = {"containerStatuses": [{"name": "main", "state": {"running": {"startedAt": started}}}]}
        assert progressfollower.last_progress([pod | {"status": status}], None) is None
    assert progressfollower.last_progress([], None) is None
