"""Tests the admission of pods with random group keys (N-ADM-1 to N-ADM-5, N-ADM-7, N-ADM-10, N-KEY-1)."""

from typing import Any

import pytest

from kuberuntime.objects import meta
from leaderworkerset.api import labels
from leaderworkerset.core.admission.pod import admit_pod
from leaderworkerset.core.policies import identity, replacement

TPU = {"name": "main", "image": "i", "resources": {"limits": {"google.com/tpu": "4"}}}


def posted_pod(annotations: dict[str, str] | None = None, *, container: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a pod as a ReplicaSet creates it, without a name, and with the template's labels and annotations."""
    own = {labels.NAME: "my", labels.WORKER_INDEX: "0", labels.TEMPLATE_REVISION_HASH: "k"}
    marked = {labels.SIZE: "4", labels.GROUP_IDENTITY: "Hash"} | (annotations or {})
    return {
        "metadata": {"generateName": "my-7d9f8b6c4-", "namespace": "ns", "labels": own, "annotations": marked},
        "spec": {"subdomain": "my", "containers": [container or {"name": "main", "image": "i"}]},
    }


def worker(leader: dict[str, Any], index: int, annotations: dict[str, str] | None = None) -> dict[str, Any]:
    """Return a worker pod of the StatefulSet that is named after the leader's host."""
    host, subdomain = meta.spec(leader)["hostname"], meta.spec(leader)["subdomain"]
    inherited = {key: meta.labels(leader)[key] for key in (labels.NAME, labels.GROUP_INDEX, labels.GROUP_KEY)}
    address = {labels.LEADER_ADDRESS: f"{host}.{subdomain}.ns", labels.LEADER_NAME: "my-7d9f8b6c4-x2kkp"}
    made = posted_pod(address | (annotations or {}), container=TPU)
    metadata = {"name": f"{host}-{index}", "namespace": "ns", "labels": inherited}
    return made | {
        "metadata": metadata | {"annotations": meta.annotations(made)},
        "spec": made["spec"] | {"hostname": f"{host}-{index}", "subdomain": subdomain},
    }


def variables(admitted: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in meta.spec(admitted)["containers"][0]["env"]}


def test_leader_gets_a_random_key_and_a_host_name() -> None:
    """A leader receives a random key and a host name (N-ADM-1 to N-ADM-3)."""
    admitted = admit_pod(posted_pod(), request="one")
    key = meta.labels(admitted)[labels.GROUP_KEY]

    assert key == identity.group_hash("ns", "one")
    assert len(key) == 40
    assert meta.labels(admitted)[labels.GROUP_INDEX] == key
    assert meta.spec(admitted)["hostname"] == f"my-{key[:8]}"
    assert meta.spec(admitted)["subdomain"] == "my"
    assert meta.labels(admit_pod(posted_pod(), request="other"))[labels.GROUP_KEY] != key


def test_leader_keeps_its_own_host_name() -> None:
    """A leader retains its host name (N-ADM-3)."""
    named = posted_pod()
    named["spec"]["hostname"] = "head"

    assert meta.spec(admit_pod(named, request="one"))["hostname"] == "head"


def test_group_service_has_the_host_name_as_subdomain() -> None:
    """The subdomain of the group Service equals the host name (N-ADM-3)."""
    spec = meta.spec(admit_pod(posted_pod({labels.SUBDOMAIN_POLICY: "UniquePerReplica"}), request="one"))

    assert spec["subdomain"] == spec["hostname"]


@pytest.mark.parametrize("given", [{labels.GROUP_KEY: "mine"}, {labels.GROUP_KEY: "a", labels.GROUP_INDEX: "b"}])
def test_group_key_of_a_template_is_replaced(given: dict[str, str]) -> None:
    """If the template key were used, all groups would have the same key (N-ADM-2)."""
    posted = posted_pod()
    posted["metadata"]["labels"] |= given

    assert meta.labels(admit_pod(posted, request="one"))[labels.GROUP_KEY] == identity.group_hash("ns", "one")


def test_leader_gets_a_gate_and_a_low_deletion_cost() -> None:
    """Other gates are not removed (N-ADM-4)."""
    gated = posted_pod()
    gated["spec"]["schedulingGates"] = [{"name": "other"}]
    admitted = admit_pod(gated, request="one")

    assert meta.spec(admitted)["schedulingGates"] == [{"name": "other"}, {"name": labels.REPLACEMENT_GATE}]
    assert meta.annotations(admitted)[labels.POD_DELETION_COST] == replacement.GATED_COST
    assert replacement.is_gated(admitted)
    assert not replacement.is_gated(gated)


def test_deletion_cost_of_the_user_is_kept() -> None:
    """The user's deletion cost is not changed (N-ADM-4)."""
    admitted = admit_pod(posted_pod({labels.POD_DELETION_COST: "7"}), request="one")

    assert meta.annotations(admitted)[labels.POD_DELETION_COST] == "7"


@pytest.mark.parametrize("other", ["one", "another"])
def test_second_admission_changes_nothing(other: str) -> None:
    """A webhook that is called twice for a pod finds its previous key (N-AT-3, N-ADM-6)."""
    spread = {labels.EXCLUSIVE_TOPOLOGY: "rack", labels.SUBGROUP_EXCLUSIVE_TOPOLOGY: "host", labels.SUBGROUP_SIZE: "2"}
    once = admit_pod(posted_pod(spread, container=TPU), request="one")
    key = meta.labels(once)[labels.GROUP_KEY]

    assert admit_pod(once, request=other) == once
    terms = meta.spec(once)["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    keys = [term["labelSelector"]["matchExpressions"][0]["values"] for term in terms]
    assert keys == [[key], [identity.group_hash(key, "0")]]
    assert variables(once)[labels.ENV_LEADER_ADDRESS] == f"my-{key[:8]}.my.ns"


def test_workers_share_the_subgroup_key_of_their_leader() -> None:
    """The key derives from the group key, because a leader has no name at admission (N-ADM-5)."""
    halves = {labels.SUBGROUP_SIZE: "2"}
    leader = admit_pod(posted_pod(halves), request="one")
    first, last = (admit_pod(worker(leader, index, halves)) for index in (1, 3))

    key = meta.labels(leader)[labels.GROUP_KEY]
    assert meta.labels(leader)[labels.SUBGROUP_KEY] == meta.labels(first)[labels.SUBGROUP_KEY]
    assert meta.labels(last)[labels.SUBGROUP_KEY] == identity.group_hash(key, "1")


def test_workers_get_key_and_address_from_their_template() -> None:
    """Workers do not receive a gate (N-ADM-7, N-KEY-1)."""
    leader = admit_pod(posted_pod({labels.SUBDOMAIN_POLICY: "UniquePerReplica"}), request="one")
    admitted = admit_pod(worker(leader, 2), request="other")
    host = meta.spec(leader)["hostname"]

    assert meta.labels(admitted)[labels.GROUP_KEY] == meta.labels(leader)[labels.GROUP_KEY]
    assert meta.labels(admitted)[labels.WORKER_INDEX] == "2"
    assert variables(admitted)[labels.ENV_LEADER_ADDRESS] == f"{host}.{host}.ns"
    assert variables(leader)[labels.ENV_LEADER_ADDRESS] == f"{host}.{host}.ns"
    assert "schedulingGates" not in meta.spec(admitted)


SLICES: list[tuple[dict[str, str], list[str]]] = [
    ({}, ["", "-1", "-2", "-3"]),
    ({labels.SUBGROUP_SIZE: "2"}, ["", "-1"]),
]


@pytest.mark.parametrize(("subgroups", "hosts"), SLICES, ids=["group", "subgroup"])
def test_leader_and_workers_agree_on_tpu_host_names(subgroups: dict[str, str], hosts: list[str]) -> None:
    """The variables of leaders and workers use the leader's host name (N-AT-2, N-ADM-10)."""
    leader = admit_pod(posted_pod(subgroups, container=TPU), request="one")
    second = admit_pod(worker(leader, 1, {labels.LEADER_REQUESTS_TPUS: "true"} | subgroups))
    host = meta.spec(leader)["hostname"]

    expected = {
        "TPU_WORKER_HOSTNAMES": ",".join(f"{host}{end}.my" for end in hosts),
        "TPU_PROCESS_ADDRESSES": ",".join(f"{host}{end}.my:8476" for end in hosts),
        "TPU_NAME": host,
    }
    assert variables(leader).items() >= (expected | {"TPU_WORKER_ID": "0"}).items()
    assert variables(second).items() >= (expected | {"TPU_WORKER_ID": "1"}).items()


def test_tpu_hosts_omit_a_leader_without_tpus() -> None:
    """The list of TPU hosts does not contain a leader without TPUs (N-AT-2)."""
    excluded = {labels.SUBGROUP_SIZE: "3", labels.SUBGROUP_POLICY_TYPE: "LeaderExcluded"}
    leader = admit_pod(posted_pod(excluded), request="one")
    host = meta.spec(leader)["hostname"]

    found = variables(admit_pod(worker(leader, 2, excluded)))

    assert found["TPU_WORKER_HOSTNAMES"] == f"{host}-1.my,{host}-2.my,{host}-3.my"
    assert found["TPU_NAME"] == host
