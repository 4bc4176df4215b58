"""Tests that the launcher decodes requests from the kubelet correctly."""

import json
from pathlib import Path

from localkube.kubelet.processes.runner import ContainerSpec, Mount, SandboxSpec
from localkube.kubelet.sandbox.launcher.launchspecs import Container, MountRequest, Pod, parse_container
from localkube.kubelet.sandbox.sandboxrunner import fields_of


def test_pod_request_is_decoded_by_the_launcher() -> None:
    spec = SandboxSpec(
        id="uid", hostname="lws-0", directory=Path("/p"), hosts_directory=Path("/h"), share_process_namespace=True
    )
    wire = json.loads(json.dumps(fields_of(spec) | {"address": "10.88.1.0"}))
    assert Pod(**wire) == Pod(
        "uid", "lws-0", "10.88.1.0", "/p", "/h", host_network=False, share_process_namespace=True, memory=[]
    )


def test_container_request_is_decoded_by_the_launcher() -> None:
    spec = ContainerSpec(
        id="c",
        sandbox_id="uid",
        argv=("python", "-c", "1"),
        env={"A": "1"},
        stdout=1,
        stderr=2,
        mounts=(Mount(Path("/v"), "/data", read_only=True, sub_path="a/b"),),
        root=Path("/image"),
        run_as_user=7,
        stub_ports=(80,),
    )
    wire = json.loads(json.dumps({"container": fields_of(spec)}))
    assert parse_container(wire) == Container(
        id="c",
        sandbox_id="uid",
        argv=["python", "-c", "1"],
        env={"A": "1"},
        stdout=1,
        stderr=2,
        cwd=None,
        mounts=[MountRequest("/v", "/data", read_only=True, sub_path="a/b")],
        root="/image",
        run_as_user=7,
        run_as_group=None,
        read_only_root=False,
        stub_ports=[80],
    )
