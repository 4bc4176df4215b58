"""Tests the variables, volumes, claims and resources that pods require before they start.

Also tests the status of waiting pods.
"""

import asyncio
from pathlib import Path

import pytest
from tests.kubeletpods import container, pod, status_of
from tests.unit.localkube.kubelet.harness import Machine, cluster
from tests.unit.localkube.kubelet.test_kubelet import NUL, seconds, stored, waiting_for

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import (
    CONFIG_MAPS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    SECRETS,
    SERVICES,
)
from localkube.kubelet.processes.runner import ContainerSpec, ExhaustedError, Exit
from localkube.kubelet.processes.simulatedrunner import Program

pytestmark = pytest.mark.virtual_time


async def test_variables_come_from_pod_config_map_and_secret(tmp_path: Path) -> None:
    main = container(
        command=["echo", "$(MODE)", "$(IP)"],
        envFrom=[{"configMapRef": {"name": "settings"}}],
        env=[{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
    )
    async with cluster(Machine(directory=tmp_path)) as it:
        await it.create(pod(main))
        found = await it.until(waiting_for("CreateContainerConfigError"))
        assert status_of(found)["state"]["waiting"]["message"] == 'configmap "settings" not found'
        await it.create(object_of("ConfigMap", "settings", data={"MODE": "fast"}), CONFIG_MAPS)
        await it.ready()
        assert seconds() < 1
        (process,) = it.runner.processes.values()
        assert process.spec.argv == ("echo", "fast", "10.88.0.3")
        assert process.spec.env["HOSTNAME"] == "web-0"


def object_of(kind: str, name: str, **fields: object) -> JSONObject:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}, **fields}


async def test_volumes_follow_their_sources(tmp_path: Path) -> None:
    volumes = [{"name": "v", "configMap": {"name": "settings"}}]
    main = container(volumeMounts=[{"name": "v", "mountPath": "/etc/app"}])
    async with cluster(Machine(directory=tmp_path)) as it:
        created = await it.create(pod(main, volumes=volumes))
        found = await it.until(lambda found: "message" in status_of(found)["state"].get("waiting", {}))
        assert (
            status_of(found)["state"]["waiting"]["message"]
            == 'failed to set up volumes: configmap "settings" not found'
        )
        await it.create(object_of("ConfigMap", "settings", data={"a": "1"}), CONFIG_MAPS)
        await it.ready()
        directory = tmp_path / "pods" / meta.uid(created) / "volumes" / "v"
        (process,) = it.runner.processes.values()
        mount = next(mount for mount in process.spec.mounts if mount.target == "/etc/app")
        assert (mount.source, mount.read_only) == (directory, True)
        key = ObjectKey("default", "settings")
        await it.client.patch(CONFIG_MAPS, key, {"data": {"a": "2"}}, kind="merge")
        await asyncio.sleep(1)
        assert (directory / "a").read_text() == "2"


async def test_secret_becomes_files(tmp_path: Path) -> None:
    async with cluster(Machine(directory=tmp_path)) as it:
        await it.create(object_of("Secret", "token", data={"t": "czNjcmV0"}), SECRETS)
        created = await it.create(pod(volumes=[{"name": "s", "secret": {"secretName": "token"}}]))
        await it.ready()
        assert (tmp_path / "pods" / meta.uid(created) / "volumes" / "s" / "t").read_text() == "s3cret"


async def test_pod_waits_until_its_claim_is_bound(tmp_path: Path) -> None:
    resources = {"requests": {"storage": "1Gi"}}
    claim = object_of("PersistentVolumeClaim", "data", spec={"accessModes": ["ReadWriteOnce"], "resources": resources})
    disk = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": f"{tmp_path}/disk"},
    }
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": disk}
    async with cluster(Machine(directory=tmp_path)) as it:
        await it.create(volume, PERSISTENT_VOLUMES)
        await it.create(claim, PERSISTENT_VOLUME_CLAIMS)
        await it.create(pod(volumes=[{"name": "c", "persistentVolumeClaim": {"claimName": "data"}}]))
        await it.until(lambda found: "is not bound" in status_of(found)["state"].get("waiting", {}).get("message", ""))
        key = ObjectKey("default", "data")
        await it.client.patch(PERSISTENT_VOLUME_CLAIMS, key, {"spec": {"volumeName": "disk"}}, kind="merge")
        await it.ready()
        assert (tmp_path / "disk").is_dir()
        assert seconds() < 1


async def test_published_unready_pods_can_be_resolved(tmp_path: Path) -> None:
    spec = {"clusterIP": "None", "selector": {"app": "web"}, "publishNotReadyAddresses": True}
    async with cluster(Machine(directory=tmp_path)) as it:
        await it.create(object_of("Service", "web", spec=spec), SERVICES)
        await it.create(pod(hostname="web-0", subdomain="web"))
        await it.ready()
        content = (tmp_path / "hosts" / "default" / "hosts").read_text()
        assert "10.88.0.3 web-0.web.default.svc.cluster.local " in content
        await it.delete()
        await it.gone()
        await asyncio.sleep(0.1)
        assert "10.88.0.3" not in (tmp_path / "hosts" / "default" / "hosts").read_text()


