"""Tests the TPU variables (R-TPU-1 to R-TPU-6)."""

from typing import Any

import pytest

from leaderworkerset.core.admission.pod import admit_pod
from leaderworkerset.core.policies import accelerators
from leaderworkerset.core.policies.accelerators import requests_tpus
from leaderworkerset.core.policies.policy import DeniedError

P = "leaderworkerset.sigs.k8s.io/"
TPU = {"limits": {"google.com/tpu": "4"}}
NAMES = ["TPU_WORKER_HOSTNAMES", "TPU_WORKER_ID", "TPU_NAME", "TPU_PROCESS_ADDRESSES", "TPU_PROCESS_PORT"]


def tpu_pod(
    name: str,
    *,
    size: int,
    leader: bool = False,
    containers: list[dict[str, Any]] | None = None,
    labels: dict[str, str] | None = None,
    **annotations: str,
) -> dict[str, Any]:
    given = {"name": "test-sample", "group-index": "0"} | ({"worker-index": "0"} if leader else {}) | (labels or {})
    facts = {"size": str(size)} | {key.replace("_", "-"): value for key, value in annotations.items()}
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "labels": {P + key: value for key, value in given.items()},
            "annotations": {P + key: value for key, value in facts.items()},
        },
        "spec": {"subdomain": "default", "containers": containers or [{"name": "c", "resources": TPU}]},
    }


def variables(container: dict[str, Any]) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in container["env"] if entry["name"].startswith("TPU_")}


def slice_of(pod: dict[str, Any]) -> tuple[str, str]:
    found = variables(admit_pod(pod)["spec"]["containers"][0])
    hosts = [host.removesuffix(".default") for host in found["TPU_WORKER_HOSTNAMES"].split(",")]
    assert found["TPU_PROCESS_ADDRESSES"] == ",".join(f"{host}.default:8476" for host in hosts)
    return " ".join(hosts), found["TPU_WORKER_ID"]


@pytest.mark.parametrize(
    ("pod", "hosts", "worker_id"),
    [
        pytest.param(tpu_pod("test-sample-0", size=2, leader=True), "test-sample-0 test-sample-0-1", "0", id="leader"),
        pytest.param(
            tpu_pod("test-sample-0-1", size=2, leader_requests_tpus="true"),
            "test-sample-0 test-sample-0-1",
            "1",
            id="worker of a leader with TPUs",
        ),
        pytest.param(tpu_pod("test-sample-0-1", size=2), "test-sample-0-1", "0", id="worker of a leader without"),
        pytest.param(
            tpu_pod("test-sample-1-3", size=10, subgroup_size="5", leader_requests_tpus="true"),
            "test-sample-1 test-sample-1-1 test-sample-1-2 test-sample-1-3 test-sample-1-4",
            "3",
            id="first subgroup with the leader",
        ),
        pytest.param(
            tpu_pod("test-sample-1-7", size=8, subgroup_size="4", leader_requests_tpus="true"),
            "test-sample-1-4 test-sample-1-5 test-sample-1-6 test-sample-1-7",
            "3",
            id="second subgroup with the leader",
        ),
        pytest.param(
            tpu_pod("test-sample-1-5", size=9, subgroup_size="4"),
            "test-sample-1-5 test-sample-1-6 test-sample-1-7 test-sample-1-8",
            "0",
            id="second subgroup without the leader",
        ),
        pytest.param(
            tpu_pod("test-sample-0-2", size=5, subgroup_size="2", subgroup_policy_type="LeaderExcluded"),
            "test-sample-0-1 test-sample-0-2",
            "1",
            id="leader excluded",
        ),
        pytest.param(
            tpu_pod("test-sample-1-7", size=11, subgroup_size="5"),
            "test-sample-1-6 test-sample-1-7 test-sample-1-8 test-sample-1-9 test-sample-1-10",
            "1",
            id="size 11",
        ),
        pytest.param(
            tpu_pod("prefill-0-1", size=3, subgroup_size="1", leader_requests_tpus="true"),
            "prefill-0-1",
            "0",
            id="subgroups of one, leader with TPUs",
        ),
        pytest.param(tpu_pod("prefill-0-1", size=3, subgroup_size="1"), "prefill-0-1", "0", id="subgroups of one"),
        pytest.param(
            tpu_pod("prefill-0-2", size=3, subgroup_size="1", leader_requests_tpus="true"),
            "prefill-0-2",
            "0",
            id="second subgroup of one, leader with TPUs",
        ),
        pytest.param(tpu_pod("prefill-0-2", size=3, subgroup_size="1"), "prefill-0-2", "0", id="second of one"),
        pytest.param(
            tpu_pod("test-sample-0", size=4, leader=True, subgroup_size="2"),
            "test-sample-0 test-sample-0-1",
            "0",
            id="leader of the first subgroup",
        ),
    ],
)
def test_hosts_and_id_equal_the_contract(pod: dict[str, Any], hosts: str, worker_id: str) -> None:
    """Host names and ID equal the contract (R-TPU-3, R-TPU-5, the table of R-TPU-6)."""
    assert slice_of(pod) == (hosts, worker_id)


