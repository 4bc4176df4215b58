"""Tests that node options override the detected requirements."""

import pytest
from msgspec.structs import replace

from kuberuntime.objects.meta import JSONObject
from lwsctl.cli.errors import CommandError
from lwsctl.cli.local.autonodes import derive_cluster
from lwsctl.cli.local.clusteroptions import AUTO, ClusterOptions
from lwsctl.cli.reading.manifests import Document

EVERYTHING = ClusterOptions(nodes=AUTO, gpus_per_node=AUTO)


def pods(number: int = 2, **spec: object) -> list[Document]:
    containers = [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": 4, "rdma/ib": 1}}}]
    template = {"spec": {"containers": containers, "nodeSelector": {"pool": "gpu"}, **spec}}
    obj: JSONObject = {
        "kind": "StatefulSet",
        "metadata": {"name": "a"},
        "spec": {"replicas": number, "template": template},
    }
    return [Document("a.yaml", 1, obj)]


def test_nodes_and_devices_are_derived_from_the_manifest() -> None:
    found = derive_cluster(pods(), EVERYTHING)
    assert (found.nodes.count, found.nodes.labels) == (2, ("pool=gpu",))
    assert found.nodes.capacity == ("nvidia.com/gpu=4", "rdma/ib=1")
    assert found.lines == ("assumed: 2 nodes with label pool=gpu, nvidia.com/gpu=4, rdma/ib=1 (for statefulset/a)",)


def test_options_apply_to_every_node_and_take_precedence() -> None:
    typed = replace(EVERYTHING, node_labels=("pool=mine",), node_capacity=("rdma/ib=9",), node_taints=("t:NoSchedule",))
    found = derive_cluster(pods(), typed)
    assert found.nodes.labels == ("pool=mine",)
    assert found.nodes.capacity == ("nvidia.com/gpu=4", "rdma/ib=9")
    assert found.nodes.taints == ("t:NoSchedule",)
    assert derive_cluster(pods(), replace(EVERYTHING, gpus_per_node=8)).nodes.capacity == ("nvidia.com/gpu=8",)


def test_given_number_of_nodes_gets_the_requested_devices() -> None:
    found = derive_cluster(pods(), ClusterOptions(nodes=3, gpus_per_node=AUTO, node_labels=("pool=gpu",)))
    assert (found.nodes.count, found.nodes.capacity) == (3, ("nvidia.com/gpu=4", "rdma/ib=1"))


def test_missing_resources_are_noted_without_auto() -> None:
    found = derive_cluster(pods(), ClusterOptions(gpus_per_node=8))
    assert (found.nodes.count, found.nodes.gpus) == (1, 8)
    (note,) = found.lines
    assert "note: no node meets the requirements of the manifest (rdma/ib, label pool), so pods remain pending" in note
    whole = ClusterOptions(gpus_per_node=8, node_labels=("pool=gpu",), node_capacity=("cpu=4,rdma/ib=1",))
    assert derive_cluster(pods(), whole).lines == ()


def test_too_many_nodes_are_rejected_with_the_number() -> None:
    with pytest.raises(CommandError, match="the manifest requires 1001 nodes, but at most 1000 are simulated"):
        derive_cluster(pods(1001), EVERYTHING)


def test_manifest_without_pods_gets_a_node() -> None:
    assert derive_cluster([], EVERYTHING).nodes.count == 1


@pytest.mark.parametrize("options", [EVERYTHING, ClusterOptions()], ids=["derived", "typed"])
def test_scheduler_that_the_cluster_does_not_run_is_rejected(options: ClusterOptions) -> None:
    with pytest.raises(CommandError, match=r"^a\.yaml.*: scheduler volcano is not available in the cluster of lws run"):
        derive_cluster(pods(schedulerName="volcano"), options)
    assert derive_cluster(pods(schedulerName="default-scheduler"), options).documents
