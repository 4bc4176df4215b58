"""Tests the kubelet with real devices. A container owns its devices until all processes of its pod have exited."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from testkit.virtualtime import VirtualClock
from tests.kubeletpods import NODE, container, pod, status_of
from tests.unit.localkube.kubelet.harness import Machine, ModeledKubelet, cluster

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES, PODS
from localkube import wellknown
from localkube.apiserver.storage.store import Store
from localkube.kubelet.accelerators import deviceallocations
from localkube.kubelet.accelerators.usage import DeviceUse
from localkube.kubelet.node.devicehealth import DeviceHealth
from localkube.kubelet.node.deviceidleness import DeviceIdleness
from localkube.kubelet.processes.runner import Exit
from localkube.kubelet.processes.simulatedrunner import Program

pytestmark = pytest.mark.virtual_time


def with_gpus(number: int, name: str = "main", **fields: Any) -> JSONObject:
    return container(name, resources={"limits": {wellknown.GPU: str(number)}}, **fields)


def machine(directory: Path, number: int = 2, **fields: Any) -> Machine:
    return Machine(directory=directory, devices=tuple(f"GPU-{index}" for index in range(number)), **fields)


def seen(it: ModeledKubelet) -> dict[str, str]:
    """Return the devices of running containers by container name."""
    return {
        process.spec.id.rsplit("-", 2)[1]: process.spec.env["CUDA_VISIBLE_DEVICES"]
        for process in it.runner.processes.values()
    }


async def test_containers_have_only_their_own_devices(tmp_path: Path) -> None:
    async with cluster(machine(tmp_path, 3)) as it:
        await it.create(pod(with_gpus(1, "a"), with_gpus(2, "b"), container("none")))
        found = await it.ready()
        assert seen(it) == {"a": "GPU-0", "b": "GPU-1,GPU-2", "none": ""}
        assert deviceallocations.recorded_devices(found) == {"a": ["GPU-0"], "b": ["GPU-1", "GPU-2"]}
        env = next(iter(it.runner.processes.values())).spec.env
        assert env["NVIDIA_VISIBLE_DEVICES"] == "GPU-0"


async def test_simulated_gpus_set_no_variables(tmp_path: Path) -> None:
    async with cluster(Machine(directory=tmp_path)) as it:
        await it.create(pod(with_gpus(8)))
        found = await it.ready()
        assert "CUDA_VISIBLE_DEVICES" not in next(iter(it.runner.processes.values())).spec.env
        assert wellknown.DEVICES not in meta.annotations(found)


async def test_init_container_releases_its_devices(tmp_path: Path) -> None:
    async with cluster(
        machine(tmp_path, script=lambda spec: Program(exits=(1, Exit(0))) if "-init-" in spec.id else Program())
    ) as it:
        await it.create(pod(with_gpus(2), initContainers=[with_gpus(2, "init")]))
        assert deviceallocations.recorded_devices(await it.ready()) == {
            "init": ["GPU-0", "GPU-1"],
            "main": ["GPU-0", "GPU-1"],
        }


async def test_pod_waits_while_a_process_of_a_different_pod_lives(tmp_path: Path) -> None:
    async with cluster(machine(tmp_path)) as it:
        await it.create(pod(with_gpus(2)))
        first = await it.ready()
        it.runner.hung.add(meta.uid(first))
        await it.delete(grace_period=30)
        await it.create(pod(with_gpus(1), name="web-1"))
        await asyncio.sleep(20)
        assert not status_of(await it.get("web-1"))["state"].get("running")
        assert "FailedAllocateDevices" in it.events.reasons()
        note = next(event.note for event in it.events.recorded if event.reason == "FailedAllocateDevices")
        assert (
            note
            == "failed to allocate devices: node node-0: container main requests nvidia.com/gpu=1, but the node has 0 available"
        )
        it.runner.hung.clear()
        await it.ready("web-1")
        assert seen(it) == {"main": "GPU-0"}


async def test_terminated_pod_releases_its_devices(tmp_path: Path) -> None:
    async with cluster(machine(tmp_path, 1, script=lambda _: Program(exits=(1, Exit(0))))) as it:
        for name in ("web-0", "web-1"):
            await it.create(pod(with_gpus(1), name=name, restartPolicy="Never"))
            await it.until(lambda found: meta.status(found).get("phase") == "Succeeded", name)
        assert it.kubelet.devices.allocated_devices() == []


async def test_pod_keeps_its_devices_when_its_sandbox_is_lost(tmp_path: Path) -> None:
    async with cluster(machine(tmp_path, 2)) as it:
        await it.create(pod(with_gpus(1)))
        await it.create(pod(with_gpus(1), name="web-1"))
        await it.ready("web-0")
        await it.ready("web-1")
        before = it.kubelet.devices.allocated_devices()
        await it.runner.lose_everything()
        await it.until(lambda found: bool(status_of(found)["lastState"]) and meta.is_condition_true(found, "Ready"))
        assert it.kubelet.devices.allocated_devices() == before


async def test_failed_pod_without_sandbox_releases_its_devices(tmp_path: Path) -> None:
    async with cluster(machine(tmp_path, 1)) as it:
        await it.create(pod(with_gpus(1), restartPolicy="Never"))
        await it.ready()
        await it.runner.lose_everything()
        await it.until(lambda found: meta.status(found).get("phase") == "Failed")
        await asyncio.sleep(1)
        assert it.kubelet.devices.allocated_devices() == []


async def test_devices_are_restored_after_a_restart(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "objects.db"))
    async with cluster(machine(tmp_path, 2, store=store)) as it:
        await it.create(pod(with_gpus(1)))
        await it.create(pod(with_gpus(1), name="web-1"))
        await it.ready("web-0")
        await it.ready("web-1")
        await it.delete("web-0", grace_period=0)
        await it.gone("web-0")
        await it.create(pod(with_gpus(1), name="web-2"))
        before = (
            deviceallocations.recorded_devices(await it.ready("web-1")),
            deviceallocations.recorded_devices(await it.ready("web-2")),
        )
    async with cluster(machine(tmp_path, 2, store=Store(str(tmp_path / "objects.db")))) as it:
        await it.caught_up.wait()
        after = (
            deviceallocations.recorded_devices(await it.ready("web-1")),
            deviceallocations.recorded_devices(await it.ready("web-2")),
        )
        assert after == before == ({"main": ["GPU-1"]}, {"main": ["GPU-0"]})
        assert sorted(device for _, _, device in it.kubelet.devices.allocated_devices()) == ["GPU-0", "GPU-1"]


async def test_failed_device_is_named_on_pod_and_node(tmp_path: Path) -> None:
    async with cluster(machine(tmp_path)) as it:
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
        node["status"] = {"capacity": {wellknown.GPU: "2"}, "allocatable": {wellknown.GPU: "2", "pods": "9"}}
        await it.create(node, NODES)
        await it.create(pod(with_gpus(1)))
        await it.ready()
        health = DeviceHealth(it.client, it.kubelet.devices, VirtualClock(), it.kubelet.report_failures)
        for _ in range(2):
            await health.update({"GPU-0": "XID 79"})
        assert [event.note for event in it.events.recorded if event.reason == "DeviceUnhealthy"] == [
            "GPU-0 is unhealthy: XID 79"
        ]
        found = await it.client.get(NODES, ObjectKey("", NODE))
        assert meta.status(found)["allocatable"] == {wellknown.GPU: "1", "pods": "9"}
        assert meta.status(found)["conditions"][0]["message"] == "GPU-0 is unhealthy: XID 79"
        await it.client.delete(PODS, ObjectKey("default", "web-0"), grace_period=0)
        await it.gone()
        await it.create(pod(with_gpus(1), name="web-1"))
        await it.ready("web-1")
        assert seen(it) == {"main": "GPU-1"}


async def test_pods_have_the_start_of_idle_devices(tmp_path: Path) -> None:
    async with cluster(machine(tmp_path)) as it:
        await it.create(pod(with_gpus(2)))
        await it.ready()
        clock = VirtualClock()
        since = timestamps.render(clock.now())
        idleness = DeviceIdleness(it.client, it.kubelet.devices, clock, it.kubelet.pod_of)
        busy, idle = DeviceUse(0.5, 0, {}), DeviceUse(0.0, 0, {})
        for uses in ({"GPU-0": idle, "GPU-1": busy}, {"GPU-0": idle, "GPU-1": idle}, {"GPU-0": idle}):
            await idleness.update(uses)
            await asyncio.sleep(40)
        found = await it.until(lambda found: wellknown.DEVICES_IDLE in meta.annotations(found))
        assert json.loads(meta.annotations(found)[wellknown.DEVICES_IDLE]) == {"GPU-0": since}
        await idleness.update({"GPU-0": busy, "GPU-1": idle})
        await it.until(lambda found: wellknown.DEVICES_IDLE not in meta.annotations(found))
