"""Tests that the manager recovers after etcd loses its leader, or is restored from a backup."""

import asyncio
import itertools
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
from tests.controlplane import build, process
from tests.controlplane.audit import Audit
from tests.controlplane.etcd_members import Member, knows_leader, leader_of
from tests.controlplane.process import Plane, control_plane
from tests.kubernetes.manager.conftest import prepare
from tests.kubernetes.manager.groups import CheckedNamespace
from tests.kubernetes.manager.installation import ACCOUNT
from tests.kubernetes.manager.replicas import until
from tests.kubernetes.manager.world import opened

from kuberuntime.errors import AlreadyExistsError, KubeError
from kuberuntime.objects import meta
from kuberuntime.objects.resources import LEASES, PODS
from leaderworkerset.api import labels

pytestmark = pytest.mark.slow

ETCD_MEMBERS: Final = 3
"""The cluster continues to run without one member."""

ETCD: Final = "etcd"
KWOK: Final = "kwok"
PROGRAMS: Final = (ETCD, "kube-apiserver", "kube-controller-manager", "kube-scheduler", KWOK)
"""The processes of a control plane in their start order."""

COUNT: Final = 6
REPLICAS: Final = 2
SIZE: Final = 3


async def create_patiently(space: CheckedNamespace, name: str) -> None:
    """Create a LeaderWorkerSet with retries. A creation without a response may have succeeded."""

    async def exists() -> bool:
        try:
            await space.create_groups(name, replicas=REPLICAS, size=SIZE)
        except AlreadyExistsError:
            return True
        except KubeError:
            return False
        return True

    await until(exists)


def kill_leader(plane: Plane) -> Member:
    """Kill the leading member."""
    leader = leader_of(plane.members)
    assert leader is not None
    process.kill(plane, leader.name)
    return leader


async def repeat_stages(space: CheckedNamespace) -> None:
    """Repeatedly update pods that are not ready.

    If etcd does not answer in time, kwok leaves a pod unchanged until its next event; a kubelet retries by itself.
    """
    for count in itertools.count():
        touched = {"metadata": {"annotations": {"tests.example.com/touched": str(count)}}}
        with suppress(KubeError):
            for pod in (await space.client.list(PODS, namespace=space.namespace)).items:
                if not meta.is_condition_true(pod, "Ready"):
                    await space.client.patch(PODS, meta.key(pod), touched, kind="merge")
        await asyncio.sleep(1.0)


@pytest.fixture
def many(tmp_path: Path) -> Iterator[Plane]:
    """Run a separate control plane, because three members need three times the resources of one."""
    assets = build.assets(lambda text: print(text, file=sys.stderr, flush=True))  # noqa: T201 - progress
    flags = Audit(tmp_path).flags(ACCOUNT)
    with control_plane(assets, tmp_path, prepare, flags, members=ETCD_MEMBERS) as running:
        yield running


async def test_manager_survives_a_change_of_the_etcd_leader(many: Plane, tmp_path: Path) -> None:
    async with opened(many, tmp_path) as world:
        replica = await world.start("a")
        await world.await_master(replica)
        space = await CheckedNamespace(world.client, "etcd-leader").open()
        mark = world.audit.mark()
        names = [f"web-{index}" for index in range(COUNT)]
        for name in names[: COUNT // 2]:
            await create_patiently(space, name)
        killed = kill_leader(world.plane)
        try:
            for name in names[COUNT // 2 :]:
                await create_patiently(space, name)
            process.await_ready(world.plane)
            async with asyncio.TaskGroup() as tasks:
                stages = tasks.create_task(repeat_stages(space))
                for name in names:
                    await space.await_ready(name, REPLICAS)
                stages.cancel()
        finally:
            process.start_again(world.plane, killed.name)
        await space.assert_whole(*names, replicas=REPLICAS, size=SIZE)
        assert [write for write in world.writes(mark) if write.startswith("delete")] == []
        await world.await_master(replica)
        assert replica.process.poll() is None
        assert replica.failures() == []

        async def has_come_back() -> bool:
            return knows_leader(killed)

        await until(has_come_back)
        await create_patiently(space, "afterwards")
        await space.await_ready("afterwards", REPLICAS)


@pytest.fixture
def single(tmp_path: Path) -> Iterator[Plane]:
    """Run a separate control plane, because its etcd may lose its data."""
    assets = build.assets(lambda text: print(text, file=sys.stderr, flush=True))  # noqa: T201 - progress
    flags = Audit(tmp_path).flags(ACCOUNT)
    with control_plane(assets, tmp_path, prepare, flags) as running:
        yield running


def copy_etcd(plane: Plane, backup: Path) -> None:
    """Write a backup of etcd, which is paused in the meantime."""
    process.kill(plane, ETCD)
    shutil.copytree(plane.directory / ETCD, backup)
    process.start_again(plane, ETCD)
    process.await_ready(plane)


def restore_etcd(plane: Plane, backup: Path) -> None:
    """Stop the control plane, restore etcd from the backup, and restart all except kwok, as on the page."""
    for name in reversed(PROGRAMS):
        process.kill(plane, name)
    ended = {name: plane.processes.pop(name) for name in PROGRAMS}
    kwok = ended.pop(KWOK)
    shutil.rmtree(plane.directory / ETCD)
    shutil.copytree(backup, plane.directory / ETCD)
    for name, former in ended.items():
        plane.processes[name] = former
        process.start_again(plane, name)
        if name == PROGRAMS[1]:
            process.await_ready(plane)
    plane.processes[KWOK] = kwok


async def pods_of(space: CheckedNamespace, name: str) -> dict[str, str]:
    """Return the pod UIDs of a LeaderWorkerSet by pod name."""
    pods = await space.client.list(PODS, namespace=space.namespace, label_selector=f"{labels.NAME}={name}")
    return {meta.name(pod): meta.uid(pod) for pod in pods.items}


async def test_groups_continue_after_etcd_is_restored(single: Plane, tmp_path: Path) -> None:
    """Objects in the backup retain their pods. Later objects no longer exist, and can be recreated."""
    async with opened(single, tmp_path) as world:
        replica = await world.start("a")
        await world.await_master(replica)
        space = await CheckedNamespace(world.client, "restored").open()
        await space.create_groups("kept", replicas=REPLICAS, size=SIZE)
        await space.await_ready("kept", REPLICAS)
        before = await pods_of(space, "kept")
        copy_etcd(single, tmp_path / "backup")
        await create_patiently(space, "later")
        await space.await_ready("later", REPLICAS)
        await space.scale(REPLICAS + 1, "kept")
        await space.await_ready("kept", REPLICAS + 1)

        replica.end()
        restore_etcd(single, tmp_path / "backup")

        async def answers() -> bool:
            """Read an object, because the earlier connections were closed."""
            with suppress(KubeError):
                return bool(await pods_of(space, "kept"))
            return False

        await until(answers)
        # The previous kwok process holds the leases of its nodes for 80 seconds. A kubelet can renew its own lease.
        await world.client.delete_collection(LEASES, "kube-node-lease")
        process.start_again(single, KWOK)
        again = await world.start("b")
        await world.await_master(again)
        await space.await_ready("kept", REPLICAS)
        assert await pods_of(space, "kept") == before
        assert await pods_of(space, "later") == {}
        await space.scale(REPLICAS + 1, "kept")
        await create_patiently(space, "later")
        await space.await_ready("kept", REPLICAS + 1)
        await space.await_ready("later", REPLICAS)
        assert (await pods_of(space, "kept")).items() >= before.items()
        assert again.failures() == []
