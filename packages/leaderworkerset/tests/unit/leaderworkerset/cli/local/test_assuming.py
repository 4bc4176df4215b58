"""What is typed about nodes stands beside what is found automatically, and before it."""

import pytest
from msgspec.structs import replace

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.cli.errors import CommandError
from leaderworkerset.cli.local.assuming import assume
from leaderworkerset.cli.local.clusteroptions import AUTO, ClusterOptions
from leaderworkerset.cli.reading.manifests import Document

EVERYTHING = ClusterOptions(nodes=AUTO, gpus_per_node=AUTO)


def pods(number: int = 2, **spec: object) -> list[Document]:
    containers = [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": 4, "rdma/ib": 1}}}]
    template = {"spec": {"containers": containers, "nodeSelector": {"pool": "gpu"}, **spec}}
    obj: JSONObject = {
        "kind": "StatefulSet",
        "metadata": {"name": "a"},
        "spec": {"replicas": number, "template": template},
    }
    return [Document("a.yaml", 1, 1, obj)]


def test_nodes_and_devices_are_found_in_the_manifest() -> None:
    found = assume(pods(), EVERYTHING)
    assert (found.nodes.count, found.nodes.labels) == (2, ("pool=gpu",))
    assert found.nodes.capacity == ("nvidia.com/gpu=4", "rdma/ib=1")
    assert found.lines == ("assumed: 2 nodes with label pool=gpu, nvidia.com/gpu=4, rdma/ib=1 (for statefulset/a)",)


def test_what_is_typed_is_said_of_every_node_and_wins() -> None:
    typed = replace(EVERYTHING, node_labels=("pool=mine",), node_capacity=("rdma/ib=9",), node_taints=("t:NoSchedule",))
    found = assume(pods(), typed)
    assert found.nodes.labels == ("pool=mine",)
    assert found.nodes.capacity == ("nvidia.com/gpu=4", "rdma/ib=9")
    assert found.nodes.taints == ("t:NoSchedule",)
    assert assume(pods(), replace(EVERYTHING, gpus_per_node=8)).nodes.capacity == ("nvidia.com/gpu=8",)


def test_a_number_of_nodes_with_the_devices_that_are_asked_for() -> None:
    found = assume(pods(), ClusterOptions(nodes=3, gpus_per_node=AUTO, node_labels=("pool=gpu",)))
    assert (found.nodes.count, found.nodes.capacity) == (3, ("nvidia.com/gpu=4", "rdma/ib=1"))


def test_without_auto_nothing_is_assumed_and_what_is_lacking_is_offered() -> None:
    found = assume(pods(), ClusterOptions(gpus_per_node=8))
    assert (found.nodes.count, found.nodes.gpus) == (1, 8)
    (note,) = found.lines
    assert "note: no node here has what the manifest requires (rdma/ib, label pool), so pods will wait" in note
    whole = ClusterOptions(gpus_per_node=8, node_labels=("pool=gpu",), node_capacity=("cpu=4,rdma/ib=1",))
    assert assume(pods(), whole).lines == ()


def test_more_nodes_than_are_simulated_are_refused_with_the_number() -> None:
    with pytest.raises(CommandError, match="the manifest needs 1001 nodes, and at most 1000 are simulated"):
        assume(pods(1001), EVERYTHING)


def test_a_manifest_without_pods_gets_a_node() -> None:
    assert assume([], EVERYTHING).nodes.count == 1


@pytest.mark.parametrize("options", [EVERYTHING, ClusterOptions()], ids=["derived", "typed"])
def test_a_scheduler_that_the_cluster_does_not_run_is_refused(options: ClusterOptions) -> None:
    with pytest.raises(CommandError, match=r"^a\.yaml.*: schedulerName volcano: the cluster of lws run has no such"):
        assume(pods(schedulerName="volcano"), options)
    assert assume(pods(schedulerName="default-scheduler"), options).documents