async def test_rejected_start_counts_as_a_crash(tmp_path: Path) -> None:
    refused = Program(start_error="exec: permission denied")
    async with cluster(Machine(directory=tmp_path, script=lambda _: refused)) as it:
        await it.create(pod())
        found = await it.until(waiting_for("CrashLoopBackOff"))
        ended = status_of(found)["lastState"]["terminated"]
        assert (ended["exitCode"], ended["reason"], ended["message"]) == (
            128,
            "StartError",
            "exec: permission denied",
        )


async def test_rejected_sandbox_is_reported_and_retried(tmp_path: Path) -> None:
    async with cluster(Machine(directory=tmp_path)) as it:
        created = await it.create(pod(initContainers=[container("init")]))
        await it.until(lambda found: "running" in status_of(found, "init")["state"])
        blocker = tmp_path / "pods" / meta.uid(created) / "logs" / "main"
        blocker.touch()
        it.runner.stop_process(next(iter(it.runner.processes)), Exit(0))
        found = await it.until(waiting_for("CreateContainerError"))
        assert "file exists" in status_of(found)["state"]["waiting"]["message"]
        blocker.unlink()
        await it.ready()
        assert seconds() == pytest.approx(10, abs=1)


async def test_unrunnable_container_waits_with_advice(tmp_path: Path) -> None:
    async with cluster(Machine(directory=tmp_path)) as it:
        await it.create(pod({"name": "main", "image": "vllm/vllm-openai:v1"}))
        found = await it.until(waiting_for("ImageNotMapped"))
        assert meta.status(found)["phase"] == "Pending"
        assert status_of(found)["restartCount"] == 0
        assert "--image vllm/vllm-openai=DIR" in status_of(found)["state"]["waiting"]["message"]


async def test_unrunnable_container_is_replaced_by_a_stub(tmp_path: Path) -> None:
    main = {
        "name": "main",
        "image": "vllm/vllm-openai:v1",
        "ports": [{"containerPort": 8000}],
        "readinessProbe": {"httpGet": {"port": 8000}},
        "livenessProbe": {"exec": {"command": ["curl"]}},
        "lifecycle": {"postStart": {"exec": {"command": ["false"]}}},
        "env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "no", "key": "no"}}}],
    }
    volumes = [{"name": "models", "nfs": {"server": "x", "path": "/"}}]
    async with cluster(Machine(directory=tmp_path, stub=True)) as it:
        await it.create(pod(main, container("tool", command=["sleep", "1"]), volumes=volumes))
        found = await it.ready()
        assert status_of(found)["imageID"] == "stub://vllm/vllm-openai:v1"
        assert status_of(found, "tool")["imageID"] == "host://"
        assert meta.is_condition_true(found, "Stub")
        stub = next(process.spec for process in it.runner.processes.values() if not process.spec.argv)
        assert stub.stub_ports == (8000,)


async def test_port_conflict_on_the_shared_network_is_named(tmp_path: Path) -> None:
    main = container(ports=[{"containerPort": 8080}])
    listening = Machine(directory=tmp_path, network="shared", script=lambda _: Program(listens={8080: 0}))
    async with cluster(listening) as it:
        await it.create(pod(main))
        await it.ready("web-0")
        await it.create(pod(main, name="web-1"))
        found = await it.until(waiting_for("PortConflict"), "web-1")
        assert status_of(found)["state"]["waiting"]["message"].startswith("port 8080 is in use by pod default/web-0")
        await it.delete("web-0")
        await it.ready("web-1")


@pytest.mark.parametrize(
    ("made", "reason", "event"),
    [
        (
            pod(volumes=[{"name": "v", "hostPath": {"path": f"/tmp/{NUL}", "type": "DirectoryOrCreate"}}]),
            "ContainerCreating",
            "FailedMount",
        ),
        (
            pod(
                container(volumeMounts=[{"name": "v", "mountPath": "/v", "subPath": NUL}]),
                volumes=[{"name": "v", "emptyDir": {}}],
            ),
            "CreateContainerConfigError",
            "Failed",
        ),
    ],
    ids=["hostPath", "subPath"],
)
async def test_path_with_nul_is_reported_on_its_pod(tmp_path: Path, made: JSONObject, reason: str, event: str) -> None:
    async with cluster(Machine(directory=tmp_path, store=stored(made))) as it:
        found = await it.until(lambda it: "NUL" in str(status_of(it)["state"].get("waiting")))
        assert status_of(found)["state"]["waiting"]["reason"] == reason
        assert it.events.reasons() == [event]


async def test_container_without_resources_waits_and_starts_later(tmp_path: Path) -> None:
    attempts = []

    def script(_: ContainerSpec) -> Program:
        attempts.append(seconds())
        if len(attempts) < 3:
            raise ExhaustedError("create namespaces: no space left on device")
        return Program()

    async with cluster(Machine(directory=tmp_path, script=script)) as it:
        await it.create(pod(restartPolicy="Never"))
        waiting = await it.until(waiting_for("CreateContainerError"))
        assert "no space left" in status_of(waiting)["state"]["waiting"]["message"]
        ready = await it.ready()
        assert status_of(ready)["restartCount"] == 0
        assert len(attempts) == 3
