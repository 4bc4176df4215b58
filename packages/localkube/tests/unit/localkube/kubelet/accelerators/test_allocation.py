"""Tests that container devices comply with the Kubernetes rules for any pod."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testkit import objects

from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.accelerators.allocation import ShortageError, allocate, fits, runs_alone
from localkube.kubelet.spec import podspec


def container(name: str, gpus: int, **fields: Any) -> JSONObject:
    return {"name": name, "resources": {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}, **fields}


@st.composite
def pods(draw: st.DrawFn) -> JSONObject:
    amounts = st.integers(0, 4)
    init = [
        container(f"i{number}", draw(amounts), **({"restartPolicy": "Always"} if draw(st.booleans()) else {}))
        for number in range(draw(st.integers(0, 4)))
    ]
    containers = [container(f"c{number}", draw(amounts)) for number in range(draw(st.integers(1, 3)))]
    return objects.pod(spec={"initContainers": init, "containers": containers})


def demand(of: JSONObject) -> int:
    """Return the devices that a scheduler reserves for a pod."""
    sidecars, peak = 0, 0
    for one in podspec.init_containers(of):
        number = int(one["resources"].get("limits", {}).get("nvidia.com/gpu", 0))
        if podspec.is_sidecar(one, of):
            sidecars += number
            peak = max(peak, sidecars)
        else:
            peak = max(peak, sidecars + number)
    last = [int(one["resources"].get("limits", {}).get("nvidia.com/gpu", 0)) for one in podspec.regular_containers(of)]
    return max(peak, sidecars + sum(last))


def at_a_time(of: JSONObject) -> list[list[str]]:
    """Return the groups of containers that run at the same time."""
    groups, sidecars = [], list[str]()
    for one in podspec.init_containers(of):
        if runs_alone(one, of):
            groups.append([*sidecars, one["name"]])
        else:
            sidecars.append(one["name"])
    return [*groups, [*sidecars, *(one["name"] for one in podspec.regular_containers(of))]]


def devices(number: int, shares: int) -> list[str]:
    return [f"GPU-{gpu}::{share}" for gpu in range(number) for share in range(shares)]


@given(pods(), st.integers(1, 3))
def test_allocate_assigns_a_device_once_at_a_time(of: JSONObject, shares: int) -> None:
    found: Mapping[str, tuple[str, ...]] = allocate(of, devices(24, shares))
    for names in at_a_time(of):
        used = [device for name in names for device in found.get(name, ())]
        assert len(used) == len(set(used))
    assert fits(of, found)


@given(pods())
def test_allocate_needs_no_more_than_is_scheduled(of: JSONObject) -> None:
    found = allocate(of, devices(demand(of), 1))
    assert len({device for own in found.values() for device in own}) == demand(of)


def test_allocate_rejects_more_devices_than_exist() -> None:
    with pytest.raises(ShortageError, match=r"container b requests nvidia\.com/gpu=2, but the node has 3 available"):
        allocate(objects.pod(spec={"containers": [container("a", 2), container("b", 2)]}), ["x", "y", "z"])


def test_allocate_prefers_shares_of_different_gpus() -> None:
    found = allocate(objects.pod(spec={"containers": [container("a", 2)]}), ["x::0", "x::1", "y::0", "y::1"])
    assert found == {"a": ("x::0", "y::0")}


def test_allocate_prefers_a_share_of_the_least_used_gpu() -> None:
    assert allocate(objects.pod(spec={"containers": [container("a", 1)]}), ["x::1", "y::0"], ["x::0"]) == {
        "a": ("y::0",)
    }


@pytest.mark.parametrize(
    "record", [{}, {"a": ["x"]}, {"a": ["x", "x"]}, {"a": ["x", "y"], "b": ["z"]}, {"b": ["x", "y"]}]
)
def test_fits_rejects_a_record_of_a_different_pod(record: dict[str, list[str]]) -> None:
    assert not fits(objects.pod(spec={"containers": [container("a", 2)]}), record)
