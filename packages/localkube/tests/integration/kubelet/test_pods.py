"""Tests pods as real processes in namespaces."""

import asyncio
import os
import re
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.integration.kubelet.harness import (
    KubeletWithProcesses,
    cluster,
    container,
    is_over,
    never,
    object_of,
    pod,
    process,
    until_ended,
)
from tests.kubeletpods import status_of

from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import CONFIG_MAPS, PODS, SECRETS, SERVICES
from localkube.kubelet.processes import processtree

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

HOARD = "import time; kept = bytearray(200 << 20); print('kept', flush=True); time.sleep(1000)"
SERVER = [sys.executable, "-u", "-m", "http.server", "8080"]


def launcher() -> int:
    """Return the PID of the launcher that this process started."""
    for pid in processtree.descendants([os.getpid()], processtree.read()):
        with suppress(OSError):
            if Path(f"/proc/{pid}/comm").read_text().strip() == "kube-launcher":
                return pid
    raise AssertionError("no launcher runs")


async def test_process_has_hostname_variables_arguments_and_directory(it: KubeletWithProcesses) -> None:
    env = [
        {"name": "A", "value": "1"},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ]
    main = container('echo "$(hostname) $A $IP $PWD $0"', args=["$(A)-$$(A)"], env=env, workingDir="/usr")
    found = await it.run_to_end(never(main))
    assert await it.logs(found) == f"web-0 1 {meta.status(found)['podIP']} /usr 1-$(A)\n"
    assert meta.status(found)["phase"] == "Succeeded"


