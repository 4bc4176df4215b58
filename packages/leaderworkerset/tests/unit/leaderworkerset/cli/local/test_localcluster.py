"""From the words of the command line to the settings of an embedded cluster."""

from pathlib import Path

import pytest

from leaderworkerset.cli.errors import UsageError
from leaderworkerset.cli.local.clusteroptions import ClusterOptions
from leaderworkerset.cli.local.localcluster import nodes_of, noted


def test_words_on_nodes_become_settings() -> None:
    options = ClusterOptions(
        nodes=4,
        node_labels=("rack=r{i//2}",),
        node_taints=("pool=p{i//2}:NoSchedule", "busy:PreferNoSchedule"),
        node_capacity=("cpu=8,memory=32Gi",),
        gpus_per_node=2,
    )
    nodes = nodes_of(options)
    assert nodes.count == 4
    assert nodes.labels == ("rack=r{i//2}",)
    assert nodes.taints == ("pool=p{i//2}:NoSchedule", "busy:PreferNoSchedule")
    assert (nodes.capacity, nodes.gpus) == (("cpu=8,memory=32Gi",), 2)


def test_what_the_machine_lacks_is_noted_once(tmp_path: Path) -> None:
    lost, said = ["limits: they are not enforced", "a way out: pods reach each other only"], tmp_path / "noted"
    note = "Note: without limits: they are not enforced; without a way out: pods reach each other only"
    assert [noted(lost, said), noted(lost, said), noted(lost[:1], said)] == [
        (note,),
        (),
        ("Note: without limits: they are not enforced",),
    ]
    assert [noted([], said), noted(lost, said), noted(lost, tmp_path / "no" / "folder")] == [(), (note,), (note,)]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (ClusterOptions(node_labels=("rack",)), "--node-label: Invalid value: 'rack': must have the form KEY=VALUE"),
        (
            ClusterOptions(nodes=2, node_labels=("rack={1//(1-i)}",)),
            "--node-label: Invalid value: 'rack={1//(1-i)}': division by zero for node 1",
        ),
        (
            ClusterOptions(nodes=2, node_taints=("rack={1//(1-i)}:NoSchedule",)),
            "--node-taint: Invalid value: 'rack={1//(1-i)}': division by zero for node 1",
        ),
        (ClusterOptions(node_taints=("a=b",)), "--node-taint: Invalid value: 'a=b': must have the form"),
        (ClusterOptions(node_capacity=("cpu=x",)), "--node-capacity: Invalid value: 'cpu=x': cpu: "),
        (
            ClusterOptions(gpus_per_node=1, node_capacity=("nvidia.com/gpu=2",)),
            "--gpus-per-node: nvidia.com/gpu is in the capacity too; leave one out",
        ),
    ],
    ids=["label", "later label", "later taint", "taint", "capacity", "twice"],
)
def test_faults_name_the_option_the_word_and_what_to_write(options: ClusterOptions, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        nodes_of(options)
    assert str(caught.value).startswith(told)
