"""Tests the probes and hooks of running containers on a simulated machine in virtual time."""

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest
from testkit.virtualtime import VirtualTimeLoop, run
from tests.kubeletpods import container, pod, status_of
from tests.unit.localkube.kubelet.harness import Machine, cluster

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.container import health
from localkube.kubelet.container.health import ProbeTarget
from localkube.kubelet.processes.runner import SandboxSpec
from localkube.kubelet.processes.simulatedrunner import Program, SimulatedRunner

pytestmark = pytest.mark.virtual_time

HTTP = {"httpGet": {"port": 80, "path": "healthz"}, "periodSeconds": 2}


def machine(directory: Path, **program: Any) -> Machine:
    return Machine(directory=directory, script=lambda _: Program(**program))


def seconds() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.parametrize(
    ("probe", "program", "ready_at"),
    [
        (HTTP, {"listens": {80: 0}}, 0),
        (HTTP, {"listens": {80: 5}}, 6),
        ({**HTTP, "initialDelaySeconds": 9}, {"listens": {80: 0}}, 9),
        ({**HTTP, "successThreshold": 3}, {"listens": {80: 5}}, 10),
        ({"tcpSocket": {"port": 80}, "periodSeconds": 1}, {"listens": {80: 3}}, 3),
        ({"exec": {"command": ["check"]}}, {}, 0),
    ],
)
async def test_pod_becomes_ready_when_its_probe_succeeds(
    tmp_path: Path, probe: JSONObject, program: JSONObject, ready_at: float
) -> None:
    async with cluster(machine(tmp_path, **program)) as it:
        await it.create(pod(container(readinessProbe=probe)))
        await it.ready()
        assert seconds() == pytest.approx(ready_at, abs=0.1)


async def test_probe_delay_starts_with_the_container(tmp_path: Path) -> None:
    """The startup probe succeeds at second 4, and the readiness probe is due at second 9."""
    startup, readiness = {**HTTP, "periodSeconds": 1, "failureThreshold": 9}, {**HTTP, "initialDelaySeconds": 9}
    async with cluster(machine(tmp_path, listens={80: 4})) as it:
        await it.create(pod(container(startupProbe=startup, readinessProbe=readiness)))
        await it.ready()
        assert seconds() == pytest.approx(9, abs=0.1)


NOWHERE = "; the pod listens on no port"


@pytest.mark.parametrize(
    ("probe", "program", "text"),
    [
        (
            HTTP,
            {"listens": {80: 0}, "http_status": 503},
            "Readiness probe failed: HTTP probe failed with statuscode: 503",
        ),
        (HTTP, {}, f"Readiness probe failed: http://10.88.0.3:80/healthz: Connection refused{NOWHERE}"),
        ({"tcpSocket": {"port": 81}}, {}, f"Readiness probe failed: 10.88.0.3:81: Connection refused{NOWHERE}"),
        ({"exec": {"command": ["check"]}}, {"commands": {("check",): (0, 4)}}, "Readiness probe failed: check"),
        (
            {"exec": {"command": ["slow"]}},
            {"commands": {("slow",): (9, 0)}},
            "Readiness probe failed: no response within 1 s",
        ),
    ],
)
async def test_failed_probe_emits_its_result_once(
    tmp_path: Path, probe: JSONObject, program: JSONObject, text: str
) -> None:
    async with cluster(machine(tmp_path, **program)) as it:
        await it.create(pod(container(readinessProbe=probe)))
        await asyncio.sleep(100)
        assert [event.note for event in it.events.recorded if event.reason == "Unhealthy"] == [text]
        assert not meta.is_condition_true(await it.get(), "Ready")


class BusyLoop(VirtualTimeLoop):
    """An event loop that simulates a process that starts many pods. Each iteration takes half a second."""

    tick = 0.5


