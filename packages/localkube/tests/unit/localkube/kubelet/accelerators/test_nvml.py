"""Tests the detection of GPUs with a fake NVML library."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from testkit.fakenvml import FakeMachine, gpus

from localkube import cluster
from localkube.errors import SettingsError
from localkube.kubelet.accelerators import hostclaims, nvml, usage
from localkube.kubelet.accelerators.nvml import AcceleratorError
from localkube.kubelet.accelerators.usage import DeviceUse


def machine(directory: Path, patch: pytest.MonkeyPatch, *described: Mapping[str, object]) -> FakeMachine:
    return FakeMachine(directory / "gpus.json", *described).use(patch)


def test_inventory_lists_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(tmp_path, monkeypatch, *gpus(8), {"uuid": "GPU-8", "pids": [4711]})
    found = nvml.inventory()
    assert [one.uuid for one in found.accelerators] == [f"GPU-{index}" for index in range(9)]
    assert (found.driver, found.processes["GPU-8"], found.accelerators[0].memory) == ("570.1", (4711,), 80 * 2**30)
    assert found.distances["GPU-0", "GPU-1"] < found.distances["GPU-0", "GPU-7"]


def test_inventory_lists_mig_instances(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(tmp_path, monkeypatch, {"uuid": "GPU-a", "mig": ["MIG-1", "MIG-2"]}, {"uuid": "GPU-b", "mig": []})
    assert [(one.uuid, one.gpu) for one in nvml.inventory().accelerators] == [
        ("MIG-1", "GPU-a"),
        ("MIG-2", "GPU-a"),
        ("GPU-b", "GPU-b"),
    ]


def test_inventory_omits_a_lost_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(tmp_path, monkeypatch, {"uuid": "GPU-a", "lost": True}, {"uuid": "GPU-b"})
    found = cluster.host_gpus("host", 1, None)
    assert found.by_node == (("GPU-b",),)
    assert "GPU 0 is excluded: GPU is lost" in found.notes


@pytest.mark.parametrize(
    ("visible", "expected"),
    [(None, "abcd"), ("1,3", "bd"), ("GPU-c", "c"), ("", ""), ("7", ""), ("GPU-a, 2", "ac")],
)
def test_inventory_respects_the_visible_devices(
    visible: str | None, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(tmp_path, monkeypatch, *({"uuid": f"GPU-{name}"} for name in "abcd"))
    assert [one.uuid for one in nvml.inventory(visible).accelerators] == [f"GPU-{name}" for name in expected]


def test_usage_is_read_by_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(
        tmp_path,
        monkeypatch,
        {"uuid": "GPU-a", "busy": 87, "pids": [7, 8]},
        {"uuid": "GPU-b", "mig": ["MIG-1"]},
        {"uuid": "GPU-c", "lost": True},
    )
    uses = usage.read(["GPU-a", "MIG-1", "GPU-c"])
    assert uses == {
        "GPU-a": DeviceUse(0.87, 2 * 2**30, {7: 2**30, 8: 2**30}),
        "MIG-1": DeviceUse(None, 0, {}),
    }


def test_host_gpus_reports_sharing_and_other_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(tmp_path, monkeypatch, *gpus(2, pids=[1, 2, 3, 4, 5, 6, 7]))
    found = cluster.host_gpus("host:2", 2, None)
    assert found.by_node == (("GPU-0::0", "GPU-0::1"), ("GPU-1::0", "GPU-1::1"))
    assert (
        found.notes[0]
        == "GPUs of this machine: 2 (Fake GPU; driver 570.1); nvidia.com/gpu by node: node-0: 2, node-1: 2"
    )
    assert "without memory limits" in found.notes[1]
    assert found.notes[2] == "GPU-0 is in use by other processes: 1, 2, 3, 4, 5 and 2 more"


def test_host_gpus_rejects_too_many_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(tmp_path, monkeypatch, *gpus(2))
    with pytest.raises(SettingsError, match="The maximum number of nodes is 2"):
        cluster.host_gpus("host", 3, None)


def test_host_gpus_rejects_a_machine_without_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(tmp_path, monkeypatch)
    with pytest.raises(AcceleratorError, match=r"this machine has no NVIDIA GPU\. Check `nvidia-smi -L`"):
        cluster.host_gpus("host", 1, None)


def test_missing_library_error_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(AcceleratorError, match=r"nvidia-ml-py. Run `pip install nvidia-ml-py`"):
        nvml.inventory()


@pytest.mark.parametrize(("number", "words"), [("0x1002", "GPUs from AMD, but only"), ("0x10de", "Check that")])
def test_missing_driver_error_names_gpus_of_other_vendors(
    number: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = tmp_path / "drm" / "card0" / "device"
    card.mkdir(parents=True)
    (card / "vendor").write_text(f"{number}\n")
    monkeypatch.setattr(nvml, "DRM", tmp_path / "drm")
    fake = machine(tmp_path, monkeypatch)
    fake.driver = None
    fake.change()
    with pytest.raises(AcceleratorError, match=words):
        nvml.inventory()


def test_monitored_reports_a_lost_gpu_and_its_instances(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = machine(tmp_path, monkeypatch, *gpus(2))
    with nvml.monitor({"MIG-1": "GPU-0", "MIG-2": "GPU-0", "GPU-1": "GPU-1"}) as failures:
        assert failures() == {}
        fake.change(0, lost=True)
        assert failures() == {"MIG-1": "GPU is lost", "MIG-2": "GPU is lost"}


def test_monitored_reports_only_faults_of_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = machine(tmp_path, monkeypatch, *gpus(2))
    with nvml.monitor({"GPU-0": "GPU-0", "GPU-1": "GPU-1"}) as failures:
        fake.change(0, xids=[31, 43])
        fake.change(1, xids=[13, 79])
        assert failures() == {"GPU-1": "XID 79"}
        fake.change(1, xids=[])
        assert failures() == {"GPU-1": "XID 79"}, "a failure lasts"


def test_device_claim_rejects_a_second_cluster() -> None:
    with hostclaims.claim_devices(["GPU-claimed-0", "GPU-claimed-1", "GPU-claimed-1"]):
        second = hostclaims.claim_devices(["GPU-claimed-1"])
        with pytest.raises(AcceleratorError, match="GPU-claimed-1 is in use by a different local cluster"):
            second.__enter__()
    with hostclaims.claim_devices(["GPU-claimed-1"]):
        pass


def test_report_names_busy_and_distant_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(tmp_path, monkeypatch, {"uuid": "GPU-a", "near": 0, "pids": list(range(20))}, {"uuid": "GPU-b", "near": 1})
    assert cluster.report_gpus(None) == cluster.GpuReport(
        driver="570.1", count=2, busy=("GPU-a has 60 of 80 GiB free",), apart=("GPU-a and GPU-b",)
    )


def test_cluster_with_simulated_gpus_loads_no_library() -> None:
    script = "import sys, localkube.workloads, localkube.kubelet.kubelet; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"pynvml", "localkube.kubelet.accelerators.nvml", "localkube.kubelet.node.devicehealth"} & set(modules)