async def test_container_above_its_memory_limit_is_killed(it: KubeletWithProcesses) -> None:
    main = container([sys.executable, "-c", HOARD], resources={"limits": {"memory": "100Mi"}})
    found = await it.run_to_end(never(main))
    ended = meta.status(found)["containerStatuses"][0]["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)
    assert re.fullmatch(r"used 2\d\dMi of memory, and its limit is 100Mi", ended["message"])


async def test_limit_that_is_not_enforced_is_reported(tmp_path: Path) -> None:
    async with cluster(tmp_path, memory_limits=False) as it:
        main = container([sys.executable, "-c", HOARD], resources={"limits": {"memory": "100Mi"}})
        await it.client.create(PODS, pod(main))
        found = await it.until(lambda found: meta.is_condition_true(found, "MemoryLimitExceeded"))
        condition = meta.find_condition(found, "MemoryLimitExceeded") or {}
        assert re.fullmatch(r"container main used [12]\d\dMi of memory, and its limit is 100Mi", condition["message"])


async def test_names_of_pods_and_services_resolve_in_pods(it: KubeletWithProcesses) -> None:
    spec = {"clusterIP": "None", "selector": {"app": "web"}, "publishNotReadyAddresses": True}
    await it.client.create(SERVICES, object_of("Service", "web", spec=spec))
    first = await it.start(pod(hostname="web-0", subdomain="web"))
    look = "import socket,sys; print(*[socket.gethostbyname(name) for name in sys.argv[1:]])"
    names = ["web-0.web.default", "web-0.web", "web-0.web.default.svc.cluster.local", "web-1"]
    main = container([sys.executable, "-c", look, *names])
    second = await it.run_to_end(never(main, name="web-1", hostname="web-1", subdomain="web"))
    ip = meta.status(first)["podIP"]
    assert (await it.logs(second)).split() == [ip, ip, ip, meta.status(second)["podIP"]]


async def test_init_containers_share_volumes_with_other_containers(it: KubeletWithProcesses) -> None:
    mount = [{"name": "scratch", "mountPath": "/scratch"}]
    init = container("echo made > /scratch/file", "init", volumeMounts=mount)
    main = container("cat /scratch/file", volumeMounts=mount)
    volumes = [{"name": "scratch", "emptyDir": {}}]
    assert await it.output(never(main, initContainers=[init], volumes=volumes)) == "made\n"


async def test_projected_files_are_read_only_and_follow_their_source(it: KubeletWithProcesses) -> None:
    await it.client.create(CONFIG_MAPS, object_of("ConfigMap", "settings", data={"mode": "slow"}))
    await it.client.create(SECRETS, object_of("Secret", "token", data={"t": "czNjcmV0"}))
    sources = [
        {"configMap": {"name": "settings"}},
        {"secret": {"name": "token"}},
        {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    ]
    wait = "until grep -q fast /etc/app/mode; do sleep 0.02; done"
    script = f"cat /etc/app/name /etc/app/t; touch /etc/app/x && echo writable; echo; {wait}; echo changed"
    main = container(script, volumeMounts=[{"name": "all", "mountPath": "/etc/app"}])
    volumes = [{"name": "all", "projected": {"sources": sources}}]
    await it.client.create(PODS, never(main, volumes=volumes))
    await it.until(lambda found: "running" in status_of(found)["state"])
    key = ObjectKey("default", "settings")
    await it.client.patch(CONFIG_MAPS, key, {"data": {"mode": "fast"}}, kind="merge")
    found = await it.until(is_over)
    lines = (await it.logs(found)).splitlines()
    assert "web-0s3cret" in lines
    assert "changed" in lines  # after the output of `touch`, or before it, because the streams are separate
    assert "writable" not in lines


async def test_sub_path_mounts_a_single_file(it: KubeletWithProcesses) -> None:
    await it.client.create(CONFIG_MAPS, object_of("ConfigMap", "settings", data={"a": "1", "b": "2"}))
    mount = {"name": "v", "mountPath": "/opt/app/one.txt", "subPath": "a"}
    main = container("cat /opt/app/one.txt; ls /opt/app", volumeMounts=[mount])
    volumes = [{"name": "v", "configMap": {"name": "settings"}}]
    assert await it.output(never(main, volumes=volumes)) == "1one.txt\n"


async def test_termination_message_is_reported(it: KubeletWithProcesses) -> None:
    found = await it.run_to_end(never(container("echo -n why > /dev/termination-log; exit 3")))
    ended = status_of(found)["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"], ended["message"]) == (3, "Error", "why")


async def test_process_that_ignores_sigterm_is_killed_after_the_grace(it: KubeletWithProcesses) -> None:
    await it.start(pod(container("trap '' TERM; while :; do sleep 1; done")))
    began = asyncio.get_running_loop().time()
    last = await it.delete()
    # instead of the 30 s default of a pod without a grace period
    assert 0.9 < asyncio.get_running_loop().time() - began < 20
    assert status_of(last)["state"]["terminated"]["exitCode"] == 137


async def test_killed_process_is_restarted_and_then_backs_off(it: KubeletWithProcesses) -> None:
    await it.start(pod())
    os.kill(await process("sleep 1000"), signal.SIGKILL)
    found = await it.until(lambda found: status_of(found)["restartCount"] == 1)
    assert status_of(found)["lastState"]["terminated"]["exitCode"] == 137
    os.kill(await process("sleep 1000"), signal.SIGKILL)
    await it.until(lambda found: is_waiting(found, "CrashLoopBackOff"))


def is_waiting(found: Any, reason: str) -> bool:
    """Return whether the container is waiting with this reason."""
    waiting = status_of(found)["state"].get("waiting") or {}
    return bool(waiting.get("reason") == reason)


async def test_probes_reach_pods_that_listen_on_the_same_port(it: KubeletWithProcesses) -> None:
    probe = {"httpGet": {"port": 8080}, "periodSeconds": 1}
    main = container(SERVER, readinessProbe=probe, startupProbe={"tcpSocket": {"port": 8080}, "periodSeconds": 1})
    for name in ("web-0", "web-1"):
        await it.client.create(PODS, pod(main, name=name))
    for name in ("web-0", "web-1"):
        found = await it.ready(name)
        assert b"200 OK" in await ask(it, found)


async def ask(it: KubeletWithProcesses, found: Any, port: int = 8080) -> bytes:
    reader, writer = await it.kubelet.dial(found, port)
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    answer = await reader.read()
    writer.close()
    return answer


async def test_exec_probes_and_hooks_run_inside_the_container(it: KubeletWithProcesses, tmp_path: Path) -> None:
    volumes = [{"name": "v", "hostPath": {"path": str(tmp_path / "shared"), "type": "DirectoryOrCreate"}}]
    hooks = {
        "postStart": {"exec": {"command": ["/bin/sh", "-c", "hostname > /shared/started"]}},
        "preStop": {"exec": {"command": ["/bin/sh", "-c", "hostname > /shared/stopped"]}},
    }
    probe = {"exec": {"command": ["test", "-e", "/shared/started"]}, "periodSeconds": 1}
    mounts = [{"name": "v", "mountPath": "/shared"}]
    await it.start(pod(container(lifecycle=hooks, readinessProbe=probe, volumeMounts=mounts), volumes=volumes))
    await it.delete()
    assert (tmp_path / "shared" / "started").read_text() == "web-0\n"
    assert (tmp_path / "shared" / "stopped").read_text() == "web-0\n"


async def test_stop_hook_beyond_the_grace_period_fails(it: KubeletWithProcesses) -> None:
    """The hook fails in the same way as on a real kubelet. `tests/node` compares both kubelets."""
    hooks = {"preStop": {"sleep": {"seconds": 100}}}
    await it.start(pod(container(lifecycle=hooks), terminationGracePeriodSeconds=1))
    await it.delete()
    assert "FailedPreStopHook" in [event.reason for event in it.events.recorded]


@pytest.mark.parametrize("tty", [False, True])
async def test_shell_in_a_container_is_interactive(it: KubeletWithProcesses, tty: bool) -> None:
    found = await it.start(pod())
    script = "read line; echo got $line; stty size 2>/dev/null; exit 5"
    session = await it.kubelet.exec(found, "main", ("/bin/sh", "-c", script), stdin=True, tty=tty)
    session.resize(100, 30)
    await session.write(b"hello\n")
    output = await session.stdout.read()
    assert b"got hello" in output
    assert (b"30 100" in output) is tty
    assert await session.wait() == 5
    await session.kill()


async def test_killed_command_is_stopped_with_its_children(it: KubeletWithProcesses) -> None:
    found = await it.start(pod())
    session = await it.kubelet.exec(
        found, "main", ("/bin/sh", "-c", "sleep 777 & echo on; wait"), stdin=False, tty=False
    )
    assert await session.stdout.readline() == b"on\n"
    await session.kill()
    assert await session.wait() == 137
    assert await session.stdout.read() == b""
    await until_ended("sleep 777")


async def test_log_is_followed_while_it_is_written(it: KubeletWithProcesses) -> None:
    script = "for i in 1 2 3; do echo out $i; echo err $i >&2; sleep 0.1; done"
    found = await it.start(never(container(script)))
    lines = (await it.logs(found, follow=True)).splitlines()
    assert sorted(lines) == sorted(f"{stream} {i}" for stream in ("out", "err") for i in (1, 2, 3))
    assert (await it.logs(found, tail_lines=2)).splitlines() == lines[-2:]


async def test_large_output_is_kept_within_bounds(it: KubeletWithProcesses, tmp_path: Path) -> None:
    flood = "import sys\nfor i in range(700_000): sys.stdout.write(f'{i:099d}\\n')"
    found = await it.run_to_end(never(container([sys.executable, "-c", flood])))
    files = list((tmp_path / "pods" / meta.uid(found) / "logs" / "main").iterdir())
    assert len(files) == 5
    assert max(file.stat().st_size for file in files) < 11 * 1024 * 1024
    assert await it.logs(found, tail_lines=1) == f"{699_999:099d}\n"


async def test_pods_survive_the_death_of_the_launcher(it: KubeletWithProcesses) -> None:
    before = await it.start(pod(hostname="web-0"))
    os.kill(launcher(), signal.SIGKILL)
    after = await it.until(lambda found: meta.is_condition_true(found, "Ready") and bool(status_of(found)["lastState"]))
    assert meta.uid(after) == meta.uid(before)
    assert status_of(after)["lastState"]["terminated"]["exitCode"] == 137
    session = await it.kubelet.exec(after, "main", ("hostname",), stdin=False, tty=False)
    assert await session.stdout.read() == b"web-0\n"
    assert await session.wait() == 0


async def test_programs_have_the_file_limit_of_the_cluster(tmp_path: Path) -> None:
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    fewer = min(allowed, most) - 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (fewer, most))
    try:
        async with cluster(tmp_path) as it:
            assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > fewer
            assert await it.output(never(container("ulimit -n"))) == f"{fewer}\n"
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == fewer
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, most))


