"""Tests the admission of pods (R-ADM, R-ENV)."""

import copy
from typing import Any

import pytest

from leaderworkerset.core.admission.pod import admit_pod
from leaderworkerset.core.policies.policy import DeniedError

P = "leaderworkerset.sigs.k8s.io/"
GROUP_KEY = "95e88034e460983f51a9952fe128729fbc0663b5"


def pod(
    name: str,
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    spec: dict[str, Any] | None = None,
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {P + "name": "test"} | {P + key: value for key, value in (labels or {}).items()},
            "annotations": {P + "size": "5"} | {P + key: value for key, value in (annotations or {}).items()},
        },
        "spec": {"subdomain": "test", "containers": [{"name": "main", "image": "i"}]} | (spec or {}),
    }


def leader(name: str = "test-sample", **parts: Any) -> dict[str, Any]:
    return pod(name, **parts | {"labels": {"worker-index": "0", "group-index": "1"} | parts.pop("labels", {})})


def worker(name: str = "test-1-3", **parts: Any) -> dict[str, Any]:
    given = {"group-index": "1", "group-key": "k"} | parts.pop("labels", {})
    annotations = {"leader-name": "test-1"} | parts.pop("annotations", {})
    return pod(name, labels=given, annotations=annotations, **parts)


def own_labels(obj: dict[str, Any]) -> dict[str, str]:
    return {key.removeprefix(P): value for key, value in obj["metadata"]["labels"].items()}


def names_of(container: dict[str, Any]) -> list[str]:
    return [entry["name"] for entry in container["env"]]


def test_other_pods_are_not_changed() -> None:
    """Pods without a LeaderWorkerSet are not changed (R-ADM-1)."""
    foreign = pod("web-0")
    foreign["metadata"]["labels"] = {"app": "web"}
    assert admit_pod(foreign) is foreign


def test_given_pod_is_not_mutated() -> None:
    given = leader(annotations={"exclusive-topology": "rack", "subgroup-size": "1"}, spec={"affinity": {}})
    before = copy.deepcopy(given)
    admit_pod(given)
    assert given == before


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        ({}, "size annotation is unexpectedly missing for pod test-1"),
        ({P + "size": "many"}, 'strconv.Atoi: parsing "many": invalid syntax'),
        ({P + "size": "1" * 30}, f'strconv.Atoi: parsing "{"1" * 30}": value out of range'),
    ],
)
def test_size_must_be_a_number(annotations: dict[str, str], message: str) -> None:
    """The size must be a number (R-ADM-1)."""
    bad = leader("test-1")
    bad["metadata"]["annotations"] = annotations
    with pytest.raises(DeniedError) as caught:
        admit_pod(bad)
    assert str(caught.value) == message


def test_pod_without_a_worker_index_is_a_worker() -> None:
    """A pod with the name of a leader is treated as worker 0 (R-ADM-2, Q-1)."""
    admitted = admit_pod(pod("test-pod-0", labels={"group-index": "0"}))
    assert own_labels(admitted)["worker-index"] == "0"
    assert "group-key" not in own_labels(admitted)


@pytest.mark.parametrize(
    ("name", "group_index"), [("test-7", "7"), ("a-1-0", "0"), ("a--1", "1"), ("test-sample-12", "12")]
)
def test_leader_gets_its_group_index_from_its_name(name: str, group_index: str) -> None:
    """A leader's group index is derived from its name (R-ADM-3, R-ADM-4)."""
    assert own_labels(admit_pod(pod(name, labels={"worker-index": "0"})))["group-index"] == group_index


@pytest.mark.parametrize("name", ["a1", "a-", "test-sample"])
@pytest.mark.parametrize("labels", [{"worker-index": "0"}, {}], ids=["leader", "worker"])
def test_name_without_an_ordinal_is_denied(name: str, labels: dict[str, str]) -> None:
    """A name without an ordinal is denied (R-ADM-3, R-ADM-4, R-ADM-10)."""
    with pytest.raises(DeniedError, match=f"parsing pod ordinal for pod {name}"):
        admit_pod(pod(name, labels=labels))


def test_leader_keeps_its_group_index_and_gets_a_group_key() -> None:
    """A leader retains its group index and receives a group key (R-ADM-4, R-ADM-6)."""
    found = own_labels(admit_pod(leader("test-sample")))
    assert (found["group-index"], found["group-key"]) == ("1", GROUP_KEY)


