"""Tests changes to a running pod: images, CPU and memory, and restarts of all containers."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.integration.kubelet.harness import PATIENCE, KubeletWithProcesses, container, never, pids, process
from tests.kubeletpods import status_of

from kuberuntime.objects import meta
from kuberuntime.objects.resources import PODS

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]


async def test_changed_image_restarts_the_container_in_the_same_pod(it: KubeletWithProcesses) -> None:
    """A pod retains its PID namespace, network, address and API object with each restart policy (ADR 24)."""
    show = "readlink /proc/self/ns/pid /proc/self/ns/net; exec sleep 1000"
    first = await it.start(never(container(show), shareProcessNamespace=True))
    before = await printed(it, first)
    image = {"spec": {"containers": [{"name": "main", "image": "other"}]}}
    await it.client.patch(PODS, meta.key(first), image, kind="strategic")
    second = await it.until(
        lambda found: status_of(found)["restartCount"] == 1 and meta.is_condition_true(found, "Ready")
    )
    assert status_of(second)["image"] == "other"
    assert status_of(second)["containerID"] != status_of(first)["containerID"]
    assert (meta.uid(second), meta.status(second)["podIP"]) == (meta.uid(first), meta.status(first)["podIP"])
    assert await printed(it, second) == before
    notes = [event.note for event in it.events.recorded]
    assert "Container main definition changed, will be restarted" in notes


async def test_restart_all_keeps_the_network_and_volumes(it: KubeletWithProcesses, tmp_path: Path) -> None:
    """Init containers run again, and volumes retain their content.

    Processes that ignore SIGTERM are killed without a delay.
    """
    rules = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [88]}}]
    mount = [{"name": "scratch", "mountPath": "/scratch"}]
    init = container("echo init >> /scratch/runs", "init", volumeMounts=mount)
    show = "readlink /proc/self/ns/net; wc -l < /scratch/runs; trap '' TERM; while :; do sleep 0.1; done"
    main = container(show, volumeMounts=mount)
    watch = "until test -e /scratch/restart; do sleep 0.05; done; rm /scratch/restart; exit 88"
    watcher = container(watch, "watcher", volumeMounts=mount, restartPolicy="Never", restartPolicyRules=rules)
    obj = never(main, watcher, initContainers=[init], volumes=[{"name": "scratch", "emptyDir": {}}])
    first = await it.start(obj | {"spec": obj["spec"] | {"terminationGracePeriodSeconds": 600}})
    before = (await printed(it, first)).split()
    told = asyncio.create_task(it.until(lambda found: meta.is_condition_true(found, "AllContainersRestarting")))
    request_restart(tmp_path)
    during = await told
    assert status_of(during, "watcher")["state"]["terminated"]["exitCode"] == 88
    second = await it.until(
        lambda found: status_of(found)["restartCount"] == 1 and meta.is_condition_true(found, "Ready")
    )
    assert (meta.uid(second), meta.status(second)["podIP"]) == (meta.uid(first), meta.status(first)["podIP"])
    after = (await printed(it, second)).split()
    assert (before[0], before[1], after[0], after[1]) == (before[0], "1", before[0], "2")
    for name in ("init", "watcher", "main"):
        status = status_of(second, name)
        assert status["restartCount"] == 1
        assert status["lastState"]["terminated"]["reason"] == "RestartingAllContainers"


async def test_resize_changes_limits_of_the_running_process(it: KubeletWithProcesses) -> None:
    """No container restarts, so the process and its address do not change (ADR 24)."""
    sized = container("exec sleep 1618", resources={"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}})
    first = await it.start(never(sized))
    before = await process("sleep 1618")
    resources = {"requests": {"cpu": "2", "memory": "2Gi"}, "limits": {"memory": "2Gi"}}
    resize = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
    await it.client.patch(PODS, meta.key(first), resize, kind="strategic", subresource="resize")
    second = await it.until(lambda found: status_of(found).get("resources") == resources)
    assert status_of(second)["containerID"] == status_of(first)["containerID"]
    assert (status_of(second)["restartCount"], meta.is_condition_true(second, "Ready")) == (0, True)
    assert meta.status(second)["podIP"] == meta.status(first)["podIP"]
    assert pids("sleep 1618") == [before]


def request_restart(directory: Path) -> None:
    """Create the file for which the watcher waits, in the only volume with this name."""
    (scratch,) = directory.rglob("scratch")
    (scratch / "restart").touch()


async def printed(it: KubeletWithProcesses, found: Any) -> str:
    """Wait until a container has printed two lines. Return these lines."""
    async with asyncio.timeout(PATIENCE):
        while len((text := await it.logs(found)).splitlines()) < 2:  # noqa: ASYNC110 - nothing tells when
            await asyncio.sleep(0.05)
    return text