def test_two_processes_per_host_get_ports_and_ids() -> None:
    """Each host is listed twice with alternating ports, and IDs count processes (R-TPU-3, R-TPU-4)."""
    containers: list[dict[str, Any]] = [{"name": "a", "resources": TPU}, {"name": "x"}, {"name": "b", "resources": TPU}]
    pod = tpu_pod("test-sample-0-1", size=2, leader_requests_tpus="true", containers=containers)
    first, other, second = admit_pod(pod)["spec"]["containers"]
    hosts = "test-sample-0.default,test-sample-0.default,test-sample-0-1.default,test-sample-0-1.default"
    addresses = ",".join(
        f"{host}.default:{port}" for host in ("test-sample-0", "test-sample-0-1") for port in (8476, 8477)
    )
    common = {"TPU_WORKER_HOSTNAMES": hosts, "TPU_NAME": "test-sample-0", "TPU_PROCESS_ADDRESSES": addresses}
    assert variables(first) == common | {"TPU_WORKER_ID": "2", "TPU_PROCESS_PORT": "8476"}
    assert variables(second) == common | {"TPU_WORKER_ID": "3", "TPU_PROCESS_PORT": "8477"}
    assert variables(other) == {}


def test_containers_keep_their_own_ports() -> None:
    """Each container retains its own port (R-TPU-3, R-TPU-4)."""
    containers = [
        {"name": name, "resources": TPU, "env": [{"name": "TPU_PROCESS_PORT", "value": port}]}
        for name, port in (("a", "8478"), ("b", "8479"))
    ]
    pod = tpu_pod("test-sample-0", size=1, leader=True, containers=containers)
    first, second = admit_pod(pod)["spec"]["containers"]
    assert variables(first)["TPU_PROCESS_ADDRESSES"] == "test-sample-0.default:8478,test-sample-0.default:8479"
    assert [entry["name"] for entry in first["env"]].count("TPU_PROCESS_PORT") == 1
    assert variables(second)["TPU_PROCESS_PORT"] == "8479"


def test_existing_port_variable_is_not_added_again() -> None:
    """A port variable is not added if it exists (R-TPU-4)."""
    containers = [{"name": "c", "resources": TPU, "env": [{"name": "TPU_PROCESS_PORT", "value": "8478"}]}]
    pod = tpu_pod("s-0", size=1, leader=True, containers=containers)
    (container,) = accelerators.inject(pod, size=1, is_leader=True)["spec"]["containers"]
    assert [entry["name"] for entry in container["env"]] == ["TPU_PROCESS_PORT", *NAMES[:4]]


