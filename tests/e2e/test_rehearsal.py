"""Tests that one command rehearses published manifests of multi-node inference and training."""

import re
from pathlib import Path

import pytest
from tests.e2e.harness import Shell

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

MANIFESTS = Path(__file__).parent / "manifests"

REHEARSED = {
    "serving-two-nodes.yaml": (
        "4 ranks in 2 groups are ready",
        ["4 nodes with nvidia.com/gpu=8 (for leaderworkerset/llm leader, leaderworkerset/llm workers)"],
    ),
    "serving-rdma.yaml": (
        "4 ranks in 1 group are ready",
        [
            "8 nodes with label network.example.com/rdma=true, label nvidia.com/gpu.product=NVIDIA-H200",
            "taint dedicated=inference:NoExecute, taint nvidia.com/gpu:NoSchedule",
            "hugepages-2Mi=4Gi, nvidia.com/gpu=8, rdma/hca_shared_devices_a=1",
            "volume claim model-weights is an empty directory",
        ],
    ),
    "serving-engine-build.yaml": (
        "6 ranks in 2 groups are ready",
        [
            "6 nodes with label node.kubernetes.io/instance-type=p5.48xlarge",
            "label topology.example.com/block=domain-{i//3}, taint nvidia.com/gpu:NoSchedule",
            "nvidia.com/gpu=8, vpc.amazonaws.com/efa=32",
            "storage class shared-files creates directories",
        ],
    ),
    "serving-host-paths.yaml": ("2 ranks in 1 group are ready", ["label serving=yes", "nvidia.com/gpu=4"]),
    "serving-tpu.yaml": ("5 ranks in 1 group are ready", ["google.com/tpu=4"]),
    "training-queued.yaml": (
        "4 ranks in 1 group are ready",
        [
            "4 nodes with label topology.kubernetes.io/zone=domain-{i}, nvidia.com/gpu=8, rdma/ib=8",
            "storage class parallel-fs creates directories",
            "priority class research-high with value 1000",
            "volume claim tokens is an empty directory",
        ],
    ),
    "serving-proxy.yaml": (
        "5 ranks in 1 group are ready",
        [
            "4 nodes with label cloud.example.com/nodepool=domain-{i//2}, google.com/tpu=4",
            "1 node with label cloud.example.com/nodepool=cpus",
        ],
    ),
    "serving-disaggregated.yaml": (
        "6 ranks in 3 groups are ready",
        [
            "4 nodes with label pool=decode, taint pool=decode:NoSchedule, nvidia.com/gpu=4, rdma/ib=1",
            "2 nodes with label pool=prefill, taint pool=prefill:NoSchedule, nvidia.com/gpu=8, rdma/ib=1",
        ],
    ),
    "serving-roles.yaml": (
        "13 ranks in 11 groups are ready",
        [
            "label topology.example.com/block=domain-0, nvidia.com/gpu=1 (for disaggregatedset/two-roles decode leader",
            "disaggregatedset/sliced encode leader",
        ],
    ),
    "refused-own-kinds.yaml": (
        "3 ranks in 1 group are ready",
        ["skipping role/engine: this cluster does not use RBAC", "skipping rolebinding/engine"],
    ),
    "web-autoscaler.yaml": ("2 ranks in 2 groups are ready", []),
    "web-policies.yaml": (
        "(16 ranks in 6|18 ranks in 7) groups are ready",
        ["label pool.example.com/id=domain-", "google.com/tpu=4"],
    ),
    "web-volumes.yaml": ("7 ranks in 3 groups are ready", ["storage class fast-files creates directories"]),
}
"""The last line of each rehearsal as a pattern, and some of its assumptions.

Where a partition is set, a group of the surge comes at once, and may still be there when all are ready (table 5.2, C5).
"""

REFUSED = {
    "refused-field.yaml": [".spec.groupPlacementPolicy: field not declared in schema"],
    "refused-kinds.yaml": ["computedomain/domain: the API server does not serve kind ComputeDomain"],
    "refused-scheduler.yaml": ["scheduler gang is not available in the cluster of lws run"],
}
"""The error of each run, which occurs before an object is applied."""

FORCED = "serving-scripts.yaml"


def test_every_manifest_is_rehearsed_and_documented() -> None:
    tried = {*REHEARSED, *REFUSED, FORCED}
    assert {path.name for path in MANIFESTS.iterdir()} == tried
    page = Path("docs/how-to/run-your-program.md").read_text()
    assert [name for name in sorted(tried) if f"`{name}`" not in page] == []


def test_missing_host_path_is_not_created_by_a_rehearsal(shell: Shell) -> None:
    words = ["run", "-f", str(MANIFESTS / "serving-host-paths.yaml"), "--nodes", "auto", "--stub"]
    shell.lws(*words, "--until", "ready", "--timeout", "80")
    assert not Path("/no-such-disk").exists()


@pytest.mark.parametrize("name", REHEARSED)
def test_published_manifest_is_rehearsed_by_one_command(shell: Shell, name: str) -> None:
    wanted = ["--nodes", "auto", "--gpus", "auto", "--stub", "--until", "ready", "--timeout", "80"]
    told = shell.lws("run", "-f", str(MANIFESTS / name), *wanted).stderr
    end, assumed = REHEARSED[name]
    assert re.fullmatch(end, told.splitlines()[-1])
    for words in assumed:
        assert words in "".join(line for line in told.splitlines(keepends=True) if line.startswith("assumed: "))


@pytest.mark.parametrize("name", REFUSED)
def test_manifest_that_cannot_be_rehearsed_is_rejected_first(shell: Shell, name: str) -> None:
    words = ["run", "-f", str(MANIFESTS / name), "--nodes", "auto", "--stub", "--until", "ready", "--timeout", "80"]
    told = shell.lws(*words, code=1).stderr
    assert [said for said in REFUSED[name] if said not in told] == []
    assert "created" not in told


@pytest.mark.parametrize("stub", ["--stub=all", "--stub=registry.example.com/engine"])
def test_scripts_of_an_image_are_rehearsed_with_a_forced_stub(shell: Shell, stub: str) -> None:
    words = ["run", "-f", str(MANIFESTS / FORCED), "--nodes", "auto", "--gpus", "auto", stub]
    told = shell.lws(*words, "--until", "ready", "--timeout", "80").stderr
    assert told.splitlines()[-1] == "2 ranks in 1 group are ready"


def test_manifest_without_its_nodes_has_a_suggestion(shell: Shell) -> None:
    words = ["run", "-f", str(MANIFESTS / "serving-tpu.yaml"), "--stub", "--until", "ready", "--timeout", "0"]
    told = shell.lws(*words, code=124).stderr
    assert "note: no node meets the requirements of the manifest (google.com/tpu, label cloud.google.com/" in told
    assert "use --nodes auto --gpus auto to simulate suitable nodes" in told