def test_leader_keeps_its_group_key() -> None:
    """A leader retains its group key (R-ADM-6)."""
    admitted = admit_pod(leader(labels={"group-key": "mine"}, annotations={"exclusive-topology": "rack"}))
    assert own_labels(admitted)["group-key"] == "mine"
    affinity = admitted["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert affinity[0]["labelSelector"]["matchExpressions"][0]["values"] == ["mine"]


def test_group_affinity_precedes_subgroup_affinity() -> None:
    """The order of the affinity terms is fixed (R-ADM-7, R-ADM-9)."""
    annotations = {"subgroup-size": "2", "exclusive-topology": "rack", "subgroup-exclusive-topology": "block"}
    affinity = admit_pod(leader(annotations=annotations))["spec"]["affinity"]
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity[kind]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert [term["topologyKey"] for term in terms] == ["rack", "block"]


@pytest.mark.parametrize(
    ("labels", "annotations"),
    [
        ({}, {"subgroup-size": "2", "subgroup-policy-type": "LeaderExcluded"}),
        ({"subgroup-index": "4"}, {"subgroup-size": "2"}),
        ({}, {"subgroup-policy-type": "LeaderWorker"}),
    ],
    ids=["excluded", "has one", "no subgroups"],
)
def test_excluded_leader_joins_no_subgroup(labels: dict[str, str], annotations: dict[str, str]) -> None:
    """An excluded leader does not join a subgroup (R-ADM-8)."""
    admitted = admit_pod(leader(labels=labels, annotations=annotations))
    assert "subgroup-key" not in own_labels(admitted)


def test_worker_gets_its_index_from_its_name() -> None:
    """An existing worker index is overwritten. Group index and group key do not change (R-ADM-10)."""
    found = own_labels(admit_pod(worker("test-1-3", labels={"worker-index": "9"})))
    assert (found["worker-index"], found["group-index"], found["group-key"]) == ("3", "1", "k")


def test_worker_keeps_its_subgroup() -> None:
    """A worker retains its subgroup (R-ADM-11)."""
    admitted = admit_pod(worker(labels={"subgroup-index": "4"}, annotations={"subgroup-size": "2"}))
    assert "subgroup-key" not in own_labels(admitted)


@pytest.mark.parametrize(
    ("size", "message"), [("x", r'strconv\.Atoi: parsing "x"'), ("0", "subgroup-size of pod test-1-3 must be at least")]
)
def test_invalid_subgroup_size_denies_a_worker(size: str, message: str) -> None:
    with pytest.raises(DeniedError, match=message):
        admit_pod(worker(annotations={"subgroup-size": size}))


INJECTED = ["LWS_LEADER_ADDRESS", "LWS_GROUP_SIZE", "LWS_WORKER_INDEX", "LWS_GROUP_INDEX"]


def test_injected_variables_are_first_in_every_container() -> None:
    """The variable for the group index follows the other group variables (R-ENV-1, R-ENV-2)."""
    spec = {
        "containers": [{"name": "a", "env": [{"name": "X", "value": "1"}]}, {"name": "b"}],
        "initContainers": [{"name": "i", "env": None}],
        "ephemeralContainers": [{"name": "e"}],
    }
    admitted = admit_pod(worker("test-1-3", spec=spec))["spec"]
    values = ["test-1.test.default", "5", "3", "1"]
    expected = [{"name": name, "value": value} for name, value in zip(INJECTED, values, strict=True)]
    assert admitted["containers"][0]["env"] == [*expected, {"name": "X", "value": "1"}]
    assert admitted["containers"][1]["env"] == expected
    assert admitted["initContainers"][0]["env"] == expected
    assert admitted["ephemeralContainers"] == [{"name": "e"}]


def test_injected_variables_override_those_of_the_user() -> None:
    """If the user's variables contain a duplicate name, the first one is used (R-ENV-3)."""
    env = [
        {"name": "X", "value": "1"},
        {"name": "LWS_GROUP_SIZE", "value": "99"},
        {"name": "X", "value": "2"},
        {"name": "Y", "value": "3"},
    ]
    container = admit_pod(worker(spec={"containers": [{"name": "a", "env": env}]}))["spec"]["containers"][0]
    assert names_of(container) == [*INJECTED, "X", "Y"]
    assert container["env"][1]["value"] == "5"
    assert container["env"][4]["value"] == "1"


def test_group_index_variable_of_the_user_is_kept() -> None:
    env = [{"name": "X", "value": "1"}, {"name": "LWS_GROUP_INDEX", "value": "mine"}]
    container = admit_pod(worker(spec={"containers": [{"name": "a", "env": env}]}))["spec"]["containers"][0]
    assert names_of(container) == [*INJECTED[:3], "X", "LWS_GROUP_INDEX"]
    assert container["env"][4]["value"] == "mine"


def test_address_is_incomplete_without_a_subdomain() -> None:
    container = admit_pod(worker(spec={"subdomain": None}))["spec"]["containers"][0]
    assert container["env"][0]["value"] == "test-1..default"


def test_worker_without_a_group_index_is_denied() -> None:
    """A worker without a group index is denied (R-ENV-5)."""
    with pytest.raises(DeniedError) as caught:
        admit_pod(pod("test-1-3"))
    assert str(caught.value) == (
        "Failure constructing environment variables, no group index label found for pod default/test-1-3"
    )