def test_probe_does_not_fail_when_the_process_is_busy(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with cluster(machine(tmp_path, listens={80: 0})) as it:
            await it.create(pod(container(readinessProbe=HTTP)))
            await it.ready()
            await asyncio.sleep(100)
            assert not [event for event in it.events.recorded if event.reason == "Unhealthy"]
            assert meta.is_condition_true(await it.get(), "Ready")

    run(scenario(), BusyLoop)


async def test_pod_becomes_unready_after_three_failures(tmp_path: Path) -> None:
    commands: dict[tuple[str, ...], tuple[float, int]] = {("check",): (0, 0)}
    probe = {"exec": {"command": ["check"]}, "periodSeconds": 1}
    async with cluster(machine(tmp_path, commands=commands)) as it:
        await it.create(pod(container(readinessProbe=probe)))
        await it.ready()
        commands[("check",)] = (0, 1)
        await it.until(lambda found: not meta.is_condition_true(found, "Ready"))
        assert seconds() == pytest.approx(3, abs=0.1)
        commands[("check",)] = (0, 0)
        found = await it.ready()
        assert status_of(found)["restartCount"] == 0


async def test_container_with_a_failing_liveness_probe_is_restarted(tmp_path: Path) -> None:
    probe = {"tcpSocket": {"port": 80}, "periodSeconds": 1}
    async with cluster(machine(tmp_path)) as it:
        await it.create(pod(container(livenessProbe=probe)))
        found = await it.until(lambda found: status_of(found)["restartCount"] == 1)
        assert seconds() == pytest.approx(2, abs=0.1)
        assert status_of(found)["lastState"]["terminated"]["exitCode"] == 143
        notes = [event.note for event in it.events.recorded if event.reason == "Killing"]
        assert notes == ["Container main failed liveness probe, will be restarted"]


async def test_other_probes_wait_for_the_startup_probe(tmp_path: Path) -> None:
    startup = {"tcpSocket": {"port": 80}, "periodSeconds": 1, "failureThreshold": 30}
    liveness = {"tcpSocket": {"port": 80}, "periodSeconds": 1, "failureThreshold": 1}
    async with cluster(machine(tmp_path, listens={80: 20})) as it:
        main = container(startupProbe=startup, livenessProbe=liveness, readinessProbe=HTTP)
        await it.create(pod(main))
        found = await it.until(lambda found: bool(status_of(found).get("started")))
        assert seconds() == pytest.approx(20, abs=0.1)
        assert status_of(await it.ready())["restartCount"] == status_of(found)["restartCount"] == 0


async def test_container_with_a_failing_startup_probe_is_restarted(tmp_path: Path) -> None:
    startup = {"tcpSocket": {"port": 80}, "periodSeconds": 1, "failureThreshold": 5}
    async with cluster(machine(tmp_path)) as it:
        await it.create(pod(container(startupProbe=startup)))
        await it.until(lambda found: status_of(found)["restartCount"] == 1)
        assert seconds() == pytest.approx(4, abs=0.1)


async def test_container_is_running_after_its_post_start_hook(tmp_path: Path) -> None:
    hook = {"postStart": {"exec": {"command": ["warm"]}}}
    async with cluster(machine(tmp_path, commands={("warm",): (5, 0)})) as it:
        await it.create(pod(container(lifecycle=hook)))
        await it.ready()
        assert seconds() == pytest.approx(5, abs=0.1)


async def test_failed_post_start_hook_restarts_the_container(tmp_path: Path) -> None:
    hook = {"postStart": {"exec": {"command": ["warm"]}}}
    async with cluster(machine(tmp_path, commands={("warm",): (0, 1)})) as it:
        await it.create(pod(container(lifecycle=hook)))
        await it.until(lambda found: status_of(found)["restartCount"] == 1)
        assert "FailedPostStartHook" in it.events.reasons()


@pytest.mark.parametrize(
    ("hook", "program", "gone_at"),
    [
        ({"sleep": {"seconds": 5}}, {}, 5),
        ({"exec": {"command": ["drain"]}}, {"commands": {("drain",): (3, 0)}}, 3),
        ({"exec": {"command": ["drain"]}}, {"commands": {("drain",): (3, 1)}}, 3),
        ({"httpGet": {"port": 80}}, {"listens": {80: 0}}, 0),
        ({"httpGet": {"port": 81}}, {}, 0),
        ({"sleep": {"seconds": 60}}, {}, 10),
        ({"sleep": {"seconds": 60}}, {"term": None}, 12),
        ({"sleep": {"seconds": 9}}, {"term": None}, 11),
    ],
)
async def test_pre_stop_hook_runs_within_the_grace_period(
    tmp_path: Path, hook: JSONObject, program: JSONObject, gone_at: float
) -> None:
    main = container(lifecycle={"preStop": hook})
    async with cluster(machine(tmp_path, **program)) as it:
        await it.create(pod(main, terminationGracePeriodSeconds=10))
        await it.ready()
        await it.delete()
        await it.gone()
        assert seconds() == pytest.approx(gone_at, abs=0.5)
        assert it.runner.signals[0][1] == signal.SIGTERM


async def test_custom_stop_signal_is_sent(tmp_path: Path) -> None:
    async with cluster(machine(tmp_path)) as it:
        await it.create(pod(container(lifecycle={"stopSignal": "SIGINT"})))
        await it.ready()
        await it.delete()
        await it.gone()
        assert it.runner.signals[0][1] == signal.SIGINT


async def test_invalid_grpc_probe_is_rejected_before_the_start(tmp_path: Path) -> None:
    async with cluster(machine(tmp_path)) as it:
        await it.create(pod(container(livenessProbe={"grpc": {"port": 80}})))
        found = await it.until(lambda found: "message" in status_of(found)["state"].get("waiting", {}))
        assert "gRPC probes are not supported" in status_of(found)["state"]["waiting"]["message"]
        assert not it.runner.processes


@pytest.mark.parametrize(
    "action",
    [
        {"tcpSocket": {"port": "nowhere"}},
        {"tcpSocket": {"port": 80, "host": "a\0b"}},
        {"httpGet": {"port": 80, "host": "a\0b"}},
        {"tcpSocket": {"port": 10**9}},
    ],
    ids=["unknown port", "host with NUL", "URL with NUL", "port of nobody"],
)
async def test_impossible_probe_fails_and_keeps_the_pod(tmp_path: Path, action: JSONObject) -> None:
    complaints: list[str] = []

    runner = SimulatedRunner()
    spec = SandboxSpec(id="u1", hostname="web-0", directory=tmp_path, hosts_directory=tmp_path)
    target = ProbeTarget(
        runner=runner,
        container={"name": "main", "readinessProbe": action},
        container_id="main",
        ip=await runner.create_sandbox(spec, lambda: None),
        pid=0,
        report=lambda *_: None,
        report_problem=complaints.append,
    )
    watching = asyncio.create_task(health.watch(target))
    await asyncio.sleep(25)
    assert not watching.done()
    watching.cancel()
    assert len(complaints) == 3