async def test_stub_answers_on_the_ports_of_its_container(tmp_path: Path) -> None:
    main = {
        "name": "main",
        "image": "vllm/vllm-openai:v1",
        "ports": [{"containerPort": 8080}],
        "readinessProbe": {"httpGet": {"port": 8080}},
    }
    init = {"name": "init", "image": "downloader:v1"}
    async with cluster(tmp_path, stub=True) as it:
        found = await it.start(pod(main, initContainers=[init]))
        assert b"200 OK" in await ask(it, found)
        assert status_of(found)["imageID"] == "stub://vllm/vllm-openai:v1"


async def test_stubs_with_the_host_network_may_use_the_same_port(tmp_path: Path) -> None:
    """A local cluster simulates nodes. In a real cluster, these pods would run on two machines."""
    server = {"name": "main", "image": "sglang:v1", "ports": [{"containerPort": 18081}]}
    async with cluster(tmp_path, stub=True) as it:
        for name in ("web-0", "web-1"):
            found = await it.start(pod(server, name=name, hostNetwork=True))
            assert b"200 OK" in await ask(it, found, 18081)


async def test_port_conflict_on_the_shared_network_names_the_owner(tmp_path: Path) -> None:
    main = container(
        [*SERVER[:-1], "18080"], ports=[{"containerPort": 18080}], readinessProbe={"tcpSocket": {"port": 18080}}
    )
    main["readinessProbe"]["periodSeconds"] = 1
    async with cluster(tmp_path, network="shared") as it:
        await it.start(pod(main))
        await it.client.create(PODS, pod(main, name="web-1"))
        found = await it.until(lambda found: is_waiting(found, "PortConflict"), "web-1")
        assert "port 18080 is in use by pod default/web-0" in status_of(found)["state"]["waiting"]["message"]


async def test_unexecutable_program_is_a_start_error(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    async with cluster(tmp_path) as it:
        found = await it.run_to_end(never(container([str(script)])))
        ended = status_of(found)["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (128, "StartError")
        assert "no such file or directory" in ended["message"]


async def test_pods_without_namespaces_are_plain_processes(tmp_path: Path) -> None:
    async with cluster(tmp_path, plain=True, network="shared") as it:
        found = await it.run_to_end(never(container('echo "$HOSTNAME"; exit 4')))
        assert await it.logs(found) == "web-0\n"
        assert status_of(found)["state"]["terminated"]["exitCode"] == 4
