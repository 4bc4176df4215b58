"""Tests the assignment of GPUs to nodes."""

import pytest

from localkube.kubelet.accelerators.accelerator import Accelerator, Inventory, divide_devices, parse_shares


def inventory(*gpus: str, near: str = "", mig: int = 0) -> Inventory:
    """Return GPUs. The GPUs in `near` are close to the first GPU. Each GPU may have MIG instances."""
    found = [
        Accelerator(uuid=uuid, gpu=gpu, index=index, name="x", memory=1, free=1)
        for index, gpu in enumerate(gpus)
        for uuid in ([f"MIG-{gpu}{number}" for number in range(mig)] or [gpu])
    ]
    distances = {(a, b): 10 if {a, b} <= {gpus[0], near} else 50 for a in gpus for b in gpus if a != b}
    return Inventory(driver="1", accelerators=tuple(found), distances=distances, processes={}, failing={})


def test_divided_assigns_whole_gpus() -> None:
    assert divide_devices(inventory(*"abcdefgh"), 3, 1) == (("a", "b", "c"), ("d", "e", "f"), ("g", "h"))


def test_divided_keeps_close_gpus_together() -> None:
    assert divide_devices(inventory(*"abcd", near="d"), 2, 1) == (("a", "d"), ("b", "c"))


def test_divided_keeps_mig_instances_of_a_gpu_on_one_node() -> None:
    assert divide_devices(inventory(*"ab", mig=2), 2, 1) == (("MIG-a0", "MIG-a1"), ("MIG-b0", "MIG-b1"))


def test_divided_shares_each_gpu() -> None:
    assert divide_devices(inventory("a"), 1, 2) == (("a::0", "a::1"),)


def test_device_division_rejects_more_nodes_than_gpus() -> None:
    with pytest.raises(ValueError, match=r"1 GPU, but nodes cannot share a GPU\. The maximum number of nodes is 1"):
        divide_devices(inventory("a"), 2, 1)


@pytest.mark.parametrize("text", ["host:", "host:0", "host:65", "host:x", "host:٣", "rocm", "host:99999999999"])
def test_parse_shares_rejects_malformed_text(text: str) -> None:
    with pytest.raises(ValueError, match="must be host, or host:N"):
        parse_shares(text)
