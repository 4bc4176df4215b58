"""Tests the public module of the package: string settings, one error class, and selected cluster parts."""

import asyncio
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from kuberuntime.errors import NotFoundError
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import NODES, STORAGE_CLASSES
from localkube import cluster, testing
from localkube.cluster import DamagedDataError, LocalkubeError, Nodes, Settings, SettingsError


@pytest.mark.parametrize(
    ("nodes", "setting", "message"),
    [
        (Nodes(labels=("rack",)), "labels", "Invalid value: 'rack': must have the form KEY=VALUE"),
        (Nodes(count=2, labels=("rack={1//(1-i)}",)), "labels", "division by zero for node 1"),
        (Nodes(count=2, taints=("rack={1//(1-i)}:NoSchedule",)), "taints", "division by zero for node 1"),
        (Nodes(taints=("a=b",)), "taints", "Invalid value: 'a=b': must have the form"),
        (Nodes(capacity=("cpu=x",)), "capacity", "Invalid value: 'cpu=x': cpu: "),
        (
            Nodes(capacity=("nvidia.com/gpu=2",), gpus=1),
            "gpus",
            "nvidia.com/gpu is also specified in the capacity. Remove one of them",
        ),
    ],
    ids=["label", "later label", "later taint", "taint", "capacity", "twice"],
)
def test_invalid_node_setting_is_named(nodes: Nodes, setting: str, message: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)) as caught:
        nodes.check()
    assert caught.value.setting == setting


async def test_node_texts_become_nodes() -> None:
    words = Nodes(count=4, labels=("rack=r{i//2}",), taints=("pool=p{i//2}:NoSchedule",), capacity=("cpu=8",), gpus=2)

    async with testing.temporary("controllers", nodes=words) as server:
        nodes = {node["metadata"]["name"]: node for node in (await server.client().list(NODES)).items}
        assert len(nodes) == 4
        last = nodes["node-3"]
        assert last["metadata"]["labels"]["rack"] == "r1"
        assert {"key": "pool", "effect": "NoSchedule", "value": "p1"} in last["spec"]["taints"]
        assert (last["status"]["capacity"]["cpu"], last["status"]["capacity"]["nvidia.com/gpu"]) == ("8", "2")


async def test_api_server_alone_has_no_nodes_and_classes() -> None:
    async with testing.temporary() as server:
        assert (await server.client().list(NODES)).items == []
        assert (await server.client().list(STORAGE_CLASSES)).items == []
        with pytest.raises(NotFoundError):
            await server.client().get(NODES, ObjectKey("", "node-0"))


def test_temporary_cluster_leaves_nothing() -> None:
    async def scenario() -> Path:
        async with testing.temporary() as server:
            assert server.kubeconfig.exists()
            return server.kubeconfig

    assert not asyncio.run(scenario()).parent.exists()


def test_damaged_file_has_its_own_error(tmp_path: Path) -> None:
    (tmp_path / cluster.DATABASE).write_bytes(b"no database" * 1000)
    with pytest.raises(DamagedDataError, match=cluster.DATABASE):
        asyncio.run(serve_once(Settings(directory=tmp_path)))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda directory: (directory / "identity.json").write_text("{"),
        lambda directory: (directory / cluster.DATABASE).mkdir(),
    ],
    ids=["identity", "folder"],
)
def test_start_errors_have_one_base_class(tmp_path: Path, spoil: object) -> None:
    assert callable(spoil)
    spoil(tmp_path)
    with pytest.raises(LocalkubeError, match=re.escape(str(tmp_path))):
        asyncio.run(serve_once(Settings(directory=tmp_path)))


def test_cluster_in_a_thread_reports_its_start_error(tmp_path: Path) -> None:
    (tmp_path / "identity.json").write_text("{")
    broken = partial(cluster.serve, Settings(directory=tmp_path))
    with pytest.raises(RuntimeError, match="did not start") as caught, testing.run_in_thread(broken):
        pass
    assert isinstance(caught.value.__cause__, LocalkubeError)


def test_public_module_imports_no_server() -> None:
    script = "import sys; from localkube import cluster; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"aiohttp", "cryptography", "msgspec", "sqlite3", "localkube.assembly"} & set(modules)


@pytest.mark.slow
def test_api_server_does_not_import_pod_modules() -> None:
    script = "import sys; from localkube import assembly; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    lazily = ("localkube.controllers", "localkube.kubelet", "localkube.apiserver.frontend.spdy", "localkube.workloads")
    assert not [name for name in modules if name.startswith(lazily)]


async def serve_once(settings: Settings) -> None:
    async with cluster.serve(settings):
        pass