def test_init_container_with_tpus_gets_variables() -> None:
    """TPU variables are added to an init container with TPUs (R-TPU-1)."""
    pod = tpu_pod("sample-0", size=1, leader=True, containers=[{"name": "c"}])
    pod["spec"]["initContainers"] = [{"name": "i", "resources": TPU}]
    admitted = admit_pod(pod)["spec"]
    assert variables(admitted["initContainers"][0])["TPU_WORKER_HOSTNAMES"] == "sample-0.default"
    assert variables(admitted["initContainers"][0])["TPU_WORKER_ID"] == "0"
    assert variables(admitted["containers"][0]) == {}


def test_tpu_variables_come_last_in_order() -> None:
    """TPU variables are last (R-ENV-4, R-TPU-4)."""
    containers = [{"name": "c", "resources": TPU, "env": [{"name": "X", "value": "1"}]}]
    admitted = admit_pod(tpu_pod("s-0", size=1, leader=True, containers=containers))
    names = [entry["name"] for entry in admitted["spec"]["containers"][0]["env"]]
    assert names[3:] == ["LWS_GROUP_INDEX", "X", *NAMES]


@pytest.mark.parametrize("name", ["TPU_WORKER_HOSTNAMES", "TPU_WORKER_ID"])
def test_existing_host_names_are_kept(name: str) -> None:
    """Existing host names are not changed (R-TPU-2)."""
    containers = [{"name": "c", "resources": TPU, "env": [{"name": name, "value": "x"}]}]
    admitted = admit_pod(tpu_pod("s-0", size=1, leader=True, containers=containers))
    assert variables(admitted["spec"]["containers"][0]) == {name: "x"}


def test_first_container_of_a_subgroup_gets_variables() -> None:
    """TPU variables are added to the first container of a subgroup (R-TPU-5)."""
    containers = [{"name": "a", "resources": TPU}, {"name": "b", "resources": TPU}]
    admitted = admit_pod(tpu_pod("s-0-1", size=4, subgroup_size="2", containers=containers))
    first, second = admitted["spec"]["containers"]
    assert variables(first).keys() == set(NAMES)
    assert variables(second) == {}


@pytest.mark.parametrize(
    ("resources", "requests"),
    [
        ({"limits": {"google.com/tpu": 4}}, True),
        ({"limits": {"google.com/tpu": "0"}, "requests": {"google.com/tpu": "1"}}, True),
        ({"requests": {"google.com/tpu": "1"}}, True),
        ({"limits": {"google.com/tpu": "0"}, "requests": {"google.com/tpu": "0"}}, False),
        ({"limits": {"cpu": "1"}, "requests": None}, False),
        ({}, False),
        (None, False),
    ],
)
def test_tpu_requests_are_detected(resources: Any, requests: bool) -> None:
    """TPU requests are detected (R-TPU-1)."""
    assert requests_tpus({"containers": [{"name": "a"}, {"name": "b", "resources": resources}]}) is requests


def test_excluded_leader_with_tpus_is_denied() -> None:
    """An excluded leader is not in a subgroup (Q-16)."""
    pod = tpu_pod("s-0", size=5, leader=True, subgroup_size="2", subgroup_policy_type="LeaderExcluded")
    with pytest.raises(DeniedError, match=r'strconv\.Atoi: parsing "": invalid syntax'):
        admit_pod(pod)


def test_leader_with_a_subgroup_size_of_zero_is_denied() -> None:
    with pytest.raises(DeniedError, match="subgroup-size of pod s-0 must be at least 1"):
        admit_pod(tpu_pod("s-0", size=5, leader=True, subgroup_size="0"))


def test_worker_without_a_leader_name_is_denied() -> None:
    """A worker without a leader name is denied (R-TPU-3)."""
    with pytest.raises(DeniedError, match="parsing parent name from pod worker"):
        accelerators.inject(tpu_pod("worker", size=2), size=2, is_leader=False)


def test_variables_that_exceed_an_object_are_denied() -> None:
    """The names of a million hosts would exceed the object size that the API server can store (R-TPU-4)."""
    with pytest.raises(DeniedError, match=r"pod test-sample-0: TPU_WORKER_HOSTNAMES .* would exceed \d+ bytes"):
        admit_pod(tpu_pod("test-sample-0", size=1_000_000, leader=True))
