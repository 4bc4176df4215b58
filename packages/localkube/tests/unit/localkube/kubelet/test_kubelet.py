"""Tests the kubelet with a real API server, a simulated machine, and virtual time."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from testkit.virtualtime import START
from tests.kubeletpods import container, pod, status_of
from tests.unit.localkube.kubelet.harness import Machine, ModeledKubelet, cluster

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import (
    PODS,
)
from localkube.apiserver.storage.store import Store, StoreKey
from localkube.kubelet.processes.runner import ContainerSpec, Exit
from localkube.kubelet.processes.simulatedrunner import Program

pytestmark = pytest.mark.virtual_time


def crashing(delay: float = 1, code: int = 1) -> Program:
    return Program(exits=(delay, Exit(code)))


def waiting_for(reason: str, name: str = "main") -> Callable[[JSONObject], bool]:
    return lambda found: (status_of(found, name)["state"].get("waiting") or {}).get("reason") == reason


def is_phase(phase: str) -> Callable[[JSONObject], bool]:
    return lambda found: meta.status(found).get("phase") == phase


def seconds() -> float:
    return asyncio.get_running_loop().time()


async def test_bound_pod_becomes_ready_with_two_status_writes(tmp_path: Path) -> None:
    async with cluster(Machine(directory=tmp_path)) as it:
        await it.create(pod())
        ready = await it.ready()
        assert meta.status(ready)["phase"] == "Running"
        assert meta.status(ready)["podIP"] == "10.88.0.3"
        assert status_of(ready)["state"]["running"]
        assert it.transport.writes == 3


@pytest.mark.slow
async def test_idle_pod_is_not_written(tmp_path: Path) -> None:
    async with cluster(Machine(directory=tmp_path)) as it:
        await it.create(pod(container(readinessProbe={"tcpSocket": {"port": 80}})))
        await it.create(pod(container(command=["no-such-program"]), name="web-1"))
        await it.create(pod(name="web-2", volumes=[{"name": "v", "configMap": {"name": "no"}}]))
        await it.until(waiting_for("ProgramNotFound"), "web-1")
        await asyncio.sleep(60)
        before, told = it.transport.writes, len(it.events.recorded)
        await asyncio.sleep(3600)
        assert (it.transport.writes, len(it.events.recorded)) == (before, told)


async def test_pods_of_other_nodes_are_ignored(tmp_path: Path) -> None:
    async with cluster(Machine(directory=tmp_path)) as it:
        await it.create(pod(name="elsewhere", nodeName="other"))
        await it.create(pod(name="unbound", nodeName=None))
        await it.create(pod())
        await it.ready()
        assert len(it.runner.sandboxes) == 1


async def test_crashed_container_restarts_with_back_off(tmp_path: Path) -> None:
    starts: list[float] = []

    def script(_: ContainerSpec) -> Program:
        starts.append(seconds())
        return crashing()

    async with cluster(Machine(directory=tmp_path, script=script)) as it:
        await it.create(pod())
        found = await it.until(lambda found: status_of(found)["restartCount"] == 4)
        assert starts == pytest.approx([0, 1, 12, 33, 74], abs=0.1)
        assert status_of(found)["lastState"]["terminated"]["exitCode"] == 1
        assert "BackOff" in it.events.reasons()


async def test_crash_shows_the_restart_and_then_the_back_off(tmp_path: Path) -> None:
    async with cluster(Machine(directory=tmp_path, script=lambda _: crashing())) as it:
        await it.create(pod())
        found = await it.until(waiting_for("CrashLoopBackOff"))
        assert meta.status(found)["phase"] == "Running"
        assert status_of(found)["restartCount"] == 1
        assert not meta.is_condition_true(found, "Ready")


async def test_restart_of_all_containers_backs_off(tmp_path: Path) -> None:
    rules = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [88]}}]
    init, watcher = container("init"), container("watcher", restartPolicy="Never", restartPolicyRules=rules)

    starts: list[tuple[str, float]] = []

    def script(spec: ContainerSpec) -> Program:
        name = spec.id.split("-")[-2]
        starts.append((name, seconds()))
        return {"init": crashing(0, 0), "watcher": crashing(1, 88)}.get(name, Program())

    async with cluster(Machine(directory=tmp_path, script=script)) as it:
        created = await it.create(pod(container(), watcher, initContainers=[init], restartPolicy="Never"))
        first = await it.ready()
        during = await it.until(lambda found: meta.is_condition_true(found, "AllContainersRestarting"))
        assert status_of(during, "watcher")["state"]["terminated"]["exitCode"] == 88
        assert not meta.is_condition_true(during, "Ready")
        again = await it.until(lambda found: status_of(found)["restartCount"] == 2)
        assert not meta.is_condition_true(again, "AllContainersRestarting")
        assert {status_of(again, name)["restartCount"] for name in ("init", "watcher", "main")} == {2}
        assert status_of(again)["lastState"]["terminated"]["reason"] == "RestartingAllContainers"
        assert (meta.uid(again), meta.status(again)["podIP"]) == (meta.uid(created), meta.status(first)["podIP"])
        await it.until(lambda found: status_of(found)["restartCount"] == 2 and meta.is_condition_true(found, "Ready"))
        assert [at for name, at in starts if name == "main"] == pytest.approx([0, 1, 12], abs=0.1)
        assert [name for name, _ in starts] == ["init", "main", "watcher"] * 3
        assert len(it.runner.sandboxes) == 1
        assert "RestartingAllContainers" in it.events.reasons()


@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (3, "Failed")])
async def test_pod_without_restarts_ends_with_its_container(tmp_path: Path, code: int, phase: str) -> None:
    async with cluster(Machine(directory=tmp_path, script=lambda _: crashing(code=code))) as it:
        await it.create(pod(restartPolicy="Never"))
        found = await it.until(is_phase(phase))
        assert status_of(found)["state"]["terminated"]["exitCode"] == code
        assert meta.status(found)["podIP"] == "10.88.0.3"
        await asyncio.sleep(1)
        assert not it.runner.sandboxes
        await it.delete()
        await it.gone()


async def test_init_containers_run_in_order_before_the_others(tmp_path: Path) -> None:
    order: list[str] = []

    def script(spec: ContainerSpec) -> Program:
        order.append(spec.argv[0])
        return crashing(code=0) if "init" in spec.id else Program()

    init = [container("init-1", command=["true"]), container("init-2", command=["false"])]
    async with cluster(Machine(directory=tmp_path, script=script)) as it:
        await it.create(pod(initContainers=init))
        found = await it.ready()
        assert order == ["true", "false", "sleep"]
        assert status_of(found, "init-1")["state"]["terminated"]["reason"] == "Completed"


async def test_sidecars_start_first_and_stop_last(tmp_path: Path) -> None:
    sidecars = [container(name, restartPolicy="Always") for name in ("one", "two")]
    async with cluster(Machine(directory=tmp_path)) as it:
        await it.create(pod(initContainers=sidecars))
        await it.ready()
        assert [process.spec.id.split("-")[-2] for process in it.runner.processes.values()] == [
            "one",
            "two",
            "main",
        ]
        await it.delete()
        await it.gone()
        asked = [key.split("-")[-2] for key, number in it.runner.signals if number == signal.SIGTERM]
        assert asked == ["main", "two", "one"]


async def test_deleted_pod_is_stopped_and_its_object_removed(tmp_path: Path) -> None:
    async with cluster(Machine(directory=tmp_path)) as it:
        await it.create(pod())
        await it.ready()
        await it.delete()
        last = await it.gone()
        assert seconds() < 1
        assert status_of(last)["state"]["terminated"]["exitCode"] == 143
        assert not it.runner.sandboxes
        assert not list((tmp_path / "pods").iterdir())
        assert "Killing" in it.events.reasons()


async def test_container_ignoring_sigterm_is_killed_after_its_grace(tmp_path: Path) -> None:
    async with cluster(Machine(directory=tmp_path, script=lambda _: Program(term=None))) as it:
        await it.create(pod(terminationGracePeriodSeconds=7))
        await it.ready()
        await it.delete()
        last = await it.gone()
        assert seconds() == pytest.approx(7, abs=0.5)
        assert status_of(last)["state"]["terminated"]["exitCode"] == 137


async def test_second_deletion_shortens_the_grace_period(tmp_path: Path) -> None:
    async with cluster(Machine(directory=tmp_path, script=lambda _: Program(term=None))) as it:
        await it.create(pod())
        await it.ready()
        await it.delete()
        await asyncio.sleep(1)
        await it.delete(grace_period=3)
        await it.gone()
        assert seconds() == pytest.approx(4, abs=0.5)


async def test_pod_without_an_object_is_killed_immediately(tmp_path: Path) -> None:
    async with cluster(Machine(directory=tmp_path, script=lambda _: Program(term=None))) as it:
        await it.create(pod())
        await it.ready()
        await it.delete(grace_period=0)
        await it.gone()
        await asyncio.sleep(0.1)
        assert not it.runner.processes
        assert not it.runner.sandboxes


async def test_pod_starts_while_its_predecessor_is_removed(tmp_path: Path) -> None:
    async with cluster(Machine(directory=tmp_path)) as it:
        old = await it.create(pod())
        await it.ready()
        await it.delete(grace_period=0)
        await it.create(pod())
        found = await it.until(
            lambda found: meta.uid(found) != meta.uid(old) and meta.is_condition_true(found, "Ready")
        )
        assert meta.status(found)["podIP"] != "10.88.0.3"


async def test_finalizer_keeps_the_object_but_not_the_processes(tmp_path: Path) -> None:
    async with cluster(Machine(directory=tmp_path)) as it:
        held = pod()
        held["metadata"]["finalizers"] = ["example.com/hold"]
        await it.create(held)
        await it.ready()
        await it.delete()
        await it.until(lambda found: "terminated" in status_of(found)["state"])
        await asyncio.sleep(60)
        assert not it.runner.sandboxes
        before = it.transport.writes
        await it.client.patch(PODS, ObjectKey("default", "web-0"), {"metadata": {"finalizers": None}}, kind="merge")
        await it.gone()
        assert it.transport.writes == before + 1


async def test_pod_fails_after_its_deadline_and_keeps_its_object(tmp_path: Path) -> None:
    async with cluster(Machine(directory=tmp_path)) as it:
        await it.create(pod(activeDeadlineSeconds=60))
        found = await it.until(is_phase("Failed"))
        assert seconds() == pytest.approx(60, abs=1)
        assert meta.status(found)["reason"] == "DeadlineExceeded"


async def running_cluster(it: ModeledKubelet) -> JSONObject:
    await it.create(pod())
    return await it.ready()


async def test_pods_keep_their_identity_after_a_cluster_restart(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with cluster(Machine(directory=tmp_path, store=Store(path))) as it:
        before = await running_cluster(it)
    await asyncio.sleep(60)
    async with cluster(Machine(directory=tmp_path, store=Store(path))) as it:
        lost = await it.until(lambda found: bool(status_of(found)["lastState"]))
        assert not meta.is_condition_true(lost, "Ready")
        after = await it.ready()
        assert meta.uid(after) == meta.uid(before)
        assert status_of(after)["restartCount"] == 0
        assert status_of(after)["lastState"]["terminated"]["reason"] == "ClusterRestarted"
        assert it.events.reasons() == ["ClusterRestarted", "Created", "Started"]


async def test_loss_of_all_processes_is_handled_like_a_restart(tmp_path: Path) -> None:
    async with cluster(Machine(directory=tmp_path)) as it:
        before = await running_cluster(it)
        await it.create(pod(name="web-1", restartPolicy="Never"))
        await it.ready("web-1")
        await it.runner.lose_everything()
        failed = await it.until(lambda found: meta.status(found).get("phase") == "Failed", "web-1")
        assert status_of(failed)["state"]["terminated"]["exitCode"] == 137
        lost = await it.until(lambda found: bool(status_of(found)["lastState"]))
        assert status_of(lost)["lastState"]["terminated"]["reason"] == "NodeRestarted"
        after = await it.until(lambda found: meta.is_condition_true(found, "Ready") and found != before)
        assert meta.uid(after) == meta.uid(before)
        assert status_of(after)["restartCount"] == 0
        assert "NodeRestarted" in it.events.reasons()


async def test_directories_of_deleted_pods_are_removed(tmp_path: Path) -> None:
    orphan = tmp_path / "pods" / "no-such-uid"
    orphan.mkdir(parents=True)
    async with cluster(Machine(directory=tmp_path)) as it:
        await running_cluster(it)
        assert not orphan.exists()


async def test_error_in_one_pod_is_reported_and_affects_no_other(tmp_path: Path) -> None:
    errors = iter([RuntimeError("a fault")])

    def script(spec: ContainerSpec) -> Program:
        if spec.env["HOSTNAME"] == "web-1":
            for error in errors:
                raise error
        return Program()

    async with cluster(Machine(directory=tmp_path, script=script)) as it:
        await running_cluster(it)
        await it.create(pod(name="web-1"))
        await it.ready("web-1")
        assert "FailedSync" in it.events.reasons()
        assert seconds() == pytest.approx(10, abs=1)


async def test_status_uses_the_clock_of_the_cluster(tmp_path: Path) -> None:
    async with cluster(Machine(directory=tmp_path)) as it:
        await asyncio.sleep(30)
        found = await running_cluster(it)
        assert meta.status(found)["startTime"] == START.strftime("%Y-%m-%dT00:00:30Z")


async def test_cpu_limit_of_a_container_follows_a_resize(tmp_path: Path) -> None:
    async with cluster(Machine(directory=tmp_path)) as it:
        main = container(resources={"requests": {"cpu": "1"}, "limits": {"cpu": "1500m"}})
        await it.create(pod(containers=[main]))
        found = await it.ready()
        (process,) = it.runner.processes.values()
        assert it.runner.cores == {process.pid: 1.5}
        resize = {"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "2"}}}]}}
        await it.client.patch(PODS, meta.key(found), resize, kind="strategic", subresource="resize")
        await it.until(lambda _: it.runner.cores == {process.pid: 2.0})


async def test_held_completion_keeps_the_pod_running(tmp_path: Path) -> None:
    holding = Machine(directory=tmp_path, script=lambda _: crashing(code=0), hold_completed=True)
    async with cluster(holding) as it:
        await it.create(pod())
        found = await it.until(lambda found: "terminated" in status_of(found)["state"])
        await asyncio.sleep(3600)
        assert meta.resource_version(await it.get()) == meta.resource_version(found)
        assert meta.status(found)["phase"] == "Running"
        assert status_of(found)["restartCount"] == 0


async def test_cluster_shutdown_stops_containers_but_keeps_pods(
    tmp_path: Path,
) -> None:
    machine = Machine(directory=tmp_path, script=lambda _: Program(term=3), farewell=5)
    async with cluster(machine) as it:
        ready = await running_cluster(it)
        before = it.transport.writes
        began = seconds()
    assert [number for _, number in it.runner.signals] == [signal.SIGTERM]
    assert seconds() - began == pytest.approx(3, abs=0.1)
    assert it.transport.writes == before
    assert status_of(ready)["state"]["running"]


@pytest.mark.parametrize(("grace", "patience"), [(30, 5), (2, 2), (0, 0)])
async def test_cluster_shutdown_waits_within_grace_and_farewell(tmp_path: Path, grace: int, patience: int) -> None:
    machine = Machine(directory=tmp_path, script=lambda _: Program(term=None), farewell=5)
    async with cluster(machine) as it:
        await it.create(pod(terminationGracePeriodSeconds=grace))
        await it.ready()
        began = seconds()
    assert seconds() - began == pytest.approx(patience, abs=0.1)


@pytest.mark.parametrize(("had", "left"), [(0, 5), (3, 2), (8, 0)])
async def test_cluster_shutdown_counts_time_since_deletion(tmp_path: Path, had: int, left: int) -> None:
    machine = Machine(directory=tmp_path, script=lambda _: Program(term=None), farewell=5)
    async with cluster(machine) as it:
        await it.create(pod(terminationGracePeriodSeconds=30))
        await it.ready()
        await it.delete()
        await asyncio.sleep(had)
        began = seconds()
    assert seconds() - began == pytest.approx(left, abs=0.1)


async def test_kubelet_has_caught_up_when_no_old_status_remains(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with cluster(Machine(directory=tmp_path, store=Store(path))) as it:
        await running_cluster(it)
    slow = Machine(directory=tmp_path, store=Store(path), script=lambda _: Program(start_delay=3))
    async with cluster(slow) as it:
        await it.caught_up.wait()
        assert not meta.is_condition_true(await it.get(), "Ready")
        await it.ready()


NUL = "a\0b"


def stored(found: JSONObject) -> Store:
    """Return a store that contains an invalid pod, which a current API server would reject."""
    store = Store()
    metadata = meta.metadata(found) | {"uid": "u1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    store.create(StoreKey(PODS.group_resource, "default", meta.name(found)), found | {"metadata": metadata})
    return store


async def test_pod_with_very_long_durations_runs(tmp_path: Path) -> None:
    made = pod(terminationGracePeriodSeconds=2**62, activeDeadlineSeconds=2**62)

    async with cluster(Machine(directory=tmp_path, store=stored(made))) as it:
        await it.ready()
        await it.delete(grace_period=3)
        await it.gone()
        assert "FailedSync" not in it.events.reasons()
