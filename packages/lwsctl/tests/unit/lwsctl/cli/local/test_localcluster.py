"""Tests the conversion of command line options to the settings of an embedded cluster."""

import sys
from pathlib import Path

import click
import msgspec
import pytest
from testkit.fakenvml import FakeMachine, gpus

from lwsctl.cli.errors import CommandError, UsageError
from lwsctl.cli.local.clusteroptions import AUTO, ClusterOptions, Gpus
from lwsctl.cli.local.localcluster import node_settings, sandbox_note


def test_node_options_become_settings() -> None:
    options = ClusterOptions(
        nodes=4,
        node_labels=("rack=r{i//2}",),
        node_taints=("pool=p{i//2}:NoSchedule", "busy:PreferNoSchedule"),
        node_capacity=("cpu=8,memory=32Gi",),
        gpus_per_node=2,
    )
    nodes = node_settings(options)
    assert nodes.count == 4
    assert nodes.labels == ("rack=r{i//2}",)
    assert nodes.taints == ("pool=p{i//2}:NoSchedule", "busy:PreferNoSchedule")
    assert (nodes.capacity, nodes.gpus) == (("cpu=8,memory=32Gi",), 2)


def test_missing_machine_features_are_noted_once(tmp_path: Path) -> None:
    lost, said = ["limits: they are not enforced", "a way out: pods reach each other only"], tmp_path / "sandbox_note"
    note = "Note: without limits: they are not enforced; without a way out: pods reach each other only"
    assert [sandbox_note(lost, said), sandbox_note(lost, said), sandbox_note(lost[:1], said)] == [
        (note,),
        (),
        ("Note: without limits: they are not enforced",),
    ]
    assert [sandbox_note([], said), sandbox_note(lost, said), sandbox_note(lost, tmp_path / "no" / "folder")] == [
        (),
        (note,),
        (note,),
    ]


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
            "--gpus-per-node: nvidia.com/gpu is also specified in the capacity. Remove one of them",
        ),
    ],
    ids=["label", "later label", "later taint", "taint", "capacity", "twice"],
)
def test_option_error_names_option_value_and_syntax(options: ClusterOptions, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        node_settings(options)
    assert str(caught.value).startswith(told)


def test_nodes_of_divides_the_gpus_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FakeMachine(tmp_path / "gpus.json", *gpus(8)).use(monkeypatch)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2")
    nodes = node_settings(ClusterOptions(nodes=2, gpus_per_node="host", node_labels=("rack=r{i}",)))
    assert nodes.devices.by_node == (("GPU-0", "GPU-1"), ("GPU-2",))
    parsed = nodes.parse()
    assert [parsed.settings_of_node(index).capacity["nvidia.com/gpu"] for index in range(parsed.total)] == ["2", "1"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (ClusterOptions(gpus_per_node="host:x"), "--gpus host:x: Invalid value: 'host:x': must be host, or host:N"),
        (
            ClusterOptions(gpus_per_node="host", nodes=9),
            "--gpus host: this machine has 8 GPUs, but nodes cannot share a GPU",
        ),
        (ClusterOptions(gpus_per_node="host", nodes=AUTO), "--gpus host requires --nodes N"),
        (
            ClusterOptions(gpus_per_node="host", node_capacity=("nvidia.com/gpu=2",)),
            "--gpus-per-node: nvidia.com/gpu is also specified in the capacity",
        ),
        (ClusterOptions(gpus_per_node=2, expose_gpus=True), "--expose-gpus requires --gpus host"),
    ],
)
def test_nodes_of_rejects_impossible_gpus(
    options: ClusterOptions, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeMachine(tmp_path / "gpus.json", *gpus(8)).use(monkeypatch)
    with pytest.raises(UsageError) as caught:
        node_settings(options)
    assert str(caught.value).startswith(words)


def test_nodes_of_names_the_package_for_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(CommandError, match="--gpus host: GPUs of this machine require nvidia-ml-py"):
        node_settings(ClusterOptions(gpus_per_node="host"))


def test_gpus_of_unknown_words_are_rejected_by_name() -> None:
    with pytest.raises(click.BadParameter, match="'hosts' is not valid; use a number, auto, host or host:N"):
        Gpus(0, 1024).convert("hosts", None, None)
    assert [Gpus(0, 1024).convert(word, None, None) for word in ("4", "auto", "host:4")] == [4, AUTO, "host:4"]


def test_options_keep_the_gpus_of_this_machine() -> None:
    options = ClusterOptions(gpus_per_node="host:4")
    assert "--gpus-per-node=host:4" in options.arguments()
    assert msgspec.convert(msgspec.to_builtins(options, enc_hook=str), ClusterOptions).gpus_per_node == "host:4"
