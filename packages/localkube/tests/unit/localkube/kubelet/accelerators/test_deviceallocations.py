"""Tests device ownership. In any order of events, no device has two owners and no device is leaked."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.unit.localkube.kubelet.accelerators.test_allocation import container, pods

from kuberuntime.objects.meta import UID, JSONObject
from localkube import wellknown
from localkube.kubelet.accelerators import deviceallocations
from localkube.kubelet.accelerators.accelerator import device_uuid
from localkube.kubelet.accelerators.allocation import ShortageError
from localkube.kubelet.accelerators.deviceallocations import DeviceAllocations

DEVICES = {"n0": [f"GPU-{index}::{share}" for index in range(3) for share in range(2)], "n1": ["GPU-8", "GPU-9"]}


class OwnersOfDevices(RuleBasedStateMachine):
    """A cluster that starts and terminates pods. It may be killed at any time, but its API objects remain."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = DeviceAllocations(DEVICES)
        self.pods: dict[str, JSONObject] = {}
        self.started: dict[str, set[str]] = {}
        self.count = 0

    @rule(base=pods(), node=st.sampled_from(["n0", "n1"]))
    def bind(self, base: JSONObject, node: str) -> None:
        self.count += 1
        uid = f"u{self.count}"
        self.pods[uid] = {"metadata": {"uid": uid, "name": uid}, "spec": base["spec"] | {"nodeName": node}}

    @precondition(lambda self: self.pods)
    @rule(data=st.data(), is_killed=st.booleans())
    def start(self, data: st.DataObject, is_killed: bool) -> None:
        uid = data.draw(st.sampled_from(sorted(self.pods)))
        try:
            record = self.ledger.allocate(self.pods[uid])
        except ShortageError:
            return
        if is_killed:  # before the API contains the record, so that no process exists
            self.restart()
            return
        self.pods[uid]["metadata"]["annotations"] = (
            {wellknown.DEVICES: deviceallocations.annotation_value(record)} if record else {}
        )
        self.started[uid] = {device for own in record.values() for device in own}

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.pods)))
        del self.pods[uid]
        self.started.pop(uid, None)
        self.ledger.release(UID(uid))

    @rule()
    def restart(self) -> None:
        self.ledger = DeviceAllocations(DEVICES)
        self.ledger.restore(self.pods.values())

    @rule(failing=st.sets(st.sampled_from(["GPU-0", "GPU-1", "GPU-8"])))
    def fail(self, failing: set[str]) -> None:
        self.ledger.unhealthy = dict.fromkeys(failing, "XID 79")

    @invariant()
    def no_device_has_two_owners(self) -> None:
        held = [device for _, _, device in self.ledger.allocated_devices()]
        assert len(held) == len(set(held))
        for uid, devices in self.started.items():
            assert devices == {device for _, owner, device in self.ledger.allocated_devices() if owner == uid}

    @invariant()
    def no_device_leaks(self) -> None:
        assert {owner for _, owner, _ in self.ledger.allocated_devices()} <= set(self.pods)


TestOwnersOfDevices = OwnersOfDevices.TestCase


def bound(uid: str, gpus: int, **metadata: Any) -> JSONObject:
    spec = {"nodeName": "n1", "containers": [container("main", gpus)]}
    return {"metadata": {"uid": uid, "name": uid, **metadata}, "spec": spec}


def test_release_returns_the_waiting_pods() -> None:
    owners = DeviceAllocations(DEVICES)
    owners.allocate(bound("a", 2))
    try:
        owners.allocate(bound("b", 1))
    except ShortageError as error:
        assert str(error) == "node n1: container main requests nvidia.com/gpu=1, but the node has 0 available"  # noqa: PT017 - the state after it counts
    assert owners.release(UID("a")) == {"b"}
    assert owners.allocate(bound("b", 1)) == {"main": ("GPU-8",)}


def test_containers_without_a_request_see_exposed_devices() -> None:
    pod = bound("a", 1)
    pod["spec"]["containers"].append(container("side", 0))
    owners = DeviceAllocations(DEVICES, exposed=True)
    owners.allocate(pod)
    assert owners.visible_devices(pod) == {"main": ("GPU-8",), "side": ["GPU-8", "GPU-9"]}
    owners.unhealthy = {"GPU-9": "XID 79"}
    assert owners.visible_devices(bound("b", 0)) == {"main": ["GPU-8"]}
    assert DeviceAllocations(DEVICES).visible_devices(bound("b", 0)) == {}


def test_take_names_the_failed_devices() -> None:
    owners = DeviceAllocations(DEVICES)
    owners.unhealthy = {"GPU-9": "GPU is lost"}
    try:
        owners.allocate(bound("a", 2))
    except ShortageError as error:
        assert "the node has 1 available; GPU-9 is unhealthy: GPU is lost" in str(error)  # noqa: PT017 - the words count
    else:
        raise AssertionError


@given(st.text() | st.sampled_from(['{"main":["GPU-8","GPU-8"]}', '{"main":"GPU-8"}', "[]", '{"main":[8,9]}']))
def test_restore_ignores_an_invalid_record(text: str) -> None:
    owners = DeviceAllocations(DEVICES)
    owners.restore([bound("a", 2, annotations={wellknown.DEVICES: text})])
    assert owners.allocated_devices() == []


def test_restore_ignores_a_record_of_missing_devices() -> None:
    owners = DeviceAllocations({"n1": ["GPU-8"]})
    owners.restore([bound("a", 2, annotations={wellknown.DEVICES: '{"main":["GPU-8","GPU-9"]}'})])
    assert owners.allocated_devices() == []


def test_uuid_of_a_share_is_the_uuid_of_its_gpu() -> None:
    assert {device_uuid(device) for device in DEVICES["n0"]} == {"GPU-0", "GPU-1", "GPU-2"}
